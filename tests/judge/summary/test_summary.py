"""The answer on one screen: what it chooses, what it counts, and what it says is missing."""

from __future__ import annotations

from dataclasses import fields

import pytest

from bench.judge.claims.facts import load_facts
from bench.judge.claims.verdicts import judge_claims
from bench.judge.damage import damaged_row
from bench.judge.findings import Findings
from bench.judge.summary import summarize
from bench.judge.summary.evidence import KINDS, LEFT_OUT
from bench.plan.config import CONFIGS
from bench.stored import sheets
from tests.judge.claims.claim_findings import FACTS, PTI, accepted, speed
from tests.report import report_stand_ins as made

TWO = [speed(machine="a", cells=["a" * 12]), speed(machine="b", cells=["b" * 12], ci_low=0.2, ci_high=1.3)]


def judged(*names: str, **tables):
    findings = Findings(**tables)
    return findings, judge_claims([PTI[name] for name in names], findings, FACTS)


def test_the_shipped_sheets_mark_eight_to_ten_claims_each_with_a_place_of_its_own():
    places = [claim.headline for claim in sheets("all") if claim.headline is not None]
    assert 8 <= len(places) <= 10
    assert sorted(places) == list(range(1, len(places) + 1))
    found = summarize(Findings(), judge_claims(sheets("all"), Findings(), load_facts(CONFIGS / "facts")))
    assert found.marked and len(found.headlines) == len(places)
    assert [one.lead.headline for one in found.headlines] == sorted(places)
    assert all(one.says and one.why and one.would_change for one in found.headlines)


def test_a_claim_of_several_machines_is_told_once_with_the_narrowest_interval_first():
    findings, rows = judged("pti.four_streams.rate", speedup=TWO)
    (found,) = summarize(findings, rows).headlines
    assert found.lead.machine == "a" and [row.machine for row in found.others] == ["b"]
    assert found.places == (("refuted", ("a",)), ("inconclusive", ("b",)))


def test_sheets_without_a_mark_tell_what_records_decided_first_in_their_order():
    names = [name for name, claim in PTI.items() if claim.headline is None]
    findings, rows = judged(*names, speedup=[speed()], acceptance=[accepted()])
    found = summarize(findings, rows)
    assert not found.marked and len(found.headlines) == 10
    measured = {row.claim_id for row in rows if row.judged_by == "records" and row.cells}
    assert {one.claim_id for one in found.headlines if one.kind == "measured here"} == measured and measured
    order = [names.index(one.claim_id) for one in found.headlines]
    assert order == sorted(order)
    few = summarize(*judged(*names[:3]))
    assert [one.claim_id for one in few.headlines] == names[:3]


def test_every_verdict_is_counted_under_one_kind_of_evidence():
    findings, rows = judged(*PTI, speedup=[speed()])
    found = summarize(findings, rows)
    assert [one.kind for one in found.evidence] == [kind for kind in KINDS if kind != LEFT_OUT]
    assert sum(one.total for one in found.evidence) == found.verdicts == len(rows)
    assert found.claims == len(PTI)
    by_kind = {one.kind: one.counts for one in found.evidence}
    assert set(by_kind["not run"]) <= {"not_run", "not_comparable"}
    assert by_kind["measured here"]["refuted"] and by_kind["arithmetic"]["reproduced"] and by_kind["sources"]


def contrast(cell: str, again: str = "ok", stall: str = "ok", **beside):
    checks = [made.made("controls", made.origin(cell), {"cell": cell, "control": name, "severity": severity, "ok": True,
                                                         "sentence": "as it is"})
              for name, severity in (("again", again), ("stall", stall))]  # fmt: skip
    return made.cell_row(cell, **{"stalled": 0.0, **beside}), checks


@pytest.mark.parametrize(("cells", "verdict", "told"), [
    ([{}] * 3, "quiet", "stalls in 0 of 3 cells took 0 % of the time; A/A agrees in 3 of 3"),
    ([{"stall": "warning", "stalled": 0.04}, {}, {}], "disturbed", "stalls in 1 of 3 cells took 1.3 % of the time"),
    ([{"stall": "warning", "stalled": 0.02}, {}, {}], "quiet", "0.67 % of the time (in no estimate)"),
    ([{"again": "void"}, {}, {}], "disturbed", "agrees in 2 of 3, is off in 1 (void)"),
    ([{"again": "warning"}, {"again": "warning"}, {}], "cannot tell", "is too wide to tell in 2"),
    ([{"other_cpus": 0.8}, {"other_cpus": 0.4}, {}], "disturbed", "all else took 0.60 CPUs in the 2 cells that tell"),
    ([{"steal": 0.2, "other_cpus": 0.01}], "disturbed", "all else took 0.01 CPUs and the hypervisor took 0.20 CPUs"),
])  # fmt: skip
def test_whether_the_machine_was_quiet(cells, verdict, told):
    rows = [contrast(f"{place:012d}", **one) for place, one in enumerate(cells)]
    found = summarize(Findings(cells=[row for row, _ in rows], controls=[c for _, more in rows for c in more]), [])
    (machine,) = found.machines
    assert machine.verdict == verdict
    assert told in machine.sentence


def test_a_profile_says_nothing_of_quiet():
    assert not summarize(Findings(cells=[made.cell_row("c" * 12, kind="profile")]), []).machines


def test_what_is_missing_is_told_the_gravest_first():
    found = summarize(Findings(), [], ["sheet.yaml: claim 'x' lacks rule"]).missing
    assert [one.kind for one in found] == ["no cells", "sheet"]
    cells = [made.cell_row("c" * 12, state="failed"), made.cell_row("d" * 12, void=True), made.cell_row("e" * 12),
             damaged_row("laptop", "f" * 12, "it is cut")]  # fmt: skip
    found = summarize(Findings(cells=cells), []).missing
    assert [(one.kind, one.count, one.cells) for one in found] == [
        ("damaged", 1, ("f" * 12,)), ("failed", 1, ("c" * 12,)), ("void", 1, ("d" * 12,)),
    ]  # fmt: skip
    assert all(one.sentence.startswith("1 of 4 cells ") for one in found)


def test_the_summary_is_made_of_plain_fields_that_every_printer_can_read():
    assert [one.name for one in fields(summarize(Findings(), []))] == [
        "machines", "headlines", "marked", "evidence", "claims", "verdicts", "missing", "only",
    ]  # fmt: skip

"""Claims to verdicts: which rows speak for one, what needs no record, and what every row of the answer says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.judge.claims.sheet import VERDICTS, load_sheet
from bench.judge.claims.verdicts import judge_claims
from bench.judge.findings import Findings
from tests.judge.claims.claim_findings import FACTS, PTI, accepted, claim_of, speed, step, verdict


def test_c29_a_gain_at_one_stream_does_not_transfer(tmp_path: Path) -> None:
    rates = ((1, 10, 20), (2, 19, 16), (4, 33, 26))
    rows = [
        speed(method="mtp", streams=n, speedup=mtp / none, ci_low=mtp / none - 0.02, ci_high=mtp / none + 0.02)
        for n, none, mtp in rates
    ]
    one = claim_of(tmp_path)
    found = {n: verdict(replace(one, scope={**one.scope, "streams": n}), speedup=rows)["verdict"] for n, _, _ in rates}
    assert found == {1: "reproduced", 2: "refuted", 4: "refuted"}
    assert verdict(replace(one, scope={**one.scope, "streams": "any"}), speedup=rows)["verdict"] == "refuted"
    assert verdict(replace(one, scope={**one.scope, "streams": [1, 2]}), speedup=rows)["verdict"] == "inconclusive"


def test_void_rows_support_nothing() -> None:
    void = speed(void=True, void_reason="the A/A control is off by 8 %")
    row = verdict("pti.four_streams.speedup", speedup=[void])
    assert row["verdict"] == "inconclusive"
    assert "A/A control is off by 8 %" in row["reason"]
    row = verdict("pti.four_streams.speedup", speedup=[void, speed(cells=["dddddddddddd"])])
    assert row["verdict"] == "refuted"
    assert row["cells"] == ["dddddddddddd"]
    assert "1 void rows were left out" in row["reason"]


def test_every_machine_and_build_gets_a_row() -> None:
    rows = [speed(), speed(machine="server", build="cuda-2", speedup=1.99, ci_low=1.97, ci_high=2.01)]
    found = judge_claims([PTI["pti.four_streams.speedup"]], Findings(speedup=rows), FACTS)
    assert [(row["machine"], row["build"], row["verdict"]) for row in found] == [
        ("laptop", "cpu-1", "refuted"),
        ("server", "cuda-2", "reproduced"),
    ]


def test_models_that_disagree_leave_it_open() -> None:
    rows = [speed(), speed(model="other", speedup=1.99, ci_low=1.97, ci_high=2.01)]
    row = verdict("pti.four_streams.speedup", speedup=rows)
    assert row["verdict"] == "inconclusive"
    assert "1 refuted, 1 reproduced" in row["reason"]
    assert "Against it" in row["reason"]


def test_scope_selects_rows() -> None:
    others = [speed(streams=3), speed(emission="distinct"), speed(temperature=0.7), speed(scope="aggregate"),
              speed(prompt_class="prose"), speed(method="packed"), speed(rebuild="exact")]  # fmt: skip
    assert verdict("pti.four_streams.speedup", speedup=others)["verdict"] == "not_run"


@pytest.mark.parametrize(
    ("name", "expected", "measured"),
    [
        ("traffic.activations", "refuted", 1.42606336), ("traffic.ratio", "refuted", 16),
        ("traffic.tiles", "misstated", 4352),
        ("traffic.weights", "reproduced", 89.12896), ("traffic.vectors", "reproduced", 80),
        ("bandwidth.bound", "reproduced", 37.037),
        ("tokens_per_round.p100", "reproduced", 4), ("tokens_per_round.p075", "misstated", 2.734375),
        ("tokens_per_round.p060", "misstated", 2.176), ("tokens_per_round.p040", "misstated", 1.624),
        ("two_streams.ratio", "reproduced", 1.57216), ("two_streams_q5.ratio", "misstated", 1.36967),
        ("four_streams.counted_tokens", "reproduced", 317), ("four_streams.distinct_tokens", "reproduced", 83),
        ("four_streams.distinct_rate", "reproduced", 9.9757), ("memory.per_sequence", "refuted", 0.26667),
        ("memory.sequence_log", "reproduced", 277.625), ("memory.kv_token", "reproduced", 64),
        ("memory.state", "reproduced", 149.625),
        ("bandwidth.q5_effective", "reproduced", 392.46), ("bandwidth.ceiling_393", "refuted", 1.02611),
        ("bandwidth.ceiling_460", "refuted", 1.20104), ("projection.gb_per_token", "reproduced", 4.94681),
        ("projection.mtp_rate", "reproduced", 80.204), ("projection.gemv_70", "reproduced", 70.545),
        ("projection.mtp_tokens", "reproduced", 3.76), ("projection.limit", "reproduced", 1.96078),
        ("ssq.block", "reproduced", 68), ("ssq.same_bytes", "reproduced", 68),
        ("format.more_weights", "reproduced", 60),
        ("format.more_bandwidth", "refuted", 0), ("device.l2", "refuted", 4), ("device.process", "refuted", 7),
        ("device.peak", "reproduced", 1024), ("device.matrix", "refuted", None),
        ("honest.ceiling", "misstated", 4 / 3), ("honest.ceiling.reach", "refuted", 1),
        ("bandwidth.ideal_four", "refuted", 77.6), ("memory.no_extra", "refuted", 0.8),
        ("memory.q8_size", "refuted", 28.6875), ("traffic.vector", "reproduced", 20),
        ("projection.share_low", "refuted", 2.8), ("projection.share_high", "refuted", 3.2),
        ("projection.limit.four", "reproduced", 3.9984), ("kernel.gcn_rows_one", "refuted", 1),
        ("kernel.gcn_warps", "reproduced", 2), ("source.lines", "refuted", 445),
        ("step_cost.replica_gate_four", "refuted", 11.6959), ("memory.total_4.parts", "reproduced", 24.5145),
    ],
)  # fmt: skip
def test_what_needs_no_record(name: str, expected: str, measured: float | None) -> None:
    row = verdict(f"pti.{name}")
    assert row["verdict"] == expected
    assert row["measured"] == (None if measured is None else pytest.approx(measured, rel=1e-4, abs=1e-9))


def test_the_wrong_prefix_is_named() -> None:
    assert "1360 MiB over 1000" in verdict("pti.traffic.activations")["reason"]


def test_rounding_of_the_inputs_decides_between_refuted_and_inconclusive(tmp_path: Path) -> None:
    def judged(published: str, denominator: str) -> str:
        rule = f"{{kind: arithmetic, formula: ratio, inputs: {{numerator: 28.9, denominator: {denominator}}}}}"
        return verdict(claim_of(tmp_path, published=published, rule=rule, metric="arithmetic"))["verdict"]

    assert judged("1.38", "21.1") == "misstated"
    assert judged("1.373", "{value: 21.1, within: 0.05}") == "inconclusive"
    assert judged("1.38", "{value: 21, within: 0.5}") == "reproduced"
    assert judged("1.50", "{value: 21, within: 0.5}") == "refuted"


@pytest.mark.parametrize(
    ("published", "expected"),
    [("1.37", "reproduced"), ("1.38", "misstated"), ("1.36", "misstated"), ("1.39", "refuted"),
     ("1.3697", "reproduced"), ("1.3690", "refuted"), ("1.3698", "misstated"), ("1", "reproduced"), ("2", "refuted"),
     ("1.5", "refuted")],
)  # fmt: skip
def test_a_slip_in_the_last_digits_is_told_apart_from_a_false_claim(
    tmp_path: Path, published: str, expected: str
) -> None:
    """28.9 over 21.1 is 1.36967. Two of the last digits and 1 % are the most that a slip may be off."""
    rule = "{kind: arithmetic, formula: ratio, inputs: {numerator: 28.9, denominator: 21.1}}"
    row = verdict(claim_of(tmp_path, published=published, rule=rule, metric="arithmetic"))
    assert row["verdict"] == expected
    assert ("Right but for its last digits" in row["reason"]) == (expected == "misstated")


def test_units_and_zero_divisors_are_sentences(tmp_path: Path) -> None:
    fact = claim_of(tmp_path, metric="device", unit="MB", rule="{kind: fact, fact: mi50.l2_cache}")
    with pytest.raises(UserError, match=r"in 'MB', fact 'mi50.l2_cache' in 'MiB'"):
        verdict(fact)
    missing = claim_of(tmp_path, metric="device", unit="MiB", rule="{kind: fact, fact: mi50.l3_cache}")
    with pytest.raises(UserError, match=r"unknown fact 'mi50.l3_cache'"):
        verdict(missing)
    zero = claim_of(
        tmp_path, rule="{kind: arithmetic, formula: ratio, inputs: {numerator: 1, denominator: 0}}", metric="arithmetic"
    )
    with pytest.raises(UserError, match=r"divides by zero"):
        verdict(zero)


@pytest.mark.parametrize(
    ("numbers", "expected"), [((2,), "inconclusive"), ((2, 3), "inconclusive"), ((2, 3, 4), "reproduced")]
)
def test_any_number_of_streams_needs_three_of_them(numbers: tuple[int, ...], expected: str) -> None:
    rows = [speed(emission="distinct", rebuild="exact", streams=n) for n in numbers]
    row = verdict("pti.honest.every_n", speedup=rows)
    assert row["verdict"] == expected
    assert ("Unsupported at any streams" in row["reason"]) == (expected == "inconclusive")
    faster = speed(emission="distinct", rebuild="exact", streams=2, speedup=1.2, ci_low=1.15, ci_high=1.25)
    assert verdict("pti.honest.every_n", speedup=[*rows[1:], faster])["verdict"] == "refuted"


@pytest.mark.parametrize(("middle", "expected"), [(0.96, "inconclusive"), (0.9, "refuted")])
def test_a_refutation_needs_more_than_one_in_twenty(middle: float, expected: str) -> None:
    """Outside at 95 % and inside at 99 % is no counter-example yet."""
    row = speed(method="packed", drafter="none", scope="aggregate", speedup=middle, ci_low=middle - 0.035,
                ci_high=middle + 0.035)  # fmt: skip
    found = verdict("pti.packed.four.direction", speedup=[row])
    assert found["verdict"] == expected
    assert ("99 %" in found["reason"]) == (expected == "inconclusive")


def test_an_expectation_that_fails_is_told(tmp_path: Path) -> None:
    claim = replace(claim_of(tmp_path), verdict="reproduced")
    assert "The sheet expected 'reproduced'" in verdict(claim)["reason"]
    assert "The sheet expected" not in verdict(replace(claim, verdict="not_run"))["reason"]


def test_nothing_is_blank_and_absent_methods_say_what_they_need() -> None:
    tables = {"speedup": [speed()], "acceptance": [accepted()], "step_cost": [step(4, 1.6, 1.5, 1.7)]}
    for findings in (Findings(), Findings(**tables)):
        rows = judge_claims(list(PTI.values()), findings, FACTS)
        assert {row["claim_id"] for row in rows} == set(PTI)
        for row in rows:
            assert row["verdict"] in VERDICTS
            for key in ("machine", "build", "scope", "unit", "evidence", "reason", "says", "author_status", "source"):
                assert str(row[key]).strip(), (row["claim_id"], key)
            assert row["published"] not in ("", None)
    for name in ("lookup.edit", "lookup_mtp.edit", "mtp.all", "kernel.raw_stream", "acceptance.task_twin"):
        row = verdict(f"pti.{name}")
        assert row["verdict"] == "not_run"
        assert "take" in row["reason"]


def test_not_run_names_the_command() -> None:
    row = verdict("pti.four_streams.speedup")
    command = (
        "python -m bench sweep method=stagger method.emission=published method.rebuild=none streams=4 temperature=0"
    )
    assert command in row["reason"]
    assert "temperature=0.3,0.6,0.8,1" in verdict("pti.acceptance.collision")["reason"]


def test_anybodys_sheet_is_judged() -> None:
    claims = load_sheet(Path(__file__).with_name("example_sheet.yaml"))
    total = speed(method="packed", scope="aggregate", speedup=2.0, ci_low=1.9, ci_high=2.1)
    rows = judge_claims(claims, Findings(speedup=[total]), FACTS)
    assert [row["verdict"] for row in rows] == ["not_run", "reproduced", "reproduced", "reproduced"]

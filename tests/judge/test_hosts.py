"""Hosts of one make: pooled where their profiles agree, apart where not, whoever has most cells first."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from bench.judge import judge
from bench.judge.findings import Findings
from bench.judge.hosts import BAND
from bench.judge.summary import summarize
from bench.judge.tables.hosts import AGREES, CANNOT_TELL, DIFFERS, FIRST, NOT_COMPARED
from bench.machine_name import make_of, of_host
from bench.records.identity import cell_id
from bench.report import write_report
from bench.stored import judge_stored
from tests.bench.test_stored import BEFORE_MANIFESTS, store
from tests.judge.judge_cells import Cell, guess_cell, profile_cell

A, B, C = "aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc"
CURVE = {1: 50.0, 2: 60.0, 4: 90.0}


def on(host: str, made: Cell, **fields: object) -> Cell:
    """A cell with its own provenance, of a host; without one where that is empty."""
    env = copy.deepcopy(made.env) | ({"host": host} if host else {})
    return replace(made, env=env, **fields)  # type: ignore[arg-type]


def profile(host: str, times: float = 1.0, pace: float = 0.001, passes: int = 6) -> Cell:
    made = profile_cell({width: times * ms for width, ms in CURVE.items()}, passes=passes, warm_up=1.0, pace=pace)
    config = {**made.config, "host": host}
    return on(host, made, config=config, cell=cell_id({"schema": BEFORE_MANIFESTS, **config}, "b1"))


IDS = {profile(host).cell: host[:1] for host in (A, B, C)}


def contrasts(host: str, count: int = 3) -> list[Cell]:
    return [on(host, guess_cell(cell=f"cell{host[:1] or '0'}{number}")) for number in range(count)]


def findings(*cells: Cell) -> Findings:
    return judge(cells)  # type: ignore[arg-type]


def machines(found: Findings) -> dict[str, set[str]]:
    """What the machine of each host's cells is called."""
    names: dict[str, set[str]] = {}
    for row in found.cells:
        host = {key[0]: key for key in (A, B, C)}.get(IDS.get(row.cell) or row.cell[4], "")
        names.setdefault(host, set()).add(row.machine)
    return names


def results(found: Findings) -> dict[str, str]:
    return {row.host: row.result for row in found.hosts}


def test_one_host_is_told_nothing_of(tmp_path: Path) -> None:
    for host in ("", A):
        found = findings(profile(host), *contrasts(host))
        assert not found.hosts and {row.machine for row in found.speedup} == {"box"}


def test_hosts_that_agree_count_together() -> None:
    found = findings(profile(A), profile(B, 1.01), *contrasts(A), *contrasts(B, 1))
    assert results(found) == {A: FIRST, B: AGREES} and all(row.pooled for row in found.hosts)
    assert machines(found) == {A: {"box"}, B: {"box"}}
    assert found.bandwidth[0].cells == [row.cell for row in found.cells]
    assert not any(one.kind == "hosts" for one in summarize(found, []).missing)


def test_a_slow_host_stands_apart_in_every_table() -> None:
    found = findings(profile(A), profile(B, 1.2), *contrasts(A), *contrasts(B, 2))
    assert results(found) == {A: FIRST, B: DIFFERS}
    slow = of_host("box", B)
    assert slow == "box (host bbbbbb)" and make_of(slow) == "box"
    assert machines(found) == {A: {"box"}, B: {slow}}
    for name, rows in found.tables().items():
        for row in rows if name != "hosts" else []:
            hosts = {IDS.get(cell) or cell[4] for cell in row.cells}
            assert hosts == ({"b"} if row.machine == slow else {"a"}), name
    assert {row.predicted_from for row in found.predictions if row.machine == slow} == {profile(B).cell}
    lacks = [one for one in summarize(found, []).missing if one.kind == "hosts"]
    assert [one.sentence for one in lacks] == [
        "1 of 2 hosts of box stand apart: they do not agree with others."]  # fmt: skip


def test_the_ratio_and_its_interval_are_welchs() -> None:
    noise = np.random.default_rng(5).normal(0, 0.02, (2, 6, len(CURVE)))
    cells = []
    for host, shift, own in ((A, 0.0, noise[0]), (B, 0.3, noise[1])):
        cell = profile(host)
        steps = cell.steps.copy()
        logs = [math.log(CURVE[width]) + shift + own[repeat][list(CURVE).index(width)]
                for width, repeat in zip(steps.width, steps.repeat, strict=True)]  # fmt: skip
        steps["decode_ns"] = np.round(np.exp(logs) * 1e6).astype(int)
        cells.append(replace(cell, steps=steps))
    (row,) = [row for row in findings(*cells, *contrasts(A)).hosts if row.host == B]
    place = list(CURVE).index(row.width)
    mine, theirs = noise[1][:, place] + 0.3, noise[0][:, place]
    expected = stats.ttest_ind(mine, theirs, equal_var=False).confidence_interval(0.95)
    assert row.result == DIFFERS and row.compared == len(CURVE)
    assert row.step_ratio == pytest.approx(math.exp(mine.mean() - theirs.mean()), rel=1e-4)
    assert (row.ci_low, row.ci_high) == pytest.approx((math.exp(expected.low), math.exp(expected.high)), rel=1e-3)


@pytest.mark.parametrize(("times", "pace", "expected"), [
    (1.0, 1e-4, AGREES), (1 + BAND - 0.01, 1e-4, AGREES), (1 + BAND + 0.01, 1e-4, DIFFERS), (0.93, 1e-4, DIFFERS),
    (1.0, 0.08, CANNOT_TELL), (1.04, 0.03, CANNOT_TELL),
])  # fmt: skip
def test_the_band(times: float, pace: float, expected: str) -> None:
    found = findings(profile(A), profile(B, times, pace), *contrasts(A), *contrasts(B, 1))
    assert results(found)[B] == expected
    assert (machines(found)[B] == {"box"}) == (expected == AGREES)


def test_without_a_profile_nothing_tells() -> None:
    found = findings(profile(A), *contrasts(A), *contrasts(B, 5))
    assert results(found) == {A: FIRST, B: NOT_COMPARED}, "the name is that of the host with a profile"
    assert machines(found)[B] == {of_host("box", B)}
    assert not [row for row in found.predictions if row.machine != "box"]


def test_slow_hosts_that_agree_with_each_other_are_pooled_as_such() -> None:
    profiles = [profile(A), profile(B, 1.3), profile(C, 1.31)]
    found = findings(*profiles, *contrasts(A, 4), *contrasts(B, 3), *contrasts(C, 1))
    assert results(found) == {A: FIRST, B: DIFFERS, C: AGREES}
    assert machines(found) == {A: {"box"}, B: {of_host("box", B)}, C: {of_host("box", B)}}
    assert {row.host: row.against for row in found.hosts} == {A: A, B: A, C: B}


def test_records_without_a_key_are_of_the_one_host_that_is_known() -> None:
    found = findings(profile(""), *contrasts(""), *contrasts(A))
    assert not found.hosts and machines(found) == {"": {"box"}, A: {"box"}}
    found = findings(profile(""), profile(A), profile(B), *contrasts("", 5), *contrasts(A), *contrasts(B))
    assert results(found) == {"": FIRST, A: AGREES, B: AGREES}
    found = findings(profile(A), profile(B), *contrasts("", 5), *contrasts(A), *contrasts(B, 1))
    assert results(found) == {A: FIRST, B: AGREES, "": NOT_COMPARED}
    assert machines(found)[""] == {"box (host unknown)"}


def test_another_build_is_another_question() -> None:
    other = [on(B, cell) for cell in contrasts(B)]
    for cell in other:
        cell.env["engine"]["build"] = "b2"
    assert not findings(profile(A), *contrasts(A), *other).hosts


def test_each_is_priced_by_its_own_host_first() -> None:
    found = findings(profile(B, 1.01), profile(A), *contrasts(A), *contrasts(B))
    priced = {row.cells[0][4]: row.predicted_from for row in found.predictions}
    assert priced == {"a": profile(A).cell, "b": profile(B).cell}


@pytest.mark.parametrize("processes", [1, 2])
def test_a_folder_says_the_same(tmp_path: Path, processes: int) -> None:
    cells = [profile(A), profile(B, 1.2), *contrasts(A, 12), *contrasts(B, 12)]
    for cell in cells:
        store(cell, tmp_path / "r")
    folders = sorted((tmp_path / "r/box").iterdir())
    found = judge_stored(folders, processes)
    assert results(found) == {A: FIRST, B: DIFFERS}
    assert machines(found) == {A: {"box"}, B: {of_host("box", B)}}
    by_cell = {row.cell: row for row in findings(*cells).cells}
    assert all(row.machine == by_cell[row.cell].machine for row in found.cells)


def test_what_was_kept_follows_the_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    alike, slow = profile(B), profile(B, 1.2)
    for cell in (profile(A), alike, *contrasts(A, 30), *contrasts(B, 30)):
        store(cell, tmp_path / "r")
    folders = sorted((tmp_path / "r/box").iterdir())
    for _ in range(2):
        assert machines(judge_stored(folders, 1))[B] == {"box"}
    steps = tmp_path / "r/box" / slow.cell / "steps.csv.gz"
    slow.steps.to_csv(steps, index=False, na_rep="nan")
    for _ in range(2):
        found = judge_stored(folders, 1)
        assert machines(found) == {A: {"box"}, B: {of_host("box", B)}}
        assert {row.predicted_from for row in found.predictions if row.machine != "box"} == {slow.cell}


def test_the_report_says_so(tmp_path: Path) -> None:
    found = findings(profile(A), profile(B, 1.2), *contrasts(A), *contrasts(B, 2))
    write_report(found, [], tmp_path, figures=False, summary=summarize(found, []))
    page = (tmp_path / "report.md").read_text()
    assert "## Hosts of one make" in page and "is pooled with no other" in page and "box (host bbbbbb)" in page
    table = pd.read_csv(tmp_path / "hosts.csv")
    assert table.result.tolist() == [FIRST, DIFFERS] and table.pooled.tolist() == [True, False]
    assert "box (host bbbbbb)" in (tmp_path / "speedup.csv").read_text()
    one = findings(profile(A), *contrasts(A))
    write_report(one, [], tmp_path, figures=False, summary=summarize(one, []))
    assert not (tmp_path / "hosts.csv").exists() and "Hosts of one make" not in (tmp_path / "report.md").read_text()

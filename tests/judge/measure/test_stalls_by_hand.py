"""Stalls against the same rules written out once more, row by row and without arrays, on cells that are disturbed in
every way that there is: `bench.judge.measure.stalls` has to come to the same of each."""

from __future__ import annotations

import math
import random
import statistics
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy import stats

from bench.judge.measure.stalls import BETWEEN, SEVERAL, WHOLE, settled
from tests.judge.judge_cells import Cell, case_of, guess_cell

TEN, TWICE = math.log(1.1), math.log(2)


@dataclass
class Run:
    arm: str
    block: int
    window: float
    rounds: list[dict] = field(default_factory=list)
    level: float = 0.0
    lost: float = 0.0
    gap: float = 0.0


def disturbed(seed: int) -> Cell:
    """A cell in which rounds stall, runs are slow, pauses lie between rounds, and blocks of unlike work."""
    draw = random.Random(seed)
    cell = guess_cell(blocks=4 + seed % 3, noise=lambda arm, block, order: 1 + 0.02 * math.sin(7 * block + order))
    rounds, runs = cell.rounds, cell.runs
    names = ("draft_ns", "decode_ns", "sample_ns", "rollback_ns", "total_ns")
    factor = np.array([1 + 0.02 * draw.gauss(0, 1) for _ in range(len(rounds))])
    rounds["draft_ns"] = rounds["decode_ns"] // 10
    rounds["sample_ns"] = rounds["decode_ns"] // 20
    rounds["total_ns"] += rounds["draft_ns"] + rounds["sample_ns"]
    for name in names:
        rounds[name] = (rounds[name] * factor).astype("int64")
    places = list(range(len(rounds)))
    if seed % 4 == 3:  # so that the stalls are one arm's own
        places = [at for at in places if runs["arm"][rounds["run"][at]] == "treatment"]
    for at in draw.sample(places, (0, 2, 6, 25, 60)[seed % 5]):
        by = draw.choice((1.06, 1.2, 1.7, 2.5, 9.0, 40.0))
        for name in ("decode_ns", "total_ns"):
            rounds.loc[at, name] += int(rounds.loc[at, "total_ns"] * (by - 1))
    for run in draw.sample(range(len(runs)), seed % 4 if seed % 4 < 3 else 0):
        for name in names:
            mine = rounds["run"] == run
            rounds.loc[mine, name] = (rounds.loc[mine, name] * draw.choice((1.3, 1.8, 3.0))).astype("int64")
    if seed % 3 == 1:
        block = draw.randrange(4)
        odd = int(runs[(runs["arm"] == "treatment") & (runs["block"] == block)]["run"].iloc[0])
        rounds.loc[(rounds["run"] == odd) & (rounds["round"] == 2), draw.choice(["width", "redecoded"])] += 1
    total = rounds.groupby("run")["total_ns"].sum()
    runs["decode_window_ns"] = [int(total[run]) + draw.choice((0, 0, 10**6, 4 * 10**8 * (seed % 4 < 3)))
                                for run in runs["run"]]  # fmt: skip
    return cell


def by_hand(cell: Cell) -> dict[str, object]:
    runs = [Run(row.arm, row.block, row.decode_window_ns * 1e-9) for row in cell.runs.itertuples()]
    for row in cell.rounds.sort_values(["run", "round"]).to_dict("records"):
        runs[row["run"]].rounds.append(row)
    twin: dict[int, int] = {}
    alike = defaultdict(list)
    for at, run in enumerate(runs):
        alike[run.arm, run.block].append(at)
    for members in alike.values():
        if len(members) == 2:
            twin[members[0]], twin[members[1]] = members[1], members[0]

    def work(run: Run) -> list[tuple]:
        return [(r["phase"], r["width"], r["drafted"], r["redecoded"]) for r in run.rounds]

    paired_blocks = {run.block for run in runs} - {
        run.block for at, run in enumerate(runs) if at not in twin or work(run) != work(runs[twin[at]])}
    paired = [run.block in paired_blocks for run in runs]
    differences = [abs(math.log(mine["total_ns"] / other["total_ns"])) for at, run in enumerate(runs) if paired[at]
                   for mine, other in zip(run.rounds, runs[twin[at]].rounds, strict=True)]
    allowed = min(max(6 * statistics.median(differences), TEN), TWICE) if differences else TWICE

    as_soon, behind = defaultdict(list), defaultdict(list)
    for run in runs:
        past: list[tuple] = []
        for r in run.rounds:
            shape = (run.arm, r["width"], r["drafted"], r["redecoded"])
            since = next((back for back, one in enumerate(reversed(past)) if one != shape), len(past))
            r["behind"], r["as_soon"] = (*past[-2:], shape), (shape, min(since, 2))
            behind[r["behind"]].append(r["total_ns"])
            as_soon[r["as_soon"]].append(r["total_ns"])
            past.append(shape)

    for at, run in enumerate(runs):
        if paired[at]:
            other = runs[twin[at]]
            level = statistics.median(math.log(mine["total_ns"] / its["total_ns"])
                                      for mine, its in zip(run.rounds, other.rounds, strict=True))  # fmt: skip
            whole = math.log(sum(r["total_ns"] for r in run.rounds) / sum(r["total_ns"] for r in other.rounds))
            run.level = level if abs(level) <= TWICE and abs(whole) <= TWICE else 0.0
        for number, r in enumerate(run.rounds):
            if paired[at]:
                r["source"] = runs[twin[at]].rounds[number]
                r["expected"], limit = max(r["source"]["total_ns"] * math.exp(run.level), 1.0), allowed
            else:
                r["source"], limit = r, TWICE
                pools = behind[r["behind"]], as_soon[r["as_soon"]]
                pool = next((pool for pool in pools if len(pool) >= 5), [])
                r["expected"] = statistics.median(pool) if pool else math.inf
            r["stalled"] = math.log(r["total_ns"] / r["expected"]) > limit if math.isfinite(r["expected"]) else False
        run.lost = sum(r["total_ns"] - r["expected"] for r in run.rounds if r["stalled"]) * 1e-9
    pauses = [run.window - sum(r["total_ns"] for r in run.rounds) * 1e-9 for run in runs]
    for at, run in enumerate(runs):
        if paired[at] and (more := pauses[at] - pauses[twin[at]]) > 0.1 * runs[twin[at]].window:
            run.gap = more
        run.lost += run.gap

    made, found, slow = [], [], []
    for at, run in enumerate(runs):
        kept = sum(r["expected"] if r["stalled"] else r["total_ns"] for r in run.rounds) * 1e-9
        whole = max(run.window - run.gap - (sum(r["total_ns"] for r in run.rounds) * 1e-9 - kept), kept)
        made.append(whole)
        if run.level > allowed:
            other = run.window * math.exp(-run.level)
            slow.append((at, WHOLE, len(run.rounds), run.window - other, run.window, other, run.window / other - 1))
        if run.lost <= 0.05 * whole:
            continue
        gone = [(r["round"], (r["total_ns"] - r["expected"]) * 1e-9, r["total_ns"] * 1e-9)
                for r in run.rounds if r["stalled"]]  # fmt: skip
        small = [one for one in gone if one[1] <= 0.05 * whole]
        found += [(at, number, 1, lost, took, took - lost, lost / whole) for number, lost, took in gone
                  if lost > 0.05 * whole]  # fmt: skip
        lost, took = sum(one[1] for one in small), sum(one[2] for one in small)
        if lost > 0.05 * whole:
            found.append((at, SEVERAL, len(small), lost, took, took - lost, lost / whole))
        if run.gap > 0.05 * whole:
            found.append((at, BETWEEN, 0, run.gap, pauses[at], pauses[at] - run.gap, run.gap / whole))
    hit = [run.lost > 0.01 * whole for run, whole in zip(runs, made, strict=True)]
    arms = {arm: [at for at, run in enumerate(runs) if run.arm == arm] for arm in ("treatment", "baseline")}
    counts = {arm: sum(hit[at] for at in members) for arm, members in arms.items()}
    spent = {arm: sum(made[at] for at in members) for arm, members in arms.items()}
    own = next((arm for arm in arms if counts[arm] and stats.binom.sf(
        counts[arm] - 1, sum(counts.values()), spent[arm] / sum(spent.values())) < 0.01), "")  # fmt: skip
    own = own if any(run.lost for run in runs) else ""
    unknown = [0.0 if own else math.log1p(sum(min(r["total_ns"] - r["expected"], r["expected"]) for r in run.rounds
                                              if r["stalled"]) * 1e-9 / whole)
               for run, whole in zip(runs, made, strict=True)]  # fmt: skip
    windows = [run.window for run in runs] if own or not any(run.lost for run in runs) else made
    parts = {name: [sum((r["source"][f"{name}_ns"] * r["expected"] / r["source"]["total_ns"]
                         if r["stalled"] and not own else r[f"{name}_ns"]) for r in run.rounds) * 1e-9
                    for run in runs] for name in ("draft", "decode", "sample", "rollback", "total")}  # fmt: skip
    return {"allowed": allowed, "paired": paired, "lost": [run.lost for run in runs], "listed": [*found, *slow],
            "own": own, "unknown": unknown, "window": windows, "parts": parts}  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_every_rule_by_hand(seed: int) -> None:
    cell = disturbed(seed)
    found, wanted = settled(case_of(cell).runs), by_hand(cell)
    assert found.allowed == pytest.approx(wanted["allowed"])
    assert found.paired.tolist() == wanted["paired"]
    assert found.lost.tolist() == pytest.approx(wanted["lost"], abs=1e-9)
    assert found.own == wanted["own"]
    assert found.unknown.tolist() == pytest.approx(wanted["unknown"], abs=1e-9)
    assert found.table.window.tolist() == pytest.approx(wanted["window"])
    listed = [(one.run, one.round, one.rounds, one.lost, one.took, one.other, one.share) for one in found.stalls]
    assert [one[:3] for one in listed] == [one[:3] for one in wanted["listed"]]
    for mine, theirs in zip(listed, wanted["listed"], strict=True):
        assert mine[3:] == pytest.approx(theirs[3:], rel=1e-6)
    for name, values in wanted["parts"].items():
        assert found.table.seconds[name].tolist() == pytest.approx(values, rel=1e-6), name
    lost, window = sum(wanted["lost"]), sum(wanted["window"])
    assert found.share == pytest.approx(lost / (window + (0 if found.own else lost)))


def test_the_cells_of_this_file_have_every_kind_of_stall() -> None:
    every = [by_hand(disturbed(seed)) for seed in range(20)]
    kinds = {one[1] if one[1] in (WHOLE, BETWEEN, SEVERAL) else "round" for found in every for one in found["listed"]}
    assert kinds == {WHOLE, BETWEEN, SEVERAL, "round"}
    assert {found["own"] for found in every} >= {"", "treatment"}
    assert {all(found["paired"]) for found in every} == {True, False}
    assert not all(found["listed"] for found in every)

"""The control on places against its own arithmetic, written out over the runs of a cell."""

from __future__ import annotations

import random

import numpy as np
import pytest
from scipy import stats

from bench.judge.controls.places import FEWEST, places
from tests.judge.judge_cells import Arm, Builder, Cell, case_of, default_config

ONE, OTHER = ("baseline", "treatment", "treatment", "baseline"), ("treatment", "baseline", "baseline", "treatment")


def cell(orders: list[tuple[str, ...]], first: float = 1.0, behind: float = 1.0, spread: float = 0.01) -> Cell:
    """A cell whose runs take so much longer where they are the first of their block, and behind the treatment's."""
    draw, before = random.Random(5), [""]

    def noise(arm: str, block: int, order: int) -> float:
        by = (first if order == 0 else 1.0) * (behind if before[-1] == "treatment" else 1.0)
        before.append(arm)
        return by * float(np.exp(draw.gauss(0, spread)))

    arms = {"baseline": Arm(), "treatment": Arm(60.0, per_round=2, drafted=1, accepted=1)}
    builder = Builder(default_config(), arms)
    for block, order in enumerate(orders):
        builder.block(block, order, f"p{block}", noise=noise)
    return builder.build()


def rates(of: Cell) -> dict[tuple[int, int], float]:
    """Log of the rate by block and order."""
    runs = of.runs
    return {(row.block, row.order): float(np.log(40 / row.decode_window_ns)) for row in runs.itertuples()}


def test_a_first_run_that_differs_cancels_where_either_arm_begins_half_of_the_blocks() -> None:
    (one,) = places(case_of(cell([ONE, OTHER] * 4, first=1.1)))
    assert one.severity == "ok" and one.value == pytest.approx(1.0, abs=0.002)


@pytest.mark.parametrize(("first", "begins"), [(1.1, ONE), (0.9, ONE), (1.1, OTHER)])
def test_where_one_arm_begins_all_of_them_it_voids_by_what_it_makes_of_the_ratio(first: float, begins: tuple) -> None:
    of = cell([begins] * 6, first=first)
    (one,) = places(case_of(of))
    told = rates(of)
    changes = [told[block, 0] - told[block, 3] for block in range(6)]
    half = 0.5 if begins is OTHER else -0.5
    assert one.severity == "void" and one.value == pytest.approx(np.exp(half * np.mean(changes)))
    low, high = np.exp(stats.t.interval(0.95, 5, np.mean(changes), stats.sem(changes)))
    assert f"the first run of a block is {low:.3f} to {high:.3f} times as fast" in one.sentence
    assert f"begins {6 if begins is OTHER else 0} of 6 blocks" in one.sentence


def test_a_run_behind_the_treatments_is_told_from_a_drift_by_the_two_orders() -> None:
    orders = [ONE, OTHER] * 5
    of = cell(orders, behind=1.2)
    (one,) = places(case_of(of))
    told = rates(of)
    changes = [(told[block, 1] - told[block, 2]) * (1 if order is OTHER else -1) for block, order in enumerate(orders)]
    arms = [arm for order in orders for arm in order]
    pairs = list(zip(["", *arms], arms, strict=False))
    behind = {arm: np.mean([before == "treatment" for before, own in pairs if own == arm]) for arm in set(arms)}
    moved = (behind["treatment"] - behind["baseline"]) * np.mean(changes)
    assert one.severity == "void" and one.value == pytest.approx(np.exp(moved))
    assert "a run behind the treatment's" in one.sentence and moved > 0.03


def test_what_is_too_small_or_not_sure_is_no_reason() -> None:
    assert places(case_of(cell([ONE] * 6, first=1.01, spread=0.0005)))[0].severity == "ok"
    assert places(case_of(cell([ONE, OTHER] * 5, spread=0.05)))[0].severity == "ok"


def test_nothing_is_told_of_few_blocks_and_of_arms_that_take_turns() -> None:
    assert places(case_of(cell([ONE] * (FEWEST - 1), first=1.2))) == []
    turning = cell([ONE] * 6, first=1.2)
    turning.facts["turns"] = {"chunk": 8, "arms": ["baseline", "treatment"]}
    assert places(case_of(turning)) == []

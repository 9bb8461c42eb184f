"""A/A over the cells of a machine: groups, means and what contexts differ by beyond their noise, computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from bench.always_valid import CARRIED
from bench.judge.measure.again import FEWEST, Reading, context_rows, measured, spread_between
from bench.judge.measure.again import readings as readings_of
from tests.judge.judge_cells import Cell, case_of, guess_cell

LOGS = [0.01, -0.02, 0.03, 0.005, -0.015]


def readings(machine: str = "box", build: str = "b", count: int = 5, log_se: float = 0.004) -> list[Reading]:
    return [Reading(machine, build, f"c{at % 3}", LOGS[at], log_se, 3) for at in range(count)]


def test_the_row_of_a_machine_by_hand() -> None:
    (row,) = context_rows([readings()[:2], readings()[2:]])
    mean, se = np.mean(LOGS), stats.sem(LOGS)
    half = stats.t.ppf(0.975, 4) * se
    assert row["again"] == pytest.approx(math.exp(mean))
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((math.exp(mean - half), math.exp(mean + half)))
    spread = math.sqrt(sum(one**2 for one in LOGS) / 5 - 0.004**2)
    assert row["spread"] == pytest.approx(spread)
    assert row["half_width"] == pytest.approx(spread * stats.t.ppf(0.975, 5))
    assert (row["machine"], row["build"], row["cells"], row["readings"]) == ("box", "b", ["c0", "c1", "c2"], 5)


def test_few_readings_say_nothing_and_builds_are_told_apart() -> None:
    assert FEWEST == 5
    assert context_rows([readings(count=4)]) == []
    assert context_rows([readings(count=3), readings(build="other", count=3)]) == []
    rows = context_rows([readings(), readings(build="other"), readings("card")])
    assert [(row["machine"], row["build"]) for row in rows] == [("box", "b"), ("box", "other"), ("card", "b")]


def test_noise_alone_is_no_spread() -> None:
    logs = np.array([0.02, -0.02])
    assert spread_between(logs, np.array([0.02, 0.02])) == 0
    assert spread_between(logs, np.array([0.03, 0.03])) == 0
    assert spread_between(logs, np.array([0.0, 0.0])) == pytest.approx(0.02)
    assert spread_between(logs, np.array([0.016, 0.0])) == pytest.approx(math.sqrt(0.0004 - 0.000128))


def noise_by_hand(cell: Cell) -> tuple[float, int]:
    """Standard error of A/A and its blocks, run by run: two equal arms of a block differ by what each alone does."""
    squares, both = [], []
    for _, runs in cell.runs.groupby("block"):
        # Runs of a block say as many tokens, so that rates differ as windows do.
        logs = {arm: [-math.log(one) for one in mine.sort_values("order")["decode_window_ns"]]
                for arm, mine in runs.groupby("arm")}  # fmt: skip
        first, last = logs["baseline"]
        if "again" in logs:
            again, later = logs["again"]
            squares.append((((again - later) - (first - last)) / 2) ** 2)
            both.append((first + last) / 2 - (again + later) / 2)
        else:
            squares.append((first - last) ** 2 / 2)
    return math.sqrt(CARRIED * sum(squares) / len(squares) / len(both)), len(squares)


@pytest.mark.parametrize("noise", [0.01, 0.03])
def test_the_noise_of_a_cell_is_that_of_all_its_blocks(noise: float) -> None:
    def shaken(arm: str, block: int, order: int) -> float:
        return 1 + noise * math.sin(7 * block + 3 * order + len(arm))

    cell = guess_cell(noise=shaken, blocks=5)
    found = measured(case_of(cell))
    assert found is not None
    wanted, blocks = noise_by_hand(cell)
    assert (found.log_se, found.freedom) == (pytest.approx(wanted, rel=0.02), blocks)


@pytest.mark.parametrize("blocks", [3, 5])
def test_the_reading_of_a_cell_with_one_set_of_contexts_has_the_noise_of_its_control(blocks: int) -> None:
    def shaken(arm: str, block: int, order: int) -> float:
        return 1 + 0.02 * math.sin(5 * block + 2 * order)

    case = case_of(guess_cell(blocks=blocks, noise=shaken))
    (found,), whole = readings_of(case) or [], measured(case)
    assert whole is not None
    assert (found.log_ratio, found.log_se) == pytest.approx((whole.log_mean, whole.log_se))

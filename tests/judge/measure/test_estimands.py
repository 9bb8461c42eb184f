"""Which texts an interval speaks of, and what it is made of."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bench.judge import judge
from bench.judge.columns import changed
from bench.judge.measure.contexts import Widening, with_contexts
from bench.judge.measure.estimands import BETWEEN, CARRIED, ENOUGH, both, noise_of
from bench.judge.measure.layout import contrast_design
from bench.judge.tables.cell import Contexts
from bench.judge.tables.contrast import LIKE_THESE, THESE
from tests.calibration.simulation import Noise, contrast
from tests.judge.judge_cells import Arm, Builder, case_of, default_config, guess_cell, wobble


def found(prompts: int, by_text: bool, free: bool = False, blocks_each: int = 2):
    table, _ = contrast(np.random.default_rng(1), 1.2, Noise(), prompts, blocks_each)
    logs, design = np.log(table.rate), contrast_design(table)
    assert design is not None
    return both(design, logs, noise_of(logs, np.zeros_like(logs), table), by_text, free), table, logs


def test_a_drafter_on_few_texts_speaks_of_these_and_on_many_of_others_too() -> None:
    assert found(6, True)[0].speaks_of == THESE and found(6, False)[0].speaks_of == LIKE_THESE
    assert found(ENOUGH, True)[0].speaks_of == LIKE_THESE
    assert found(ENOUGH - 1, True)[0].told == found(ENOUGH - 1, True)[0].noise


def test_one_text_speaks_of_itself_unless_the_arm_guesses_nothing() -> None:
    assert found(1, True)[0].speaks_of == THESE and found(1, False)[0].speaks_of == THESE
    assert found(1, False, free=True)[0].speaks_of == LIKE_THESE


def test_noise_of_a_block_is_half_the_difference_of_its_two_pairs() -> None:
    _, table, logs = found(6, False)
    halves = []
    for block in range(12):
        rows = {arm: np.flatnonzero((table.block == block) & (table.arm == arm)) for arm in ("treatment", "baseline")}
        first, last = (logs[rows["treatment"][place]] - logs[rows["baseline"][place]] for place in (0, 1))
        halves.append((first - last) / 2)
    made = noise_of(logs, np.zeros_like(logs), table)
    assert made.df == 12 and made.variance == pytest.approx(CARRIED * np.mean(np.square(halves)))


def test_noise_is_between_the_blocks_of_a_prompt_where_there_are_enough() -> None:
    """Against pandas: the pooled variance of the blocks' ratios within a prompt."""
    _, table, logs = found(6, False, blocks_each=3)
    runs = pd.DataFrame({"block": table.block, "arm": table.arm, "prompt": table.prompt, "log": logs})
    by_arm = runs.groupby(["prompt", "block", "arm"])["log"].mean().unstack()
    ratios = (by_arm["treatment"] - by_arm["baseline"]).groupby("prompt")
    made = noise_of(logs, np.ones_like(logs), table)
    assert made.df == BETWEEN == 12 and made.variance == pytest.approx(ratios.var(ddof=1).mean())


def test_what_halves_hide_of_runs_that_are_like_the_one_before() -> None:
    """By simulation: the variance of a palindrome's ratio over that of its halves is 9/7 at a correlation of a half."""
    rng = np.random.default_rng(3)
    runs = np.zeros((200_000, 4))
    runs[:, 0] = rng.normal(size=len(runs))
    for place in range(1, 4):
        runs[:, place] = 0.5 * runs[:, place - 1] + np.sqrt(0.75) * rng.normal(size=len(runs))
    first, last = runs[:, 0] - runs[:, 1], runs[:, 3] - runs[:, 2]
    ratio = np.var((first + last) / 2) / np.var((first - last) / 2)
    assert ratio == pytest.approx(9 / 7, rel=0.02) and pytest.approx(ratio**0.5, rel=0.02) == CARRIED


def test_rows_have_both_intervals_and_a_class_of_one_text_has_the_first() -> None:
    rows = judge([guess_cell()]).speedup
    assert all(row["noise_low"] < row["speedup"] < row["noise_high"] for row in rows)
    (whole,) = (row for row in rows if row["prompt_class"] == "all")
    assert whole["prompts_low"] < whole["speedup"] < whole["prompts_high"]
    assert (whole["ci_low"], whole["speaks_of"]) == (whole["noise_low"], THESE)


def test_groups_that_share_a_prompt_are_one_text() -> None:
    arms = {"baseline": Arm(streams=2), "treatment": Arm(streams=2, together=True)}
    builder = Builder(default_config(method={"name": "packed"}, streams=2), arms)
    for block, group in enumerate(("a+b", "b+c", "d+e")):
        builder.block(block, ("baseline", "treatment", "treatment", "baseline"), group, "prose", wobble)
    row = next(row for row in judge([builder.build()]).speedup if row["scope"] == "answer")
    assert (row["n_prompts"], row["n_units"], row["n_blocks"]) == (2, 2, 3)


def test_a_spread_between_contexts_widens_every_interval_of_its_machine() -> None:
    (row, *_) = judge([guess_cell()]).speedup
    told = Contexts(machine=row["machine"], build=row["build"], cells=[], again=1.0, ci_low=1.0, ci_high=1.0,
                    spread=0.05, half_width=0.1, readings=9)  # fmt: skip
    (wide,) = with_contexts([row], Widening([told]))
    half = np.hypot(np.log(row["speedup"] / row["noise_low"]), 0.1)
    assert wide["noise_low"] == pytest.approx(row["speedup"] * np.exp(-half))
    assert with_contexts([row], Widening([changed(told, machine="other")])) == [row]


@pytest.mark.parametrize("seed", range(4))
def test_noise_by_hand_with_what_stalls_hide_of_both_arms(seed: int) -> None:
    cell, rng = guess_cell(blocks=5), np.random.default_rng(seed)
    table = case_of(cell).runs
    logs, unknown = rng.normal(3, 0.1, len(table.run)), np.abs(rng.normal(0, 0.05, len(table.run)))
    halves = []
    for _, runs in cell.runs.sort_values("order").groupby("block"):
        known = {arm: [logs[at] - unknown[at] for at in mine["run"]] for arm, mine in runs.groupby("arm")}
        first, last = (mine - base for mine, base in zip(known["treatment"], known["baseline"], strict=True))
        halves.append((first - last) / 2)
    found = noise_of(logs, unknown, table)
    assert found.df == len(halves) == 5
    assert found.variance == pytest.approx(CARRIED * sum(one**2 for one in halves) / 5)

"""A stall that was planted is found, listed and out of the estimate; what is slow in both runs stays."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from bench.judge import judge
from bench.judge.measure.stalls import BETWEEN, OWN, SEVERAL, WHOLE, _own
from tests.judge.judge_cells import MS, Cell, case_of, guess_cell

LOST_MS = 4000


def delayed(*places: tuple[int, int], ms: int = LOST_MS, **config: object) -> Cell:
    """A cell whose (run, round) took so much longer, and whose windows have that in them."""
    cell = guess_cell(**config)  # type: ignore[arg-type]
    for run, number in places:
        at = (cell.rounds["run"] == run) & (cell.rounds["round"] == number)
        for name in ("decode_ns", "total_ns"):
            cell.rounds.loc[at, name] += ms * MS
        cell.runs.loc[cell.runs["run"] == run, "decode_window_ns"] += ms * MS
    return cell


def run_of(arm: str, block: int, place: int = 0) -> int:
    """The first or second run of an arm in a block."""
    runs = guess_cell().runs
    return int(runs[(runs["arm"] == arm) & (runs["block"] == block)]["run"].iloc[place])


def overall(cell: Cell):
    return next(row for row in judge([cell]).speedup if row["prompt_class"] == "all")


def test_a_stalled_round_is_listed_and_moves_no_estimate() -> None:
    run = run_of("treatment", 2)
    cell = delayed((run, 3))
    (row,) = judge([cell]).stalls
    assert (row["run"], row["round"], row["arm"], row["block"]) == (run, 3, "treatment", 2)
    assert row["lost_ms"] == pytest.approx(LOST_MS, rel=0.01)
    sound, stalled = overall(guess_cell()), overall(cell)
    assert stalled["speedup"] == pytest.approx(sound["speedup"], rel=0.01)
    assert stalled["plain_speedup"] < sound["speedup"] * 0.9
    control = next(one for one in judge([cell]).controls if one["control"] == "stall")
    assert control["severity"] == "warning" and f"run {run} (treatment) in round 3" in control["sentence"]


def test_a_sound_cell_has_no_stall_and_one_estimate() -> None:
    row = overall(guess_cell())
    assert judge([guess_cell()]).stalls == []
    assert row["plain_speedup"] == pytest.approx(row["speedup"], rel=1e-12)


def test_what_is_slow_in_both_runs_is_the_work_itself() -> None:
    cell = delayed((run_of("treatment", 2), 3), (run_of("treatment", 2, 1), 3))
    assert judge([cell]).stalls == []
    assert overall(cell)["speedup"] == pytest.approx(overall(cell)["plain_speedup"])


def test_time_between_rounds_is_a_stall_too() -> None:
    cell = guess_cell()
    run = run_of("baseline", 1)
    cell.runs.loc[cell.runs["run"] == run, "decode_window_ns"] += LOST_MS * MS
    (row,) = judge([cell]).stalls
    assert (row["run"], row["round"]) == (run, BETWEEN) and row["lost_ms"] == pytest.approx(LOST_MS, rel=0.01)


def test_many_short_stalls_of_a_run_share_a_row() -> None:
    run = run_of("treatment", 2)
    (row,) = judge([delayed(*((run, number) for number in range(1, 9)), ms=40)]).stalls
    assert (row["run"], row["round"], row["rounds"]) == (run, SEVERAL, 8)


def test_with_another_seed_a_round_is_held_against_its_shape() -> None:
    """Above temperature 0 replicates do other work; here one of them guesses once less."""
    cell = delayed((run_of("treatment", 2), 3), temperature=0.7)
    odd = (cell.rounds["run"].isin([run_of("treatment", block) for block in range(4)])) & (cell.rounds["round"] == 5)
    for name in ("drafted", "verified", "accepted"):
        cell.rounds.loc[odd, name] = 0
    found = case_of(cell).stalls
    assert not found.paired.any()
    assert [(one.run, one.round) for one in found.stalls] == [(run_of("treatment", 2), 3)]


@pytest.mark.parametrize("blocks", [2, 4])
def test_the_first_decodes_of_a_run_are_no_stall_though_they_take_thrice_as_long(blocks: int) -> None:
    """On a GPU the first two decodes of a shape do, with every seed; four runs are too few to show it by a median."""
    cell = guess_cell(blocks=blocks, temperature=0.7)
    odd = cell.rounds["run"].isin(cell.runs.loc[cell.runs["arm"] == "treatment", "run"][::2])
    for name in ("drafted", "verified", "accepted"):
        cell.rounds.loc[odd & (cell.rounds["round"] == 5), name] = 0
    for name in ("decode_ns", "total_ns"):
        cell.rounds.loc[cell.rounds["round"] < 2, name] *= 3
    more = cell.rounds.loc[cell.rounds["round"] < 2].groupby("run")["total_ns"].sum() * 2 // 3
    cell.runs["decode_window_ns"] += cell.runs["run"].map(more)
    found = case_of(cell).stalls
    assert not found.paired.any() and found.stalls == () and not found.lost.any()


def test_arms_of_a_block_are_treated_alike() -> None:
    """Where one arm's runs differ, the other arm's are not held against each other either."""
    cell = guess_cell()
    run = run_of("treatment", 2)
    cell.rounds.loc[(cell.rounds["run"] == run) & (cell.rounds["round"] == 5), "width"] += 1
    found = case_of(cell).stalls
    assert {int(block) for block in found.table.block[~found.paired]} == {2}


def test_noise_knows_that_what_was_replaced_might_have_been_noise() -> None:
    run = run_of("treatment", 2)
    quiet = case_of(guess_cell()).stalls
    hit = case_of(delayed((run, 3))).stalls
    assert quiet.unknown.max() == 0 and hit.unknown[run] > 0
    assert np.flatnonzero(hit.unknown).tolist() == [run]


def test_the_load_beside_a_stalled_run_is_told_where_it_is_known() -> None:
    cell = delayed((run_of("treatment", 2), 3))
    cell.runs["load"] = 3.5
    (row,) = judge([cell]).stalls
    assert row["load"] == 3.5


def slower(run: int, factor: float) -> Cell:
    """A cell whose run took `factor` times as long in every round."""
    cell = guess_cell()
    mine = cell.rounds["run"] == run
    before = cell.rounds.loc[mine, "total_ns"].sum()
    for name in ("draft_ns", "decode_ns", "sample_ns", "rollback_ns", "total_ns"):
        cell.rounds.loc[mine, name] = (cell.rounds.loc[mine, name] * factor).round().astype("int64")
    more = cell.rounds.loc[mine, "total_ns"].sum() - before
    cell.runs.loc[cell.runs["run"] == run, "decode_window_ns"] += more
    return cell


@pytest.mark.parametrize("factor", [1.5, 1 / 1.5])
def test_a_run_of_another_level_is_named_and_stays_in_the_estimate_and_its_noise(factor: float) -> None:
    """Nothing tells whether it or its twin is the odd one: a fast run must not make its twin a stall either."""
    run = run_of("treatment", 2)
    odd = run if factor > 1 else run_of("treatment", 2, 1)
    cell = slower(run, factor)
    (row,) = judge([cell]).stalls
    assert (row["run"], row["round"]) == (odd, WHOLE)
    assert row["took_ms"] / row["other_ms"] == pytest.approx(1.5, rel=0.02)
    found, sound = overall(cell), overall(guess_cell())
    assert found["speedup"] == pytest.approx(found["plain_speedup"])
    assert found["noise_high"] / found["noise_low"] > sound["noise_high"] / sound["noise_low"]
    control = next(one for one in judge([cell]).controls if one["control"] == "stall")
    assert "throughout" in control["sentence"] and "intervals wider" in control["sentence"]


def test_a_stall_of_a_slower_run_counts_at_that_runs_level() -> None:
    run = run_of("treatment", 2)
    cell, level = slower(run, 1.5), slower(run, 1.5)
    at = (cell.rounds["run"] == run) & (cell.rounds["round"] == 3)
    for name in ("decode_ns", "total_ns"):
        cell.rounds.loc[at, name] += LOST_MS // 20 * MS
    cell.runs.loc[cell.runs["run"] == run, "decode_window_ns"] += LOST_MS // 20 * MS
    assert {row["round"] for row in judge([cell]).stalls} == {3, WHOLE}
    assert overall(cell)["speedup"] == pytest.approx(overall(level)["speedup"], rel=0.01)


def test_a_run_that_takes_twice_as_long_throughout_is_left_out_whole() -> None:
    cell = slower(run_of("treatment", 2), 4.0)
    assert overall(cell)["speedup"] == pytest.approx(overall(guess_cell())["speedup"], rel=0.01)
    assert all(row["round"] != WHOLE for row in judge([cell]).stalls)


def test_stalls_of_one_arm_alone_are_its_own_work_and_stay_in_the_estimate() -> None:
    """A method that does a round's work now and then for many must not have it called a disturbance."""
    runs = guess_cell().runs
    mine = runs[runs["arm"] == "treatment"]["run"].tolist()
    cell = delayed(*((run, 1 + place % 3) for place, run in enumerate(mine)))
    row = overall(cell)
    assert row["speedup"] == pytest.approx(row["plain_speedup"]) and row["stalled_share"] > 0.3
    assert len(judge([cell]).stalls) == len(mine)
    control = next(one for one in judge([cell]).controls if one["control"] == "stall")
    assert "that arm's own, and inside the estimate" in control["sentence"] and "treatment" in control["sentence"]


def test_stalls_that_hit_both_arms_are_outside_however_many() -> None:
    blocks = sorted(set(guess_cell().runs["block"]))
    row = overall(delayed(*((run_of(arm, block, place), 1 + place) for arm in ("treatment", "baseline")
                            for block in blocks for place in range(2))))  # fmt: skip
    assert row["speedup"] == pytest.approx(overall(guess_cell())["speedup"], rel=0.02)


@pytest.mark.parametrize("seconds", [(1.0, 1.0), (3.0, 1.0)])
def test_chance_of_an_arm_s_stalls_knows_how_long_it_ran(seconds: tuple[float, float]) -> None:
    """Against scipy's binomial test: an arm that runs three times as long is hit three times as often."""
    arms = np.array(["treatment", "baseline"] * 10)
    window = np.where(arms == "treatment", *seconds)
    table = SimpleNamespace(of=lambda arm: arms == arm)
    for ours in range(11):
        for theirs in range(11):
            lost = np.zeros(20)
            lost[np.flatnonzero(arms == "treatment")[:ours]] = 9.0
            lost[np.flatnonzero(arms == "baseline")[:theirs]] = 9.0
            share = seconds[0] / sum(seconds)
            tails = {name: stats.binomtest(count, ours + theirs, part, "greater").pvalue if ours + theirs else 1.0
                     for name, count, part in (("treatment", ours, share), ("baseline", theirs, 1 - share))}
            wanted = next((name for name, p in tails.items() if p < OWN / 2), "")
            assert _own(table, window, lost) == wanted  # type: ignore[arg-type]


def test_in_a_run_that_took_twice_as_long_in_all_nothing_is_noise() -> None:
    """Slow throughout, and one round much more so: the other run is the sound one."""
    run = run_of("treatment", 2)
    cell = slower(run, 1.5)
    at = (cell.rounds["run"] == run) & (cell.rounds["round"] == 3)
    for name in ("decode_ns", "total_ns"):
        cell.rounds.loc[at, name] += 5 * LOST_MS * MS
    cell.runs.loc[cell.runs["run"] == run, "decode_window_ns"] += 5 * LOST_MS * MS
    assert overall(cell)["speedup"] == pytest.approx(overall(guess_cell())["speedup"], rel=0.01)
    assert all(row["round"] != WHOLE for row in judge([cell]).stalls)


def test_a_round_that_took_no_time_at_all_in_the_other_run_leaves_no_figure_unknown() -> None:
    cell = delayed((run_of("treatment", 2), 3))
    at = (cell.rounds["run"] == run_of("treatment", 2, 1)) & (cell.rounds["round"] == 3)
    for name in ("decode_ns", "sample_ns", "draft_ns", "kv_ns", "other_ns", "total_ns"):
        if name in cell.rounds:
            cell.rounds.loc[at, name] = 0
    row = overall(cell)
    assert np.isfinite([row["speedup"], row["ci_low"], row["ci_high"], row["stalled_share"]]).all()

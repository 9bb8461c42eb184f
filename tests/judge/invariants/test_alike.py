"""Runs whose rounds took the very same time, and an arm at two paces: where each begins to be told, by hand."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from bench.judge.invariants import alike, settings, times, tokens
from tests.judge.invariants.edited_cells import at, edited
from tests.judge.judge_cells import MS, Arm, Builder, Cell, case_of, guess_cell

TREATMENT = Arm(round_ms=62.5, per_round=2, drafted=2, accepted=1, verified=2)


def still(arm: str, block: int, order: int) -> float:
    return 1.0


def carried(paces: tuple[float, ...] = (1.0, 1.0, 1.0), noise: Callable = still, ms: float = 62.5) -> Cell:
    """A cell whose last prompt is decoded thrice more, each time so many times as slowly."""

    def more(builder: Builder) -> None:
        builder.arms["carry"] = Arm(round_ms=ms, per_round=2, drafted=2, accepted=1, verified=2)
        builder.block(4, ["carry"] * len(paces), "p3", "prose", lambda arm, block, order: paces[order])

    return guess_cell(TREATMENT, noise=noise, change=more)


@cache
def jittered() -> Cell:
    """Rounds of other times each, as a clock of nanoseconds tells them."""
    cell = carried()
    draw = np.random.default_rng(1)
    for name in ("decode_ns", "total_ns"):
        cell.rounds[name] += 10**7
    more = draw.integers(1, 10**6, len(cell.rounds))
    for name in ("decode_ns", "total_ns"):
        cell.rounds[name] += more
    return cell


def copied(cell: Cell, source: int, target: int, rows: slice = slice(None)) -> str | None:
    """What is said where some rounds of a run have the times of another's."""
    cell = copy.deepcopy(cell)
    theirs, own = (cell.rounds.index[cell.rounds["run"] == run][rows] for run in (source, target))
    cell.rounds.loc[own, "total_ns"] = cell.rounds.loc[theirs, "total_ns"].to_numpy()
    return alike.no_run_is_a_copy(case_of(cell))


def test_a_run_with_all_times_of_another_is_a_copy_and_one_with_all_but_one_is_none() -> None:
    cell = jittered()
    one, other = at(cell, "treatment"), at(cell, "treatment", 1)
    assert alike.no_run_is_a_copy(case_of(cell)) is None
    told = copied(cell, one, other)
    assert told is not None and f"run {other} (treatment)" in told and f"run {one} (treatment)" in told
    assert copied(cell, one, other, slice(1, None)) is None


def test_a_copy_in_another_order_is_one_too() -> None:
    cell = copy.deepcopy(jittered())
    one, other = at(cell, "treatment"), at(cell, "treatment", 1)
    theirs = cell.rounds["total_ns"][cell.rounds["run"] == one].to_numpy()
    cell.rounds.loc[cell.rounds["run"] == other, "total_ns"] = theirs[::-1]
    assert alike.no_run_is_a_copy(case_of(cell)) is not None


@pytest.mark.parametrize(("kinds", "told"), [(8, True), (7, False)])
def test_few_different_times_may_come_twice(kinds: int, told: bool) -> None:
    cell = copy.deepcopy(jittered())
    one, other = at(cell, "treatment"), at(cell, "treatment", 1)
    for run in (one, other):
        mine = cell.rounds["run"] == run
        cell.rounds.loc[mine, "total_ns"] = 7 * 10**7 + 1 + np.arange(mine.sum()) % kinds
    assert (alike.no_run_is_a_copy(case_of(cell)) is not None) == told


@pytest.mark.parametrize(("tick", "told"), [(1000, False), (500, True)])
def test_a_coarse_clock_may_tell_two_runs_alike(tick: int, told: bool) -> None:
    cell = copy.deepcopy(jittered())
    one, other = at(cell, "treatment"), at(cell, "treatment", 1)
    for run in (one, other):
        mine = cell.rounds["run"] == run
        cell.rounds.loc[mine, "total_ns"] = 7 * 10**7 + tick * np.arange(mine.sum())
    assert (alike.no_run_is_a_copy(case_of(cell)) is not None) == told


def pace(*args: object, **keys: object) -> str | None:
    return alike.one_pace(case_of(carried(*args, **keys)))  # type: ignore[arg-type]


@pytest.mark.parametrize(("factor", "told"), [(1.0, None), (1.24, None), (1.26, "1.26"), (1 / 1.24, None),
                                              (1 / 1.26, "0.79"), (2.0, "2.00")])  # fmt: skip
def test_carried_runs_go_at_the_pace_of_the_treatment(factor: float, told: str | None) -> None:
    found = pace((factor,) * 3)
    assert found is None if told is None else f"take {told} times as long" in str(found)


def test_one_run_of_the_treatment_as_slow_as_a_carried_one_explains_it() -> None:
    slow = lambda arm, block, order: 1.5 if (arm, block, order) == ("treatment", 2, 1) else 1.0  # noqa: E731
    assert pace((1.5, 1.5, 1.5), noise=slow) is None
    assert "1.52" in str(pace((1.52, 1.52, 1.52), noise=slow))


def test_one_carried_run_at_the_treatments_pace_explains_it() -> None:
    assert pace((2.0, 2.0, 1.0)) is None
    assert pace((2.0, 2.0, 1.01)) is not None
    assert pace((0.5, 0.5, 1.0)) is None
    assert pace((0.5, 0.5, 0.99)) is not None


def test_rounds_of_another_shape_say_nothing() -> None:
    """A carried run of single rows is as slow as it is: nothing of its shape is in the treatment."""
    cell = carried((3.0, 3.0, 3.0))
    cell.rounds.loc[cell.rounds["run"] >= at(cell, "carry"), "width"] = 9
    assert alike.one_pace(case_of(cell)) is None
    assert alike.one_pace(case_of(guess_cell())) is None


def test_time_of_a_copy_before_the_decode_counts_as_decoding() -> None:
    cell = carried()
    mine = cell.rounds["run"] >= at(cell, "carry")
    moved = cell.rounds.loc[mine, "decode_ns"] // 2
    cell.rounds.loc[mine, "decode_ns"] -= moved
    cell.rounds.loc[mine, "rollback_ns"] += moved
    assert alike.one_pace(case_of(cell)) is None


@pytest.mark.parametrize(("share", "wrong"), [(0.901, False), (0.899, True)])
def test_parts_fill_nine_tenths_of_their_rounds(share: float, wrong: bool) -> None:
    cell = guess_cell(noise=still)
    mine = cell.rounds["run"] == at(cell, "oracle")
    cell.rounds.loc[mine, "decode_ns"] = (cell.rounds.loc[mine, "total_ns"] * share).astype("int64")
    assert (times.parts_fill_the_rounds(case_of(cell)) is not None) == wrong
    for name in ("draft_ns", "sample_ns", "rollback_ns"):
        rest = cell.rounds.loc[mine, "total_ns"] - cell.rounds.loc[mine, "decode_ns"]
        filled = copy.deepcopy(cell)
        filled.rounds.loc[mine, name] = rest
        assert times.parts_fill_the_rounds(case_of(filled)) is None, name


@pytest.mark.parametrize("arm", ["baseline", "treatment"])
def test_a_clock_is_read_in_both_arms_or_in_none(arm: str) -> None:
    def unread(cell: Cell) -> None:
        cell.runs.loc[cell.runs["arm"] == arm, "clock_mhz"] = float("nan")

    other = {"baseline": "the treatment", "treatment": "the baseline"}[arm]
    assert f"while {other} ran" in edited(unread)["clocks"]
    assert "clocks" not in edited(lambda cell: cell.runs.__setitem__("clock_mhz", float("nan")))


@pytest.mark.parametrize(("factor", "wrong"), [(1.0, False), (1.0009, False), (1.0011, True), (0.9992, False),
                                               (0.9988, True), (0.5, True)])  # fmt: skip
def test_a_bandwidth_is_its_quickest_reading(factor: float, wrong: bool) -> None:
    cell = guess_cell()
    cell.facts["bandwidth"] = {"read_gb_s": 20.0 * factor, "repeats": [18.0, 20.0, 19.0]}
    assert (settings.facts_fit(case_of(cell)) is not None) == wrong
    cell.facts["bandwidth"] = {"read_gb_s": 20.0 * factor, "repeats": []}
    assert settings.facts_fit(case_of(cell)) is None


@pytest.mark.parametrize(("spare", "words"), [(1e-6, None), (-1.0, "its last run ends")])
def test_the_cell_took_as_long_as_from_its_first_run_to_its_last(spare: float, words: str | None) -> None:
    cell = guess_cell()
    cell.config["schema"] = 3
    span = (cell.runs["end_ns"].max() - cell.runs["start_ns"].min()) * 1e-9
    cell.status["seconds"] = span / 1.001 + spare
    found = settings.seconds_cover_the_runs(case_of(cell))
    assert found is None if words is None else words in str(found)
    cell.status["seconds"] = cell.runs["decode_window_ns"].sum() * 1e-9 / 1.001 - 0.01
    assert "windows of its runs" in str(settings.seconds_cover_the_runs(case_of(cell)))
    cell.status["seconds"] = None
    assert settings.seconds_cover_the_runs(case_of(cell)) is None


def dropped(change: Callable[[Cell], None]) -> str | None:
    cell = guess_cell(TREATMENT, noise=still)
    cell.rounds["width"] = 1 + cell.rounds["drafted"]
    change(cell)
    return tokens.guesses_are_dropped_behind_a_wrong_one(case_of(cell))


def rounds_of(cell: Cell, arm: str, which: int = 0) -> list[int]:
    return cell.rounds.index[cell.rounds["run"] == at(cell, arm, which)].tolist()


def test_a_guess_is_dropped_behind_a_wrong_one_or_at_the_end() -> None:
    def unverified(place: int, verified: int = 1) -> Callable[[Cell], None]:
        return lambda cell: cell.rounds.__setitem__("verified", cell.rounds["verified"].where(
            cell.rounds.index != rounds_of(cell, "treatment", 1)[place], verified))  # fmt: skip

    assert dropped(lambda cell: None) is None
    told = dropped(unverified(3))
    assert told is not None and "round 3 of run" in told and "1 rounds" in told
    assert "drafts 2 guesses and keeps 1" in told
    assert dropped(unverified(-2)) is not None
    assert dropped(unverified(-1, 0)) is None, "the answer ended there"
    assert dropped(unverified(3, 2)) is None


def test_a_decode_has_as_many_rows_beside_its_guesses_as_in_the_controls() -> None:
    def wider(cell: Cell) -> None:
        cell.rounds.loc[rounds_of(cell, "treatment")[2:4], "width"] += 1

    def as_in_a_control(cell: Cell) -> None:
        wider(cell)
        cell.rounds.loc[rounds_of(cell, "sabotage")[0], "width"] += 1

    told = dropped(wider)
    assert told is not None and "decodes 2 rows beside its guesses, and its controls 1" in told and "2 rounds" in told
    assert dropped(as_in_a_control) is None


def test_the_pace_is_that_of_decodes_not_of_rounds() -> None:
    cell = carried((1.0, 1.0, 1.0))
    mine = cell.rounds["run"] >= at(cell, "carry")
    for name in ("draft_ns", "total_ns"):
        cell.rounds.loc[mine, name] += 100 * MS
    assert alike.one_pace(case_of(cell)) is None

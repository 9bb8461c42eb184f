"""The numbers in a sentence are those of the tables, computed here in another way."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

from bench.judge import judge
from tests.judge.invariants.edited_cells import at, edited, sound
from tests.judge.judge_cells import Cell, guess_cell


def numbers(sentence: str) -> list[float]:
    return [float(found) for found in re.findall(r"-?\d+\.\d+", sentence)]


@pytest.mark.parametrize("factor", [0.5, 0.9, 3.0])
def test_windows_and_rounds_are_told_in_milliseconds(factor: float) -> None:
    def change(cell: Cell) -> None:
        mine = cell.runs["run"] == at(cell, "treatment")
        cell.runs.loc[mine, "decode_window_ns"] = (cell.runs["decode_window_ns"] * factor).astype("int64")

    before = sound()
    run = before.runs[before.runs["run"] == at(before, "treatment")].iloc[0]
    window = int(int(run["decode_window_ns"]) * factor)
    span = int(run["end_ns"]) - int(run["start_ns"])
    rounds = sum(int(one) for one in before.rounds["total_ns"][before.rounds["run"] == run["run"]])
    found = edited(change)
    told = [float(Fraction(one, 10**6)) for one in (window, span)]
    assert numbers(found["windows"]) == pytest.approx(told, abs=6e-4)
    told = [float(Fraction(one, 10**6)) for one in (rounds, window)]
    assert numbers(found["rounds"]) == pytest.approx(told, abs=6e-4)


@pytest.mark.parametrize("more", [1, 5])
def test_tokens_beyond_what_was_asked_for_are_counted_for_each_answer(more: int) -> None:
    cell = guess_cell()
    cell.runs.loc[cell.runs["arm"] == "treatment", "n_predict"] -= more
    (row,) = [row for row in judge([cell]).controls if row.control == "requested"]
    runs = int((cell.runs["arm"] == "treatment").sum())
    assert (row.severity, row.value) == ("void", more * runs)
    assert f"emits {more} tokens more than were asked for; {runs} runs in all" in row.sentence

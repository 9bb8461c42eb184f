"""What the first round behind another arm's turn costs: planted, found, and told where it moves the ratio."""

from __future__ import annotations

import numpy as np
import pytest

from bench.judge.controls.turns import switching
from bench.records.rows import Piece
from tests.judge.judge_cells import case_of, frame, guess_cell

PLACES = (0, 8, 16)


def case(arm: str = "baseline", factor: float = 1.0):
    """Turns that begin in every eighth round, whose first rounds take `factor` times as long in one arm."""
    cell = guess_cell()
    pieces = [Piece(int(run), turn, 0, 1, first) for run in cell.runs["run"] for turn, first in enumerate(PLACES)]
    mine = cell.rounds["run"].isin(cell.runs["run"][cell.runs["arm"] == arm]) & cell.rounds["round"].isin(PLACES)
    for name in ("decode_ns", "total_ns"):
        cell.rounds.loc[mine, name] = (cell.rounds.loc[mine, name] * factor).astype("int64")
    return case_of(type(cell)(**{**vars(cell), "pieces": frame("pieces", pieces)}))


def test_without_turns_there_is_nothing_to_tell():
    assert switching(case_of(guess_cell())) == []


def test_first_rounds_like_the_others_move_nothing():
    (told,) = switching(case())
    assert told.severity == "ok" and told.value == pytest.approx(0.0, abs=1e-3)


@pytest.mark.parametrize(("arm", "sign"), [("baseline", 1), ("treatment", -1)])
def test_dear_first_rounds_of_one_arm_are_told(arm, sign):
    (told,) = switching(case(arm, 1.5))
    assert told.severity == "warning" and np.sign(told.value) == sign
    share = {"baseline": 3 / 40, "treatment": 3 / 20}[arm] * 0.5
    assert abs(told.value) == pytest.approx(share, rel=0.2)
    assert "1.5" in told.sentence

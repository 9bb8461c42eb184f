"""The table of answers that are not the baseline's: what the stored grades say, row by row."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.judge.measure.differences import difference_rows
from bench.records.cells import load_cell
from tests.judge.judge_cells import case_of, guess_cell

OWN = Path(__file__).parents[2] / "faults" / "cells"
FIRST = {"position": 3, "token_baseline": 8, "token_arm": 9, "gap_baseline": 0.003, "gap_arm": 0.004,
         "quantity": "logit_gap"}  # fmt: skip


def test_only_answers_that_differ_have_a_row() -> None:
    cell = guess_cell()
    rows = cell.facts["lossless"]
    rows[3]["first_difference"] = FIRST
    (row,) = difference_rows(case_of(cell))
    named = (row["arm"], row["prompt"], row["seed"], row["stream"])
    assert named == (rows[3]["arm"], rows[3]["prompt"], rows[3]["seed"], rows[3]["stream"])
    assert (row["position"], row["token_baseline"], row["token_arm"]) == (3, 8, 9)
    assert (row["gap_baseline"], row["gap_arm"], row["noise"]) == (0.003, 0.004, 0.01)
    assert (row["grade"], row["cells"], row["replayed"]) == ("near_tie", [cell.cell], 0)


@pytest.mark.parametrize(
    ("change", "column", "value"),
    [({"gap_arm": 4.0}, "grade", "divergent"), ({"noise": 0.0035}, "noise", 0.0035), ({"noise": 0.0035}, "grade",
      "divergent"), ({"quantity": "cdf_distance"}, "noise", 1e-4)],
)  # fmt: skip
def test_the_noise_is_that_of_the_place_where_it_is_known(change: dict, column: str, value: object) -> None:
    cell = guess_cell()
    cell.facts["lossless"][0]["first_difference"] = FIRST | change
    (row,) = difference_rows(case_of(cell))
    assert row[column] == value


def test_a_difference_that_says_too_little_is_still_a_row() -> None:
    cell = guess_cell()
    cell.facts["lossless"][0]["first_difference"] = {"gap_baseline": 0.1, "gap_arm": 0.1}
    (row,) = difference_rows(case_of(cell))
    assert (row["position"], row["token_arm"], row["grade"]) == (-1, -1, "divergent")


def test_rows_of_a_stored_cell_are_its_grades() -> None:
    cell = load_cell(OWN / "h200" / "35be86f1aadc")
    rows = difference_rows(case_of(cell))
    stored = [one for one in cell.facts["lossless"] if one["first_difference"]]
    assert len(rows) == len(stored) > 5
    assert [row["gap_arm"] for row in rows] == [one["first_difference"]["gap_arm"] for one in stored]

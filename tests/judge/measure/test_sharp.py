"""Both grades of a row, and why there is one only."""

from __future__ import annotations

from typing import Any

import pytest

from bench.judge.controls.arms import sharp
from bench.judge.measure.sharp import graded
from tests.judge.judge_cells import case_of, guess_cell
from tests.judge.measure.test_lossless import answer


def case(stored: dict[str, Any] | None, own_gap: float | None = None) -> Any:
    cell = guess_cell()
    cell.facts["lossless"] = [answer("p0", base=own_gap)]
    if stored is not None:
        cell.facts["sharp"] = stored
    return case_of(cell)


def stored(gap: float | None, noise: float = 0.02) -> dict[str, Any]:
    noises = {"logit_gap": noise, "cdf": noise / 4, "positions": 64}
    return {"state": "graded", "type": "F16", "sha256": "f" * 64, "noise": noises,
            "lossless": [answer("p0", base=gap)]}  # fmt: skip


@pytest.mark.parametrize(
    ("own", "wide", "noise", "told"),
    [
        (None, None, 0.02, ("identical", "identical", "identical")),
        (0.005, None, 0.02, ("near_tie", "identical", "near_tie")),
        (0.005, 0.01, 0.02, ("near_tie", "near_tie", "near_tie")),
        (0.005, 0.1, 0.02, ("near_tie", "divergent", "divergent")),
        (0.3, None, 0.02, ("divergent", "identical", "divergent")),
        (None, 0.3, 0.9, ("identical", "divergent", "divergent")),  # F16 weights that round so far are no ruler
        (None, 0.2, 0.9, ("identical", "near_tie", "identical")),
    ],
)
def test_a_row_is_divergent_where_either_grade_is(own, wide, noise, told):
    found = graded(case(stored(wide, noise), own), "treatment")
    assert found is not None
    columns = found.columns()
    assert (columns["lossless_own"], columns["lossless_f16"], columns["lossless"]) == told
    assert columns["f16_weights"] == "f" * 64 and columns["f16_answers"] == 1 and columns["f16_note"] == ""


def test_old_records_have_no_second_grade():
    columns = graded(case(None, 0.005), "treatment").columns()
    assert (columns["lossless"], columns["lossless_f16"]) == ("near_tie", "")
    assert columns["f16_note"] == "the record has none"
    assert sharp(case(None)).severity == "ok"


def test_weights_that_are_as_wide_have_the_same_grade_twice():
    found = graded(case({"state": "same", "type": "F16", "sha256": "a" * 64}, 0.005), "treatment")
    columns = found.columns()
    assert (columns["lossless"], columns["lossless_f16"]) == ("near_tie", "near_tie")
    assert columns["f16_weights"] == "a" * 64 and columns["f16_note"] == "the cell's own weights are no coarser: F16"


def test_what_was_left_out_says_why():
    left = {"state": "left out", "reason": "no room"}
    assert graded(case(left), "treatment").columns()["f16_note"] == "no room"
    control = sharp(case(left))
    assert (control.severity, control.sentence) == ("warning", "no grade on F16 weights: no room")


def test_prompts_without_an_answer_there_are_told():
    other = stored(None)
    other["lossless"][0]["prompt"] = "another"
    columns = graded(case(other), "treatment", {"p0"}).columns()
    assert columns["lossless_f16"] == "" and "none of these answers" in columns["f16_note"]


@pytest.mark.parametrize("noise", [0.02, 0.31])
def test_the_sentence_tells_what_the_width_moves_on_these_weights(noise: float) -> None:
    assert f"where the shape of a decode moves a gap by {noise:.2g}" in sharp(case(stored(None, noise))).sentence

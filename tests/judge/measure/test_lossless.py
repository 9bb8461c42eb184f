"""Grades: what a measured noise excuses and what nothing excuses."""

from __future__ import annotations

import pytest

from bench.judge.measure.lossless import grade_answer, grade_arm, unexplained
from bench.judge.measure.runs import run_table
from tests.judge.judge_cells import Arm, guess_cell

NOISE = {"logit_gap": 0.01, "cdf": 1e-4, "positions": 64}


def answer(prompt: str = "p", base: float | None = None, arm: float | None = None, **more: object) -> dict:
    first = None
    if base is not None:
        first = {"position": 3, "token_baseline": 1, "token_arm": 2, "gap_baseline": base,
                 "gap_arm": base if arm is None else arm, "quantity": more.pop("quantity", "logit_gap")}  # fmt: skip
    return {"arm": "treatment", "prompt": prompt, "stream": 0, "seed": 1, "n": 8, "first_difference": first,
            "teacher_forced": None, **more}  # fmt: skip


@pytest.mark.parametrize(
    ("base", "arm", "grade"),
    [(None, None, "identical"), (0.003, 0.003, "near_tie"), (4.1, 4.1, "divergent"), (0.003, 4.1, "divergent"),
     (4.1, 0.003, "divergent"), (-4.1, 0.003, "divergent"), (-0.003, 0.003, "near_tie"),
     (0.01, 0.01, "divergent"), (float("nan"), 0.001, "divergent")],
)  # fmt: skip
def test_c34_both_gaps_must_be_below_the_measured_noise(base: float | None, arm: float | None, grade: str) -> None:
    assert grade_answer(answer(base=base, arm=arm), NOISE) == grade


def test_a_gap_is_compared_with_the_noise_of_its_own_quantity() -> None:
    assert grade_answer(answer(base=0.003, quantity="cdf_distance"), NOISE) == "divergent"
    assert grade_answer(answer(base=3e-5, quantity="cdf_distance"), NOISE) == "near_tie"


def test_noise_that_nobody_measured_excuses_nothing() -> None:
    assert grade_answer(answer(base=1e-9), {}) == "divergent"


def test_a_later_disagreement_under_teacher_forcing_counts() -> None:
    forced = {"positions": 20, "disagreements": 1, "worst_gap": 2.0}
    assert grade_answer(answer(base=0.003, teacher_forced=forced), NOISE) == "divergent"
    assert grade_answer(answer(base=0.003, teacher_forced={**forced, "worst_gap": 0.002}), NOISE) == "near_tie"
    assert grade_answer(answer(base=0.003, teacher_forced={**forced, "disagreements": 0}), NOISE) == "near_tie"


def test_c35_share_of_identical_answers_over_many_prompts() -> None:
    answers = [answer(f"p{index}") for index in range(19)] + [answer("p19", base=0.003)]
    grade = grade_arm({"lossless": answers, "noise": NOISE}, "treatment")
    assert grade is not None
    assert (grade.grade, grade.n, grade.divergent) == ("near_tie", 20, 0)
    assert grade.columns()["identical_share"] == pytest.approx(0.95)
    assert grade.columns()["near_tie_share"] == pytest.approx(0.05)


def test_the_worst_answer_names_the_grade_and_its_prompt() -> None:
    grade = grade_arm({"lossless": [answer("a"), answer("b", base=4.1)], "noise": NOISE}, "treatment")
    assert grade is not None
    assert (grade.grade, grade.divergent_names) == ("divergent", ("b",))


def test_an_arm_without_answers_has_no_grade() -> None:
    assert grade_arm({"lossless": [answer()], "noise": NOISE}, "oracle") is None
    assert grade_arm({"lossless": [answer("a")], "noise": NOISE}, "treatment", {"b"}) is None


def test_a_difference_that_the_stored_grades_leave_out_is_found() -> None:
    wrong = Arm(per_round=2, drafted=2, accepted=1, token=lambda stream, place: 7 if place == 9 else place)
    cell = guess_cell(wrong)
    hidden = unexplained(cell, run_table(cell), ["treatment", "oracle"])
    assert list(hidden) == ["treatment"]
    assert "position 9" in hidden["treatment"]
    for row in cell.facts["lossless"]:
        if row["arm"] == "treatment":
            row["first_difference"] = {"position": 9, "gap_baseline": 4.0, "gap_arm": 4.0}
    assert unexplained(cell, run_table(cell), ["treatment"]) == {}


def test_tokens_that_nothing_confirmed_are_no_part_of_the_comparison() -> None:
    cell = guess_cell(Arm(per_round=2, drafted=2, accepted=1, token=lambda stream, place: 7 if place == 9 else place))
    treated = cell.ledger["run"].isin(cell.runs[cell.runs["arm"] == "treatment"]["run"])
    cell.ledger.loc[treated & (cell.ledger["position"] == 9), "source"] = "unverified"
    assert unexplained(cell, run_table(cell), ["treatment"]) == {}


@pytest.mark.parametrize(
    ("own", "grade"),
    [
        ({"logit_gap": 0.3, "cdf": 0.0}, "near_tie"),  # the shapes alone move this prefix further than the gap
        ({"logit_gap": 0.1, "cdf": 9.0}, "divergent"),  # they do not
        ({"logit_gap": 4.5, "cdf": 0.0}, "divergent"),  # no rounding: one of the shapes computes something else
        ({}, "divergent"),
    ],
)
def test_noise_on_the_answers_own_prefix_counts_while_it_is_rounding(own, grade):
    assert grade_answer(answer(base=0.2, arm=0.2, own_noise=own), {"logit_gap": 0.01}) == grade

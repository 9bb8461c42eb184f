"""Grades: what a measured noise excuses and what nothing excuses."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from bench.judge.measure.lossless import Rates, grade_answer, grade_arm, rates
from bench.records.cells import load_cell

OWN = Path(__file__).parents[2] / "faults" / "cells"
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


@pytest.mark.parametrize(
    ("base", "arm", "here", "grade"),
    [
        (0.3, 0.2, 0.5, "near_tie"),  # plain decoding in the arm's shape says so itself, and moves that far there
        (0.45, 0.2, 0.4, "divergent"),  # it does not move so far there, whatever it does elsewhere
        (0.9, 0.4, 1.3, "near_tie"),
        (0.3, -0.2, 0.5, "near_tie"),  # no replay says it, and it is a rounding
        (0.9, -0.2, 1.3, "divergent"),  # no replay says it, and it is none
        (0.9, -0.2, None, "divergent"),  # the largest noise of the cell is no door
        (3.0, 0.2, 3.2, "divergent"),  # the shapes differ elsewhere by less: another model, not a rounding
    ],
)
def test_a_near_tie_is_judged_at_its_own_position(base, arm, here, grade):
    row = answer(base=base, arm=arm)
    if here is not None:
        row["first_difference"]["noise"] = here
    assert grade_answer(row, {"logit_gap": 1.9}) == grade


def texts(places: list[int | None]) -> list[dict]:
    """Answers of 64 tokens that first differ where they are told to, by next to nothing."""
    rows = [answer(f"p{number}", base=None if place is None else 1e-3) for number, place in enumerate(places)]
    for row, place in zip(rows, places, strict=True):
        row["n"] = 64
        if place is not None:
            row["first_difference"]["position"] = place
            row["teacher_forced"] = {"positions": 64, "disagreements": 2, "worst_gap": 1e-3}
    return rows


def test_a_method_that_says_the_runner_up_wherever_it_is_close_is_no_near_tie() -> None:
    # Three in ten positions are close; the shape itself leaves the text at two in 64.
    often = {"lossless": texts([2, 3, 1, 4, 2, 5, 3, 2]), "noise": NOISE | {"disagreements": 2}}
    grade = grade_arm(often, "treatment")
    assert grade is not None and grade.grade == "divergent"
    found = rates(often, often["lossless"])
    assert found.too_often and found.left == 8 and found.positions == 30
    assert "27 %" in found.words and "3.1 %" in found.words
    seldom = {"lossless": texts([30, None, None, 9, 50, None, 22, None]), "noise": NOISE | {"disagreements": 2}}
    grade = grade_arm(seldom, "treatment")
    assert grade is not None and grade.grade == "near_tie"


def test_the_chance_of_so_many_differences_is_the_binomial_one() -> None:
    # 8 of 10 differences at a third of the positions, by adding up the binomial's own terms.
    chance = sum(math.comb(10, k) * (1 / 3) ** k * (2 / 3) ** (10 - k) for k in range(8, 11))
    assert chance == pytest.approx(0.0034, rel=0.01)
    assert not Rates(8, 100, 2, 200).too_often
    assert Rates(9, 100, 1, 200).too_often == (10 * (1 / 3) ** 9 * (2 / 3) + (1 / 3) ** 10 < 1e-3)
    assert not Rates(0, 100, 2, 200).too_often and not Rates(8, 100, 0, 0).too_often


def test_answers_that_repeat_each_other_count_once() -> None:
    rows = texts([2, 2]) * 2
    for row in rows:
        row["prompt"] = "p"
    assert (rates({"noise": NOISE}, rows).left, rates({"noise": NOISE}, rows).own) == (1, 2)


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


def test_the_published_loop_is_divergent_above_temperature_0_since_it_takes_tokens_back() -> None:
    """Of the differences of this cell that no rounding explains each is a guess that the next round's draw replaced."""
    cell = load_cell(OWN / "h200" / "cf74b6f7f3af")
    runs, emits, taken_back = cell.runs, cell.ledger, 0
    for row in cell.facts["lossless"]:
        if row["arm"] != "treatment" or grade_answer(row, cell.facts["noise"]) != "divergent":
            continue
        first = row["first_difference"]
        own = (runs["arm"] == "treatment") & (runs["prompt"] == row["prompt"]) & (runs["seed"] == row["seed"])
        mine = runs["run"][own]
        here = (emits["run"] == mine[0]) & (emits["position"] == first["position"])
        assert emits["source"][here].tolist() == ["unverified", "verified"]
        assert emits["token"][here].tolist() == [first["token_arm"], first["token_baseline"]]
        taken_back += 1
    assert taken_back == 3

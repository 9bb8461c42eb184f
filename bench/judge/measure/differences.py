"""Rows of the table of answers that are not the baseline's, from the stored grades. It reads no ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench.judge.findings import origin
from bench.judge.measure.lossless import NOISE_OF, grade_answer
from bench.judge.tables.differences import NAN, Difference

if TYPE_CHECKING:
    from bench.judge.measure.case import Case


def difference_rows(case: Case) -> list[Difference]:
    """One row an answer with a first difference, in the order in which they were graded."""
    noise = case.cell.facts.get("noise") or {}
    answers = case.cell.facts.get("lossless") or []
    return [_row(case, answer, noise) for answer in answers if answer.get("first_difference")]


def _row(case: Case, answer: dict[str, Any], noise: dict[str, Any]) -> Difference:
    first = answer["first_difference"]
    forced = answer.get("arm_forced") or answer.get("teacher_forced") or {}
    quantity = str(first.get("quantity", "logit_gap"))
    here = first.get("noise")
    moved = noise.get(NOISE_OF.get(quantity, "")) if here is None else here
    return Difference(
        **origin(case.cell), cell=case.cell.cell, arm=str(answer.get("arm")), prompt=str(answer.get("prompt")),
        seed=int(answer.get("seed") or 0), stream=int(answer.get("stream") or 0), compared=int(answer.get("n") or 0),
        position=int(first.get("position", -1)), token_baseline=int(first.get("token_baseline", -1)),
        token_arm=int(first.get("token_arm", -1)), quantity=quantity, gap_baseline=float(first["gap_baseline"]),
        gap_arm=float(first["gap_arm"]), noise=NAN if moved is None else float(moved),
        disagreements=int(forced.get("disagreements") or 0), replayed=int(forced.get("positions") or 0),
        worst_gap=float(forced.get("worst_gap") or NAN), grade=grade_answer(answer, noise), void=bool(case.void_reason),
    )  # fmt: skip

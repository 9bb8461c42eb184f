"""The grade on F16 weights, from what a cell stores of it. It does not know how the answers were made.

A treatment that parts from plain decoding there by more than what the shape of a decode moves there is divergent,
whatever the noise of the user's own weights would excuse. That its own weights agree excuses nothing either: the grade
on these stands beside it, and the worse of the two is the row's.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.judge.measure.lossless import ROUNDING, Grade, grade_arm
from bench.judge.tables.contrast import DIVERGENT

if TYPE_CHECKING:
    from bench.judge.measure.case import Case

SAME, GRADED, LEFT_OUT = "same", "graded", "left out"
"""What a cell says of it; `bench.run.sharp` writes these."""
MOST = ROUNDING / 2
"""Logits that the shape of a decode may move on F16 weights and still be their rounding: 0.06 were seen at most, and
0.5 to 2.6 on quantised weights of the same model."""
NOT_MEASURED = "the record has none"
OWN = "the cell's own weights are no coarser"


@dataclass(frozen=True, slots=True)
class Sharp:
    """The grade on F16 weights, and both together."""

    own: Grade
    """On the cell's own weights."""
    grade: Grade | None
    weights: str
    """Digest of the file that it was made on; empty where there is no grade."""
    note: str
    """Why there is none, or whose weights they are."""

    @property
    def told(self) -> str:
        """The grade of the row: divergent where either is."""
        return DIVERGENT if self.grade and self.grade.divergent else self.own.grade

    def columns(self) -> dict[str, Any]:
        """Columns of the speed-up table, those of the own grade too."""
        found = self.grade
        return self.own.columns() | {
            "lossless": self.told,
            "lossless_own": self.own.grade,
            "lossless_f16": found.grade if found else "",
            "f16_answers": found.n if found else 0,
            "f16_identical_share": found.identical / found.n if found else math.nan,
            "f16_divergent_share": found.divergent / found.n if found else math.nan,
            "f16_weights": self.weights,
            "f16_note": self.note,
        }


def graded(case: Case, arm: str, prompts: Collection[str] | None = None) -> Sharp | None:
    """Both grades of an arm over its answers, or over those of some prompts; None where no answer was graded."""
    facts = case.cell.facts
    own = grade_arm(facts, arm, prompts)
    if own is None:
        return None
    stored = facts.get("sharp") or {}
    state = stored.get("state")
    if state == SAME:
        return Sharp(own, own, str(stored.get("sha256") or ""), f"{OWN}: {stored.get('type')}")
    if state != GRADED:
        return Sharp(own, None, "", str(stored.get("reason") or NOT_MEASURED))
    found = grade_arm(stored, arm, prompts, MOST)
    note = "" if found else "none of these answers was decoded on F16 weights"
    return Sharp(own, found, str(stored.get("sha256") or "") if found else "", note)

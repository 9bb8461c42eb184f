"""Grades of losslessness, and a check of the stored grades against the ledgers.

It does not know how a logit gap was obtained; it compares gaps with the noise that was measured for that quantity.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import special

from bench.judge.measure.intervals import wilson
from bench.judge.tables.contrast import DIVERGENT, GRADES, IDENTICAL, NEAR_TIE

if TYPE_CHECKING:
    from bench.judge.measure.runs import RunTable

NOISE_OF = {"logit_gap": "logit_gap", "cdf_distance": "cdf"}
"""Which measured noise a gap is compared with."""
ROUNDING = 0.5
"""Largest move of a logit gap that the shape of a decode may make on one prefix and still be rounding: the odds of two
tokens change by 1.6."""
SMALL = {"logit_gap": ROUNDING, "cdf": ROUNDING / 4}
"""Largest gap that is a rounding where no replay says the arm's token: half a logit moves no probability further than
an eighth."""
TOO_OFTEN = 1e-3
"""Chance below which differences are more than the shape's own: a sweep has many cells."""
POSITIONS, STREAMS, REPLICATES = 2**24, 4096, 256
"""More than any cell has of them."""


@dataclass(frozen=True, slots=True)
class Grade:
    """How the answers of an arm compare with the baseline's; the worst answer names the grade."""

    identical: int
    near_tie: int
    divergent: int
    divergent_names: tuple[str, ...]
    """Prompts with a divergent answer."""

    @property
    def n(self) -> int:
        return self.identical + self.near_tie + self.divergent

    @property
    def grade(self) -> str:
        if self.divergent:
            return DIVERGENT
        return NEAR_TIE if self.near_tie else IDENTICAL

    def columns(self) -> dict[str, Any]:
        """Columns of the speed-up table."""
        return {
            "lossless": self.grade,
            "answers_graded": self.n,
            "identical_share": self.identical / self.n,
            "near_tie_share": self.near_tie / self.n,
            "divergent_share": self.divergent / self.n,
            "divergent_prompts": len(self.divergent_names),
            "divergent_names": ", ".join(self.divergent_names),
        }


def grade_answer(answer: dict[str, Any], noise: dict[str, Any], most: float = math.inf) -> str:
    """Grade of one answer, a row of facts["lossless"]. No noise above `most` logits excuses anything.

    A first difference is a near tie when both arms' gaps there are below the noise at that very position, as the two
    shapes moved logits on this prefix where no guess is made. Where that was not kept, the cell's noise stands in, or
    what was seen on this answer's prefix as long as it has the size of rounding. It may be any size only where the
    arm's shape, decoding plainly, says the arm's token itself; else it has to be a rounding. So has the worst gap of a
    later disagreement between the shapes to be noise. Noise that nobody measured excuses nothing.
    """
    first = answer.get("first_difference")
    if first is None:
        return IDENTICAL
    quantity = NOISE_OF.get(first.get("quantity", "logit_gap"), "")
    shapes, own = float(noise.get(quantity, 0.0) or 0.0), answer.get("own_noise") or {}
    if float(own.get("logit_gap") or 0.0) <= ROUNDING:
        shapes = max(shapes, float(own.get(quantity) or 0.0))
    base, arm = float(first["gap_baseline"]), float(first["gap_arm"])
    here = first.get("noise")
    limit = shapes if here is None else min(shapes, float(here) * (1 + 1e-6))
    limit = min(limit, most if quantity == "logit_gap" else most / 4)
    if arm <= 0:
        limit = min(limit, SMALL.get(quantity, 0.0))
    # Of a build or a setting on trial its own replay, the other being the baseline's at another width.
    forced = answer.get("arm_forced") or answer.get("teacher_forced") or {}
    worst = float(forced["worst_gap"]) if forced.get("disagreements") else 0.0
    # nan is divergent.
    return NEAR_TIE if max(abs(base), abs(arm)) < limit and (not worst or abs(worst) < shapes) else DIVERGENT


@dataclass(frozen=True, slots=True)
class Rates:
    """How often an arm left the baseline's text, and how often plain decoding in its shape does, a position."""

    left: int
    positions: int
    """Up to the first difference, or to the end: behind it the prefix is another."""
    own: int
    own_positions: int

    @property
    def too_often(self) -> bool:
        """Whether the arm leaves it more often than its shape explains, at 99.9 %.

        Given all differences, as many fall to the arm by chance as it has of the positions (two Poisson rates).
        """
        if not self.own_positions or not self.left:
            return False
        share = self.positions / (self.positions + self.own_positions)
        return bool(special.bdtrc(self.left - 1, self.left + self.own, share) < TOO_OFTEN)

    @property
    def words(self) -> str:
        """Both rates with their 95 % intervals."""
        told = []
        for count, of in ((self.left, self.positions), (self.own, self.own_positions)):
            low, high = wilson(min(count, of), of)
            told.append(f"{100 * count / max(of, 1):.2g} % ({100 * low:.2g} to {100 * high:.2g})")
        return f"it leaves the baseline's text at {told[0]} of positions, plain decoding in its shape at {told[1]}"


def rates(facts: dict[str, Any], answers: Iterable[dict[str, Any]]) -> Rates:
    """Rates over the answers of one arm. Answers that repeat each other count once.

    Plain decoding's own are the replays: of the noise, and of each answer that differs, which is more than its share.
    """
    noise = facts.get("noise") or {}
    left: dict[tuple[Any, ...], tuple[int, int]] = {}
    own: dict[tuple[Any, ...], tuple[int, int]] = {}
    for row in answers:
        first = row.get("first_difference")
        drawn = (first or {}).get("quantity") == "cdf_distance"
        key = (row.get("prompt"), row.get("seed") if drawn else 0, first and first.get("position"))
        left[key] = (1, int(first.get("position") or 0) + 1) if first else (0, int(row.get("n") or 0))
        forced = row.get("teacher_forced")
        if forced:
            own[key] = int(forced.get("disagreements") or 0), int(forced.get("positions") or 0)
    mine, plain = (np.array([(0, 0), *found.values()]).sum(axis=0).tolist() for found in (left, own))
    return Rates(mine[0], mine[1], plain[0] + int(noise.get("disagreements") or 0),
                 plain[1] + int(noise.get("positions") or 0))  # fmt: skip


def grade_arm(facts: dict[str, Any], arm: str, prompts: Collection[str] | None = None,
              most: float = math.inf) -> Grade | None:  # fmt: skip
    """Grade of an arm over its answers, or over those of some prompts; None when no answer was graded.

    Near ties that come more often than the shape of the decode explains are none: a method that says the second most
    likely token wherever it is close leaves the text at positions where plain decoding in its shape does not.
    """
    noise = facts.get("noise") or {}
    answers = [row for row in facts.get("lossless") or [] if row.get("arm") == arm]
    if prompts is not None:
        answers = [row for row in answers if row.get("prompt") in prompts]
    if not answers:
        return None
    grades = [grade_answer(row, noise, most) for row in answers]
    if NEAR_TIE in grades and rates(facts, answers).too_often:
        grades = [DIVERGENT if grade == NEAR_TIE else grade for grade in grades]
    bad = sorted({str(row.get("prompt")) for row, grade in zip(answers, grades, strict=True) if grade == DIVERGENT})
    identical, near_tie, divergent = (grades.count(name) for name in GRADES)
    return Grade(identical, near_tie, divergent, tuple(bad))


def prompt_parts(names: Iterable[str]) -> set[str]:
    """Prompt ids of runs, and the single ids inside a group that is joined by '+'."""
    parts: set[str] = set()
    for name in names:
        parts.add(name)
        parts.update(name.split("+"))
    return parts


class Said(NamedTuple):
    """What a reader was given first at each (block, replicate, stream, position), the four in one number as `key`.

    Positions that nothing ever confirmed are left out, as in the stored grades. `owner` is the run's index.
    """

    key: np.ndarray
    token: np.ndarray
    owner: np.ndarray

    def of(self, runs: np.ndarray) -> Said:
        """Those of some runs, given as a mask."""
        mine = runs[self.owner]
        return Said(*(column[mine] for column in self))

    def place(self, at: int) -> tuple[int, int]:
        """Stream and position of one of them."""
        key = int(self.key[at])
        return key // POSITIONS % STREAMS, key % POSITIONS


def _place(key: np.ndarray) -> tuple[list[int], list[int]]:
    """Stream and position of keys."""
    return (key // POSITIONS % STREAMS).tolist(), (key % POSITIONS).tolist()


def said(table: RunTable) -> Said:
    emits, owner = table.emits, table.emits["owner"]
    turn = (table.block * REPLICATES + _replicates(table))[owner]
    key = (turn * STREAMS + emits["stream"]) * POSITIONS + emits["position"]
    # By run, then key; stable, so that the first row of an answer's position is its first emission.
    order = np.lexsort((key, owner))
    key, owner = key[order], owner[order]
    starts = np.flatnonzero(_changes(key) | _changes(owner))
    kept = np.logical_or.reduceat(table.confirmed[order], starts) if len(starts) else np.zeros(0, dtype=bool)
    first = starts[kept]
    return Said(key[first], emits["token"][order][first], owner[first])


def _replicates(table: RunTable) -> np.ndarray:
    """Which of its arm's runs in its block each run is, from 0, in their order."""
    order = np.lexsort((table.order, table.block, table.arm_code))
    starts = np.flatnonzero(_changes(table.arm_code[order]) | _changes(table.block[order]))
    replicate = np.empty(len(order), dtype=np.int64)
    replicate[order] = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    return replicate


def _changes(values: np.ndarray) -> np.ndarray:
    """Where a value differs from the one before it; the first one does."""
    changed = np.ones(len(values), dtype=bool)
    changed[1:] = values[1:] != values[:-1]
    return changed

"""Grades of losslessness, and a check of the stored grades against the ledgers.

It does not know how a logit gap was obtained; it compares gaps with the noise that was measured for that quantity.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bench.judge.tables.contrast import DIVERGENT, GRADES, IDENTICAL, NEAR_TIE

if TYPE_CHECKING:
    from bench.judge.measure.runs import RunTable
    from bench.records.cells import StoredCell

NOISE_OF = {"logit_gap": "logit_gap", "cdf_distance": "cdf"}
"""Which measured noise a gap is compared with."""
ROUNDING = 0.5
"""Largest move of a logit gap that the shape of a decode may make on one prefix and still be rounding: the odds of two
tokens change by 1.6."""
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


def grade_answer(answer: dict[str, Any], noise: dict[str, Any]) -> str:
    """Grade of one answer, a row of facts["lossless"].

    A first difference is a near tie when both arms' gaps there are below the measured noise, and so is the worst gap
    of any later disagreement under teacher forcing. The noise is the cell's, or what the two shapes were seen to do on
    this answer's own prefix, where no guess is made, as long as that has the size of rounding. Noise that nobody
    measured excuses nothing.
    """
    first = answer.get("first_difference")
    if first is None:
        return IDENTICAL
    quantity = NOISE_OF.get(first.get("quantity", "logit_gap"), "")
    limit, own = float(noise.get(quantity, 0.0) or 0.0), answer.get("own_noise") or {}
    if float(own.get("logit_gap") or 0.0) <= ROUNDING:
        limit = max(limit, float(own.get(quantity) or 0.0))
    gaps = [float(first["gap_baseline"]), float(first["gap_arm"])]
    forced = answer.get("teacher_forced") or {}
    if forced.get("disagreements"):
        gaps.append(float(forced["worst_gap"]))
    # A gap below 0 is a replay that contradicts its own arm, as bad as one above. nan is divergent.
    return NEAR_TIE if all(abs(gap) < limit for gap in gaps) else DIVERGENT


def grade_arm(facts: dict[str, Any], arm: str, prompts: Collection[str] | None = None) -> Grade | None:
    """Grade of an arm over its answers, or over those of some prompts; None when no answer was graded."""
    noise = facts.get("noise") or {}
    answers = [row for row in facts.get("lossless") or [] if row.get("arm") == arm]
    if prompts is not None:
        answers = [row for row in answers if row.get("prompt") in prompts]
    if not answers:
        return None
    grades = [grade_answer(row, noise) for row in answers]
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


def unexplained(cell: StoredCell, table: RunTable, arms: Iterable[str]) -> dict[str, str]:
    """Differences between ledgers that no stored grade mentions, as one sentence an arm that has any.

    Replicates are compared pair by pair: k-th run of the arm in a block with the k-th baseline run.
    """
    every = said(table)
    base = every.of(table.of("baseline"))
    found = {}
    for arm in arms:
        mine = every.of(table.of(arm))
        _, i, j = np.intersect1d(base.key, mine.key, assume_unique=True, return_indices=True)
        wrong = j[base.token[i] != mine.token[j]]
        places = zip(table.run[mine.owner[wrong]].tolist(), *_place(mine.key[wrong]), strict=True)
        sentence = _first_unexplained(cell, table, arm, sorted(places)) if len(wrong) else None
        if sentence:
            found[arm] = sentence
    return found


def _first_unexplained(
    cell: StoredCell, table: RunTable, arm: str, places: list[tuple[int, int, int]]
) -> str | None:
    known = {
        (row.get("prompt"), int(row.get("stream") or 0))
        for row in cell.facts.get("lossless") or []
        if row.get("arm") == arm and row.get("first_difference") is not None
    }
    for run, stream, position in places:
        prompt = str(table.prompt[table.run == run][0])
        if not any((part, stream) in known for part in prompt_parts([prompt])):
            return (
                f"run {run} ({arm}) differs from its baseline at position {position} of stream {stream}, prompt "
                f"'{prompt}', and no stored grade says so"
            )
    return None


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

"""Grades of losslessness, and a check of the stored grades against the ledgers.

It does not know how a logit gap was obtained; it compares gaps with the noise that was measured for that quantity.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bench.judge.tokens import owners

if TYPE_CHECKING:
    from bench.judge.rates import RunTable
    from bench.store import StoredCell

IDENTICAL, NEAR_TIE, DIVERGENT = "identical", "near_tie", "divergent"
NOISE_OF = {"logit_gap": "logit_gap", "cdf_distance": "cdf"}
"""Which measured noise a gap is compared with."""


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

    def row(self) -> dict[str, Any]:
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
    of any later disagreement under teacher forcing. Noise that nobody measured excuses nothing.
    """
    first = answer.get("first_difference")
    if first is None:
        return IDENTICAL
    limit = float(noise.get(NOISE_OF.get(first.get("quantity", "logit_gap"), ""), 0.0) or 0.0)
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
    return Grade(*(grades.count(name) for name in (IDENTICAL, NEAR_TIE, DIVERGENT)), tuple(bad))


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
    base = _answers(table, "baseline")
    found = {}
    for arm in arms:
        mine = _answers(table, arm)
        _, i, j = np.intersect1d(base.key, mine.key, assume_unique=True, return_indices=True)
        wrong = j[base.token[i] != mine.token[j]]
        places = zip(*(column[wrong].tolist() for column in (mine.run, mine.stream, mine.position)), strict=True)
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


class _Answers(NamedTuple):
    """An arm's answers as a reader was given them: the first emission of each (block, replicate, stream, position).

    Positions that nothing ever confirmed are left out, as in the stored grades.
    """

    key: np.ndarray
    token: np.ndarray
    run: np.ndarray
    stream: np.ndarray
    position: np.ndarray


def _answers(table: RunTable, arm: str) -> _Answers:
    members = np.flatnonzero(table.of(arm))
    members = members[np.lexsort((table.order[members], table.block[members]))]
    blocks = table.block[members]
    starts = np.flatnonzero(np.r_[True, blocks[1:] != blocks[:-1]])
    replicate = np.arange(len(members)) - np.repeat(starts, np.diff(np.r_[starts, len(members)]))
    rows = np.flatnonzero(np.isin(table.emits["run"], table.run[members]))
    run, stream, position = (table.emits[name][rows].astype(np.int64) for name in ("run", "stream", "position"))
    owner = owners(table.run[members], run)
    key = ((blocks[owner] * 256 + replicate[owner]) * 4096 + stream) * 2**24 + position
    order = np.argsort(key, kind="stable")
    first = order[np.r_[np.ones(min(len(order), 1), dtype=bool), key[order][1:] != key[order][:-1]]]
    first = first[np.isin(key[first], key[table.confirmed[rows]])]
    return _Answers(key[first], table.emits["token"][rows][first], run[first], stream[first], position[first])

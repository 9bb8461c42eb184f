"""What one context has over another of its kind, put into the intervals of speed-ups.

Every arm of a cell has one context at a time, so its intervals know little of how contexts differ; A/A over the cells
of a machine does (`bench.judge.measure.again`). Contexts that were made anew average it. It changes no estimate.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.judge.columns import R, changed
from bench.judge.tables.cell import Contexts

if TYPE_CHECKING:
    from bench.judge.measure.runs import RunTable

ENDS = ("ci_low", "ci_high", "noise_low", "noise_high", "prompts_low", "prompts_high")
"""Columns that the spread widens: each other one is a lower end, and the next the upper one. It may turn `direction`,
too."""


@dataclass(frozen=True)
class Told:
    """What is needed of some rows, in their order."""

    builds: Sequence[tuple[str, str]]
    """Machine and build whose contexts are in the row's intervals."""
    figures: np.ndarray
    """(rows, 8): the speed-up, its sets of contexts, and its ends as in `ENDS`."""
    directions: Sequence[str]

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]]) -> Told:
        """Of rows of a table that has those columns. Of a build on trial two contexts are known of the baseline alone.
        """
        builds = [(row["machine"], row.get("baseline_build", row["build"])) for row in rows]
        figures = [[row["speedup"], row["contexts"], *(row[name] for name in ENDS)] for row in rows]
        return cls(builds, np.array(figures, dtype=float).reshape(len(rows), 2 + len(ENDS)),
                   [row["direction"] for row in rows])  # fmt: skip


class Widening:
    """What contexts have over another, by machine and build."""

    def __init__(self, contexts: Sequence[Contexts]) -> None:
        self._half_widths = {(one.machine, one.build): one.half_width for one in contexts if one.half_width > 0}

    @property
    def digest(self) -> str:
        """Stands for all of it."""
        told = repr(sorted(self._half_widths.items()))
        return hashlib.sha256(told.encode(errors="surrogateescape")).hexdigest()

    def of(self, told: Told) -> tuple[np.ndarray, np.ndarray, list[str]]:
        """Which rows it changes (rows), the ends of all of them (rows, 6), and their directions."""
        found = np.array([self._half_widths.get(one, 0.0) for one in told.builds])
        middle, contexts, ends = told.figures[:, :1], told.figures[:, 1], told.figures[:, 2:]
        half = (found / np.sqrt(contexts))[:, None]
        lower = np.arange(len(ENDS)) % 2 == 0
        with np.errstate(all="ignore"):
            ratios = np.where(lower, middle / ends, ends / middle)
            # What an end is of the estimate when an independent error is added to its distance.
            factors = np.exp(-np.hypot(np.log(ratios), half))
            wide = np.where(lower, middle * factors, middle / factors)
        changes = found > 0
        ends = np.where(changes[:, None] & ~(lower & ~(ends > 0)), wide, ends)
        directions = [direction_of(ratio, low, high) if wider else was for ratio, low, high, wider, was in zip(
            told.figures[:, 0].tolist(), ends[:, 0].tolist(), ends[:, 1].tolist(), changes.tolist(), told.directions,
            strict=True)]  # fmt: skip
        return changes, ends, directions


def with_contexts(rows: Sequence[R], widening: Widening) -> list[R]:
    """The rows with the spread between contexts of their machine and build in all intervals."""
    if not rows:
        return []
    changes, ends, directions = widening.of(Told.of(rows))
    found = zip(rows, changes.tolist(), ends.tolist(), directions, strict=True)
    return [changed(row, **dict(zip(ENDS, own, strict=True)), direction=direction) if wider else row
            for row, wider, own, direction in found]  # fmt: skip


def sets_of(table: RunTable, mask: np.ndarray) -> float:
    """How many sets of contexts of equal weight the treatment's runs under a mask are worth."""
    shares = np.unique(table.context[mask & table.of("treatment")], return_counts=True)[1].astype(float)
    return float(shares.sum() ** 2 / (shares @ shares)) if len(shares) else 1.0


def direction_of(ratio: float, low: float, high: float) -> str:
    """`faster`, `slower`, or `inconclusive` when the interval spans 1.00."""
    if low <= 1.0 <= high:
        return "inconclusive"
    return "faster" if ratio > 1.0 else "slower"

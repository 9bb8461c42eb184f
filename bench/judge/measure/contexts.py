"""What one context has over another of its kind, put into the intervals of speed-ups.

Every arm of a cell has one context at a time, so its intervals know little of how contexts differ; A/A over the cells
of a machine does (`bench.judge.measure.again`). Contexts that were made anew average it. It changes no estimate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bench.judge.columns import R, changed
from bench.judge.tables.cell import Contexts

if TYPE_CHECKING:
    from bench.judge.measure.runs import RunTable

PAIRS = (("ci_low", "ci_high"), ("noise_low", "noise_high"), ("prompts_low", "prompts_high"))


def with_contexts(rows: Sequence[R], contexts: Sequence[Contexts]) -> list[R]:
    """The rows with the spread between contexts of their machine and build in all intervals.

    Of a build on trial that is the baseline's: two contexts of one kind are known of it alone.
    """
    by_build: Mapping[tuple[str, str], float] = {(one.machine, one.build): one.half_width for one in contexts}
    return [_wider(row, by_build.get((row["machine"], row.get("baseline_build", row["build"])), 0.0)
                   / float(np.sqrt(row["contexts"]))) for row in rows]  # fmt: skip


def sets_of(table: RunTable, mask: np.ndarray) -> float:
    """How many sets of contexts of equal weight the treatment's runs under a mask are worth."""
    shares = np.unique(table.context[mask & table.of("treatment")], return_counts=True)[1].astype(float)
    return float(shares.sum() ** 2 / (shares @ shares)) if len(shares) else 1.0


def _wider(row: R, half_width: float) -> R:
    if not half_width > 0:
        return row
    ends, middle = {}, row["speedup"]
    for low, high in PAIRS:
        ends[low] = middle * _factor(middle / row[low], half_width) if row[low] > 0 else row[low]
        ends[high] = middle / _factor(row[high] / middle, half_width)
    return changed(row, **ends, direction=direction_of(middle, ends["ci_low"], ends["ci_high"]))


def _factor(ratio: float, half_width: float) -> float:
    """What an end is of the estimate when an independent error is added to its distance."""
    return float(np.exp(-np.hypot(np.log(ratio), half_width)))


def direction_of(ratio: float, low: float, high: float) -> str:
    """`faster`, `slower`, or `inconclusive` when the interval spans 1.00."""
    if low <= 1.0 <= high:
        return "inconclusive"
    return "faster" if ratio > 1.0 else "slower"

"""What one context has over another of its kind, put into the intervals of speed-ups.

Every arm of a cell has one context at a time, so its intervals know little of how contexts differ; A/A over the cells
of a machine does (`bench.judge.measure.again`). Contexts that were made anew average it. It changes no estimate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bench.judge.columns import changed
from bench.judge.tables.cell import Contexts
from bench.judge.tables.contrast import SpeedUp

if TYPE_CHECKING:
    from bench.judge.measure.runs import RunTable

PAIRS = (("ci_low", "ci_high"), ("noise_low", "noise_high"), ("prompts_low", "prompts_high"))


def with_contexts(rows: Sequence[SpeedUp], contexts: Sequence[Contexts]) -> list[SpeedUp]:
    """The rows with the spread between contexts of their machine and build in all intervals."""
    by_build: Mapping[tuple[str, str], float] = {(one.machine, one.build): one.half_width for one in contexts}
    return [_wider(row, by_build.get((row.machine, row.build), 0.0) / np.sqrt(row.contexts)) for row in rows]


def sets_of(table: RunTable, mask: np.ndarray) -> float:
    """How many sets of contexts of equal weight the treatment's runs under a mask are worth."""
    shares = np.unique(table.context[mask & table.of("treatment")], return_counts=True)[1].astype(float)
    return float(shares.sum() ** 2 / (shares @ shares)) if len(shares) else 1.0


def _wider(row: SpeedUp, half_width: float) -> SpeedUp:
    if not half_width > 0:
        return row
    ends = {}
    for low, high in PAIRS:
        ends[low] = row.speedup * _factor(row.speedup / row[low], half_width) if row[low] > 0 else row[low]
        ends[high] = row.speedup / _factor(row[high] / row.speedup, half_width)
    return changed(row, **ends, direction=direction_of(row.speedup, ends["ci_low"], ends["ci_high"]))


def _factor(ratio: float, half_width: float) -> float:
    """What an end is of the estimate when an independent error is added to its distance."""
    return float(np.exp(-np.hypot(np.log(ratio), half_width)))


def direction_of(ratio: float, low: float, high: float) -> str:
    """`faster`, `slower`, or `inconclusive` when the interval spans 1.00."""
    if low <= 1.0 <= high:
        return "inconclusive"
    return "faster" if ratio > 1.0 else "slower"

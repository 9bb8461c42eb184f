"""What went on beside a cell's runs: time that stalls took, and time that everything else on the machine took.

It says nothing of whether that is much; `bench.judge.summary.quiet` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bench.judge.tables import CONTRASTS

if TYPE_CHECKING:
    from bench.judge.measure.case import Case

NAN = float("nan")


def beside(case: Case) -> dict[str, Any]:
    """`stalled`, `other_cpus` and `steal` of a finished contrast; nan where its records do not tell."""
    if not case.done or case.contradiction or case.kind not in CONTRASTS:
        return {}
    runs = case.cell.runs
    return {"stalled": case.stalls.share, **{name: _mean(runs[name]) if name in runs else NAN
                                             for name in ("other_cpus", "steal")}}  # fmt: skip


def _mean(values: np.ndarray) -> float:
    known = np.asarray(values, dtype=float)
    known = known[np.isfinite(known)]
    return float(known.mean()) if known.size else NAN

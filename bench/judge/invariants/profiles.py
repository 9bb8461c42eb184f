"""Timed steps of a profile: that all are there, that none is impossible, and that they agree with each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bench.judge.measure.roofline import ceiling
from bench.judge.measure.tokens import arrays

if TYPE_CHECKING:
    from bench.judge.measure.case import Case
    from bench.records.cells import Columns

APART = 2.0
"""Factor between the upper and the lower quartile of a width's passes that no machine at rest shows."""
ALIKE = 2.0
"""Factor between one token of one sequence and one token in each of one sequence, which are the same."""


def passes_are_there(case: Case) -> str | None:
    """As many passes as were configured, each with every width of each layout."""
    steps = arrays(case.cell.steps)
    if not len(steps["width"]):
        return "no step was timed"
    wanted = (case.cell.config.get("measure") or {}).get("step_passes")
    passes = np.unique(steps["repeat"])
    if wanted is not None and len(passes) != wanted:
        return f"{wanted} passes were configured, and {len(passes)} are stored"
    for layout in np.unique(steps["layout"]):
        mine = steps["layout"] == layout
        widths = np.unique(steps["width"][mine])
        cells = np.unique(steps["repeat"][mine].astype(np.int64) * 2**20 + steps["width"][mine].astype(np.int64))
        if len(cells) != len(widths) * len(np.unique(steps["repeat"][mine])):
            return f"a pass lacks a width of the layout {layout} that another pass has"
    return None


def below_the_bound(case: Case) -> str | None:
    """The quickest settled step against the bytes of the weights over the best bandwidth that was read."""
    facts = case.cell.facts
    step_bytes, top = (facts.get("model") or {}).get("step_bytes"), ceiling(facts)
    steps = arrays(case.cell.steps)
    if not step_bytes or top is None or not len(steps["width"]):
        return None
    widths, column = np.unique(steps["width"], return_inverse=True)
    for width in range(len(widths)):
        median = float(np.median(steps["decode_ns"][column == width]))
        if float(step_bytes) / median > top:
            return (f"a step of width {int(widths[width])} takes {median * 1e-6:.3f} ms, so it would read "
                    f"{float(step_bytes) / median:.1f} GB/s, above the {top:.1f} GB/s measured here")  # fmt: skip
    return None


def repeats_agree(case: Case) -> str | None:
    """Medians of passes against that of their width, and of width 1 between layouts."""
    steps = arrays(case.cell.steps)
    settled = {name: column[steps["settled"] == 1] for name, column in steps.items()}
    ones: dict[str, float] = {}
    for layout in np.unique(settled["layout"]).tolist():
        mine = settled["layout"] == layout
        for width in np.unique(settled["width"][mine]).tolist():
            medians = _medians(settled, mine & (settled["width"] == width))
            if len(medians) > 2:
                medians = medians[1:]  # a first pass may be a warm-up, and is left out where it is
            low, middle, high = np.quantile(medians, (0.25, 0.5, 0.75)).tolist()
            if high > APART * low:
                return (f"the passes of width {int(width)} ({layout}) take {medians.min() * 1e-6:.3f} to "
                        f"{medians.max() * 1e-6:.3f} ms: they are no repeats of each other")  # fmt: skip
            if width == 1:
                ones[layout] = middle
    if len(ones) == 2 and max(ones.values()) > ALIKE * min(ones.values()):
        told = ", ".join(f"{value * 1e-6:.3f} ms in {layout}" for layout, value in ones.items())
        return f"one token of one sequence takes {told}, and they are the same decode"
    return None


def _medians(steps: Columns, mask: np.ndarray) -> np.ndarray:
    """Median of every pass."""
    times, passes = steps["decode_ns"][mask], steps["repeat"][mask]
    return np.array([np.median(times[passes == number]) for number in np.unique(passes)])

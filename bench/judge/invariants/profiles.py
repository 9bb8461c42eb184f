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

BOTH, LAYOUTS = 3, {"sequences", "tokens"}
"""The first schema whose every profile has steps of both layouts."""
DEEPER, FEW = 1.5, 8
"""Between the lengths of text that widths were timed behind: a series begins where the text ends, or a few behind."""


def passes_are_there(case: Case) -> str | None:
    """As many passes as were configured, each with every width of each layout."""
    steps = arrays(case.cell.steps)
    if not len(steps["width"]):
        return "no step was timed"
    wanted = (case.cell.config.get("measure") or {}).get("step_passes")
    passes = np.unique(steps["repeat"])
    if wanted is not None and len(passes) != wanted:
        return f"{wanted} passes were configured, and {len(passes)} are stored"
    layouts = set(np.unique(steps["layout"]).tolist())
    if int(case.cell.config.get("schema") or 0) >= BOTH and layouts != LAYOUTS:
        return f"steps of the layout {', '.join(sorted(layouts))} were timed, and each profile times both"
    for layout in np.unique(steps["layout"]):
        mine = steps["layout"] == layout
        widths = np.unique(steps["width"][mine])
        cells = np.unique(steps["repeat"][mine].astype(np.int64) * 2**20 + steps["width"][mine].astype(np.int64))
        if len(cells) != len(widths) * len(np.unique(steps["repeat"][mine])):
            return f"a pass lacks a width of the layout {layout} that another pass has"
    depth = (case.cell.config.get("measure") or {}).get("step_depth")
    least = int(steps["n_past"].min())
    if depth and not depth <= least <= DEEPER * depth + FEW:
        return f"steps were to be timed behind {depth} tokens, and the shortest text they were timed behind has {least}"
    return _measured(steps)


def _measured(steps: Columns) -> str | None:
    """Steps were settled, behind texts of one length, and no pass is another's."""
    for layout in np.unique(steps["layout"]):
        mine = steps["layout"] == layout
        if not steps["settled"][mine].any():
            return f"no step of the layout {layout} was settled"
        widths = np.unique(steps["width"][mine])
        held = [int(steps["n_past"][mine & (steps["width"] == width)].min()) for width in widths]
        if max(held) > DEEPER * min(held) + FEW:
            return (f"series of the layout {layout} begin behind {min(held)} to {max(held)} tokens, so their costs are "
                    "not those of one text")  # fmt: skip
    times = [tuple(sorted(steps["decode_ns"][steps["repeat"] == number].tolist()))
             for number in np.unique(steps["repeat"])]  # fmt: skip
    fine = bool((steps["decode_ns"] % 1000).any())  # by a coarse clock two passes may well be alike
    if fine and len(set(times)) < len(times):
        return "two passes have the very same times, so one is a copy of the other"
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
    """Most widths have passes that agree, and width 1 costs the same in both layouts."""
    spread, ones = _spread(case)
    unsteady = [told for told in spread.values() if told]
    if len(unsteady) > len(spread) / 2:
        return f"{len(unsteady)} of {len(spread)} widths have passes that are no repeats of each other; {unsteady[0]}"
    if len(ones) == 2 and max(ones.values()) > ALIKE * min(ones.values()):
        told = ", ".join(f"{value * 1e-6:.3f} ms in {layout}" for layout, value in ones.items())
        return f"one token of one sequence takes {told}, and they are the same decode"
    return None


def widths_are_steady(case: Case) -> str | None:
    """The first width whose passes do not agree: its cost is that of a disturbed machine, or an edit."""
    return next((told for told in _spread(case)[0].values() if told), None)


def _spread(case: Case) -> tuple[dict[tuple[str, int], str], dict[str, float]]:
    """For each width of a layout what its passes are apart, empty where they agree; and the median of width 1."""
    steps = arrays(case.cell.steps)
    settled = {name: column[steps["settled"] == 1] for name, column in steps.items()}
    found: dict[tuple[str, int], str] = {}
    ones: dict[str, float] = {}
    for layout in np.unique(settled["layout"]).tolist():
        mine = settled["layout"] == layout
        for width in np.unique(settled["width"][mine]).tolist():
            medians = _medians(settled, mine & (settled["width"] == width))
            if len(medians) > 2:
                medians = medians[1:]  # a first pass may be a warm-up, and is left out where it is
            low, middle, high = np.quantile(medians, (0.25, 0.5, 0.75)).tolist()
            found[layout, int(width)] = (
                f"the passes of width {int(width)} ({layout}) take {medians.min() * 1e-6:.3f} to "
                f"{medians.max() * 1e-6:.3f} ms" if high > APART * low else ""
            )  # fmt: skip
            if width == 1:
                ones[layout] = middle
    return found, ones


def _medians(steps: Columns, mask: np.ndarray) -> np.ndarray:
    """Median of every pass."""
    times, passes = steps["decode_ns"][mask], steps["repeat"][mask]
    return np.array([np.median(times[passes == number]) for number in np.unique(passes)])

"""Axes and intervals: logarithmic axes for ratios with readable ticks, and intervals that end in an arrow at the edge.

Knows nothing about what is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from bench.report.figures.marks import Mark, numbers
from bench.report.tables.values import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Span = tuple[float, float]
ROOM = 1.15
"""How far a logarithmic axis goes beyond the outermost value."""
REACH = 2.0
"""How far it goes at most for the end of an interval: beyond that the interval ends in an arrow."""
_TICKS = (
    (1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0), (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0,
     7.0, 8.0, 9.0),
)  # fmt: skip


def ratio_span(marks: Iterable[Mark], also: Sequence[float] = (1.0,), field: str = "x") -> Span:
    """Ends of a logarithmic axis for a field: all values, and of the intervals what is not far off them."""
    drawn = list(marks)
    values = [one for one in numbers(drawn, field) if one > 0] + [one for one in also if one > 0]
    ends = [one for one in numbers(drawn, "low", "high") if one > 0]
    low, high = min(values, default=1.0), max(values, default=1.0)
    near = [one for one in ends if low / REACH <= one <= high * REACH]
    if len(near) < len(ends):
        # What goes beyond reaches the edge of the axis, where its arrow is.
        near += [max(low / REACH, min(ends)), min(high * REACH, max(ends))]
    return min([low, *near]) / ROOM, max([high, *near]) * ROOM


def log_axis(axis: Any, span: Span, most: int = 6) -> None:
    """A logarithmic axis with at most `most` ticks on round numbers, as many as fit."""
    low, high = span
    if axis.axis_name == "x":
        axis.axes.set_xscale("log")
        axis.axes.set_xlim(low, high)
    else:
        axis.axes.set_yscale("log")
        axis.axes.set_ylim(low, high)
    ticks = log_ticks(low, high, most)
    axis.set_ticks(ticks, [number(tick) for tick in ticks])
    axis.set_ticks([], minor=True)


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers in a span: of the sets of digits the finest that gives no more than `most`."""
    found: list[float] = []
    for digits in _TICKS:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        ticks = [round(digit * 10.0**power, 12) for power in powers for digit in digits]
        ticks = [tick for tick in ticks if low * 0.9999 <= tick <= high * 1.0001]
        if found and len(ticks) > most:
            break
        found = ticks
    step = -(-len(found) // most) if found else 1
    return found[::step]


def width_axis(axes: Axes, places: Sequence[float]) -> None:
    """A horizontal axis of widths or streams: by factors of two, ticks at powers of two."""
    low, high = min(places, default=1.0), max(places, default=1.0)
    axes.set_xscale("log", base=2)
    axes.set_xlim(low / 1.15, high * 1.15)
    ticks = [2.0**power for power in range(12) if low <= 2.0**power <= high]
    axes.set_xticks(ticks, [number(tick) for tick in ticks])
    axes.set_xticks([], minor=True)


def intervals(axes: Axes, marks: Sequence[Mark], places: Sequence[float], span: Span, color: str, **style: Any) -> None:
    """Vertical intervals at `places` on the horizontal axis; an end beyond the axis is an arrow at its edge."""
    _intervals(axes, marks, places, span, color, True, style)


def row_intervals(
    axes: Axes, marks: Sequence[Mark], places: Sequence[float], span: Span, color: str, **style: Any
) -> None:
    """The same along the rows of a chart."""
    _intervals(axes, marks, places, span, color, False, style)


def _intervals(
    axes: Axes, marks: Sequence[Mark], places: Sequence[float], span: Span, color: str, upright: bool, style: Any
) -> None:
    known = [(place, mark.low, mark.high) for place, mark in zip(places, marks, strict=True)
             if math.isfinite(mark.low) and math.isfinite(mark.high)]  # fmt: skip
    if not known:
        return
    at = [place for place, _, _ in known]
    lows = [min(max(low, span[0]), span[1]) for _, low, _ in known]
    highs = [max(min(high, span[1]), span[0]) for _, _, high in known]
    lines = axes.vlines if upright else axes.hlines
    lines(at, lows, highs, colors=color, **{"linewidth": 1.3, "zorder": 2, **style})
    below = [place for place, low, _ in known if low < span[0]]
    above = [place for place, _, high in known if high > span[1]]
    for cut, edge, marker in ((below, span[0], "v" if upright else "<"), (above, span[1], "^" if upright else ">")):
        if cut:
            ends = [edge] * len(cut)
            axes.plot(*((cut, ends) if upright else (ends, cut)), marker, color=color, markersize=3.2, clip_on=False,
                      zorder=4)  # fmt: skip

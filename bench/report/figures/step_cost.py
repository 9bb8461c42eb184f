"""Cost of one llama_decode by its width, on every machine, beside what was published for another.

Fits no curve: a line joins the judge's points. On logarithmic axes, where no sharing is a straight line.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from bench.report.figures.forest import ARROW
from bench.report.figures.groups import titled
from bench.report.figures.marks import Mark, Panel, Plan, cells, joined, omitted, value
from bench.report.figures.published import Point, cost_curves
from bench.report.figures.scales import Span, intervals, log_axis, ratio_span, width_axis
from bench.report.figures.style import BLUE, GREY, PALE, VERMILION, handle
from bench.report.tables.arms import is_void
from bench.report.tables.conditions import CellIndex, condition
from bench.report.tables.csv_files import Ordered
from bench.report.tables.values import Row, cells_of, figure, fixed, get, line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SEQUENCES: dict[str, Any] = {"color": BLUE, "marker": "o", "linestyle": "-"}
_TOKENS: dict[str, Any] = {"color": VERMILION, "marker": "s", "linestyle": "--"}
STYLES = {
    "measured, one token a sequence": _SEQUENCES,
    "measured, tokens of one sequence": _TOKENS,
    "published, one token a sequence": {**_SEQUENCES, "markerfacecolor": "white"},
    "published, tokens of one sequence": {**_TOKENS, "markerfacecolor": "white"},
}
"""A layout has one colour and one mark, measured or published: the two are different work."""
_MEASURED = {"sequences": "measured, one token a sequence", "tokens": "measured, tokens of one sequence"}
NONE = "no sharing: cost = width"
JUMP = "jump"
CLIFF = 1.25
"""A step up to the next measured width by more than this, and by more than its width, is named."""


def step_cost(tables: Ordered, claims: Sequence[Row], index: CellIndex) -> Plan | None:
    """Small multiples of all machines, builds and models; then a panel for each source that published such costs."""
    rows = [row for row in tables.rows("step_cost") if figure(row, "relative_cost") is not None]
    sound = [row for row in rows if not is_void(row)]
    panels, drawn = [], 0
    for title, heading, members in titled(sound, index):
        marks = tuple(mark for layout in _MEASURED for mark in _measured(members, layout))
        panels.append(Panel(title, marks, heading, height=1.25))
        drawn += len(marks)
    if not panels:
        return None
    for points in cost_curves(claims):
        name = f"published: {points[0].document}"
        panels.append(Panel(name, tuple(map(_published, points)), name, height=1.25))
    span = ratio_span([mark for panel in panels for mark in panel.marks], field="y")
    told = [omitted(len(rows) - len(sound), "void rows"),
            omitted(len(sound) - drawn, "repeated measurements of a width")]  # fmt: skip
    return Plan(
        "Cost of a step by its width", tuple(panels), partial(_paint, span=span),
        "width (tokens a decode)", "cost over width 1", condition(sound, index), joined(told),
        f"Named is the largest jump between two measured neighbours. {ARROW}", 1, _legend, cells(sound),
    )  # fmt: skip


def _measured(rows: Sequence[Row], layout: str) -> list[Mark]:
    """The first row at each width: several cells may have measured the same point."""
    first: dict[float, Row] = {}
    for row in rows:
        if line(get(row, "layout")) == layout:
            first.setdefault(value(row, "width"), row)
    return _with_cliff([_mark(_MEASURED[layout], width, first[width]) for width in sorted(first)])


def _mark(series: str, width: float, row: Row) -> Mark:
    ends = value(row, "ci_low"), value(row, "ci_high")
    return Mark(series, "", width, value(row, "relative_cost"), *ends, cells=tuple(cells_of(row)))


def _with_cliff(marks: list[Mark]) -> list[Mark]:
    """The marks, with a note at the largest jump that the wider step does not account for."""
    jumps = [(after.y / before.y, place + 1) for place, (before, after) in enumerate(pairwise(marks))
             if after.y / before.y > max(CLIFF, after.x / before.x)]  # fmt: skip
    if not jumps:
        return marks
    jump, place = max(jumps)
    one = marks[place]
    note = f"{JUMP} {fixed(jump, 2)}x, width {line(marks[place - 1].x)} to {line(one.x)}"
    marks[place] = Mark(one.series, one.label, one.x, one.y, one.low, one.high, note, one.cells)
    return marks


def _published(point: Point) -> Mark:
    layout = str(point.scope.get("layout") or "sequences")
    series = _MEASURED[layout].replace("measured", "published")
    return Mark(series, point.series, point.x[0], point.y[0], note=f"{point.claim_id}: {point.source}")


def _paint(axes: Axes, panel: Panel, span: Span) -> None:
    log_axis(axes.yaxis, span, most=5)
    widest = max(mark.x for mark in panel.marks)
    width_axis(axes, [1.0, widest])
    end = min(widest, span[1])
    axes.plot([1.0, end], [1.0, end], color=PALE, linewidth=1.4, zorder=0)
    axes.axhline(1.0, color=GREY, linewidth=0.6, zorder=0)
    # Each source has a line of its own: two of them are two measurements.
    for series, source in dict.fromkeys((mark.series, mark.label) for mark in panel.marks):
        marks = [mark for mark in panel.of(series) if mark.label == source]
        style = STYLES[series]
        intervals(axes, marks, [mark.x for mark in marks], span, style["color"], linewidth=1.0)
        axes.plot([mark.x for mark in marks], [mark.y for mark in marks], markersize=2.8, zorder=3, **style,
                  gid=f"data {series}")  # fmt: skip
    jumps = [mark for mark in panel.marks if mark.note.startswith(JUMP)]
    for place, mark in enumerate(jumps):
        # In the corner that a cost never reaches: one far above its width.
        axes.annotate(mark.note, (0.03, 0.99 - 0.09 * place), xycoords="axes fraction", va="top", fontsize=5,
                      color=STYLES[mark.series]["color"])  # fmt: skip


def _legend() -> list[Any]:
    return [*(handle(name, **style) for name, style in STYLES.items()), handle(NONE, color=PALE, linewidth=1.4)]

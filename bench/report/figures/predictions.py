"""Measured against predicted speed-ups, one point an arm. Predicts nothing itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from bench.judge.arm import ROLES
from bench.report.figures.groups import titled
from bench.report.figures.marks import Mark, Panel, Plan, cells, joined, numbers, omitted, value
from bench.report.figures.scales import ROOM, Span, log_axis
from bench.report.figures.style import BLUE, GREY, PALE, PURPLE, VERMILION, handle
from bench.report.tables.arms import describe, is_void, of_all_prompts
from bench.report.tables.conditions import CellIndex, condition
from bench.report.tables.csv_files import Ordered
from bench.report.tables.values import Row, cells_of, figure, get, line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAND = 0.10
"""Half-width of the band around equality."""
ALONE = "with the step-cost curve alone: changes of width left out"
_STYLES = ((BLUE, "o"), (PURPLE, "^"), (VERMILION, "v"))
SHOWN = [role for role in ROLES.values() if not role.plain and (role.planted or not role.control)]
STYLES: dict[str, dict[str, Any]] = {
    role.words or "a method": {"color": color, "marker": marker, "linestyle": ""}
    for role, (color, marker) in zip(SHOWN, _STYLES, strict=True)
}


def predictions(tables: Ordered, claims: Sequence[Row], index: CellIndex) -> Plan | None:
    """Measured over predicted for every arm, with a band of 10 %; small where the step-cost curve alone predicts."""
    rows = of_all_prompts(tables.rows("predictions"))
    known = {role.name for role in SHOWN}
    sound = [row for row in rows if not is_void(row) and figure(row, "predicted") and figure(row, "measured")
             and line(get(row, "arm")) in known]  # fmt: skip
    panels = [
        Panel(title, tuple(mark for row in members for mark in _marks(row, index)), heading, height=1.25)
        for title, heading, members in titled(sound, index)
    ]
    if not panels:
        return None
    ends = numbers([mark for panel in panels for mark in panel.marks], "x", "y")
    span = min(ends) / ROOM, max(ends) * ROOM
    told = [omitted(len(rows) - len(sound), "void arms and arms with a width that the curve lacks")]
    return Plan(
        "Speed-up measured against predicted", tuple(panels), partial(_paint, span=span), "predicted speed-up",
        "measured speed-up", condition(sound, index), joined(told), "On the line both are equal; the band is 10 %.", 1,
        _legend, cells(sound),
    )  # fmt: skip


def _marks(row: Row, index: CellIndex) -> list[Mark]:
    series = ROLES[line(get(row, "arm"))].words or "a method"
    label, ids = describe(row, index), tuple(cells_of(row))
    marks = [Mark(ALONE, label, value(row, "curve_only"), value(row, "measured"), cells=ids)]
    marks = marks if figure(row, "curve_only") else []
    return [*marks, Mark(series, label, value(row, "predicted"), value(row, "measured"), cells=ids)]


def _paint(axes: Axes, panel: Panel, span: Span) -> None:
    log_axis(axes.xaxis, span, most=4)
    log_axis(axes.yaxis, span, most=4)
    axes.fill_between(span, [end * (1 - BAND) for end in span], [end * (1 + BAND) for end in span], color=PALE,
                      linewidth=0, zorder=0)  # fmt: skip
    axes.plot(span, span, color=GREY, linewidth=0.8, zorder=1)
    for series, style in {ALONE: _alone(), **STYLES}.items():
        marks = panel.of(series)
        axes.plot([mark.x for mark in marks], [mark.y for mark in marks], **style, gid=f"data {series}")


def _alone() -> dict[str, Any]:
    return {"color": GREY, "marker": "o", "markerfacecolor": "none", "markersize": 2.2, "markeredgewidth": 0.5,
            "linestyle": ""}  # fmt: skip


def _legend() -> list[Any]:
    return [*(handle(name, **style) for name, style in STYLES.items()), handle(ALONE, **_alone())]

"""Figures over an axis: step cost by width, tokens over time, acceptance by temperature.

Knows nothing about files, and fits no curve: a line joins the judge's points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bench.report.figures.canvas import (
    BLUE,
    GREEN,
    GREY,
    INK,
    MARKERS,
    MAX_PANELS,
    PALE,
    SERIES,
    VERMILION,
    Drawing,
    canvas,
    finish,
    omitted,
    panel_title,
    panels,
    set_title,
)
from bench.report.figures.published import MEASURED, Point, acceptance_points, cost_curves
from bench.report.tables.arms import describe, is_void
from bench.report.tables.conditions import CellIndex, Group, group_of
from bench.report.tables.csv_files import Ordered
from bench.report.tables.values import MISSING, Row, cells_of, figure, figures, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_SERIES = 5
SERIES_NAMES = ("method", "streams", "draws")
MAX_PUBLISHED = 4
LAYOUTS = {
    "sequences": ("measured, one token a sequence", BLUE),
    "tokens": ("measured, tokens of one sequence", VERMILION),
}
"""A layout has one colour, measured or published: the two are different work."""
PUBLISHED_STYLES = (("--", "D"), (":", "s"), ("-.", "^"), ((0, (5, 2)), "v"))


def _split(rows: Sequence[Row], index: CellIndex, names: Sequence[str]) -> list[tuple[tuple[str, ...], list[Row]]]:
    """Rows by the text of the named columns, in order of first appearance."""
    series: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        series.setdefault(tuple(number(index.find(row, name)) for name in names), []).append(row)
    return list(series.items())


def _one_per_x(rows: Sequence[Row], x: str) -> list[Row]:
    """The first row at each x: several cells may have measured the same point."""
    first: dict[float, Row] = {}
    for row in rows:
        place = figure(row, x)
        if place is not None:
            first.setdefault(place, row)
    return [first[place] for place in sorted(first)]


def _with_interval(axes: Axes, rows: Sequence[Row], x: str, y: str, shift: float = 0.0, **style: Any) -> None:
    places = [(figure(row, x) or 0.0) + shift for row in rows]
    axes.plot(places, figures(rows, y), **style)
    known = [(place, figure(row, "ci_low"), figure(row, "ci_high")) for place, row in zip(places, rows, strict=True)]
    spans = [(place, low, high) for place, low, high in known if low is not None and high is not None]
    if spans:
        xs, lows, highs = zip(*spans, strict=True)
        axes.vlines(xs, lows, highs, colors=style["color"], linewidth=1.6, alpha=0.6)


def step_cost(tables: Ordered, claims: Sequence[Row], index: CellIndex) -> Drawing | None:
    """Cost of one llama_decode by width, against the published curves and against no sharing at all."""
    rows = [row for row in tables.rows("step_cost") if figure(row, "relative_cost") is not None]
    groups, hidden = panels([row for row in rows if not is_void(row)], index)
    if not groups:
        return None
    widest = max(figure(row, "width") or 1.0 for _, members in groups for row in members)
    published, more = cost_curves(claims, widest, MAX_PUBLISHED)
    canvas_, axes = canvas([3.4] * len(groups), columns=1 if len(groups) == 1 else 2)
    drawn: list[Row] = []
    for place, (group, members) in enumerate(groups):
        panel_title(axes[place], group)
        drawn += _step_panel(axes[place], members, published, index)
        axes[place].set_xlabel("width: tokens in one llama_decode")
        axes[place].set_ylabel("cost relative to width 1")
    axes[0].legend(loc="upper left")
    left_out = [
        omitted(hidden, "other machines, builds or models"),
        omitted(sum(len(members) for _, members in groups) - len(drawn), "repeated measurements of a width"),
        omitted(more, "shorter published curves"),
    ]
    return finish("Cost of a step by its width", canvas_, drawn, index, left_out)


def _step_panel(axes: Axes, rows: Sequence[Row], published: Sequence[list[Point]], index: CellIndex) -> list[Row]:
    drawn: list[Row] = []
    for (layout,), members in _split(rows, index, ["layout"]):
        series = _one_per_x(members, "width")
        label, color = LAYOUTS.get(layout, ("measured", GREEN))
        style: dict[str, Any] = {"color": color, "marker": "o", "markersize": 4, "label": label}
        _with_interval(axes, series, "width", "relative_cost", **style)
        drawn += series
    for (dashes, marker), points in zip(PUBLISHED_STYLES, published, strict=False):
        color = LAYOUTS.get(points[0].scope.get("layout", "sequences"), ("", INK))[1]
        style = {"color": color, "linestyle": dashes, "linewidth": 1, "marker": marker, "markerfacecolor": "white"}
        label = f"published {points[0].series}"
        axes.plot([point.x[0] for point in points], [point.y[0] for point in points], label=label, **style)
    top = max([figure(row, "ci_high") or figure(row, "relative_cost") or 1.0 for row in drawn]
              + [point.y[0] for points in published for point in points])  # fmt: skip
    right = axes.get_xlim()[1]
    axes.plot([1, right], [1, right], color=PALE, linewidth=1.5, zorder=0, label="no sharing: cost = width")
    axes.set_xlim(0.5, right)
    axes.set_ylim(0, top * 1.12)
    return drawn


def tokens_over_time(tables: Ordered, claims: Sequence[Row], index: CellIndex) -> Drawing | None:
    """Counted against distinct tokens over time, one panel a loop that emitted a token more than once."""
    by_cell: dict[tuple[str, ...], list[Row]] = {}
    for row in tables.rows("timeline"):
        if figure(row, "t_s") is not None:
            by_cell.setdefault(tuple(cells_of(row)), []).append(row)
    # Most streams first: that is where counted and distinct part the most.
    order = sorted(by_cell, key=lambda cell: (-float(index.find(by_cell[cell][0], "streams") or 0), cell))
    chosen: dict[tuple[str, Group], tuple[str, ...]] = {}
    for cell in order:
        head = by_cell[cell][0]
        chosen.setdefault((describe(head, index), group_of(head, index)), cell)
    shown = list(chosen.items())[:MAX_PANELS]
    if not shown:
        return None
    canvas_, axes = canvas([2.9] * len(shown), columns=1 if len(shown) == 1 else 2)
    for place, ((label, group), cell) in enumerate(shown):
        # The condition line names machine and model once; a panel repeats them only where panels differ in them.
        if len({group for (_, group), _ in shown}) > 1:
            panel_title(axes[place], group)
            label = f"{label}\n{axes[place].get_title(loc='left')}"
        set_title(axes[place], label)
        _race(axes[place], by_cell[cell])
    drawn = [by_cell[cell][0] for _, cell in shown]
    left_out = [omitted(len(by_cell) - len(shown), "other cells with repeated tokens")]
    return finish("Tokens over time: emit calls against distinct tokens", canvas_, drawn, index, left_out)


def _race(axes: Axes, rows: Sequence[Row]) -> None:
    points = sorted(rows, key=lambda row: figure(row, "t_s") or 0.0)
    times = [figure(row, "t_s") or 0.0 for row in points]
    for name, color, words in (("counted", VERMILION, "counted"), ("distinct", BLUE, "distinct")):
        values = figures(points, name)
        axes.plot(times, values, color=color, linewidth=2, linestyle="-" if name == "distinct" else "--")
        place = (times[-1], values[-1])
        text = f"{words} {number(values[-1])}"
        axes.annotate(text, place, xytext=(5, 0), textcoords="offset points", va="center", color=color, fontsize=8)
    axes.set_xlim(0, times[-1] * 1.28 or 1.0)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("seconds since the first token")
    axes.set_ylabel("tokens")


def acceptance(tables: Ordered, claims: Sequence[Row], index: CellIndex) -> Drawing | None:
    """Acceptance over all positions by temperature, beside the collision probability of the same draws."""
    rows = [row for row in tables.rows("acceptance") if figure(row, "rate") is not None]
    pooled = [row for row in rows if figure(row, "depth") in (0.0, None) and not is_void(row)]
    groups, hidden = panels(pooled, index)
    if not groups:
        return None
    methods = sorted({number(index.find(row, "method")) for row in pooled})
    published = acceptance_points(claims, methods)
    canvas_, axes = canvas([3.4] * len(groups), columns=1 if len(groups) == 1 else 2)
    drawn: list[Row] = []
    for place, (group, members) in enumerate(groups):
        panel_title(axes[place], group)
        drawn += _acceptance_panel(axes[place], members, published, index)
    left_out = [
        omitted(hidden, "other machines, builds or models"),
        omitted(sum(len(members) for _, members in groups) - len(drawn), "rows of further methods or repeated points"),
    ]
    return finish("Acceptance by temperature against the collision curve", canvas_, drawn, index, left_out)


def _acceptance_panel(axes: Axes, rows: Sequence[Row], published: Sequence[Point], index: CellIndex) -> list[Row]:
    drawn: list[Row] = []
    # Where a temperature was measured twice, more guesses say more; the verdict rests on them too.
    rows = sorted(rows, key=lambda row: -(figure(row, "tested") or 0.0))
    series = [(names, _one_per_x(members, "temperature")) for names, members in _split(rows, index, SERIES_NAMES)]
    # The curves over most temperatures are the ones that the figure is about.
    series = sorted(series, key=lambda item: -len(item[1]))[:MAX_SERIES]
    for place, ((method, streams, draws), members) in enumerate(series):
        style: dict[str, Any] = {"color": SERIES[place], "marker": MARKERS[place], "linestyle": "", "markersize": 5}
        label = f"{method} x{streams}" + (f", {draws} draws" if draws != MISSING else "")
        _with_interval(axes, members, "temperature", "rate", 0.012 * (place - 1), label=label, **style)
        curve = [row for row in members if figure(row, "collision_mean") is not None]
        axes.plot(figures(curve, "temperature"), figures(curve, "collision_mean"), color=SERIES[place], linewidth=1)
        drawn += members
    if any(figure(row, "collision_mean") is not None for row in drawn):
        axes.plot([], [], color=GREY, linewidth=1, label="line: collision probability of the same draws")
    _published_acceptance(axes, published)
    left, right = axes.get_xlim()
    axes.set_xlim(min(left, -0.05), max(right, 1.05))
    axes.set_ylim(-0.03, 1.06)
    axes.set_xlabel("temperature")
    axes.set_ylabel("guesses accepted, share of those tested")
    axes.legend(loc="lower center")
    return drawn


def _published_acceptance(axes: Axes, published: Sequence[Point]) -> None:
    """Hollow marks that hide no measurement: a diamond for a value, a box where a range was published."""
    labelled: set[str] = set()
    for point in published:
        (left, right), (low, high) = point.x, point.y
        told = "published" if point.evidence in MEASURED else f"published, {point.evidence}"
        label = None if told in labelled else told
        if left == right and low == high:
            axes.plot([left], [low], "D", color=INK, markerfacecolor="none", markersize=8, label=label)
        else:
            dashes = "-" if point.evidence in MEASURED else ":"
            box = ([left, right, right, left, left], [low, low, high, high, low])
            axes.plot(*box, color=INK, linewidth=1, linestyle=dashes, label=label)
        labelled.add(told)

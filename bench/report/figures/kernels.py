"""Figures of kernels: share of the read ceiling and relative cost by number of streams, and the roofline.

Fits no curve. One panel a machine and format, of the matrix that PTI's own figures are about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from bench.judge.kernels.times import is_product, is_sound
from bench.report.figures.marks import Mark, Panel, Plan, cells, joined, numbers, omitted, value
from bench.report.figures.scales import ROOM, Span, intervals, log_axis, ratio_span, width_axis
from bench.report.figures.style import GREY, INK, PALE, PUBLISHED, handle, styled
from bench.report.tables.conditions import CellIndex
from bench.report.tables.csv_files import Ordered
from bench.report.tables.kernels import COLD, MAIN_SHAPES, by_machine, conditions
from bench.report.tables.values import Row, cells_of, figure, get, line, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LLAMA_CPP = "llama.cpp"
OTHERS = "other matrices, warm caches, rows without a time"
AT_ONCE = "formats timed with one number of streams"
PEER: dict[str, Any] = {**PUBLISHED, "linestyle": "--", "linewidth": 1.0}


def _drawn_rows(tables: Ordered) -> list[Row]:
    """Sound cold products, of each machine on its main matrix; on the largest where it lacks that."""
    rows = [row for row in tables.rows("kernels") if is_sound(row) and is_product(row) and get(row, "cache") == COLD]
    return [row for _, own in by_machine(rows) for row in _main(own)]


def _main(rows: Sequence[Row]) -> list[Row]:
    shapes = {(figure(row, "rows") or 0.0, figure(row, "cols") or 0.0) for row in rows}
    main = next((shape for shape in MAIN_SHAPES if shape in shapes), max(shapes, key=lambda shape: shape[0] * shape[1]))
    return [row for row in rows if (figure(row, "rows"), figure(row, "cols")) == main]


def _panels(rows: Sequence[Row], name: str, peer: str) -> list[Panel]:
    """A panel for each machine and format that was timed with several numbers of streams."""
    panels = []
    for machine, own in by_machine(rows):
        for kind in sorted({line(get(row, "format")) for row in own}):
            members = [row for row in own if line(get(row, "format")) == kind]
            if len({figure(row, "streams") for row in members}) > 1:
                shape = f"{number(members[0].get('rows'))} x {number(members[0].get('cols'))}"
                heading = f"{kind}, {shape}\non {machine}"
                panels.append(Panel(heading.replace("\n", " "), _marks(members, name, peer), heading, height=1.5))
    return panels


def _marks(rows: Sequence[Row], name: str, peer: str) -> tuple[Mark, ...]:
    ordered = sorted(rows, key=lambda row: (line(get(row, "variant")), figure(row, "streams") or 0))
    marks = [_mark(line(get(row, "variant")), row, name) for row in ordered if figure(row, name) is not None]
    peers = {value(row, "streams"): row for row in rows if figure(row, peer) is not None}
    return tuple([*marks, *(_mark(LLAMA_CPP, peers[streams], peer) for streams in sorted(peers))])


def _mark(series: str, row: Row, name: str) -> Mark:
    ends = value(row, f"{name}_low"), value(row, f"{name}_high")
    return Mark(series, "", value(row, "streams"), value(row, name), *ends, cells=tuple(cells_of(row)))


def _styles(rows: Sequence[Row], panels: Sequence[Panel]) -> dict[str, dict[str, Any]]:
    """A kernel looks the same in all figures; of those that have one at all, the kernels that are in these panels."""
    drawn = {mark.series for panel in panels for mark in panel.marks}
    every = {**styled(sorted({line(get(row, "variant")) for row in rows})), LLAMA_CPP: PEER}
    return {name: style for name, style in every.items() if name in drawn}


def _figure(title: str, tables: Ordered, name: str, peer: str, y: str, says: str, paint: Callable[..., None],
            more: Callable[[], list[Any]] = list) -> Plan | None:  # fmt: skip
    rows = _drawn_rows(tables)
    panels = _panels(rows, name, peer)
    if not panels:
        return None
    drawn = {line(get(row, "format")) for row in rows if any(panel.title.startswith(f"{line(get(row, 'format'))},") for
                                                             panel in panels)}  # fmt: skip
    shown = [row for row in rows if line(get(row, "format")) in drawn]
    styles = _styles(rows, panels)
    told = [omitted(len(tables.rows("kernels")) - len(rows), OTHERS), omitted(len(rows) - len(shown), AT_ONCE)]
    return Plan(
        title, tuple(panels), partial(paint, styles=styles), "N: vectors a reading", y,
        conditions(shown, COLD), joined(told), says, 1,
        lambda: [*(handle(one, **style) for one, style in styles.items()), *more()], cells(shown),
    )  # fmt: skip


def kernel_share(tables: Ordered, claims: Sequence[Row], index: CellIndex) -> Plan | None:
    """Time of a plain read of the weights over a kernel's time, by number of streams."""
    return _figure("Share of the read ceiling", tables, "share_of_read_peak", "llama_cpp_share",
                   "share of the read ceiling", "1 is a plain read of the same bytes.", _paint_share)  # fmt: skip


def kernel_cost(tables: Ordered, claims: Sequence[Row], index: CellIndex) -> Plan | None:
    """Time with N streams over that with one, against the claim that they cost the same and against no sharing."""

    def more() -> list[Any]:
        return [handle("claimed: N cost what one costs", color=GREY, linewidth=0.8),
                handle("no sharing: cost = N", color=PALE, linewidth=1.4)]  # fmt: skip

    return _figure("Cost of N streams over one", tables, "relative_cost", "llama_cpp_relative_cost",
                   "time over one stream's", "", _paint_cost, more)  # fmt: skip


def _paint_share(axes: Axes, panel: Panel, styles: dict[str, dict[str, Any]]) -> None:
    axes.set_ylim(0, 1.08)
    axes.axhline(1.0, color=GREY, linewidth=0.8, zorder=1)
    _by_streams(axes, panel, styles, (0.0, 1.08))


def _paint_cost(axes: Axes, panel: Panel, styles: dict[str, dict[str, Any]]) -> None:
    span = ratio_span(panel.marks, field="y")
    log_axis(axes.yaxis, span, most=5)
    widest = max(mark.x for mark in panel.marks)
    axes.axhline(1.0, color=GREY, linewidth=0.8, zorder=1)
    axes.plot([1, widest], [1, widest], color=PALE, linewidth=1.4, zorder=0)
    _by_streams(axes, panel, styles, span)


def _by_streams(axes: Axes, panel: Panel, styles: dict[str, dict[str, Any]], span: Span) -> None:
    width_axis(axes, numbers(panel.marks, "x"))
    for series, style in styles.items():
        marks = panel.of(series)
        intervals(axes, marks, [mark.x for mark in marks], span, style["color"])
        axes.plot([mark.x for mark in marks], [mark.y for mark in marks], **style, gid=f"data {series}")


def kernel_roofline(tables: Ordered, claims: Sequence[Row], index: CellIndex) -> Plan | None:
    """Useful operations a second against operations a byte; the line is what the measured read bandwidth allows."""
    rows = _drawn_rows(tables)
    panels, shown = [], []
    for machine, own in by_machine(rows):
        placed = sorted((row for row in own if _place(row)), key=lambda row: (line(get(row, "variant")), _place(row)))
        if placed:
            shape = f"{number(placed[0].get('rows'))} x {number(placed[0].get('cols'))}"
            marks = [_point(row) for row in placed]
            marks.append(Mark(CEILING, "", y=max(value(row, "read_gb_s") for row in placed), note="GB/s"))
            panels.append(Panel(f"{shape} on {machine}", tuple(marks), height=2.3))
            shown += placed
    if not panels:
        return None
    styles = _styles(rows, panels)
    return Plan(
        "Roofline of the kernels", tuple(panels), partial(_paint_roofline, styles=styles),
        "useful operations a byte read: two a weight and stream", "useful operations a second, 1e12",
        conditions(shown, COLD), omitted(len(tables.rows("kernels")) - len(shown), OTHERS) or "nothing", "", 2,
        lambda: [*(handle(one, **{**style, "linestyle": ""}) for one, style in styles.items()),
                 handle(CEILING, color=INK, linewidth=0.8)], cells(shown),
    )  # fmt: skip


CEILING = "what the read ceiling allows"


def _point(row: Row) -> Mark:
    x, y = _place(row) or (0.0, 0.0)
    label = f"{line(get(row, 'format'))}, {line(get(row, 'streams'))} streams"
    return Mark(line(get(row, "variant")), label, x, y / 1e3, cells=tuple(cells_of(row)))


def _place(row: Row) -> tuple[float, float] | None:
    """Operations a byte and thousand million operations a second."""
    rate, size, us = (figure(row, name) for name in ("gflop_s", "bytes_read", "us"))
    return (rate * us * 1e3 / size, rate) if rate and size and us else None


def _paint_roofline(axes: Axes, panel: Panel, styles: dict[str, dict[str, Any]]) -> None:
    points = [mark for mark in panel.marks if mark.series != CEILING]
    across = min(mark.x for mark in points) / ROOM, max(mark.x for mark in points) * ROOM
    slope = panel.of(CEILING)[0].y / 1e3
    up = min(mark.y for mark in points) / ROOM, max([*(mark.y for mark in points), slope * across[1]]) * ROOM
    log_axis(axes.xaxis, across)
    log_axis(axes.yaxis, up)
    axes.plot(across, [slope * end for end in across], color=INK, linewidth=0.8)
    for series, style in styles.items():
        marks = panel.of(series)
        axes.plot([mark.x for mark in marks], [mark.y for mark in marks], **{**style, "linestyle": ""},
                  gid=f"data {series}")  # fmt: skip

"""Figures of kernels: share of the read ceiling and relative cost by number of streams, and the roofline.

Knows nothing about files, and fits no curve. One panel a format, of the matrix that PTI's own figures are about.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from bench.judge.kernels.times import is_product, is_sound
from bench.report.figures.canvas import GREY, INK, MARKERS, PALE, SERIES, Drawing, canvas, finish, omitted, set_title
from bench.report.tables.conditions import CellIndex
from bench.report.tables.csv_files import Ordered
from bench.report.tables.kernels import COLD, MAIN_SHAPES, by_machine, conditions
from bench.report.tables.values import Row, figure, figures, get, line, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LLAMA_CPP = "llama.cpp"
TOP_SHARE = 1.08
OTHERS = "other matrices, formats and machines, warm caches, rows without a time"
Styles = dict[str, dict[str, Any]]
"""How a kernel is drawn, by its name."""
Panel = Callable[["Axes", Sequence[Row], Styles], None]
"""Draws the rows of one format; the styles are by kernel, the same in all panels."""


def _drawn_rows(tables: Ordered) -> list[Row]:
    """Sound cold products on the main matrix, of the machine with most of them; the largest matrix where it lacks."""
    rows = [row for row in tables.rows("kernels") if is_sound(row) and is_product(row) and get(row, "cache") == COLD]
    if not rows:
        return []
    _, rows = max(by_machine(rows), key=lambda item: len(item[1]))
    shapes = {(figure(row, "rows") or 0.0, figure(row, "cols") or 0.0) for row in rows}
    main = next((shape for shape in MAIN_SHAPES if shape in shapes), max(shapes, key=lambda shape: shape[0] * shape[1]))
    return [row for row in rows if (figure(row, "rows"), figure(row, "cols")) == main]


def _series(rows: Sequence[Row], name: str) -> list[tuple[str, list[Row]]]:
    """Rows of a kernel by number of streams, those with a value; in a fixed order, so that a colour is a kernel."""
    kernels = sorted({line(get(row, "variant")) for row in rows})
    found = []
    for kernel in kernels:
        own = [row for row in rows if line(get(row, "variant")) == kernel and figure(row, name) is not None]
        found.append((kernel, sorted(own, key=lambda row: figure(row, "streams") or 0)))
    return found


def _styled(kernels: set[str]) -> Styles:
    """A colour and a mark for each kernel; where colours begin again, marks are shifted."""
    styles = {}
    for place, kernel in enumerate(sorted(kernels)):
        again, color = divmod(place, len(SERIES))
        mark = MARKERS[(color + again) % len(MARKERS)]
        styles[kernel] = {"color": SERIES[color], "marker": mark, "markersize": 4}
    return styles


def _by_streams(axes: Axes, rows: Sequence[Row], name: str, peer: str, styles: Styles) -> None:
    for kernel, own in _series(rows, name):
        if not own:
            continue
        xs, lows, highs = (figures(own, column) for column in ("streams", f"{name}_low", f"{name}_high"))
        axes.plot(xs, figures(own, name), label=kernel, **styles[kernel])
        spans = [span for span in zip(xs, lows, highs, strict=True) if not math.isnan(span[1])]
        if spans:
            axes.vlines([x for x, _, _ in spans], [low for _, low, _ in spans], [high for _, _, high in spans],
                        colors=styles[kernel]["color"], linewidth=1.6, alpha=0.6)  # fmt: skip
    known = [row for row in rows if figure(row, peer) is not None]
    points = dict(zip(figures(known, "streams"), figures(known, peer), strict=True))
    if points:
        xs = sorted(points)
        style: dict[str, Any] = {"color": INK, "linestyle": "--", "marker": "D", "markersize": 4,
                                 "markerfacecolor": "white"}  # fmt: skip
        axes.plot(xs, [points[x] for x in xs], label=LLAMA_CPP, **style)
    axes.set_xticks(sorted({figure(row, "streams") or 0 for row in rows}))
    axes.set_xlabel("N: activation vectors of one reading of the weights")


def _figure(title: str, tables: Ordered, index: CellIndex, draw: Panel) -> Drawing | None:
    """One panel a format that was timed with several numbers of streams, one legend for all."""
    streams: dict[str, set[float | None]] = {}
    for row in _drawn_rows(tables):
        streams.setdefault(line(get(row, "format")), set()).add(figure(row, "streams"))
    formats = sorted(name for name, found in streams.items() if len(found) > 1)
    rows = [row for row in _drawn_rows(tables) if line(get(row, "format")) in formats]
    if not rows:
        return None
    styles = _styled({line(get(row, "variant")) for row in rows})
    canvas_, axes = canvas([2.8] * len(formats), columns=1 if len(formats) == 1 else 2)
    for place, name in enumerate(formats):
        members = [row for row in rows if line(get(row, "format")) == name]
        set_title(axes[place], f"{name}, {number(rows[0].get('rows'))} x {number(rows[0].get('cols'))}")
        draw(axes[place], members, styles)
    entries = {label: mark for one in axes for mark, label in zip(*one.get_legend_handles_labels(), strict=True)}
    canvas_.legend(entries.values(), entries.keys(), loc="outside upper right", ncols=3)
    hidden = len(tables.rows("kernels")) - len(rows)
    return finish(title, canvas_, rows, index, [omitted(hidden, OTHERS)], conditions(rows, COLD))


def kernel_share(tables: Ordered, claims: Sequence[Row], index: CellIndex) -> Drawing | None:
    """Time of a plain read of the weights over a kernel's time, by number of streams."""

    def draw(axes: Axes, rows: Sequence[Row], styles: Styles) -> None:
        axes.axhline(1.0, color=GREY, linewidth=1)
        _by_streams(axes, rows, "share_of_read_peak", "llama_cpp_share", styles)
        axes.set_ylim(0, TOP_SHARE)
        axes.set_ylabel("share of the read ceiling")

    return _figure("Share of the read ceiling", tables, index, draw)


def kernel_cost(tables: Ordered, claims: Sequence[Row], index: CellIndex) -> Drawing | None:
    """Time with N streams over that with one, against the claim that they cost the same and against no sharing."""

    def draw(axes: Axes, rows: Sequence[Row], styles: Styles) -> None:
        widest = max(figure(row, "streams") or 1.0 for row in rows)
        costs = [figure(row, name) or 0 for row in rows for name in ("relative_cost", "llama_cpp_relative_cost")]
        axes.axhline(1.0, color=GREY, linewidth=1, label="claimed: N streams cost what one costs")
        axes.plot([1, widest], [1, widest], color=PALE, linewidth=1.5, zorder=0, label="no sharing: cost = N")
        _by_streams(axes, rows, "relative_cost", "llama_cpp_relative_cost", styles)
        axes.set_ylim(0, max([*costs, 1.0]) * 1.15)
        axes.set_ylabel("time over that with one stream")

    return _figure("Cost of N streams over one", tables, index, draw)


def kernel_roofline(tables: Ordered, claims: Sequence[Row], index: CellIndex) -> Drawing | None:
    """Useful operations a second against operations a byte; the line is what the measured read bandwidth allows."""
    rows = _drawn_rows(tables)
    points = [(row, *place) for row in rows if (place := _place(row)) is not None]
    if not points:
        return None
    canvas_, (axes,) = canvas([4.2])
    ceiling = max((figure(row, "read_gb_s") or 0.0) for row in rows)
    span = [min(x for _, x, _ in points) / 1.3, max(x for _, x, _ in points) * 1.3]
    axes.plot(span, [ceiling * x / 1e3 for x in span], color=GREY, linewidth=1, label="what the read ceiling allows")
    for kernel, style in _styled({line(get(row, "variant")) for row in rows}).items():
        own = [(x, y / 1e3) for row, x, y in points if line(get(row, "variant")) == kernel]
        axes.plot(*zip(*own, strict=True), linestyle="", label=kernel, **style)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    for scale in (axes.xaxis, axes.yaxis):
        scale.set_major_formatter(lambda value, _: number(value))
    axes.set_xlabel("useful operations a byte read: two a weight and stream")
    axes.set_ylabel("useful operations a second, 1e12")
    axes.legend(loc="upper left")
    hidden = len(tables.rows("kernels")) - len(points)
    title = f"Roofline of the kernels, {number(rows[0].get('rows'))} x {number(rows[0].get('cols'))}"
    return finish(title, canvas_, rows, index, [omitted(hidden, OTHERS)], conditions(rows, COLD))


def _place(row: Row) -> tuple[float, float] | None:
    """Operations a byte and thousand million operations a second."""
    rate, size, us = (figure(row, name) for name in ("gflop_s", "bytes_read", "us"))
    return (rate * us * 1e3 / size, rate) if rate and size and us else None

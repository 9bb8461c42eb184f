"""Counted against distinct tokens over time, of loops that say a token more than once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from bench.report.figures.groups import titled
from bench.report.figures.marks import Mark, Panel, Plan, cells, joined, omitted, value
from bench.report.figures.style import BLUE, PALE, TINY, VERMILION, handle
from bench.report.tables.arms import describe
from bench.report.tables.conditions import CellIndex, condition
from bench.report.tables.csv_files import Ordered
from bench.report.tables.values import Row, cells_of, figure, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COUNTED, DISTINCT, PAUSE = "every emit call counted", "distinct tokens", "a pause: a round of over five times the usual"
LONG = 5.0
"""A round of so many times the middle one is a pause, and shown as one."""


def tokens_over_time(tables: Ordered, claims: Sequence[Row], index: CellIndex) -> Plan | None:
    """On each machine, build and model the loop of the most streams: there the two part the most."""
    by_cell: dict[tuple[str, ...], list[Row]] = {}
    for row in tables.rows("timeline"):
        if figure(row, "t_s") is not None:
            by_cell.setdefault(tuple(cells_of(row)), []).append(row)
    panels, shown = [], []
    for title, heading, heads in titled([rows[0] for rows in by_cell.values()], index):
        most = min(heads, key=lambda row: (-float(index.find(row, "streams") or 0), float(index.find(row, "temperature")
                                           or 0), cells_of(row)))  # fmt: skip
        name = describe(most, index)
        marks = _marks(by_cell[tuple(cells_of(most))], int(index.find(most, "streams") or 1))
        panels.append(Panel(f"{name}: {title}", marks, f"{name}\n{heading}", height=1.4))
        shown.append(most)
    if not panels:
        return None
    told = [omitted(len(by_cell) - len(shown), "cells of fewer streams or another temperature")]
    return Plan(
        "Tokens over time, counted and distinct", tuple(panels), _paint, "seconds in the timed window",
        "tokens", condition(shown, index), joined(told), "One run of each loop, that of median speed.", 1, _legend,
        cells(shown),
    )  # fmt: skip


def _marks(rows: Sequence[Row], streams: int) -> tuple[Mark, ...]:
    points = sorted(rows, key=lambda row: value(row, "t_s"))
    ids = tuple(cells_of(points[0]))
    marks = [Mark(series, "", value(row, "t_s"), value(row, name), cells=ids)
             for series, name in ((COUNTED, "counted"), (DISTINCT, "distinct")) for row in points]  # fmt: skip
    times = sorted({value(row, "t_s") for row in points})
    rounds = list(pairwise(times))
    # Each stream emits once a round, microseconds apart: of all gaps the longest ones are the rounds.
    lengths = sorted((after - before for before, after in rounds), reverse=True)[: -(-len(rounds) // streams)]
    usual = lengths[len(lengths) // 2] if lengths else 0.0
    marks += [Mark(PAUSE, "", before, low=before, high=after, cells=ids) for before, after in rounds
              if usual > 0 and after - before > LONG * usual]  # fmt: skip
    return tuple(marks)


def _paint(axes: Axes, panel: Panel) -> None:
    for pause in panel.of(PAUSE):
        axes.axvspan(pause.low, pause.high, color=PALE, linewidth=0, zorder=0)
    last = 0.0
    for series, style in _styles().items():
        marks = panel.of(series)
        axes.plot([mark.x for mark in marks], [mark.y for mark in marks], **style, gid=f"data {series}")
        last = max(last, marks[-1].x)
        axes.annotate(number(marks[-1].y), (marks[-1].x, marks[-1].y), xytext=(3, 0), textcoords="offset points",
                      va="center", fontsize=TINY, color=style["color"])  # fmt: skip
    axes.set_xlim(0, last * 1.18 or 1.0)
    axes.set_ylim(bottom=0)
    axes.locator_params(nbins=4)


def _styles() -> dict[str, dict[str, Any]]:
    return {COUNTED: {"color": VERMILION, "linestyle": "--"}, DISTINCT: {"color": BLUE, "linestyle": "-"}}


def _legend() -> list[Any]:
    from matplotlib.patches import Patch

    return [*(handle(name, **style) for name, style in _styles().items()), Patch(color=PALE, label=PAUSE)]

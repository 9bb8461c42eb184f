"""What a figure shows before anything is drawn: marks in panels, and the file that tells them all.

A mark is drawn and written from the same object, so that the file of a figure is exactly what the figure shows. Knows
nothing about colours and paper.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.plain_text import csv_cell
from bench.report.tables.values import all_cells, cells_of, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bench.report.tables.values import Row

NAN = float("nan")
COLUMNS = ("panel", "series", "label", "x", "y", "low", "high", "note", "cells")


@dataclass(frozen=True, slots=True)
class Mark:
    """One mark. Of a chart with a row a thing, `y` is missing and `label` names the row."""

    series: str
    label: str = ""
    x: float = NAN
    y: float = NAN
    low: float = NAN
    """Ends of the interval of the value, or of a published range; missing where there is none."""
    high: float = NAN
    note: str = ""
    """What else the mark says: a verdict, the slowest of its panel, the source of a published value."""
    cells: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes: its title in full, what it shows, and how high it is."""

    title: str
    marks: tuple[Mark, ...]
    heading: str = ""
    """Title as it stands on the paper, where the full one is longer than needed beside the caption."""
    height: float = 1.6
    """Inches of the axes, without what stands around them."""
    labels: tuple[str, ...] = ()
    """Names of the rows, from the top, where the vertical axis has words in place of numbers."""

    def of(self, series: str) -> list[Mark]:
        return [mark for mark in self.marks if mark.series == series]


Paint = Callable[["Axes", Panel], None]


@dataclass(frozen=True)
class Plan:
    """A figure that is ready to be drawn at any width."""

    title: str
    panels: tuple[Panel, ...]
    paint: Paint
    x: str
    """What `x` of a mark is; stands along the axis too."""
    y: str
    condition: str
    left_out: str
    """A sentence, or `nothing`."""
    says: str = ""
    """How to read it, for the caption."""
    span: int = 2
    """Width of a panel: 2 a column of a paper, 1 half of it."""
    legend: Callable[[], list[Any]] = list
    """Makes the handles of the legend: an artist belongs to one figure."""
    cells: tuple[str, ...] = ()


def value(row: Row, name: str) -> float:
    """The finite number in a column, nan where there is none."""
    found = figure(row, name)
    return NAN if found is None else found


def of_row(series: str, row: Row, name: str, **more: Any) -> Mark:
    """A mark with a row's value as x, and the interval of a speed-up or a share where the row has one."""
    return Mark(series, x=value(row, name), cells=tuple(cells_of(row)), **more)


def cells(rows: Iterable[Row]) -> tuple[str, ...]:
    return tuple(all_cells(rows))


def numbers(marks: Iterable[Mark], *names: str) -> list[float]:
    """All finite values of some fields."""
    found = [float(getattr(mark, name)) for mark in marks for name in names]
    return [one for one in found if math.isfinite(one)]


def omitted(count: int, what: str) -> str:
    """`repeated measurements: 3`, or nothing to say when the count is 0."""
    return f"{what}: {count}" if count else ""


def joined(parts: Sequence[str]) -> str:
    return "; ".join(part for part in parts if part) or "nothing"


def marks_text(plan: Plan) -> str:
    """The file of a figure: a line a mark, in the order in which they are drawn."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for panel in plan.panels:
        writer.writerows(_line(panel, mark) for mark in panel.marks)
    return out.getvalue()


def _line(panel: Panel, mark: Mark) -> list[str]:
    ends = [_number(end) for end in (mark.x, mark.y, mark.low, mark.high)]
    words = [csv_cell(word) for word in (panel.title, mark.series, mark.label)]
    return [*words, *ends, csv_cell(mark.note), csv_cell(" ".join(mark.cells)) or "none"]


def _number(number: float) -> str:
    return f"{number + 0.0:.9g}" if math.isfinite(number) else ""

"""Puts the panels of a figure on paper of a given width: in columns of equal width, each panel where there is room.

Text is measured before anything is drawn, so that one pass is enough, the legend has a band of its own and nothing lies
on anything. Knows nothing about what is drawn, and nothing about files.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from bench.report.figures.marks import Panel, Plan
from bench.report.figures.style import COLUMN, GREY, HIGHEST, INK, PAGE, SMALL, TINY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Inches.
LINE, ROW_ROOM = 0.102, 0.05
TITLE_LINE, TITLE_ROOM = 0.112, 0.05
TICKS, AXIS_LABEL, NUMBERS, GAP, EDGE = 0.16, 0.13, 0.27, 0.10, 0.04
LEGEND_LINE, LEGEND_MARK = 0.135, 0.42
HEAD, CAPTION_LINE = 0.24, 0.088

LABEL_LETTERS = 31
MOST_LETTERS = 240
"""Of a title. A name may be as long as a page, and would leave no room for what is drawn."""
_JOINTS = re.compile(r"[^._=+/-]*[._=+/-]|[^._=+/-]+")
LETTER = 0.6
"""Width of a letter of running text, in its size."""


@dataclass(frozen=True)
class _Placed:
    panel: Panel
    column: int
    top: float
    """Inches below the top of the panels."""
    title: str
    height: float
    left: float


@dataclass(frozen=True)
class _Legend:
    columns: int
    height: float


@cache
def wrapped(label: str) -> str:
    """A row's name on lines that leave room for what stands beside it; only a long word is broken, at its joints."""
    lines = [""]
    for word in textwrap.shorten(label, 4 * LABEL_LETTERS).split(" "):
        pieces = [f"{word} "] if len(word) <= LABEL_LETTERS else [*_JOINTS.findall(word), " "]
        for part in pieces:
            for start in range(0, len(part), LABEL_LETTERS):
                piece = part[start : start + LABEL_LETTERS]
                if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > LABEL_LETTERS:
                    lines.append("")
                lines[-1] += piece
    return "\n".join(line.strip() for line in lines).strip() or " "


def row_places(labels: Sequence[str]) -> tuple[list[float], float]:
    """Centre of each row below the top of its axes, and the height of all; inches."""
    places, top = [], 0.0
    for label in labels:
        height = LINE * (wrapped(label).count("\n") + 1) + ROW_ROOM
        places.append(top + height / 2)
        top += height
    return places, top


def rows_axis(axes: Axes, labels: Sequence[str], bold: Sequence[int] = ()) -> list[float]:
    """Gives the axes a row for each label; returns where they are."""
    places, height = row_places(labels)
    axes.set_ylim(height, 0)
    axes.set_yticks(places, [wrapped(label) for label in labels])
    axes.tick_params(axis="y", length=0)
    for place in bold:
        axes.get_yticklabels()[place].set_fontweight("bold")
    return places


def drawn(plan: Plan, width: float, titled: bool) -> list[Figure]:
    """The figure on as many pages as it takes; with its title above and its conditions below it is one, however high.

    `width` in inches, and the fonts have the size of print at that width.
    """
    legend = _legend_of(plan.legend(), width)
    pages = _pages(plan, width, float("inf") if titled else HIGHEST - legend.height)
    return [_page(plan, placed, width, legend, titled) for placed in pages]


def page_count(plan: Plan, width: float = PAGE) -> int:
    """How many files of that width it takes on paper."""
    return len(_pages(plan, width, HIGHEST - _legend_of(plan.legend(), width).height))


def _columns(plan: Plan, width: float) -> int:
    return round(width / COLUMN) * 2 // plan.span


def _pages(plan: Plan, width: float, highest: float) -> list[list[_Placed]]:
    """Each panel goes under the column that is the shortest so far; where none has room, the next page begins."""
    columns = _columns(plan, width)
    pages: list[list[_Placed]] = [[]]
    ends = [0.0] * columns
    across = width / columns
    titles = [_filled(panel.heading or panel.title, across - 0.1, SMALL) for panel in plan.panels]
    # Small multiples stand in rows, so all their titles take the same room; rows of words begin at the same place.
    tallest = max(title.count("\n") for title in titles)
    left = max((_margin(panel) for panel in plan.panels if panel.labels), default=NUMBERS)
    for panel, title in zip(plan.panels, titles, strict=True):
        if plan.span == 1:
            title = "\n" * (tallest - title.count("\n")) + title
        height = row_places(panel.labels)[1] if panel.labels else panel.height
        needed = _title_height(title) + height + TICKS + AXIS_LABEL + GAP
        column = min(range(columns), key=lambda place: (round(ends[place], 3), place))
        if pages[-1] and ends[column] + needed > highest:
            pages.append([])
            ends, column = [0.0] * columns, 0
        pages[-1].append(_Placed(panel, column, ends[column], title, height, left if panel.labels else NUMBERS))
        ends[column] += needed
    return pages


def _title_height(title: str) -> float:
    return TITLE_LINE * (title.count("\n") + 1) + TITLE_ROOM if title else TITLE_ROOM


def _margin(panel: Panel) -> float:
    """Inches for the labels, whole hundredths: a letter's width is 64ths of a point, half of which is a tie of the
    sixth digit that is written, and processors do not break it alike."""
    widest = max(_text_width(line, 6.0) for label in panel.labels for line in wrapped(label).split("\n"))
    return math.ceil(100 * widest + 5) / 100


def _page(plan: Plan, placed: Sequence[_Placed], width: float, legend: _Legend, titled: bool) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns, room, handles = _columns(plan, width), legend.height, plan.legend()
    below = max(one.top + _title_height(one.title) + one.height + TICKS + AXIS_LABEL for one in placed)
    caption = _filled(caption_of(plan), width - 2 * EDGE, TINY) if titled else ""
    foot = CAPTION_LINE * (caption.count("\n") + 1) + 0.08 if titled else 0.02
    top = (HEAD if titled else 0.02) + room
    height = top + below + foot
    # 72 is what SVG and PDF are drawn at.
    figure = Figure(figsize=(width, height), dpi=72)
    FigureCanvasAgg(figure)
    if handles:
        figure.legend(handles=handles, loc="upper left", bbox_to_anchor=(0, 1 - (top - room) / height),
                      ncols=legend.columns, borderaxespad=0, borderpad=0.2, labelspacing=0.25, columnspacing=1.2,
                      handlelength=2.2, handletextpad=0.5)  # fmt: skip
    if titled:
        figure.text(EDGE / width, 1 - 0.03 / height, plan.title, va="top", fontsize=9, fontweight="bold")
        figure.text(EDGE / width, 0.03 / height, caption, va="bottom", fontsize=TINY, color=GREY, linespacing=1.15)
    first = AXIS_LABEL if plan.y and not any(one.panel.labels for one in placed) else 0.0
    across = (width - first) / columns
    last = {one.column: one for one in placed}
    for one in placed:
        _axes(figure, plan, one, (first + one.column * across, across), top, one is last[one.column])
    return figure


def _axes(figure: Figure, plan: Plan, one: _Placed, column: tuple[float, float], top: float, lowest: bool) -> None:
    width, height = figure.get_size_inches()
    start, across = column
    title = _title_height(one.title)
    left = start + EDGE + one.left
    down = top + one.top + title
    inside = across - one.left - EDGE - GAP
    axes = figure.add_axes((left / width, 1 - (down + one.height) / height, inside / width, one.height / height))
    plan.paint(axes, one.panel)
    if one.title:
        # Above the labels of the rows too: a title that began at the axes would have half the width.
        axes.annotate(one.title, (0, 1), xycoords="axes fraction", xytext=(-72 * one.left, 3.5),
                      textcoords="offset points", va="bottom", fontsize=SMALL, color=INK, linespacing=1.15,
                      annotation_clip=False)  # fmt: skip
    if lowest and plan.x:
        axes.set_xlabel(plan.x)
    if plan.y and not one.panel.labels and one.column == 0:
        axes.set_ylabel(plan.y)
    for axis in (axes.xaxis, axes.yaxis):
        if not axis.label.get_text():
            _place_no_label(axis)


def _place_no_label(axis: Any) -> None:
    """Where an axis has no label, nothing has to be measured to find its place: it took a tenth of the drawing."""
    axis.set_label_coords(0, 0)
    for label in axis.get_ticklabels():
        label.set_in_layout(False)


def caption_of(plan: Plan) -> str:
    """How to read the figure, its conditions, and what is not in it."""
    says = f"{plan.says} " if plan.says else ""
    return f"{says}Conditions: {plan.condition}. Left out: {plan.left_out}."


def _legend_of(handles: Sequence[Any], width: float) -> _Legend:
    columns = _legend_columns(handles, width)
    return _Legend(columns, LEGEND_LINE * -(-len(handles) // columns) + 0.05 if handles else 0.0)


def _legend_columns(handles: Sequence[Any], width: float) -> int:
    """As many columns as fit."""
    texts = [_text_width(handle.get_label(), SMALL) + LEGEND_MARK for handle in handles]
    for columns in range(len(texts), 1, -1):
        # A legend is filled column by column, and the first ones have one entry more where they do not come out even.
        lines, longer = divmod(len(texts), columns)
        starts = [lines * place + min(place, longer) for place in range(columns + 1)]
        if sum(max(texts[start:end]) for start, end in pairwise(starts)) < width - 2 * EDGE:
            return columns
    return 1


def _filled(text: str, width: float, size: float) -> str:
    told = "\n".join(textwrap.shorten(line, MOST_LETTERS) if size != TINY else line for line in text.split("\n"))
    letters = max(int(width * 72 / (size * LETTER)), 8)
    return "\n".join(textwrap.fill(line, letters) for line in told.split("\n"))


@cache
def _text_width(text: str, size: float) -> float:
    """Inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    found = text_to_path.get_text_width_height_descent(text, FontProperties(size=size), False)
    return float(found[0]) / 72

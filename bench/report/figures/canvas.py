"""What every figure shares: colours, panels, captions. Knows nothing about what is drawn; imports matplotlib late."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.report.tables.conditions import CellIndex, Group, condition, grouped
from bench.report.tables.values import MISSING, Row, all_cells

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito, "Color Universal Design" (2008): told apart with every common colour vision.
BLUE, VERMILION, GREEN, PURPLE, SKY, AMBER = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00"
INK, GREY, PALE = "#222222", "#6E6E6E", "#D9D9D9"
SERIES = (BLUE, VERMILION, GREEN, PURPLE, AMBER, SKY)
MARKERS = ("o", "s", "^", "v", "P", "X")

MOST_LETTERS = 300
"""Of a title. A name may be as long as a page, and would leave no room for what is drawn."""
MAX_PANELS = 2
"""More are told in the tables: a figure is drawn three times, and time and paper go with its panels."""
WIDTH = 8.0
"""Inches."""

STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "legend.fontsize": 8,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "text.color": INK,
    # Unhinted text has one width at every resolution, so one layout fits all formats.
    "text.hinting": "no_hinting",
    "legend.frameon": False,
    # A name with two dollar signs is a name.
    "text.parse_math": False,
    "svg.hashsalt": "bench.report",
    "svg.fonttype": "path",
    # Type 3 fonts are cut to the glyphs in use without fontTools, in half the time.
    "pdf.fonttype": 3,
}


@dataclass(frozen=True)
class Drawing:
    """A drawn figure and what it stands on."""

    title: str
    figure: Figure
    cells: tuple[str, ...]
    condition: str
    left_out: str
    """A sentence, or `nothing`."""


@contextmanager
def drawing_style() -> Iterator[None]:
    """The project's own style on matplotlib's defaults, whatever the user's matplotlibrc says."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def panels(rows: Sequence[Row], index: CellIndex, limit: int = MAX_PANELS) -> tuple[list[tuple[Group, list[Row]]], int]:
    """At most `limit` groups, those with the most cells, in alphabetical order; and how many were left out."""
    groups = grouped(rows, index)
    kept = sorted(groups, key=lambda item: (-len(all_cells(item[1])), item[0]))[:limit]
    return sorted(kept), len(groups) - len(kept)


def canvas(heights: Sequence[float], columns: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure with one axes a panel, rows of the grid as high as the highest panel in them."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    lines = [max(heights[start : start + columns]) for start in range(0, len(heights), columns)]
    # 72 is what SVG and PDF are drawn at: texts measured for the layout need not be measured again.
    figure = Figure(figsize=(WIDTH, sum(lines) + 0.9), dpi=72)
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(len(lines), columns, height_ratios=lines)
    return figure, [figure.add_subplot(grid[place // columns, place % columns]) for place in range(len(heights))]


def panel_title(axes: Axes, group: Group) -> None:
    machine, build, model, quantization = group
    named = model if quantization == MISSING else f"{model} {quantization}"
    text = textwrap.fill(f"{named} on {machine}, engine {build}", 62 if _is_wide(axes) else 46)
    set_title(axes, text)


def set_title(axes: Axes, text: str) -> None:
    """A title at a fixed height: one that moves out of the ticks' way is measured anew in every drawing."""
    told = textwrap.shorten(text, MOST_LETTERS) if len(text) > MOST_LETTERS else text
    axes.set_title(told, loc="left", y=1.0, color=INK)


def _is_wide(axes: Axes) -> bool:
    spec: Any = axes.get_subplotspec()
    return spec is None or spec.get_gridspec().ncols == 1


def finish(
    title: str, figure: Figure, rows: Sequence[Row], index: CellIndex, left_out: Sequence[str], told: str = ""
) -> Drawing:
    """Puts the title above the figure and its conditions below, and remembers the cells that were drawn.

    `told` are the conditions, where the rows are not of a model's cells.
    """
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    told = told or condition(rows, index)
    omitted = "; ".join(part for part in left_out if part) or "nothing"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    caption = textwrap.fill(f"Conditions: {told}. Left out: {omitted}.", 138)
    figure.supxlabel(caption, x=0.01, ha="left", fontsize=6.5, color=GREY)
    # Laid out once for all formats. A figure that keeps an engine is laid out and drawn twice by every savefig.
    ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06).execute(figure)
    for axes in figure.axes:
        _fix_labels(axes)
    return Drawing(title, figure, tuple(all_cells(rows)), told, omitted)


def _fix_labels(axes: Axes) -> None:
    """Leaves the axis labels where the layout put them; each drawing would find that out again from all tick labels."""
    to_axes = axes.transAxes.inverted()
    axes.xaxis.set_label_coords(0.5, to_axes.transform(axes.xaxis.label.get_position())[1])
    axes.yaxis.set_label_coords(to_axes.transform(axes.yaxis.label.get_position())[0], 0.5)


def omitted(count: int, what: str) -> str:
    """`rows at other temperatures: 3`, or nothing to say when the count is 0."""
    return f"{what}: {count}" if count else ""

"""How all figures look: colours, marks, fonts and the widths of paper. Knows nothing about what is drawn.

Whatever tells two series apart by colour does it by mark and line too: most papers are printed in grey.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

# Okabe and Ito, "Color Universal Design" (2008): told apart with every common colour vision.
BLUE, VERMILION, GREEN, PURPLE, SKY, AMBER = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00"
INK, GREY, PALE = "#222222", "#6E6E6E", "#D9D9D9"

COLUMN, PAGE = 3.5, 7.16
"""Inches: one and two columns of the usual journals (IEEE's; ACM's and Elsevier's are within a few points)."""
HIGHEST = 9.0
"""Inches that a page of them leaves: what is higher goes on with another file."""
PIXELS_PER_INCH = 300
SMALL, TINY = 6.5, 5.5
"""Points, at the size of print."""

SERIES: tuple[dict[str, Any], ...] = (
    {"color": BLUE, "marker": "o", "linestyle": "-"},
    {"color": VERMILION, "marker": "s", "linestyle": "--"},
    {"color": GREEN, "marker": "^", "linestyle": "-."},
    {"color": PURPLE, "marker": "v", "linestyle": ":"},
    {"color": AMBER, "marker": "P", "linestyle": (0, (5, 1))},
    {"color": SKY, "marker": "X", "linestyle": (0, (3, 1, 1, 1, 1, 1))},
)
PUBLISHED: dict[str, Any] = {"color": INK, "marker": "D", "markerfacecolor": "white", "markersize": 3.6,
                             "markeredgewidth": 0.9, "linestyle": ""}  # fmt: skip

STYLE: dict[Any, Any] = {
    # A browser that lacks it takes its own sans-serif: most are narrower, so that nothing runs into anything.
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": SMALL,
    "axes.titlesize": SMALL,
    "axes.labelsize": SMALL,
    "legend.fontsize": SMALL,
    "xtick.labelsize": 6,
    "ytick.labelsize": 6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.major.pad": 2,
    "ytick.major.pad": 2,
    "axes.labelpad": 2,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.4,
    "hatch.linewidth": 0.5,
    "text.color": INK,
    # Unhinted text has one width at every resolution, so one layout fits all formats.
    "text.hinting": "no_hinting",
    "legend.frameon": False,
    # A name with two dollar signs is a name.
    "text.parse_math": False,
    "axes.unicode_minus": False,
    "svg.hashsalt": "bench.report",
    # Text stays text: it can be searched, edited, and read aloud.
    "svg.fonttype": "none",
    # TrueType: publishers' checkers refuse Type 3.
    "pdf.fonttype": 42,
}


@contextmanager
def drawing_style() -> Iterator[None]:
    """The project's own style on matplotlib's defaults, whatever the user's matplotlibrc says."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def styled(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """A colour, a mark and a line for each name; where colours begin again, marks and lines are shifted."""
    found = {}
    for place, name in enumerate(names):
        again, color = divmod(place, len(SERIES))
        other = SERIES[(color + again) % len(SERIES)]
        found[name] = {**other, "color": SERIES[color]["color"]}
    return found


def handle(label: str, **style: Any) -> Any:
    """An entry of a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **style)

"""Speed-up by method and class of text, as a map with the number in every field.

The shade runs from dark to light with the number, in grey as in colour; a number in brackets has 1 in its interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from bench.report.figures.groups import in_rows, one_each, titled
from bench.report.figures.layout import row_places, rows_axis
from bench.report.figures.marks import Mark, Panel, Plan, cells, joined, numbers, omitted, value
from bench.report.figures.style import INK
from bench.report.tables.arms import ALL, describe, is_void
from bench.report.tables.conditions import CellIndex, condition
from bench.report.tables.csv_files import Ordered
from bench.report.tables.values import Row, cells_of, figure, fixed, get, line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DARK = 0.45
"""Below that share of the scale the number is white."""


def classes(tables: Ordered, claims: Sequence[Row], index: CellIndex) -> Plan | None:
    """A field for each arm and class of prompts that was measured at temperature 0."""
    rows = [row for row in tables.rows("speedup") if not get(row, "plain") and get(row, "prompt_class")]
    sound = [row for row in rows if not is_void(row) and not get(row, "temperature") and figure(row, "speedup")]
    names = sorted({line(get(row, "prompt_class")) for row in sound} - {ALL})
    if not names:
        return None
    columns = [ALL, *names]
    panels, shown = [], []
    for title, heading, members in titled(sound, index):
        arms: dict[str, list[Row]] = {}
        for row in one_each(members, index, ("short", "scope", "prompt_class")):
            arms.setdefault(describe(row, index), []).append(row)
        known = [own for own in arms.values() if any(line(get(row, "prompt_class")) != ALL for row in own)]
        known.sort(key=lambda own: -max(value(row, "speedup") for row in own))
        lines = [(describe(own[0], index), [_mark(row, columns, describe(row, index)) for row in own]) for own in known]
        panels += in_rows(title, heading, lines)
        shown += [row for own in known for row in own]
    if not panels:
        return None
    found = numbers([mark for panel in panels for mark in panel.marks], "y")
    told = [omitted(len(rows) - len(sound), "rows that are void or at other temperatures than 0"),
            omitted(len(sound) - len(shown), "shorter measurements and arms that saw one class alone")]  # fmt: skip
    return Plan(
        "Speed-up by method and class of text", tuple(panels),
        partial(_paint, columns=columns, span=(min(found), max(found))), "", "", condition(shown, index), joined(told),
        "Over plain decoding on the same prompts. In brackets: the interval holds 1, or there is none.", 2,
        cells=cells(shown),
    )  # fmt: skip


def _mark(row: Row, columns: Sequence[str], label: str) -> Mark:
    """`x` is the place of the class, `y` the speed-up."""
    name = line(get(row, "prompt_class"))
    ends = value(row, "ci_low"), value(row, "ci_high")
    return Mark(name, label, float(columns.index(name)), value(row, "speedup"), *ends, cells=tuple(cells_of(row)))


def _paint(axes: Axes, panel: Panel, columns: Sequence[str], span: tuple[float, float]) -> None:
    from matplotlib import colormaps
    from matplotlib.collections import PolyCollection

    places = dict(zip(panel.labels, rows_axis(axes, panel.labels), strict=True))
    shades = colormaps["cividis"]
    low, high = (math.log(end) for end in span)
    boxes, colors = [], []
    for mark in panel.marks:
        share = (math.log(mark.y) - low) / (high - low) if high > low else 1.0
        x, y, half = mark.x, places[mark.label], _half_height(mark.label)
        boxes.append([(x - 0.48, y - half), (x + 0.48, y - half), (x + 0.48, y + half), (x - 0.48, y + half)])
        colors.append(shades(share))
        sure = mark.low > 1 or mark.high < 1
        told = fixed(mark.y, 2) if sure else f"({fixed(mark.y, 2)})"
        axes.annotate(told, (x, y), ha="center", va="center", fontsize=5, gid=f"data {mark.series}",
                      color="white" if share < DARK else INK)  # fmt: skip
    axes.add_collection(PolyCollection(boxes, facecolors=colors, edgecolors="none"))
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_xticks(range(len(columns)), [name.replace("_", " ") for name in columns], fontsize=5, rotation=35,
                    ha="right", rotation_mode="anchor")  # fmt: skip
    axes.tick_params(axis="x", length=0, pad=1)
    for side in axes.spines.values():
        side.set_visible(False)


def _half_height(label: str) -> float:
    return row_places([label])[1] / 2 - 0.01

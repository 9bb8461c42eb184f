"""Measured against predicted speed-ups, one point an arm. Knows nothing about files, and predicts nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.judge.arm import ROLES
from bench.report.figures.canvas import (
    BLUE,
    GREY,
    PALE,
    PURPLE,
    VERMILION,
    Drawing,
    canvas,
    finish,
    omitted,
    panel_title,
    panels,
)
from bench.report.tables.arms import is_void, of_all_prompts
from bench.report.tables.conditions import CellIndex
from bench.report.tables.csv_files import Ordered
from bench.report.tables.values import Row, figure, figures, get

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAND = 0.10
"""Half-width of the band around equality."""
STYLES = ((BLUE, "o"), (PURPLE, "^"), (VERMILION, "v"))


def predictions(tables: Ordered, claims: Sequence[Row], index: CellIndex) -> Drawing | None:
    """Measured over predicted for every arm, with a band of 10 %; hollow where the step-cost curve alone predicts."""
    rows = of_all_prompts(tables.rows("predictions"))
    sound = [row for row in rows if not is_void(row) and figure(row, "predicted") and figure(row, "measured")]
    groups, hidden = panels(sound, index)
    if not groups:
        return None
    canvas_, axes = canvas([3.6] * len(groups), columns=1 if len(groups) == 1 else 2)
    for place, (group, members) in enumerate(groups):
        panel_title(axes[place], group)
        _panel(axes[place], members)
    axes[0].legend(loc="upper left")
    drawn = [row for _, members in groups for row in members]
    left_out = [
        omitted(len(rows) - len(sound), "void arms and arms with a width that the curve lacks"),
        omitted(hidden, "other machines, builds or models"),
    ]
    return finish("Speed-up measured against predicted", canvas_, drawn, index, left_out)


def _panel(axes: Axes, rows: Sequence[Row]) -> None:
    points = [(figure(row, "predicted") or 1.0, figure(row, "measured") or 1.0) for row in rows]
    ends = [value for point in points for value in point]
    ends += [figure(row, "curve_only") or 1.0 for row in rows]
    low, high = min(ends) / 1.25, max(ends) * 1.25
    axes.fill_between([low, high], [low * (1 - BAND), high * (1 - BAND)], [low * (1 + BAND), high * (1 + BAND)],
                      color=PALE, linewidth=0, zorder=0, label="within 10 %")  # fmt: skip
    axes.plot([low, high], [low, high], color=GREY, linewidth=1, zorder=1)
    roles = [role for role in ROLES.values() if not role.plain and (role.planted or not role.control)]
    for role, (color, marker) in zip(roles, STYLES, strict=True):
        name, label = role.name, role.words or "a method"
        mine = [row for row in rows if get(row, "arm") == name]
        if not mine:
            continue
        measured, alone = figures(mine, "measured"), figures(mine, "curve_only")
        axes.plot(alone, measured, marker, markerfacecolor="none", markeredgecolor=color, alpha=0.5, markersize=5)
        axes.plot(figures(mine, "predicted"), measured, marker, color=color, markersize=5, label=label)
    axes.plot([], [], "o", markerfacecolor="none", markeredgecolor=GREY, label="hollow: changes of width left out")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    ticks = [tick for tick in (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10) if low <= tick <= high]
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set_ticks([], minor=True)
    axes.set_xlabel("predicted speed-up")
    axes.set_ylabel("measured speed-up")

"""Figures with one line a method: speed-ups with their intervals, and where a round's time goes.

Knows nothing about files. Draws the judge's numbers as they are; when there are more than fit, it picks and says so.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bench.judge.arm import ROLES
from bench.report.figures.canvas import (
    AMBER,
    BLUE,
    GREEN,
    GREY,
    INK,
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
from bench.report.figures.published import speedup_points
from bench.report.tables.arms import describe, is_void, of_all_prompts, with_role
from bench.report.tables.conditions import CellIndex
from bench.report.tables.csv_files import Ordered
from bench.report.tables.values import Row, cells_of, figure, figures, fixed, get, line, sort_key

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_LINES = 14
LABEL_WIDTH = 34
SHOWN_ARMS = tuple(role.name for role in ROLES.values() if not role.control)
PARTS = (
    ("decode_ms", "llama_decode", BLUE),
    ("draft_ms", "draft", AMBER),
    ("sample_ms", "sample", GREEN),
    ("rollback_ms", "roll back", PURPLE),
    ("host_ms", "rest of the loop", VERMILION),
)

ARM = ("short",)
"""What tells one arm from another."""


def one_each(rows: Sequence[Row], index: CellIndex, names: Sequence[str]) -> list[Row]:
    """One row for each combination of `names`: the lowest temperature, then the most blocks, then the first cell."""
    chosen: dict[Any, Row] = {}
    keys = {id(row): sort_key({name: index.find(row, name) for name in names}, names) for row in rows}
    for row in sorted(rows, key=lambda row: (keys[id(row)], _preference(row, index))):
        chosen.setdefault(keys[id(row)], row)
    return list(chosen.values())


def _preference(row: Row, index: CellIndex) -> tuple[Any, ...]:
    known = {"temperature": index.find(row, "temperature")}
    return (sort_key(known, ["temperature"]), -(figure(row, "n_blocks") or 0.0), cells_of(row))


def speedup(tables: Ordered, claims: Sequence[Row], index: CellIndex) -> Drawing | None:
    """Speed-up by method, distinct tokens with intervals, beside what was counted and what was published."""
    rows = of_all_prompts(tables.rows("speedup"))
    sound = [row for row in rows if not is_void(row) and figure(row, "speedup") is not None]
    groups, hidden = panels(sound, index)
    if not groups:
        return None
    names = (*ARM, "scope")
    chosen = [(group, one_each(members, index, names)) for group, members in groups]
    shown = [(group, members[:MAX_LINES]) for group, members in chosen]
    canvas_, axes = canvas([0.5 + 0.34 * len(members) for _, members in shown])
    for place, (group, members) in enumerate(shown):
        panel_title(axes[place], group)
        _forest(axes[place], members, claims, index)
    axes[-1].set_xlabel("speed-up over plain decoding (1 = no gain)")
    _legend(axes[0])
    drawn = [row for _, members in shown for row in members]
    left_out = [
        omitted(len(rows) - len(sound), "void or unmeasured rows"),
        omitted(hidden, "other machines, builds or models"),
        omitted(sum(len(members) for _, members in groups) - len(drawn), "rows at other temperatures or settings"),
    ]
    return finish("Speed-up by method", canvas_, drawn, index, left_out)


def _forest(axes: Axes, rows: Sequence[Row], claims: Sequence[Row], index: CellIndex) -> None:
    # One artist for each kind of mark: every further one costs time in each of three formats.
    places = range(len(rows))
    axes.axvline(1.0, color=GREY, linewidth=1)
    axes.hlines(places, 0, 1, colors=PALE, linewidth=0.6, zorder=0, transform=axes.get_yaxis_transform())
    known = [(place, figure(row, "ci_low"), figure(row, "ci_high")) for place, row in enumerate(rows)]
    spans = [(place, low, high) for place, low, high in known if low is not None and high is not None]
    if spans:
        heights, lows, highs = zip(*spans, strict=True)
        axes.hlines(heights, lows, highs, colors=BLUE, linewidth=2.5)
    axes.plot(figures(rows, "speedup"), places, "o", color=BLUE, markersize=6)
    more = [place for place, row in enumerate(rows) if _counts_more(row)]
    if more:
        counted = figures([rows[place] for place in more], "counted_speedup")
        axes.plot(counted, more, "x", color=VERMILION, markersize=7, markeredgewidth=1.8)
    claimed = [(place - 0.28, *span) for place, row in enumerate(rows) for span in speedup_points(claims, row)]
    if claimed:
        heights, lows, highs = zip(*claimed, strict=True)
        axes.hlines(heights, lows, highs, colors=INK, linewidth=1)
        axes.plot(lows, heights, "D", markerfacecolor="white", markeredgecolor=INK, markersize=5)
    axes.set_yticks(places, [_wrapped(describe(row, index)) for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(left=0)


def _wrapped(label: str) -> str:
    """An arm's name on lines that leave room for its bar, and for the title above it."""
    return textwrap.fill(label, LABEL_WIDTH)


def _counts_more(row: Row) -> bool:
    """Whether counting every emit call gives another figure, to the digits that are drawn."""
    counted = figure(row, "counted_speedup")
    return counted is not None and fixed(counted, 2) != fixed(figure(row, "speedup"), 2)


def _legend(axes: Axes) -> None:
    from matplotlib.lines import Line2D

    marks = [
        Line2D([], [], color=BLUE, marker="o", linewidth=2.5, label="distinct tokens, with interval"),
        Line2D([], [], color=VERMILION, marker="x", linestyle="", markeredgewidth=1.8, label="every emit call counted"),
        Line2D([], [], color=INK, marker="D", linestyle="", markerfacecolor="white", label="published"),
    ]
    axes.figure.legend(handles=marks, loc="outside upper right", ncols=3)


def round_time(tables: Ordered, claims: Sequence[Row], index: CellIndex) -> Drawing | None:
    """Mean milliseconds of a round by what they were spent on, one bar an arm."""
    rows = [row for row in tables.rows("decomposition") if figure(row, "total_ms") is not None]
    arms = [row for row in rows if get(row, "arm") in SHOWN_ARMS and not is_void(row)]
    groups, hidden = panels(arms, index)
    if not groups:
        return None
    shown = [(group, _bars(members, index)[:MAX_LINES]) for group, members in groups]
    canvas_, axes = canvas([0.5 + 0.3 * len(members) for _, members in shown])
    for place, (group, members) in enumerate(shown):
        panel_title(axes[place], group)
        _stack(axes[place], members, index)
    axes[-1].set_xlabel("milliseconds a round")
    from matplotlib.patches import Patch

    marks = [Patch(color=color, label=label) for _, label, color in PARTS]
    canvas_.legend(handles=marks, loc="outside upper right", ncols=len(marks))
    drawn = [row for _, members in shown for row in members]
    left_out = [
        omitted(len(rows) - len(arms), "void rows and control arms"),
        omitted(hidden, "other machines, builds or models"),
        omitted(sum(len(members) for _, members in groups) - len(drawn), "arms at other temperatures or settings"),
    ]
    return finish("Where a round's time goes", canvas_, drawn, index, left_out)


def _bars(rows: Sequence[Row], index: CellIndex) -> list[Row]:
    """One baseline, one bar for each treatment, then what is left: where room ends, treatments stay."""
    by_arm = {arm: [row for row in rows if get(row, "arm") == arm] for arm in SHOWN_ARMS}
    bars = one_each(by_arm.pop("baseline"), index, ("arm",))
    for arm in sorted(by_arm, key=lambda arm: bool(ROLES[arm].words)):
        bars += one_each(by_arm[arm], index, ARM)
    return bars


def _bar_label(row: Row, index: CellIndex) -> str:
    role = ROLES[line(get(row, "arm"))]
    return role.words if role.plain and role.own_context else with_role(row, index)


def _stack(axes: Axes, rows: Sequence[Row], index: CellIndex) -> None:
    places = list(range(len(rows)))
    starts = [0.0] * len(rows)
    for name, _, color in PARTS:
        widths = [max(figure(row, name) or 0.0, 0.0) for row in rows]
        axes.barh(places, widths, left=starts, height=0.62, color=color)
        starts = [start + width for start, width in zip(starts, widths, strict=True)]
    for place, row in enumerate(rows):
        label = f"{fixed(figure(row, 'total_ms'), 1)} ms"
        axes.annotate(label, (starts[place], place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set_yticks(places, [_wrapped(_bar_label(row, index)) for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(0, max(starts) * 1.12 or 1.0)
    axes.tick_params(axis="y", length=0)

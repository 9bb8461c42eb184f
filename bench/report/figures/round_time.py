"""Where a round's time goes: mean milliseconds by what they were spent on, one bar an arm."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from bench.judge.arm import ROLES
from bench.report.figures.groups import in_rows, one_each, titled
from bench.report.figures.layout import LINE, rows_axis
from bench.report.figures.marks import Mark, Panel, Plan, cells, joined, omitted, value
from bench.report.figures.style import AMBER, BLUE, GREEN, INK, PURPLE, TINY, VERMILION
from bench.report.tables.arms import describe, is_void, with_role
from bench.report.tables.conditions import CellIndex, condition
from bench.report.tables.csv_files import Ordered
from bench.report.tables.values import Row, cells_of, figure, fixed, get, line, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN_ARMS = tuple(role.name for role in ROLES.values() if not role.control and role.own_context >= role.plain)
"""Plain decoding in its own context, and what was on trial; one stream alone in the treatment's is a control."""
PARTS = (
    ("decode_ms", "llama_decode", BLUE, ""),
    ("draft_ms", "draft", AMBER, "////"),
    ("sample_ms", "sample", GREEN, "----"),
    ("rollback_ms", "roll back", PURPLE, "xxxx"),
    ("host_ms", "rest of the loop", VERMILION, "\\\\\\\\"),
)
"""Column, word, colour, and the hatch that tells it in grey."""


def round_time(tables: Ordered, claims: Sequence[Row], index: CellIndex) -> Plan | None:
    """Plain decoding, then each arm at its lowest temperature by the length of its round; a scale for each panel."""
    rows = [row for row in tables.rows("decomposition") if figure(row, "total_ms") is not None]
    arms = [row for row in rows if get(row, "arm") in SHOWN_ARMS and not is_void(row)]
    panels, shown = [], []
    for title, heading, members in titled(arms, index):
        own = _bars(members, index)
        lines = [(_label(row, index), _marks(row, _label(row, index))) for row in own]
        panels += in_rows(title, heading, list(dict(lines).items()))
        shown += own
    if not panels:
        return None
    told = [omitted(len(rows) - len(arms), "void rows, control arms and one stream alone"),
            omitted(len(arms) - len(shown), "shorter measurements and other temperatures of the same arm")]  # fmt: skip
    return Plan(
        "Where a round's time goes", tuple(panels), _paint, "milliseconds a round", "", condition(shown, index),
        joined(told),
        "Behind each bar its length and the distinct tokens that it gives. Each panel has its own scale.", 2,
        partial(_legend, panels), cells(shown),
    )  # fmt: skip


def _bars(rows: Sequence[Row], index: CellIndex) -> list[Row]:
    """One baseline, then one bar for each other arm, the shortest round first."""
    own = [row for row in rows if ROLES[line(get(row, "arm"))].own_context]
    others = [row for row in rows if not ROLES[line(get(row, "arm"))].own_context]
    lowest: dict[tuple[str, str], float] = {}
    for row in others:
        lowest[_key(row)] = min(lowest.get(_key(row), float("inf")), figure(row, "temperature") or 0.0)
    kept = [row for row in others if (figure(row, "temperature") or 0.0) == lowest[_key(row)]]
    bars = one_each(kept, index, ("arm", "short"))
    return one_each(own, index, ("arm",)) + sorted(bars, key=lambda row: value(row, "total_ms"))


def _key(row: Row) -> tuple[str, str]:
    return line(get(row, "arm")), line(get(row, "short"))


def _label(row: Row, index: CellIndex) -> str:
    role = ROLES[line(get(row, "arm"))]
    if role.plain and role.own_context:
        return role.words
    return with_role(row, index) if role.words else describe(row, index)


def _marks(row: Row, label: str) -> list[Mark]:
    """A part begins where the one before ends: `low` and `high` are where the bar has it, `x` how long it is."""
    marks, start = [], 0.0
    tokens = f"{fixed(row.get('tokens_per_round'), 2)} tokens"
    for name, words, _, _ in PARTS:
        long = max(figure(row, name) or 0.0, 0.0)
        marks.append(Mark(words, label, long, low=start, high=start + long, note=tokens, cells=tuple(cells_of(row))))
        start += long
    return marks


def _paint(axes: Axes, panel: Panel) -> None:
    places = rows_axis(axes, panel.labels)
    at = dict(zip(panel.labels, places, strict=True))
    for _, words, color, hatch in PARTS:
        marks = [mark for mark in panel.of(words) if mark.x > 0]
        axes.barh([at[mark.label] for mark in marks], [mark.x for mark in marks], left=[mark.low for mark in marks],
                  height=LINE, color=color, hatch=hatch, edgecolor="white", linewidth=0)  # fmt: skip
    ends = {mark.label: mark for mark in panel.marks}
    for label, mark in ends.items():
        axes.annotate(f"{number(mark.high, 3)} ms, {mark.note}", (mark.high, at[label]), xytext=(3, 0), va="center",
                      textcoords="offset points", fontsize=TINY, color=INK)  # fmt: skip
    axes.set_xlim(0, (max(mark.high for mark in ends.values()) or 1.0) * 1.75)
    axes.locator_params(axis="x", nbins=5)


def _legend(panels: Sequence[Panel]) -> list[Any]:
    from matplotlib.patches import Patch

    drawn = {mark.series for panel in panels for mark in panel.marks if mark.x > 0}
    return [Patch(facecolor=color, hatch=hatch, edgecolor="white", linewidth=0, label=words)
            for _, words, color, hatch in PARTS if words in drawn]  # fmt: skip

"""Speed by number of streams, three ways of counting: what one answer gains, what all do, and what is emitted.

Draws the judge's ratios to plain decoding; that the three differ is what most claims about several streams are about.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from bench.judge.tables.contrast import AGGREGATE
from bench.report.figures.forest import ARROW
from bench.report.figures.groups import one_each, titled
from bench.report.figures.marks import Mark, Panel, Plan, cells, joined, omitted, value
from bench.report.figures.published import SpeedupClaims
from bench.report.figures.scales import Span, intervals, log_axis, ratio_span, width_axis
from bench.report.figures.style import BLUE, GREEN, GREY, PALE, PUBLISHED, VERMILION, handle
from bench.report.tables.arms import is_void, of_all_prompts
from bench.report.tables.conditions import CellIndex, condition
from bench.report.tables.csv_files import Ordered
from bench.report.tables.values import Row, cells_of, figure, get, line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ANSWER, SUM, COUNTED = "distinct tokens, one answer", "distinct tokens, sum of answers", "every emit call counted"
CLAIMED = "published"
STYLES: dict[str, dict[str, Any]] = {
    ANSWER: {"color": BLUE, "marker": "o", "linestyle": "-"},
    SUM: {"color": GREEN, "marker": "^", "linestyle": "-.", "markerfacecolor": "white"},
    COUNTED: {"color": VERMILION, "marker": "x", "linestyle": "--", "markersize": 4, "markeredgewidth": 1.2},
    CLAIMED: PUBLISHED,
}


def streams(tables: Ordered, claims: Sequence[Row], index: CellIndex) -> Plan | None:
    """Small multiples: a panel for each way of decoding several streams, on each machine, build and model."""
    rows = [row for row in of_all_prompts(tables.rows("speedup")) if (figure(row, "streams") or 1.0) > 1]
    sound = [row for row in rows if not is_void(row) and not get(row, "temperature") and figure(row, "speedup")]
    panels, shown, published = [], [], SpeedupClaims(claims)
    for title, heading, members in titled(sound, index):
        arms: dict[str, list[Row]] = {}
        for row in one_each(members, index, ("short", "scope")):
            arms.setdefault(_without_streams(row), []).append(row)
        for name, own in sorted(arms.items()):
            marks = tuple(mark for row in sorted(own, key=_streams) for mark in _marks(row, published))
            panels.append(Panel(f"{name}: {title}", marks, f"{name}\n{heading}", height=1.25))
            shown += own
    if not panels:
        return None
    span = ratio_span([mark for panel in panels for mark in panel.marks], field="y")
    told = [omitted(len(rows) - len(sound), "rows that are void or at other temperatures than 0"),
            omitted(len(sound) - len(shown), "shorter measurements of the same arm")]  # fmt: skip
    return Plan(
        "Several streams: counted, distinct, in sum", tuple(panels), partial(_paint, span=span), "streams",
        "over plain decoding", condition(shown, index), joined(told),
        f"Only distinct tokens of one answer are what a reader waits for. {ARROW}", 1,
        lambda: [handle(name, **style) for name, style in STYLES.items()], cells(shown),
    )  # fmt: skip


def _streams(row: Row) -> float:
    return figure(row, "streams") or 1.0


def _without_streams(row: Row) -> str:
    """What an arm is called whatever its number of streams."""
    return line(get(row, "short")).replace(f" x{line(get(row, 'streams'))}", "", 1)


def _marks(row: Row, published: SpeedupClaims) -> list[Mark]:
    ids = tuple(cells_of(row))
    series = SUM if get(row, "scope") == AGGREGATE else ANSWER
    label = line(get(row, "short"))
    ends = value(row, "ci_low"), value(row, "ci_high")
    note = f"output {line(get(row, 'lossless'))}"
    marks = [Mark(series, label, _streams(row), value(row, "speedup"), *ends, note, ids)]
    counted = figure(row, "counted_speedup")
    if counted and get(row, "counted_per_round") != get(row, "tokens_per_round"):
        marks.append(Mark(COUNTED, label, _streams(row), counted, cells=ids))
    for (low, high), claimed in published.beside(row):
        if low == high:
            marks.append(Mark(CLAIMED, label, _streams(row), low, note=claimed))
    return marks


def _paint(axes: Axes, panel: Panel, span: Span) -> None:
    log_axis(axes.yaxis, span, most=5)
    width_axis(axes, [1.0, *(mark.x for mark in panel.marks), 4.0])
    axes.axhline(1.0, color=GREY, linewidth=0.8, zorder=1)
    ends = [1.0, max([4.0, *(mark.x for mark in panel.marks)])]
    axes.plot(ends, ends, color=PALE, linewidth=1.0, zorder=0)
    for series, style in STYLES.items():
        marks = panel.of(series)
        if not marks:
            continue
        intervals(axes, marks, [mark.x for mark in marks], span, style["color"])
        line = style if len({mark.x for mark in marks}) > 1 else {**style, "linestyle": ""}
        axes.plot([mark.x for mark in marks], [mark.y for mark in marks], **line, gid=f"data {series}")

"""Ratios with their intervals, a row each: speed-ups by method, claims by verdict, builds and settings on trial.

Draws the judge's numbers as they are, on a logarithmic axis that all panels share, in the order of their size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from bench.judge.tables.contrast import DIVERGENT
from bench.report.figures.groups import in_rows, one_each, places_of, shared_start, titled
from bench.report.figures.layout import rows_axis
from bench.report.figures.marks import NAN, Mark, Panel, Plan, cells, joined, numbers, of_row, omitted, value
from bench.report.figures.published import SpeedupClaims, published_span
from bench.report.figures.scales import Span, log_axis, ratio_span, row_intervals
from bench.report.figures.style import BLUE, GREEN, GREY, INK, PALE, PUBLISHED, PURPLE, TINY, VERMILION, handle
from bench.report.tables import verdicts
from bench.report.tables.arms import describe, is_void, of_all_prompts
from bench.report.tables.conditions import CellIndex, condition
from bench.report.tables.csv_files import Ordered
from bench.report.tables.values import Row, cells_of, figure, fixed, get, line, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MEASURED, COUNTED, CLAIMED = "measured", "every emit call counted", "published"
DIFFERS = "measured, other output than plain decoding"
LEAST = "slowest"
FURTHEST = "furthest off"
FAR = 1.05
"""From this ratio of the two on, the panel's furthest value is marked."""
ARROW = "An arrow: the interval goes on."
"""For a caption."""

Style = dict[str, Any]
SOLID: Style = {"color": BLUE, "marker": "o", "linestyle": ""}
HOLLOW: Style = {"color": BLUE, "marker": "o", "linestyle": "", "markerfacecolor": "white"}
CROSS: Style = {"color": VERMILION, "marker": "x", "linestyle": "", "markersize": 4, "markeredgewidth": 1.2}
BY_VERDICT: dict[str, Style] = {
    "reproduced": {"color": GREEN, "marker": "o", "linestyle": ""},
    "misstated": {"color": PURPLE, "marker": "P", "linestyle": ""},
    "refuted": {"color": VERMILION, "marker": "X", "linestyle": "", "markersize": 4.2},
    "inconclusive": {"color": BLUE, "marker": "o", "linestyle": "", "markerfacecolor": "white"},
    "not_comparable": {"color": GREY, "marker": "^", "linestyle": "", "markerfacecolor": "white"},
}


def speedup(tables: Ordered, claims: Sequence[Row], index: CellIndex) -> Plan | None:
    """Speed-up by method, distinct tokens with intervals, beside what was counted and what was published."""
    rows = of_all_prompts(tables.rows("speedup"))
    sound = [row for row in rows if not is_void(row) and not get(row, "plain") and figure(row, "speedup")]
    panels, shown, published = [], [], SpeedupClaims(claims)
    for title, heading, members in titled(sound, index):
        own = one_each(members, index, ("short", "scope", "temperature"))
        own.sort(key=lambda row: -value(row, "speedup"))
        lines = _named([(describe(row, index), _speedup_marks(row, published, row is own[-1])) for row in own])
        panels += in_rows(title, heading, lines)
        shown += own
    if not panels:
        return None
    styles = {MEASURED: SOLID, DIFFERS: HOLLOW, COUNTED: CROSS, CLAIMED: PUBLISHED}
    told = [omitted(len(rows) - len(sound), "void or unmeasured rows and plain decoding itself"),
            omitted(len(sound) - len(shown), "shorter measurements of the same arm")]  # fmt: skip
    return Plan(
        "Speed-up by method", tuple(panels), _painter(panels, styles), "speed-up over plain decoding", "",
        condition(shown, index), joined(told), f"Each arm at each temperature, the largest first. {ARROW}",
        legend=lambda: _legend(panels, styles), cells=cells(shown),
    )  # fmt: skip


def _speedup_marks(row: Row, published: SpeedupClaims, last: bool) -> list[Mark]:
    series = DIFFERS if get(row, "lossless") == DIVERGENT else MEASURED
    note = "; ".join([f"output {line(get(row, 'lossless'))}", *([LEAST] if last else [])])
    marks = [_with_ends(series, row, "speedup", note=note)]
    if _counts_more(row):
        marks.append(of_row(COUNTED, row, "counted_speedup"))
    return marks + [_claimed(span, ids) for span, ids in published.beside(row)]


def _claimed(span: Span, note: str) -> Mark:
    """A published value, or the range of one, which begins at its mark."""
    low, high = span if span[0] != span[1] else (NAN, NAN)
    return Mark(CLAIMED, x=span[0], low=low, high=high, note=note)


def _with_ends(series: str, row: Row, name: str, **more: Any) -> Mark:
    return of_row(series, row, name, low=value(row, "ci_low"), high=value(row, "ci_high"), **more)


def _counts_more(row: Row) -> bool:
    """Whether counting every emit call gives another figure, to the digits that are drawn."""
    counted = figure(row, "counted_speedup")
    return counted is not None and fixed(counted, 2) != fixed(figure(row, "speedup"), 2)


def _named(rows: Sequence[tuple[str, Sequence[Mark]]]) -> list[tuple[str, list[Mark]]]:
    """The rows under names that differ, each mark with its row's name."""
    seen: dict[str, int] = {}
    told = []
    for label, marks in rows:
        seen[label] = seen.get(label, 0) + 1
        name = label if seen[label] == 1 else f"{label} [{seen[label]}]"
        told.append((name, [_labelled(mark, name) for mark in marks]))
    return told


def _labelled(mark: Mark, label: str) -> Mark:
    return Mark(mark.series, label, mark.x, mark.y, mark.low, mark.high, mark.note, mark.cells)


def claims(tables: Ordered, claims: Sequence[Row], index: CellIndex) -> Plan | None:
    """Claims that an interval decided or could not: measured beside published, by machine and build."""
    drawn = [claim for claim in claims if _has_interval(claim)]
    places = sorted({(line(get(claim, "machine")), line(get(claim, "build"))) for claim in drawn})
    start = shared_start([build for _, build in places])
    panels: list[Panel] = []
    for machine, build in places:
        own = [claim for claim in drawn if (line(get(claim, "machine")), line(get(claim, "build"))) == (machine, build)]
        own.sort(key=lambda claim: -value(claim, "measured"))
        gap, furthest = max(((_gap(claim), claim) for claim in own), key=lambda item: item[0])
        rows = [(line(get(claim, "claim_id")), _claim_marks(claim, claim is furthest and gap > FAR)) for claim in own]
        panels += in_rows(f"{machine}, engine {build}", f"{machine}, {build.removeprefix(start)}", _named(rows))
    if not panels:
        return None
    told = [omitted(len(claims) - len(drawn), "verdicts with no ratio or share and its interval")]
    return Plan(
        "Claims: measured against published", tuple(panels), _painter(panels, {**BY_VERDICT, CLAIMED: PUBLISHED}),
        "ratio or share", "", condition([claim for claim in drawn if cells_of(claim)], index), joined(told),
        "Where a published figure is of another machine, no verdict rests on its distance. Furthest off: from what was "
        f"published. {ARROW}",
        legend=lambda: _legend(panels, {**BY_VERDICT, CLAIMED: PUBLISHED}), cells=cells(drawn),
    )  # fmt: skip


def _has_interval(claim: Row) -> bool:
    positive = all((figure(claim, name) or 0.0) > 0 for name in ("measured", "ci_high"))
    return positive and figure(claim, "ci_low") is not None and line(get(claim, "unit")) in ("x", "ratio", "share")


def _gap(claim: Row) -> float:
    """How many times the measured value is above or below the published one."""
    span, found = published_span(claim), value(claim, "measured")
    if span is None or span[0] <= 0 or span[0] <= found <= span[1]:
        return 1.0
    return max(found / span[1], span[0] / found)


def _claim_marks(claim: Row, furthest: bool) -> list[Mark]:
    note = "; ".join([line(get(claim, "says", "reason")), *([FURTHEST] if furthest else [])])
    marks = [_with_ends(verdicts.verdict_of(claim), claim, "measured", note=note)]
    span = published_span(claim)
    if span is not None and span[0] > 0:
        marks.append(_claimed(span, line(get(claim, "source"))))
    return marks


def trials(tables: Ordered, claims: Sequence[Row], index: CellIndex) -> Plan | None:
    """Speed of another build of the engine, or of a setting, over the baseline's: end to end, the same prompts."""
    rows = of_all_prompts(tables.rows("trials"))
    sound = [row for row in rows if not is_void(row) and figure(row, "speedup")]
    panels: list[Panel] = []
    for title, heading, members in titled(sound, index):
        own = sorted(members, key=lambda row: -value(row, "speedup"))
        panels += in_rows(title, heading, _named([(_trial_name(row), [_trial_mark(row)]) for row in own]))
    if not panels:
        return None
    styles = {MEASURED: SOLID, DIFFERS: HOLLOW}
    return Plan(
        "Builds and settings on trial", tuple(panels), _painter(panels, styles),
        "speed over that of the baseline's build and settings", "", condition(sound, index),
        omitted(len(rows) - len(sound), "void rows") or "nothing",
        f"End to end: both arms decode the same prompts in turn. {ARROW}", legend=lambda: _legend(panels, styles),
        cells=cells(sound),
    )  # fmt: skip


def _trial_name(row: Row) -> str:
    words = [number(get(row, "short")), f"{number(get(row, 'difference'))} {number(get(row, 'became'))}",
             f"against {number(get(row, 'was'))}"]  # fmt: skip
    words += ["sum of streams"] if get(row, "scope") == "aggregate" else []
    words += [f"behind {number(get(row, 'depth'))} tokens"] if get(row, "depth") else []
    return ", ".join(words)


def _trial_mark(row: Row) -> Mark:
    series = DIFFERS if get(row, "lossless") == DIVERGENT else MEASURED
    return _with_ends(series, row, "speedup", note=f"output {line(get(row, 'lossless'))}")


def _painter(panels: Sequence[Panel], styles: dict[str, Style]) -> Callable[[Axes, Panel], None]:
    """All panels on one axis, so that they can be compared."""
    span = ratio_span([mark for panel in panels for mark in panel.marks])
    return partial(_paint, span=span, styles=styles)


def _paint(axes: Axes, panel: Panel, span: Span, styles: dict[str, Style]) -> None:
    marked = {mark.label: word for mark in panel.marks for word in (LEAST, FURTHEST) if mark.note.endswith(word)}
    places = rows_axis(axes, panel.labels)
    log_axis(axes.xaxis, span)
    axes.axvline(1.0, color=GREY, linewidth=0.8, zorder=1)
    axes.hlines(places, *span, colors=PALE, linewidth=0.4, zorder=0)
    for series, style in styles.items():
        marks = panel.of(series)
        if not marks:
            continue
        shift = -0.03 if series == CLAIMED else 0.0
        at = [place + shift for place in places_of(panel, places, marks)]
        row_intervals(axes, marks, at, span, style["color"], **({"linewidth": 0.8} if series == CLAIMED else {}))
        axes.plot([mark.x for mark in marks], at, **{"zorder": 3, **style}, gid=f"data {series}")
    for mark in panel.marks:
        if mark.label in marked and mark.series != CLAIMED and mark.series != COUNTED:
            _tell(axes, panel, mark, marked[mark.label], places_of(panel, places, [mark])[0], span)


def _tell(axes: Axes, panel: Panel, mark: Mark, word: str, place: float, span: Span) -> None:
    """A word beside a row, on the side where no mark of the row is."""
    ends = numbers([one for one in panel.marks if one.label == mark.label], "x", "low", "high")
    taken = sorted([span[0], *(min(max(end, span[0]), span[1]) for end in ends), span[1]])
    drawn = [(one.low, one.high) for one in panel.marks if one.label == mark.label and one.low < one.high]
    gaps = [(after / before, before, after) for before, after in pairwise(taken)
            if not any(low <= before and after <= high for low, high in drawn)]  # fmt: skip
    if not gaps:
        return
    _, before, after = max(gaps)
    to_right = before > span[0]
    axes.annotate(word, (before if to_right else after, place), xytext=(5 if to_right else -5, 0), va="center",
                  ha="left" if to_right else "right", textcoords="offset points", fontsize=TINY, fontstyle="italic",
                  color=INK)  # fmt: skip


def _legend(panels: Sequence[Panel], styles: dict[str, Style]) -> list[Any]:
    drawn = {mark.series for panel in panels for mark in panel.marks}
    return [handle(name.replace("_", " "), **style) for name, style in styles.items() if name in drawn]

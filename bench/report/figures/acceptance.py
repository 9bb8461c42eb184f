"""Acceptance: by temperature on the collision curve of the same draws, and of every other method a row each.

The curve is a prediction with nothing fitted: two independent draws agree with the sum of the squared probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from bench.report.figures.groups import in_rows, places_of, titled
from bench.report.figures.layout import rows_axis
from bench.report.figures.marks import NAN, Mark, Panel, Plan, cells, joined, omitted, value
from bench.report.figures.published import MEASURED, Point, acceptance_beside, acceptance_claims, acceptance_points
from bench.report.figures.scales import intervals, row_intervals
from bench.report.figures.style import BLUE, GREY, INK, PALE, PUBLISHED, handle
from bench.report.tables.arms import ALL, describe, is_void
from bench.report.tables.conditions import CellIndex, condition
from bench.report.tables.csv_files import Ordered
from bench.report.tables.values import Row, cells_of, figure, get, line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FOUND, CURVE = "measured", "collision probability of the same draws"
CLAIMED, STATED = "published", "stated, not measured"
UNIT = (0.0, 1.0)
_FOUND: dict[str, Any] = {"color": BLUE, "marker": "o", "linestyle": ""}
_STATED: dict[str, Any] = {**PUBLISHED, "markeredgecolor": GREY, "color": GREY, "marker": "d"}
STYLES: dict[str, dict[str, Any]] = {FOUND: _FOUND, CLAIMED: PUBLISHED, STATED: _STATED}


def acceptance(tables: Ordered, claims: Sequence[Row], index: CellIndex) -> Plan | None:
    """Rates over all depths and prompts; a curve where the draws are independent, rows where they are not."""
    rows = [row for row in tables.rows("acceptance") if figure(row, "rate") is not None]
    pooled = [row for row in rows if not figure(row, "depth") and not is_void(row)
              and get(row, "prompt_class") in (ALL, None)]  # fmt: skip
    panels, shown, published = [], [], acceptance_claims(claims)
    for title, heading, members in titled(pooled, index):
        chosen = _largest(members, index)
        with_mean = [_arm(row) for row in chosen if figure(row, "collision_mean") is not None]
        # One temperature makes no curve.
        on_curve = {name for name in with_mean if with_mean.count(name) > 1}
        curved = [row for row in chosen if _arm(row) in on_curve]
        for name in sorted(on_curve):
            own = [row for row in curved if _arm(row) == name]
            panels.append(Panel(f"{name}: {title}", _curve_marks(own, published), f"{name}\n{heading}", height=1.5))
        drawn = {id(row) for row in curved}
        rest = sorted((row for row in chosen if id(row) not in drawn), key=lambda row: -value(row, "rate"))
        panels += in_rows(title, heading, [(describe(row, index), _row_marks(row, published, index)) for row in rest])
        shown += chosen
    if not panels:
        return None
    panels.sort(key=lambda panel: bool(panel.labels))
    told = [omitted(len(rows) - len(pooled), "rows of one depth or one class, and void ones"),
            omitted(len(pooled) - len(shown), "measurements of an arm with fewer guesses")]  # fmt: skip
    return Plan(
        "Acceptance, and the collision curve", tuple(panels), _paint, "", "", condition(shown, index), joined(told),
        "Guesses accepted, as a share of those tested; above by temperature, below of each arm that no curve predicts.",
        2, partial(_legend, panels), cells(shown),
    )  # fmt: skip


def _largest(rows: Sequence[Row], index: CellIndex) -> list[Row]:
    """Of each arm at each temperature the row with most guesses: the verdict rests on it too."""
    chosen: dict[str, Row] = {}
    for row in sorted(rows, key=lambda row: (-value(row, "tested"), cells_of(row))):
        chosen.setdefault(f"{describe(row, index)} {line(get(row, 'draws'))}", row)
    return list(chosen.values())


def _arm(row: Row) -> str:
    return line(get(row, "short"))


def _found(row: Row, label: str, x: float, y: float) -> Mark:
    note = f"{line(get(row, 'accepted'))} of {line(get(row, 'tested'))}"
    return Mark(FOUND, label, x, y, value(row, "ci_low"), value(row, "ci_high"), note, tuple(cells_of(row)))


def _curve_marks(rows: Sequence[Row], published: Sequence[Point]) -> tuple[Mark, ...]:
    own = sorted(rows, key=lambda row: value(row, "temperature"))
    marks = [_found(row, _arm(row), value(row, "temperature"), value(row, "rate")) for row in own]
    means = [row for row in own if figure(row, "collision_mean") is not None]
    marks += [Mark(CURVE, _arm(row), value(row, "temperature"), value(row, "collision_mean"), cells=cells([row]))
              for row in means]  # fmt: skip
    points = acceptance_points(published, [line(get(own[0], "method"))])
    return tuple([*marks, *(_claim(point, "", middle(point.x)) for point in points if point.x[1] > 0)])


def _row_marks(row: Row, published: Sequence[Point], index: CellIndex) -> list[Mark]:
    """The row's rate, and what was published of just that method at just that temperature."""
    label = describe(row, index)
    points = acceptance_beside(acceptance_points(published, [line(get(row, "method"))]), row)
    return [_found(row, label, value(row, "rate"), NAN), *(_claim(point, label, None) for point in points)]


def _claim(point: Point, label: str, x: float | None) -> Mark:
    series = CLAIMED if point.evidence in MEASURED else STATED
    low, high = point.y if point.y[0] != point.y[1] else (NAN, NAN)
    place = middle(point.y)
    note = f"{point.claim_id}: {point.source}"
    return Mark(series, label, place if x is None else x, NAN if x is None else place, low, high, note)


def middle(span: tuple[float, float]) -> float:
    return (span[0] + span[1]) / 2


def _paint(axes: Axes, panel: Panel) -> None:
    if panel.labels:
        _paint_rows(axes, panel)
        return
    for series, style in STYLES.items():
        marks = panel.of(series)
        intervals(axes, marks, [mark.x for mark in marks], UNIT, style["color"])
        places = [mark.x for mark in marks], [mark.y for mark in marks]
        axes.plot(*places, **{"zorder": 3, **style}, gid=f"data {series}")
    curve = panel.of(CURVE)
    axes.plot([mark.x for mark in curve], [mark.y for mark in curve], color=INK, linestyle="--", linewidth=0.9,
              gid=f"data {CURVE}")  # fmt: skip
    axes.set_xlim(-0.05, max([1.0, *(mark.x for mark in panel.marks)]) + 0.05)
    axes.set_ylim(0, 1.03)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1.0], ["0", "0.25", "0.5", "0.75", "1"])
    axes.set_xlabel("temperature", labelpad=0)


def _paint_rows(axes: Axes, panel: Panel) -> None:
    places = rows_axis(axes, panel.labels)
    axes.set_xlim(0, 1.03)
    axes.hlines(places, 0, 1, colors=PALE, linewidth=0.4, zorder=0)
    for series, style in STYLES.items():
        marks = panel.of(series)
        at = [place - (0.03 if series != FOUND else 0) for place in places_of(panel, places, marks)]
        row_intervals(axes, marks, at, UNIT, style["color"], **({"linewidth": 0.8} if series != FOUND else {}))
        axes.plot([mark.x for mark in marks], at, **{"zorder": 3, **style}, gid=f"data {series}")
    axes.set_xlabel("share accepted", labelpad=0)


def _legend(panels: Sequence[Panel]) -> list[Any]:
    drawn = {mark.series for panel in panels for mark in panel.marks}
    styles = {**STYLES, CURVE: {"color": INK, "linestyle": "--", "linewidth": 0.9}}
    return [handle(name, **style) for name, style in styles.items() if name in drawn]

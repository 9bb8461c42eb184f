"""The cost of one `llama_decode` by its width, from interleaved passes; and what follows from it.

It does not know any method, and it never interpolates: costs have cliffs (between 8 and 9 on some devices), so a width
that nobody timed has no cost.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bench.errors import UserError
from bench.judge.measure.intervals import Estimate, mean_estimate
from bench.judge.measure.tokens import arrays

if TYPE_CHECKING:
    from bench.records.cells import Columns


WARM_UP = 1.5
"""A first pass this many times the median of the later ones is a warm-up, not a measurement."""


class Change(NamedTuple):
    """A change to a width, medians over series: decodes until it was settled, and milliseconds beyond settled ones."""

    decodes: float
    extra_ms: float


@dataclass(frozen=True, slots=True)
class Curve:
    """Costs of one layout: width -> milliseconds and cost relative to width 1. `n_past` tokens were held before."""

    layout: str
    n_past: int
    step_ms: dict[int, float]
    relative: dict[int, Estimate]
    warm_ups: int = 0
    """Widths whose first pass was left out as a warm-up."""
    log_ms: dict[int, Estimate] = field(default_factory=dict)
    """By width, the logarithm of the milliseconds over the passes."""
    change: dict[int, Change] = field(default_factory=dict)
    """By width, what its first decodes took; none where a profile kept only its settled steps."""

    def milliseconds(self, width: int) -> float:
        """Step time of a width that was timed. Raises UserError for any other: no interpolation."""
        if width not in self.step_ms:
            timed = ", ".join(map(str, sorted(self.step_ms)))
            raise UserError(
                f"width {width} was not timed (timed: {timed}) and costs are not interpolated across widths; add it "
                f"to the curve with measure.step_widths={width} and repeat the sweep"
            )
        return self.step_ms[width]


class _Passes(NamedTuple):
    """Mean log milliseconds of a layout, passes x widths; nan where a pass did not time a width."""

    repeats: np.ndarray
    widths: np.ndarray
    log_ms: np.ndarray
    n_past: int

    def width_1(self) -> dict[int, float] | None:
        """Cost of width 1 by pass, or None when it was not timed."""
        column = np.flatnonzero(self.widths == 1)
        if not len(column):
            return None
        return dict(zip(self.repeats.tolist(), self.log_ms[:, column[0]].tolist(), strict=True))


def curves(steps: Columns) -> list[Curve]:
    """One curve a layout, of the settled steps. Several of a width in one pass are averaged before passes are."""
    if not len(steps["width"]):
        return []
    every = arrays(steps)
    columns = {name: column[every["settled"] == 1] for name, column in every.items()}
    layouts = columns["layout"].astype(str)
    changes = _changes(every)
    tables = {str(layout): _passes(columns, layouts == layout) for layout in np.unique(layouts)}
    # A layout whose width 1 was not timed apart has that of the other as its own: one token is one token.
    ones = {layout: table.width_1() for layout, table in tables.items()}
    stand_in = next((one for one in ones.values() if one is not None), None)
    return [
        replace(_curve(layout, table, ones[layout] or stand_in), change=changes.get(layout, {}))
        for layout, table in tables.items()
    ]


def _changes(steps: Columns) -> dict[str, dict[int, Change]]:
    """What changes of width cost, by layout and width. A series is the decodes of one width between two changes."""
    order = np.argsort(steps["order"] + steps["repeat"] * (int(steps["order"].max()) + 1), kind="stable")
    columns = {name: column[order] for name, column in steps.items()}
    settled = columns["settled"] == 1
    begins = np.ones(len(settled), dtype=bool)
    begins[1:] = settled[:-1] & ~settled[1:]
    for name in ("layout", "repeat", "width"):
        begins[1:] |= columns[name][1:] != columns[name][:-1]
    series = np.cumsum(begins) - 1
    found: dict[str, dict[int, list[Change]]] = {}
    for number in np.unique(series[~settled]).tolist():
        rows = series == number
        times = columns["decode_ns"][rows] * 1e-6
        early, late = times[~settled[rows]], times[settled[rows]]
        if len(late):
            place = int(np.flatnonzero(rows)[0])
            layout, width = str(columns["layout"][place]), int(columns["width"][place])
            change = Change(len(early), float(early.sum() - len(early) * np.median(late)))
            found.setdefault(layout, {}).setdefault(width, []).append(change)
    return {
        layout: {width: Change(*(float(value) for value in np.median(changes, axis=0)))
                 for width, changes in by_width.items()}
        for layout, by_width in found.items()
    }  # fmt: skip


def _passes(columns: Columns, mask: np.ndarray) -> _Passes:
    repeats, row = np.unique(columns["repeat"][mask], return_inverse=True)
    widths, column = np.unique(columns["width"][mask], return_inverse=True)
    sums, counts = np.zeros((len(repeats), len(widths))), np.zeros((len(repeats), len(widths)))
    np.add.at(sums, (row, column), np.log(columns["decode_ns"][mask].astype(float) * 1e-6))
    np.add.at(counts, (row, column), 1)
    log_ms = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    if len(repeats) > 2:
        # A first pass that took much longer than the later ones: a shape that had not been warmed.
        log_ms[0, log_ms[0] > _later(log_ms) + np.log(WARM_UP)] = np.nan
    return _Passes(repeats, widths, log_ms, int(columns["n_past"][mask].min()))


def _later(log_ms: np.ndarray) -> np.ndarray:
    """Median of the passes after the first, nan for a width that only the first one timed."""
    known = [column[np.isfinite(column)] for column in log_ms[1:].T]
    return np.array([np.median(column) if len(column) else np.nan for column in known])


def _curve(layout: str, passes: _Passes, reference: dict[int, float] | None) -> Curve:
    step_ms, relative, log_ms = {}, {}, {}
    at_1 = np.array([(reference or {}).get(repeat, np.nan) for repeat in passes.repeats.tolist()])
    for width, logs in zip(passes.widths.tolist(), passes.log_ms.T, strict=True):
        step_ms[width] = _mean_ms(logs)
        if len(known := logs[np.isfinite(logs)]):
            log_ms[width] = mean_estimate(known, "passes")
        ratio = (logs - at_1)[np.isfinite(logs - at_1)]
        if len(ratio):
            relative[width] = mean_estimate(ratio, "passes")
    if reference is not None:
        step_ms.setdefault(1, _mean_ms(np.array(list(reference.values()))))
    return Curve(layout, passes.n_past, step_ms, relative, int(np.isnan(passes.log_ms[0]).sum()), log_ms)


def _mean_ms(logs: np.ndarray) -> float:
    """Geometric mean of the passes that there are."""
    known = logs[np.isfinite(logs)]
    return float(np.exp(known.mean())) if len(known) else float("nan")

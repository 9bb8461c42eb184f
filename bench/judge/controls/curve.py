"""Whether a step-cost curve agrees with what decodes of its widths cost elsewhere; what becomes of one that does not.

Elsewhere is in the rounds of packed cells of the same machine, build, weights and settings, and in llama-batched-bench
where it ran beside the profile. It does not know why two costs differ, and no method by name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.judge.columns import R, changed
from bench.judge.findings import OK, VOID, WARNING, Findings, origin, rerun
from bench.judge.measure.case import identity
from bench.judge.measure.intervals import CONFIDENCE, Estimate, mean_estimate
from bench.judge.predict.rounds import SETTLED, turns
from bench.judge.tables import CONTRAST, PROFILE
from bench.judge.tables.cell import ControlRow

if TYPE_CHECKING:
    from bench.judge.measure.case import Case
    from bench.judge.measure.runs import RunTable

NAME = "step_cost"
APART = 0.05
"""A curve that is further than this from another measurement of the same decodes prices nothing."""
LEAST_ROUNDS = 4
"""Settled rounds of a run below which their median is left out."""
MOST_LOG = 700.0
"""Beyond it the exponential is no float."""
BATCHED_BENCH = "llama-batched-bench"
LAYOUT = "sequences"
"""What packed cells and llama-batched-bench decode: one token in each of several sequences."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What one cell says of the cost of a width over that of width 1."""

    about: Mapping[str, Any]
    """Machine, build and cell id."""
    identity: tuple[object, ...]
    curve: Mapping[int, Estimate]
    """Of a profile: its own curve; else empty."""
    logs: Mapping[int, Sequence[float]]
    """Logarithms from the rounds of a packed cell, or from llama-batched-bench beside a profile."""
    again: str
    """What measures the cell again."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A width of a curve beside what it cost elsewhere."""

    width: int
    curve: Estimate
    other: Estimate
    where: str

    @property
    def ratio(self) -> float:
        """Curve over elsewhere."""
        return math.exp(self.curve.log_mean - self.other.log_mean)

    def interval(self, confidence: float) -> tuple[float, float]:
        """Of the ratio, from both spreads; (0, inf) where one of them is unknown."""
        ends = (one.interval(confidence)[1] / one.ratio for one in (self.curve, self.other))
        half = math.hypot(*(math.log(end) for end in ends))
        return self.ratio * math.exp(-half), self.ratio * math.exp(half) if half < MOST_LOG else math.inf

    @property
    def apart(self) -> bool:
        """Whether the two differ by more than a price may be off."""
        return abs(math.log(self.ratio)) > math.log1p(APART)


def costs_of(case: Case) -> Costs | None:
    """What a sound profile or a sound packed cell without guesses has to say; None for any other."""
    if not case.done or case.void_reason:
        return None
    curve: Mapping[int, Estimate] = {}
    if case.kind == PROFILE:
        curve = next((one.relative for one in case.curves if one.layout == LAYOUT), {})
        logs = _batched_bench(case.cell.facts.get("peers") or [])
    elif case.kind == CONTRAST and case.arm.independent and not case.arm.guesses:
        logs = _packed(case.runs, int(case.cell.config.get("streams") or 1))
    else:
        return None
    return Costs(origin(case.cell), identity(case.cell), curve, logs, rerun(case.cell)) if curve or logs else None


def _batched_bench(pairs: Sequence[Mapping[str, Any]]) -> dict[int, list[float]]:
    """Log costs by width, one a pair whose width 1 ran too."""
    seconds = {(int(one["pair"]), int(one.get("width", 1))): int(one.get("width", 1)) / float(one["tok_s"])
               for one in pairs if one["tool"] == BATCHED_BENCH}  # fmt: skip
    found: dict[int, list[float]] = {}
    for (pair, width), value in seconds.items():
        if width > 1 and (pair, 1) in seconds:
            found.setdefault(width, []).append(math.log(value / seconds[pair, 1]))
    return found


def _packed(table: RunTable, streams: int) -> dict[int, list[float]]:
    """Log costs of the rounds of a packed cell, one a treatment run and the baseline run of its block beside it."""
    settled = turns(table).age >= SETTLED
    medians = {arm: _medians(table, settled & (table.turns["width"] == width) & table.of(arm)[table.turns["owner"]])
               for arm, width in (("baseline", 1), ("treatment", streams))}  # fmt: skip
    logs: list[float] = []
    for block in np.unique(table.block).tolist():
        base, mine = (medians[arm][table.block == block] for arm in medians)
        base, mine = base[np.isfinite(base)], mine[np.isfinite(mine)]
        logs += [math.log(wide / one) for one, wide in zip(base, mine, strict=False)]
    return {streams: logs} if streams > 1 and logs else {}


def _medians(table: RunTable, rows: np.ndarray) -> np.ndarray:
    """By run: median time of some of its decodes, nan where there are too few."""
    owner, times = table.turns["owner"][rows], table.turns["decode_ns"][rows]
    found = np.full(len(table.run), np.nan)
    for run in np.unique(owner).tolist():
        own = times[owner == run]
        if len(own) >= LEAST_ROUNDS:
            found[run] = np.median(own)
    return found


def curve_checks(costs: Sequence[Costs]) -> list[ControlRow]:
    """One check a profile that has a curve."""
    packed: dict[tuple[object, ...], list[Costs]] = {}
    for one in costs:
        if not one.curve:
            packed.setdefault(one.identity, []).append(one)
    return [_check(one, packed.get(one.identity, ())) for one in costs if one.curve]


def _check(own: Costs, packed: Sequence[Costs]) -> ControlRow:
    found = list(_comparisons(own, packed))
    cells = [*own.about["cells"], *(cell for one in packed for cell in one.about["cells"])]
    about = {**own.about, "cells": cells, "cell": own.about["cells"][0], "control": NAME}
    if not found:
        sentence = (f"nothing checks this curve: no packed cell without guesses shares its conditions and a width with "
                    f"it, and {BATCHED_BENCH} did not run beside it; add method=packed to the sweep")  # fmt: skip
        return ControlRow(**about, ok=True, severity=WARNING, value=math.nan, ci_low=math.nan, ci_high=math.nan,
                          sentence=sentence)  # fmt: skip
    # Several widths are looked at, and one of them is off by chance sooner than one alone would be.
    confidence = 1 - (1 - CONFIDENCE) / len(found)
    sure = [one for one in found if one.apart and not _spans(1.0, one.interval(confidence))]
    worst = max(sure or found, key=lambda one: abs(math.log(one.ratio)))
    severity = VOID if sure else WARNING if worst.apart else OK
    low, high = worst.interval(confidence)
    return ControlRow(**about, ok=severity != VOID, severity=severity, value=worst.ratio, ci_low=low, ci_high=high,
                      sentence=_sentence(worst, severity, len(found), (low, high), own.again))  # fmt: skip


def _comparisons(own: Costs, packed: Sequence[Costs]) -> Iterator[Comparison]:
    seen: dict[int, list[float]] = {}
    for one in packed:
        for width, logs in one.logs.items():
            seen.setdefault(width, []).extend(logs)
    for where, by_width in (("the rounds of packed cells", seen), (BATCHED_BENCH, own.logs)):
        for width, logs in sorted(by_width.items()):
            if width in own.curve:
                yield Comparison(width, own.curve[width], mean_estimate(np.array(logs), "runs"), where)


def _spans(value: float, ends: tuple[float, float]) -> bool:
    return ends[0] <= value <= ends[1]


def _sentence(worst: Comparison, severity: str, compared: int, ends: tuple[float, float], again: str) -> str:
    interval = f"{ends[0]:.3f} to {ends[1]:.3f}" if math.isfinite(ends[1]) else "of one run, so without an interval"
    told = (f"width {worst.width} costs {worst.curve.ratio:.3f} in the curve and {worst.other.ratio:.3f} in "
            f"{worst.where}: {worst.ratio:.3f} times ({interval})")  # fmt: skip
    if severity == OK:
        return f"{told}, the largest of {compared} differences"
    far = f"{told}, more than {100 * APART:.0f} % apart"
    if severity == WARNING:
        return f"{far}, and too noisy to tell; repeat with more measure.step_passes on a quiet machine"
    return f"{far}, so nothing is priced by this curve; run {again}"


class Checked:
    """What the checks of all curves say, for the rows that rest on one."""

    def __init__(self, controls: Iterable[ControlRow]) -> None:
        mine = {(row.machine, row.cell): row for row in controls if row.control == NAME}
        self._why = {cell: f"{row.control}: {row.sentence}" for cell, row in mine.items() if row.severity == VOID}
        self._wary = {cell for cell, row in mine.items() if row.severity == WARNING}

    def withdraw(self, findings: Findings) -> None:
        """Void the costs of every curve whose check failed, the predictions that rest on it, and the profile itself."""
        why, rows = self._why, findings
        rows.step_cost[:] = [_voided(row, why.get((row.machine, row.cells[0]))) for row in rows.step_cost]
        rows.predictions[:] = [_voided(row, why.get((row.machine, row.predicted_from))) for row in rows.predictions]
        rows.cells[:] = [_voided(row, why.get((row.machine, row.cell))) for row in rows.cells]
        rows.cells[:] = [changed(row, warnings=row.warnings + 1) if (row.machine, row.cell) in self._wary else row
                         for row in rows.cells]  # fmt: skip


def _voided(row: R, reason: str | None) -> R:
    if reason is None:
        return row
    return changed(row, void=True, void_reason="; ".join(filter(None, (row["void_reason"], reason))))

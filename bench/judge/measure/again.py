"""A/A: the baseline over a second one that is the same, in a cell and over the cells of a machine.

What it has to be is said by the control `bench.judge.controls.again`. It knows no claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.always_valid import CARRIED
from bench.judge.findings import OK, WARNING, origin
from bench.judge.measure.intervals import CONFIDENCE, Estimate, mean_interval, t_quantile
from bench.judge.measure.layout import block_pairs, contrast_design
from bench.judge.tables.cell import Contexts
from bench.judge.tables.contrast import CANNOT_TELL

if TYPE_CHECKING:
    from bench.judge.measure.case import Case
    from bench.judge.measure.runs import RunTable

NONE = "none"
FEWEST = 5
"""Readings of A/A that say how contexts differ."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A/A of one set of contexts of a cell. `log_se` is its noise, with `df` degrees of freedom."""

    machine: str
    build: str
    cell: str
    log_ratio: float
    log_se: float
    df: int


def measured(case: Case) -> Estimate | None:
    """A/A of a cell over its blocks; None where it was not run."""
    table = case.settled
    design = contrast_design(table, arm="again")
    if design is None:
        return None
    logs = np.log(table.rate)
    variance, df = _run_noise(table, logs - case.stalls.unknown, bool(len(case.cell.pieces["run"])))
    return Estimate(design.contrast(logs).log_mean, float(np.sqrt(variance * design.block_weight)), design.n_blocks,
                    "blocks", df=float(df))  # fmt: skip


def _run_noise(table: RunTable, logs: np.ndarray, in_turns: bool) -> tuple[float, int]:
    """Variance of the ratio of two equal arms in a block, and its degrees of freedom: one a block of the cell.

    Where arms took turns, what slows the machine for a while slows both, and two runs of one arm say nothing of that:
    then only blocks that have both arms count.
    """
    plain, again = (block_pairs(table, arm) for arm in ("baseline", "again"))
    squares = []
    for block, (first, last) in plain.items():
        apart = logs[first] - logs[last]
        if block in again:
            other_first, other_last = again[block]
            squares.append(((logs[other_first] - logs[other_last] - apart) / 2) ** 2)
        elif not in_turns:
            squares.append(apart**2 / 2)
    return CARRIED * float(np.mean(squares)) if squares else float("inf"), len(squares)


def effect_of(case: Case) -> float:
    """Size of the effect that the cell shows, as a log ratio: of one answer or in sum, whichever is smaller."""
    table = case.settled
    logs = np.log(table.rate)
    return min(abs(case.design.contrast(logs - divisor).log_mean) for divisor in (0.0, np.log(table.concurrent)))


def columns(case: Case) -> dict[str, Any]:
    """What A/A says of a cell, in a word and in figures, for its rows."""
    found = case.once(measured)
    if found is None:
        return {"again": NONE}
    severity = next(one.severity for one in case.controls if one.control == "again")
    low, high = found.interval()
    return {"again": {OK: "ok", WARNING: CANNOT_TELL}.get(severity, severity), "again_ratio": found.ratio,
            "again_low": low, "again_high": high, "again_freedom": found.freedom}  # fmt: skip


def readings(case: Case) -> list[Reading] | None:
    """A/A of a sound cell, for its machine: one of each set of contexts that has it."""
    found = case.once(measured) if not case.contradiction and not case.void_reason else None
    if found is None or found.freedom < 1 or not np.isfinite(found.log_se):
        return None
    about, table, made = origin(case.cell), case.settled, []
    logs, block = np.log(table.rate), found.log_se / np.sqrt(case.once(_weight))
    for number in np.unique(table.context).tolist():
        design = contrast_design(table, table.context == number, arm="again")
        if design is not None:
            log_se = float(block * np.sqrt(design.block_weight))
            made.append(Reading(about["machine"], about["build"], case.cell.cell, design.contrast(logs).log_mean,
                                log_se, int(found.freedom)))  # fmt: skip
    return made


def _weight(case: Case) -> float:
    """Sum of the squared weights of the blocks with A/A."""
    design = contrast_design(case.settled, arm="again")
    return 1.0 if design is None else design.block_weight


def context_rows(found: Sequence[Sequence[Reading]]) -> list[Contexts]:
    """One row a machine and build with `FEWEST` readings or more."""
    groups: dict[tuple[str, str], list[Reading]] = {}
    for one in (reading for cell in found for reading in cell):
        groups.setdefault((one.machine, one.build), []).append(one)
    return [_row(members) for members in groups.values() if len(members) >= FEWEST]


def _row(members: Sequence[Reading]) -> Contexts:
    logs = np.array([one.log_ratio for one in members])
    mean, low, high = mean_interval(logs)
    spread = spread_between(logs, np.array([one.log_se for one in members]))
    return Contexts(
        machine=members[0].machine, build=members[0].build, cells=sorted({one.cell for one in members}),
        again=float(np.exp(mean)), ci_low=float(np.exp(low)), ci_high=float(np.exp(high)), spread=spread,
        half_width=spread * t_quantile(float(len(logs)), CONFIDENCE), readings=len(logs),
    )  # fmt: skip


def spread_between(logs: np.ndarray, log_se: np.ndarray) -> float:
    """Standard deviation of the log ratios of two contexts around 1.00 beyond their noise; 0 where there is none.

    By moments, and every cell weighs the same: a noise known from few blocks may be far too small.
    """
    return float(np.sqrt(max(float(np.mean(logs**2) - np.mean(log_se**2)), 0.0)))

"""Read bandwidth of each machine, over all cells that measured it, and the largest share that an arm reached.

It does not know what a rate is bounded by; that is `bench.judge.measure.roofline`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.judge.findings import origin
from bench.judge.measure.roofline import bounds, ceiling
from bench.judge.tables import CONTRASTS
from bench.judge.tables.machine import Bandwidth

if TYPE_CHECKING:
    from bench.judge.measure.case import Case


@dataclass(frozen=True, slots=True)
class Reading:
    """What one cell measured. Rates in GB/s."""

    machine: str
    build: str
    cell: str
    threads: int | None
    read_gb_s: float
    best_gb_s: float
    bytes: float | None
    share: float
    """The largest share of the ceiling that an arm reached; nan where no bound is known."""


def reading(case: Case) -> Reading | None:
    """The cell's read bandwidth; None where it measured none."""
    best = ceiling(case.cell.facts)
    if best is None:
        return None
    found, about = case.cell.facts["bandwidth"], origin(case.cell)
    limits = case.once(bounds) if case.kind in CONTRASTS and not case.contradiction else []
    return Reading(
        about["machine"], about["build"], case.cell.cell, found.get("threads"), float(found.get("read_gb_s") or best),
        best, found.get("bytes"), max((limit.share for limit in limits), default=float("nan")),
    )  # fmt: skip


def bandwidth_rows(found: Sequence[Reading]) -> list[Bandwidth]:
    """One row a machine, build and number of threads. Above a share of 1.00 the ceiling is void."""
    groups: dict[tuple[Any, ...], list[Reading]] = {}
    for one in found:
        groups.setdefault((one.machine, one.build, one.threads), []).append(one)
    return [_row(members) for members in groups.values()]


def _row(members: Sequence[Reading]) -> Bandwidth:
    values = np.array([one.read_gb_s for one in members])
    reached = max((one.share for one in members if not np.isnan(one.share)), default=float("nan"))
    return Bandwidth(
        machine=members[0].machine, build=members[0].build, cells=[one.cell for one in members],
        threads=members[0].threads, read_gb_s=float(np.median(values)), low_gb_s=float(values.min()),
        high_gb_s=float(values.max()), best_gb_s=max(one.best_gb_s for one in members), bytes=members[0].bytes,
        largest_share=reached, void=bool(reached > 1.0),
    )  # fmt: skip

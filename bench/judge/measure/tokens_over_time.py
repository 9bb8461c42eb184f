"""Tokens over time of a loop that says tokens twice: what it counts against what is new. It judges nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bench.judge.findings import origin
from bench.judge.measure.tokens import timeline
from bench.judge.tables.contrast import Timeline

if TYPE_CHECKING:
    from bench.judge.measure.case import Case
    from bench.judge.measure.runs import RunTable


def middle_run(table: RunTable, arm: str) -> int:
    """Index of an arm's run of median speed. Raises IndexError where it has none."""
    mine = np.flatnonzero(table.of(arm))
    return int(mine[np.argsort(table.rate[mine], kind="stable")[len(mine) // 2]])


def timeline_rows(case: Case) -> list[Timeline]:
    """The treatment's run of median speed, in one row, for a cell that emits a token twice."""
    table = case.runs
    mine = np.flatnonzero(table.of("treatment"))
    if not table.tokens.duplicates[mine].any():
        return []
    middle = middle_run(table, "treatment")
    rows = table.emits["run"] == table.run[middle]
    emits = {name: table.emits[name][rows] for name in ("stream", "position", "round", "t_ns")}
    points = {name: values.tolist() for name, values in timeline(emits, int(table.start_ns[middle])).items()}
    return [Timeline(**origin(case.cell), cell=case.cell.cell, run=int(table.run[middle]), **points)]

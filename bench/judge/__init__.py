"""The judge of records: stored cells in, findings out. Pure: it opens no file, asks no device and keeps no state.

It does not know what anybody claimed (`bench.judge.claims`) nor how findings are printed (`bench.report`). What a cell
says by itself is in `bench.judge.cell`; `bench.stored` judges a folder of cells in several processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from bench.judge.cell import JudgedCell, Profiles
from bench.judge.controls.curve import withdraw
from bench.judge.damage import judge_curves, judge_whole
from bench.judge.findings import Findings
from bench.judge.measure.contexts import with_contexts
from bench.judge.tables import TABLES, named

if TYPE_CHECKING:
    from bench.records.cells import DamagedCell, StoredCell

__all__ = ["Findings", "judge", "merge"]


def judge(cells: Sequence[StoredCell | DamagedCell]) -> Findings:
    """Judge every cell. A cell whose records contradict themselves is listed as void with the reason, and no more.

    A damaged one is a row of the table of cells and takes nothing else with it.
    """
    first = [judge_curves(cell) for cell in cells]
    profiles = Profiles(profile for _, profile in first if profile is not None)
    return merge(one or judge_whole(cell, profiles) for cell, (one, _) in zip(cells, first, strict=True))


def merge(cells: Iterable[JudgedCell]) -> Findings:
    """The findings of all cells from those of each, in the order of the cells."""
    cells = list(cells)
    findings = Findings()
    for name, table in TABLES.items():
        rows = getattr(findings, name)
        for cell in cells:
            rows += getattr(cell.findings, name)
        if table.joined_by:
            rows += named(table.joined_by)([cell.gathered[name] for cell in cells if name in cell.gathered])
    findings.traces += [cell.traces for cell in cells if cell.traces is not None]
    findings.speedup[:] = with_contexts(findings.speedup, findings.contexts)
    findings.trials[:] = with_contexts(findings.trials, findings.contexts)
    withdraw(findings)
    return findings

"""The judge of records: stored cells in, findings out. It opens no file, asks no device and keeps no state.

It does not know what anybody claimed (`bench.judge.claims`) nor how findings are printed (`bench.report`). What a cell
says by itself is in `bench.judge.cell`; `bench.stored` judges a folder of cells in several processes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from bench.judge.cell import JudgedCell, is_profile, judge_cell, profile_of
from bench.judge.findings import Findings
from bench.judge.tables import TABLES, named

if TYPE_CHECKING:
    from bench.records.cells import StoredCell

__all__ = ["Findings", "judge", "merge"]


def judge(cells: list[StoredCell]) -> Findings:
    """Judge every cell. A cell whose records contradict themselves is listed as void with the reason, and no more."""
    profiles = [profile_of(cell) for cell in cells if is_profile(cell)]
    return merge(judge_cell(cell, profiles) for cell in cells)


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
    return findings

"""The judge of records: stored cells in, findings out. Pure: it opens no file, asks no device and keeps no state.

It does not know what anybody claimed (`bench.judge.claims`) nor how findings are printed (`bench.report`). What a cell
says by itself is in `bench.judge.cell`; `bench.stored` judges a folder of cells in several processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from bench.judge.cell import Part
from bench.judge.damage import judge_curves, judge_whole
from bench.judge.findings import Findings
from bench.judge.measure.domain import domain_rows
from bench.judge.measure.roofline import bandwidth_rows

if TYPE_CHECKING:
    from bench.records.cells import DamagedCell, StoredCell

__all__ = ["Findings", "judge", "merge"]


def judge(cells: Sequence[StoredCell | DamagedCell]) -> Findings:
    """Judge every cell. A cell whose records contradict themselves is listed as void with the reason, and no more.

    A damaged one is a row of the table of cells and takes nothing else with it.
    """
    first = [judge_curves(cell) for cell in cells]
    profiles = [profile for _, profile in first if profile is not None]
    return merge(part or judge_whole(cell, profiles) for cell, (part, _) in zip(cells, first, strict=True))


def merge(parts: Iterable[Part]) -> Findings:
    """The findings of all cells from those of each, in the order of the parts.

    A contrast's memory is that of a whole process, so it is told only where no profile measured any.
    """
    parts = list(parts)
    findings = Findings()
    for table in fields(Findings):
        rows = getattr(findings, table.name)
        for part in parts:
            rows += getattr(part.findings, table.name)
    profiled = [row for part in parts if part.profile for row in part.findings.memory]
    findings.memory = profiled or findings.memory
    findings.domain = domain_rows([part.answers for part in parts if part.answers])
    shares = {part.source.cell: part.share for part in parts if part.share is not None}
    findings.bandwidth = bandwidth_rows([part.source for part in parts if part.done], shares)
    return findings

"""Adds what kernel records say to the findings of the cells. Knows no figure: each table has a module of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from bench.errors import innermost_frame, nearest
from bench.judge.damage import damaged_row
from bench.judge.findings import Findings
from bench.judge.kernels.counters import counter_rows
from bench.judge.kernels.ssq import economics
from bench.judge.kernels.times import CELL, kernel_rows, origin
from bench.judge.tables.kernels import KernelResource
from bench.records.kernels import KernelRecords, load_kernels

TABLES = ("kernels", "counters", "kernel_resources", "ssq", "cells")
"""Those that kernel records have rows in."""
MOST_TOLD = 3
AGAIN = "run `python -m bench kernels` again"


def judge_kernels(findings: Findings, folders: Iterable[Path]) -> Findings:
    """The findings with the tables kernels, counters, ssq and kernel_resources filled from some folders.

    A folder with a file that cannot be read or judged is a row of the table of cells; what its other files say counts.
    Without folders the findings stay as they are.
    """
    return with_kernels(findings, map(kernels_of, folders))


def with_kernels(findings: Findings, judged: Iterable[Findings]) -> Findings:
    """The same from folders that were judged already."""
    for own in judged:
        for name in TABLES:
            getattr(findings, name).extend(getattr(own, name))
    return findings


def kernels_of(folder: Path) -> Findings:
    """The rows of one machine's records: what is derived of them compares no two machines."""
    records = load_kernels(folder)
    own, faults = Findings(), list(records.damage)
    # Without the environment nobody knows what was measured, and a table half judged is none.
    usable = not any(fault.startswith("env.json") for fault in faults)
    for rows, judge in (
        (own.kernels, kernel_rows),
        (own.counters, counter_rows),
        (own.kernel_resources, resource_rows),
        (own.ssq, lambda _: economics(own.kernels, own.counters)),
    ):
        try:
            rows.extend(judge(records) if usable else [])
        except Exception as error:  # an edited file may break any step; the other tables are judged all the same
            faults.append(f"it cannot be judged ({type(error).__name__}: {error}, {innermost_frame(error)})")
    if faults:
        more = f"; and {len(faults) - MOST_TOLD} more" if len(faults) > MOST_TOLD else ""
        reason = f"{'; '.join(faults[:MOST_TOLD])}{more}; {AGAIN}"
        own.cells.append(replace(damaged_row(records.machine, CELL, reason), kind=CELL))
    return own


def resource_rows(records: KernelRecords) -> list[KernelResource]:
    """What compilers said of each kernel, as they said it. Raises ValueError for a column that is not known."""
    for row in records.static:
        if unknown := [name for name in row if name not in KernelResource.columns]:
            raise ValueError(f"static.csv has the column '{unknown[0]}'; {nearest(unknown[0], KernelResource.columns)}")
    return [KernelResource(**origin(records) | row) for row in records.static]

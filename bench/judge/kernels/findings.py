"""Adds what kernel records say to the findings of the cells. Knows no figure: each table has a module of its own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bench.errors import UserError, nearest
from bench.judge.findings import Findings
from bench.judge.kernels.counters import counter_rows
from bench.judge.kernels.ssq import economics
from bench.judge.kernels.times import kernel_rows, origin
from bench.judge.tables.kernels import KernelResource
from bench.records.kernels import KernelRecords, load_kernels


def judge_kernels(findings: Findings, folders: Iterable[Path]) -> Findings:
    """The findings with the tables kernels, counters, ssq and kernel_resources filled from some folders.

    Raises `UserError` for a damaged record. Without folders the findings stay as they are.
    """
    for folder in folders:
        records = load_kernels(folder)
        findings.kernels.extend(kernel_rows(records))
        findings.counters.extend(counter_rows(records))
        findings.kernel_resources.extend(resource_rows(records))
    findings.ssq.extend(economics(findings.kernels, findings.counters))
    return findings


def resource_rows(records: KernelRecords) -> list[KernelResource]:
    """What compilers said of each kernel, as they said it. Raises `UserError` for a column that is not known."""
    for row in records.static:
        if unknown := [name for name in row if name not in KernelResource.columns]:
            raise UserError(
                f"static.csv of {records.machine} has the column '{unknown[0]}'; "
                f"{nearest(unknown[0], KernelResource.columns)}"
            )
    return [KernelResource(**origin(records) | row) for row in records.static]

"""Adds what kernel records say to the findings of the cells. Knows no figure: each table has a module of its own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bench.judge.findings import Findings
from bench.judge.kernels.counters import counter_rows
from bench.judge.kernels.ssq import economics
from bench.judge.kernels.times import kernel_rows, origin
from bench.records.kernels import load_kernels


def judge_kernels(findings: Findings, folders: Iterable[Path]) -> Findings:
    """The findings with the tables kernels, counters, ssq and kernel_resources filled from some folders.

    Raises `UserError` for a damaged record. Without folders the findings stay as they are.
    """
    for folder in folders:
        records = load_kernels(folder)
        findings.kernels += kernel_rows(records)
        findings.counters += counter_rows(records)
        findings.kernel_resources += [{**origin(records), **row} for row in records.static]
    findings.ssq += economics(findings.kernels, findings.counters)
    return findings

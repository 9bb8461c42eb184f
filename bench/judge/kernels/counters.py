"""Counters of profilers, one row a kernel and case: bytes from memory and through L2, beside what the weights have.

It reads no file and asks no profiler. A counter that was not collected is missing, never 0.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.judge.kernels.times import origin
from bench.judge.tables.kernels import Counter

if TYPE_CHECKING:
    from bench.records.kernels import CounterFile, KernelRecords, Summary

NAN = float("nan")
FIGURES = ("us", "dram_bytes", "dram_write_bytes", "l2_bytes", "l2_hit_rate", "share_of_peak", "registers")
HELPERS = re.compile(r"quanti[sz]e|memset|memcpy|fill", re.IGNORECASE)
"""Kernels that a case launches beside the one that it is about."""


def counter_rows(records: KernelRecords) -> list[Counter]:
    """One row a kernel's name and file: medians over its launches. One that cannot be read is a row that says why."""
    sizes = {
        (one.variant, one.format, one.streams, one.rows, one.cols): one.weight_bytes
        for one in records.samples if not math.isnan(one.weight_bytes)
    }  # fmt: skip
    rows = []
    for file in records.counters:
        weights = sizes.get((file.variant, file.format, file.streams, file.rows, file.cols), NAN)
        about = {**origin(records), **_about(file), "weight_bytes": weights}
        if file.reason:
            rows.append(Counter(**about, kernel=file.variant, void=True, void_reason=file.reason))
            continue
        by_kernel: dict[str, list[Summary]] = {}
        for kernel, summary in file.launches:
            by_kernel.setdefault(kernel, []).append(summary)
        for kernel, launches in by_kernel.items():
            rows.append(Counter(**about, **_figures(kernel, launches, weights), missing=" ".join(file.missing)))
    return rows


def _about(file: CounterFile) -> dict[str, Any]:
    return {
        "tool": file.tool, "variant": file.variant, "format": file.format, "width": file.streams,
        "streams": file.streams, "rows": file.rows, "cols": file.cols,
    }  # fmt: skip


def _figures(kernel: str, launches: list[Summary], weights: float) -> dict[str, Any]:
    row: dict[str, Any] = {name: _median(launches, name) for name in FIGURES}
    helper = bool(HELPERS.search(kernel))
    row |= {
        "kernel": kernel,
        "launches": len(launches),
        "helper": helper,
        "dram_over_weights": NAN if helper else row["dram_bytes"] / weights,
        # Weights pass L2 once; whatever else passes it, activations among it, is the rest.
        "other_l2_over_weights": NAN if helper else (row["l2_bytes"] - weights) / weights,
    }
    impossible = row["share_of_peak"] > 1 or row["l2_hit_rate"] > 1
    reason = "a share above 100 % of its whole: the counters of several passes do not fit together"
    return row | {"void": impossible, "void_reason": reason if impossible else ""}


def _median(told: list[Summary], name: str) -> float:
    known = [getattr(one, name) for one in told if getattr(one, name) is not None]
    return float(np.median(known)) if known else NAN

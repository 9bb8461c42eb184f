"""What packing two models side by side saves: bytes for each useful multiply of four ways to serve two streams.

Computed from shapes and the formats' blocks, and beside it what was counted and timed where it was. It knows no
kernel's source and reads no file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from bench.judge.findings import Row
from bench.judge.kernels.times import NO_PRODUCT

NAN = float("nan")
Q8_BYTES, SSQ_BYTES, BLOCK = 34, 68, 32
"""A Q8_0 block, an SSQ block, and the weights of a stream in either (ggml-common.h; `kernels.ssq.block`)."""
SSQ, Q8 = "SSQ", "Q8_0"

LAYOUTS = (
    ("shared_q8", "one Q8_0 matrix, two activation vectors", "identical", Q8_BYTES),
    ("ssq_identical", "one model twice in SSQ", "identical", SSQ_BYTES),
    ("two_q8", "two Q8_0 matrices", "different", 2 * Q8_BYTES),
    ("ssq_different", "two models in SSQ", "different", SSQ_BYTES),
)
"""Name, words, whether both streams are one model, and bytes for 32 weights of each stream: 64 multiplies."""


def economics(kernels: Sequence[Row], counters: Sequence[Row]) -> list[Row]:
    """Four rows, one a layout, for each machine and shape on which an SSQ kernel was run."""
    shapes: dict[tuple[str, int, int], Row] = {}
    for row in kernels:
        if row["format"] == SSQ and row.get("cache") == "cold":
            shapes.setdefault((row["machine"], row["rows"], row["cols"]), row)
    return [
        _row(name, words, twins, size, about, kernels, counters)
        for about in shapes.values()
        for name, words, twins, size in LAYOUTS
    ]


def _row(
    name: str, words: str, twins: str, size: int, about: Row, kernels: Sequence[Row], counters: Sequence[Row]
) -> Row:
    rows, cols = about["rows"], about["cols"]
    weights, one_model = rows * cols / BLOCK * size, rows * cols / BLOCK * Q8_BYTES
    multiplies = 2 * rows * cols
    kind, streams, times = (SSQ, 2, 1) if name.startswith("ssq") else (Q8, 1, 2) if name == "two_q8" else (Q8, 2, 1)
    same = [row for row in kernels if _is(row, about, kind, streams)]
    best = min(same, key=lambda row: row["us"], default=None)
    single = min((row["us"] for row in kernels if _is(row, about, Q8, 1)), default=NAN)
    us = times * best["us"] if best else NAN
    read = times * _counted(counters, best) if best else NAN
    return {
        **{key: about.get(key) for key in ("machine", "build", "cells", "gpu", "compiler", "source_hash")},
        "layout": name,
        "what": words,
        "twins": twins,
        "streams": 2,
        "rows": rows,
        "cols": cols,
        "weight_bytes": weights,
        "bytes_per_multiply": weights / multiplies,
        "bytes_over_one_model": weights / one_model,
        "variant": best["variant"] if best else "",
        # Two matrices were not timed together: their figures are twice those of one.
        "evidence": "derived" if times == 2 else "measured",
        "dram_bytes": read,
        "measured_bytes_per_multiply": read / multiplies,
        "measured_over_one_model": read / one_model,
        "us": us,
        "us_over_one_model": us / single,
    }


def _is(row: Row, about: Row, kind: str, streams: int) -> bool:
    """Whether a row is a sound cold time of a product in that format on the same machine and shape."""
    return (
        all(row[key] == about[key] for key in ("machine", "rows", "cols"))
        and (row["format"], row["streams"], row.get("cache")) == (kind, streams, "cold")
        and row["status"] == "ok" and not row.get("void")
        and row["variant"] not in NO_PRODUCT
        and not math.isnan(row["us"])
    )  # fmt: skip


def _counted(counters: Sequence[Row], best: Row) -> float:
    """Bytes that the kernel of a row read from memory, as a profiler counted them; nan where none did."""
    wanted = [best[key] for key in ("machine", "variant", "format", "streams", "rows", "cols")]
    for row in counters:
        found = [row[key] for key in ("machine", "variant", "format", "streams", "rows", "cols")]
        if found == wanted and not row.get("helper") and not row["void"] and not math.isnan(row["dram_bytes"]):
            return row["dram_bytes"]
    return NAN

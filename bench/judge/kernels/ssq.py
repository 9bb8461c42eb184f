"""What packing two models side by side saves: bytes for each useful multiply of four ways to serve two streams.

Computed from shapes and the formats' blocks, and beside it what was counted and timed where it was. It knows no
kernel's source and reads no file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from bench.judge.tables.kernels import Counter, Kernel, Ssq

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


def economics(kernels: Sequence[Kernel], counters: Sequence[Counter]) -> list[Ssq]:
    """Four rows, one a layout, for each machine and shape on which an SSQ kernel was run."""
    shapes: dict[tuple[str, int, int], Kernel] = {}
    for row in kernels:
        if row.format == SSQ and row.cache == "cold":
            shapes.setdefault((row.machine, row.rows, row.cols), row)
    return [
        _row(name, words, twins, size, about, kernels, counters)
        for about in shapes.values()
        for name, words, twins, size in LAYOUTS
    ]


def _row(
    name: str, words: str, twins: str, size: int, about: Kernel, kernels: Sequence[Kernel], counters: Sequence[Counter]
) -> Ssq:
    rows, cols = about.rows, about.cols
    weights, one_model = rows * cols / BLOCK * size, rows * cols / BLOCK * Q8_BYTES
    multiplies = 2 * rows * cols
    kind, streams, times = (SSQ, 2, 1) if name.startswith("ssq") else (Q8, 1, 2) if name == "two_q8" else (Q8, 2, 1)
    best = _fastest(kernels, about, kind, streams)
    single = _fastest(kernels, about, Q8, 1)
    us = times * best.us if best else NAN
    ratio = us / single.us if single else NAN
    off = _spread(best, single) if best and single and times == 1 else NAN
    read = times * _counted(counters, best) if best else NAN
    return Ssq(
        machine=about.machine, build=about.build, cells=about.cells, gpu=about.gpu, compiler=about.compiler,
        source_hash=about.source_hash, layout=name, what=words, twins=twins, rows=rows, cols=cols,
        weight_bytes=weights, bytes_per_multiply=weights / multiplies, bytes_over_one_model=weights / one_model,
        variant=best.variant if best else "",
        # Two matrices were not timed together: their figures are twice those of one.
        evidence="derived" if times == 2 else "measured",
        dram_bytes=read, measured_bytes_per_multiply=read / multiplies, measured_over_one_model=read / one_model,
        us=us, us_over_one_model=ratio, us_over_one_model_low=ratio / off, us_over_one_model_high=ratio * off,
    )  # fmt: skip


def _spread(one: Kernel, other: Kernel) -> float:
    """Factor from the ratio of two times to the ends of its interval.

    The two were timed on matrices of their own, each against a plain read in its own blocks: their errors are
    independent, and add up in squares on the log scale.
    """
    halves = [math.log(row.share_of_read_peak_high / row.share_of_read_peak_low) / 2
              if row.share_of_read_peak_low > 0 else NAN for row in (one, other)]  # fmt: skip
    return math.exp(math.hypot(*halves))


def _fastest(kernels: Sequence[Kernel], about: Kernel, kind: str, streams: int) -> Kernel | None:
    """The fastest cold product in that format, of the same machine and shape."""
    wanted = (about.machine, about.rows, about.cols, kind, streams, "cold")
    return next((row for row in kernels if row.fastest and wanted
                 == (row.machine, row.rows, row.cols, row.format, row.streams, row.cache)), None)  # fmt: skip


def _counted(counters: Sequence[Counter], best: Kernel) -> float:
    """Bytes that the kernel of a row read from memory, as a profiler counted them; nan where none did."""
    wanted = (best.machine, best.variant, best.format, best.streams, best.rows, best.cols)
    for row in counters:
        found = (row.machine, row.variant, row.format, row.streams, row.rows, row.cols)
        if found == wanted and not row.helper and not row.void and not math.isnan(row.dram_bytes):
            return row.dram_bytes
    return NAN

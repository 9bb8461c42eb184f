"""Folders of kernel records for the tests of judge and report. Every number is invented: times follow from a rule."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ENV = {
    "gpu": "Invented GPU", "arch": "sm_90", "driver": 1, "compiler": ["an invented", "compiler"], "flags": ["-O3"],
    "peak_gb_s": 5000.0, "l2_bytes": 1 << 20, "llama_cpp_commit": "abc1234", "source_hash": "f00d",
}  # fmt: skip
COLUMNS = (
    "variant", "format", "streams", "rows", "cols", "cache", "status", "reason", "layout", "bytes_per_weight",
    "weight_bytes", "bytes_read", "max_rel_err", "tolerance", "block", "us", "ceiling_us", "copy_gb_s", "peer_us",
)  # fmt: skip
BYTES = {"Q8_0": 34 / 32, "Q6_K": 210 / 256, "SSQ": 68 / 32}
READ_GB_S = 4000.0


def case(
    variant: str = "ours", format: str = "Q8_0", streams: int = 1, rows: int = 17408, cols: int = 5120,
    share: float = 0.9, peer: float = 1.5, blocks: int = 6, **more: Any,
) -> list[dict[str, Any]]:  # fmt: skip
    """Blocks of one case: `share` of the read ceiling, `peer` times faster than llama.cpp, within half a percent."""
    size = rows * cols * BYTES[format]
    ceiling = size / READ_GB_S * 1e-3
    row = {
        "variant": variant, "format": format, "streams": streams, "rows": rows, "cols": cols, "cache": "cold",
        "status": "ok", "reason": "", "layout": "file", "bytes_per_weight": BYTES[format], "weight_bytes": size,
        "bytes_read": size + 4 * cols * streams, "max_rel_err": 0.001, "tolerance": 0.01, "copy_gb_s": 3500.0,
    }  # fmt: skip
    samples = []
    for block in range(blocks):
        # The whole block is slower or faster, and each contender a little on its own.
        us = ceiling / share * (1 + 0.001 * block + 0.002 * (-1) ** block)
        times = {"us": us, "ceiling_us": ceiling * (1 + 0.001 * block), "peer_us": us * peer if peer else ""}
        samples.append({**row, "block": block, **times, **more})
    return samples


def without_times(status: str, reason: str, **about: Any) -> list[dict[str, Any]]:
    empty = {"block": -1, "us": "", "ceiling_us": "", "copy_gb_s": "", "peer_us": "", "max_rel_err": ""}
    return [{**case(**about, blocks=1)[0], **empty, "status": status, "reason": reason}]


def write(
    folder: Path, samples: Iterable[list[dict[str, Any]]], counters: dict[str, str] | None = None, **env: Any
) -> Path:
    """`folder` is that of the machine; its `kernels` is returned."""
    out = folder / "kernels"
    (out / "counters").mkdir(parents=True)
    (out / "env.json").write_text(json.dumps(ENV | env))
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(row for rows in samples for row in rows)
    (out / "timings.csv.gz").write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    for name, content in (counters or {}).items():
        (out / "counters" / name).write_text(content)
    return out


def ncu(kernel: str, **metrics: tuple[str, float]) -> str:
    """ncu's long table of one launch; a metric is its unit and value."""
    names = {
        "dram": "dram__bytes_read.sum", "l2": "lts__t_bytes.sum", "hits": "lts__t_sector_hit_rate.pct",
        "us": "gpu__time_duration.sum", "share": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        "registers": "launch__registers_per_thread",
    }  # fmt: skip
    header = ("ID", "Kernel Name", "Section Name", "Metric Name", "Metric Unit", "Metric Value")
    lines = ["==PROF== Connected to process 1", ",".join(f'"{name}"' for name in header)]
    lines += [f'"0","{kernel}","S","{names[key]}","{unit}","{value:,}"' for key, (unit, value) in metrics.items()]
    return "\n".join(lines) + "\n"


def whole_run() -> list[list[dict[str, Any]]]:
    """Two kernels on the two main matrices in two formats, SSQ, a plain read, and one of each that has no time."""
    run = []
    for rows, cols in ((17408, 5120), (5120, 17408)):
        shape = {"rows": rows, "cols": cols}
        for format in ("Q8_0", "Q6_K"):
            run.append(case("stream_read", format, share=1.0, peer=0, max_rel_err=0, tolerance=0, **shape))
            for streams, share, slow in ((1, 0.92, 0.80), (2, 0.91, 0.74), (4, 0.88, 0.60), (8, 0.80, 0.40)):
                run.append(case("quick", format, streams, share=share, peer=1.5, layout="repacked", **shape))
                run.append(case("slow", format, streams, share=slow, peer=1.2, **shape))
        run.append(case("ssq_twin", "SSQ", 2, share=0.9, peer=0, **shape))
        run.append(without_times("unsupported", "wrong needs more.", variant="wide", format="Q8_0", streams=8, **shape))
        run.append(without_times("failed", "its error is 0.5.", variant="wrong", format="Q8_0", streams=1, **shape))
    return run

"""`python -m kernels.capture`: runs ncu over single launches and keeps what it printed, unedited, a file each case.

It reads nothing of what it keeps. NVIDIA only.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from kernels.bench import chosen, shapes_of, streams_of
from kernels.errors import KernelError
from kernels.variants import BY_NAME

METRICS = (
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "lts__t_bytes.sum",
    "lts__t_sector_hit_rate.pct",
    "gpu__time_duration.sum",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "launch__registers_per_thread",
    "smsp__inst_executed.sum",
    "sm__inst_executed_pipe_tensor.sum",
)
# What the kernels of a launcher are called, as ncu's filter of names.
KERNELS = {
    "read": "stream_read",
    "flat": "weight_only|flat_",
    "ssq": "ssq_twin",
    "native": "gemv_native",
    "packed": "gemv_packed",
    "decode": "twin_scores|softmax_parts|softmax_rows|argmax_parts",
    "peer": "mul_mat_vec_q",
}
PEER_NAME = "mul_mat_vec_q"


def command(variant: str, fmt: str, streams: int, rows: int, cols: int, peer: Path | None) -> list[str]:
    """ncu around one checked launch; the clocks are left alone."""
    launcher = "peer" if variant == PEER_NAME else BY_NAME[variant].launcher
    bench = [sys.executable, "-m", "kernels.bench", "--once", "--formats", fmt, "--streams", str(streams)]
    bench += ["--shapes", f"{rows}x{cols}", "--variants", "native_dp4a" if variant == PEER_NAME else variant]
    if variant == PEER_NAME:
        bench += ["--peer", str(peer)]
    metrics = ["--metrics", ",".join(METRICS), "--kernel-name", f"regex:{KERNELS[launcher]}"]
    return ["ncu", "--clock-control", "none", "--csv", *metrics, *bench]


def capture(folder: Path, variant: str, fmt: str, streams: int, rows: int, cols: int, peer: Path | None) -> Path:
    """The file that now holds what the profiler printed; KernelError when it failed."""
    if shutil.which("ncu") is None:
        raise KernelError("ncu is not on the PATH, so no counters can be read; it comes with CUDA's Nsight Compute.")
    done = subprocess.run(command(variant, fmt, streams, rows, cols, peer), capture_output=True, text=True)
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise KernelError(f"ncu failed on {variant} {fmt} n={streams} {rows} x {cols}: {''.join(last)}")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"ncu_{variant}_{fmt}_n{streams}_{rows}x{cols}.csv"
    partial = path.with_suffix(".partial")
    partial.write_text(done.stdout)
    os.replace(partial, path)
    return path


def main(argv: list[str]) -> int:
    """0 when every case was captured, 2 for something to mend."""
    p = argparse.ArgumentParser(
        prog="python -m kernels.capture", description="Counters of launches, as ncu prints them."
    )
    p.add_argument("--out", type=Path, required=True)
    p.add_argument("--variants", default="packed_mma")
    p.add_argument("--formats", default="Q8_0,Q6_K,Q5_K")
    p.add_argument("--streams", default="1,4,8")
    p.add_argument("--shapes", default="17408x5120")
    p.add_argument("--peer", type=Path, help="llama.cpp's libraries; adds its mul_mat_vec_q")
    options = p.parse_args(argv)
    try:
        names = chosen(options.variants, [*BY_NAME, PEER_NAME], "variant")
        for name in names:
            for fmt in options.formats.split(","):
                for streams in streams_of(options.streams):
                    for rows, cols in shapes_of(options.shapes):
                        print(capture(options.out, name, fmt, streams, rows, cols, options.peer), flush=True)
    except KernelError as error:
        print(f"kernels.capture: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

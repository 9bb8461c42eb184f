"""python -m kernels.static: compiles every kernel for every architecture and tabulates what each takes. Needs no GPU.

It runs compilers and reads what they say; it does not load what they made, and it measures no time.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from kernels import build, resources
from kernels.errors import KernelError
from kernels.resources import Resources

PACKAGES = {
    "hipcc": "apt-get install --no-install-recommends hipcc rocm-device-libs",
    "nvcc": "install the CUDA toolkit",
}
COLUMNS = (
    "arch", "kernel", "vgprs", "agprs", "sgprs", "lds_bytes", "scratch_bytes", "spilled", "waves_per_simd", "source",
    "status", "reason",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Compiled:
    """One source for one architecture: its kernels, or why there are none. `status` is ok, unsupported or failed."""

    arch: str
    source: str
    status: str
    reason: str
    kernels: tuple[Resources, ...] = ()


def sources() -> list[Path]:
    """Sources that have kernels; the others are code of the host alone."""
    return [path for path in build.SOURCES if "__global__" in path.read_text()]


def compile_all(architectures: Sequence[str], files: Sequence[Path]) -> list[Compiled]:
    """Every file for every architecture, as many at once as there are processors, in order."""
    workers = min(len(os.sched_getaffinity(0)), 8)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:
        tasks = list(product(architectures, files))
        return list(pool.map(lambda task: compile_one(task[0], task[1], Path(folder)), tasks))


def compile_one(arch: str, source: Path, folder: Path) -> Compiled:
    """One file for one architecture. A compiler that is not there or refuses is a result, not an error."""
    compiler, *options = build.flags(arch)
    if shutil.which(compiler) is None:
        return Compiled(arch, source.name, "unsupported", f"{compiler} is not on the PATH; {PACKAGES[compiler]}")
    out = folder / f"{arch}-{source.stem}"
    wanted = ["-cubin", "-Xptxas", "-v"] if arch in build.NVIDIA else ["--cuda-device-only", "-S"]
    done = subprocess.run(
        [compiler, *options, *wanted, "-o", str(out), str(source)],
        env=build.environment(arch), capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        said = [line.strip() for line in done.stderr.splitlines() if "error" in line]
        return Compiled(arch, source.name, "failed", (said or ["the compiler gave no reason"])[0])
    try:
        found = (
            resources.from_ptxas(done.stderr + done.stdout) if arch in build.NVIDIA
            else resources.from_amd_assembly(arch, out.read_text())
        )  # fmt: skip
    except (ValueError, KeyError) as error:
        return Compiled(arch, source.name, "failed", f"{compiler}'s output could not be read: {error}")
    return Compiled(arch, source.name, "ok", "", tuple(resources.named(found)))


def rows(compiled: Sequence[Compiled]) -> list[dict[str, object]]:
    """One row a kernel and architecture, one for a source without any; the keys are `COLUMNS`."""
    told: list[dict[str, object]] = []
    for one in compiled:
        about: dict[str, object] = {"arch": one.arch, "source": one.source, "status": one.status, "reason": one.reason}
        if not one.kernels:
            told.append(about)
        for kernel in one.kernels:
            own = {name: getattr(kernel, name) for name in COLUMNS if hasattr(kernel, name)}
            told.append({**own, **about, "kernel": kernel.symbol})
    return told


def write(told: Sequence[dict[str, object]], path: Path) -> None:
    """The rows as CSV. KernelError when the file cannot be written."""
    try:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n", restval="")
            writer.writeheader()
            writer.writerows(told)
    except OSError as error:
        raise KernelError(f"{path} cannot be written ({error.strerror or error}); name another with --out") from error


def table(told: Sequence[dict[str, object]]) -> str:
    """The rows for a terminal."""
    shown = COLUMNS[:9]
    lines = [[str("" if row.get(name) is None else row.get(name)) for name in shown] for row in told if "kernel" in row]
    widths = [max(map(len, column)) for column in zip(shown, *lines, strict=True)]
    text = ["  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip()
            for line in (list(shown), *lines)]  # fmt: skip
    text += [f"{row['arch']}  {row['source']}: {row['status']}, {row['reason']}" for row in told if row["reason"]]
    return "\n".join(text)


def main(argv: Sequence[str]) -> int:
    """0 when every source compiled, 1 when one failed, 2 for something to mend."""
    about = "Registers and spills of every kernel, without a GPU."
    parser = argparse.ArgumentParser(prog="python -m kernels.static", description=about)
    parser.add_argument("--arch", default=",".join(build.ARCHITECTURES), help="architectures, with commas")
    parser.add_argument("--out", type=Path, help="write the table as CSV too")
    options = parser.parse_args(argv)
    try:
        told = rows(compile_all(options.arch.split(","), sources()))
        if options.out:
            write(told, options.out)
    except KernelError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(table(told))
    return int(any(row["status"] == "failed" for row in told))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

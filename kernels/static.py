"""python -m kernels.static: compiles every kernel for every architecture and tabulates what each takes, and what
its inner loop issues. Needs no GPU.

It runs compilers and reads what they say; it does not load what they made, and it measures no time.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kernels import bounds, build, loops, objects, resources
from kernels.errors import KernelError
from kernels.loops import Loop
from kernels.resources import Resources

PACKAGES = {
    "hipcc": "apt-get install --no-install-recommends hipcc rocm-device-libs",
    "nvcc": "install the CUDA toolkit",
}
_IDENT = re.compile(r'\.ident\s+"([^"]+)"')
SHOWN = ("arch", "kernel", "vgprs", "spilled", "waves_per_simd", "streams", "slots_a_weight", "waits", "vector_bound",
         "loads_bound", "waits_bound", "compiler")  # fmt: skip
"""Columns for a terminal."""
NOTE = """Bounds are static: a loop's instructions, loads and waits over the time that the card's memory takes for the
weights. Compiled, not run: above 1 a kernel cannot follow memory; below 1 they say nothing of its speed."""
COLUMNS = (
    "arch", "kernel", "vgprs", "agprs", "sgprs", "lds_bytes", "scratch_bytes", "spilled", "waves_per_simd", "source",
    "status", "reason", "compiler", "format", "streams", "weights", "vector", "quarter", "dot4", "loads", "load_bytes",
    "waits", "slots_a_weight", "card", "vector_bound", "loads_bound", "waits_bound",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Compiled:
    """One source for one architecture: its kernels, or why there are none. `status` is ok, unsupported or failed.

    `kernels` have their inner loop with them, None where none was looked for or found.
    """

    arch: str
    source: str
    status: str
    reason: str
    compiler: str = ""
    kernels: tuple[tuple[Resources, Loop | None], ...] = ()


def sources() -> list[Path]:
    """Sources that have kernels; the others are code of the host alone."""
    return [path for path in build.SOURCES if "__global__" in path.read_text()]


def compile_all(architectures: Sequence[str], files: Sequence[Path], compilers: Sequence[str] = (build.HIPCC,)
                ) -> list[Compiled]:  # fmt: skip
    """Every file for every architecture, as many at once as there are processors, in order.

    Those of AMD are compiled by each of `compilers`.
    """
    workers = min(len(os.sched_getaffinity(0)), 8)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:
        tasks = [(arch, name, file) for arch in architectures
                 for name in (compilers if arch in build.AMD else compilers[:1]) for file in files]  # fmt: skip
        return list(pool.map(lambda task: compile_one(task[0], task[2], Path(folder), task[1]), tasks))


def compile_one(arch: str, source: Path, folder: Path, compiler: str = build.HIPCC) -> Compiled:
    """One file for one architecture. A compiler that is not there or refuses is a result, not an error."""
    compiler, *options = build.flags(arch, compiler)
    if shutil.which(compiler) is None:
        how = PACKAGES.get(compiler, PACKAGES["hipcc"])
        return Compiled(arch, source.name, "unsupported", f"{compiler} is not on the PATH; {how}", compiler)
    out = folder / f"{arch}-{Path(compiler).name}-{source.stem}"
    wanted = ["-cubin", "-Xptxas", "-v"] if arch in build.NVIDIA else ["--cuda-device-only", "-S"]
    done = subprocess.run(
        [compiler, *options, *wanted, "-o", str(out), str(source)],
        env=build.environment(arch), capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        said = [line.strip() for line in done.stderr.splitlines() if "error" in line]
        return Compiled(arch, source.name, "failed", (said or ["the compiler gave no reason"])[0], compiler)
    try:
        if arch in build.NVIDIA:
            told = [(kernel, None) for kernel in resources.from_ptxas(done.stderr + done.stdout)]
            return Compiled(arch, source.name, "ok", "", _nvcc(compiler), _named(told))
        text = out.read_text()
        codes = loops.of_assembly(text)
        found = [(kernel, loops.inner(codes.get(kernel.symbol, [])))
                 for kernel in resources.from_amd_assembly(arch, text)]  # fmt: skip
    except (ValueError, KeyError) as error:
        why = f"{compiler}'s output could not be read: {error}"
        return Compiled(arch, source.name, "failed", why, compiler)
    version = _IDENT.search(text)
    return Compiled(arch, source.name, "ok", "", f"{compiler}, {version[1]}" if version else compiler, _named(found))


def library(path: Path, arch: str) -> Compiled:
    """The kernels of a library that was built for an architecture. Raises KernelError where it has none."""
    found = [(kernel, loops.inner(code)) for kernel, code in objects.kernels_of(path, arch)]
    return Compiled(arch, path.name, "ok", "", objects.built_by(path), _named(found))


def _named(found: Sequence[tuple[Resources, Loop | None]]) -> tuple[tuple[Resources, Loop | None], ...]:
    names = resources.named([kernel for kernel, _ in found])
    return tuple(zip(names, [loop for _, loop in found], strict=True))


@cache
def _nvcc(compiler: str) -> str:
    said = subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout
    found = re.search(r"release [\d.]+, V([\d.]+)", said)
    return f"{compiler} {found[1]}" if found else compiler


def rows(compiled: Sequence[Compiled]) -> list[dict[str, object]]:
    """One row a kernel, architecture and compiler, one for a source without any; the keys are `COLUMNS`."""
    told: list[dict[str, object]] = []
    for one in compiled:
        about: dict[str, object] = {"arch": one.arch, "source": one.source, "status": one.status, "reason": one.reason,
                                    "compiler": one.compiler}  # fmt: skip
        if not one.kernels:
            told.append(about)
        for kernel, loop in one.kernels:
            own = {name: getattr(kernel, name) for name in COLUMNS if hasattr(kernel, name)}
            told.append({**own, **about, "kernel": kernel.symbol, **_counted(kernel, loop)})
    return told


def _counted(kernel: Resources, loop: Loop | None) -> dict[str, object]:
    """What a turn of the loop issues, and for a kernel that is known what that is of memory's time on a card."""
    if loop is None:
        return {}
    told: dict[str, object] = {name: getattr(loop, name) for name in COLUMNS if hasattr(loop, name)}
    work = bounds.work_of(kernel.symbol, loop)
    if work is None:
        return told
    told |= {"format": work.format, "streams": work.streams, "weights": work.weights,
             "slots_a_weight": f"{loop.slots / max(work.weights, 1):.2f}"}  # fmt: skip
    found = bounds.bounds(kernel.arch, work, loop, kernel.waves_per_simd)
    if found is None:
        return told
    told |= {f"{name}_bound": f"{getattr(found, name):.2f}" for name in ("vector", "loads", "waits")}
    return {**told, "card": bounds.CARDS[kernel.arch].name}


def write(told: Sequence[dict[str, object]], path: Path, append: bool = False) -> None:
    """The rows as CSV, behind those that are there already where they are appended.

    KernelError when the file cannot be read or written, or has other columns.
    """
    try:
        if append and path.exists():
            with path.open(newline="") as file:
                before = csv.DictReader(file)
                if set(before.fieldnames or ()) - set(COLUMNS):
                    raise KernelError(f"{path} has other columns than this table; name another with --out")
                told = [*before, *told]
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n", restval="")
            writer.writeheader()
            writer.writerows(told)
    except OSError as error:
        raise KernelError(f"{path} cannot be written ({error.strerror or error}); name another with --out") from error


def table(told: Sequence[dict[str, object]]) -> str:
    """The rows for a terminal."""
    lines = [[str("" if row.get(name) is None else row.get(name)) for name in SHOWN] for row in told if "kernel" in row]
    widths = [max(map(len, column)) for column in zip(SHOWN, *lines, strict=True)]
    text = ["  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip()
            for line in (list(SHOWN), *lines)]  # fmt: skip
    text += [f"{row['arch']}  {row['source']}: {row['status']}, {row['reason']}" for row in told if row["reason"]]
    return "\n".join([*text, *([NOTE] if any("card" in row for row in told) else [])])


def main(argv: Sequence[str]) -> int:
    """0 when every source compiled, 1 when one failed, 2 for something to mend."""
    about = "Registers, spills, loops and static bounds of every kernel, without a GPU."
    parser = argparse.ArgumentParser(prog="python -m kernels.static", description=about)
    parser.add_argument("--arch", help="architectures, with commas; usually all, of a library gfx906")
    parser.add_argument("--compiler", default=build.HIPCC, help="compilers for AMD, with commas: hipcc,clang++-19")
    parser.add_argument("--library", type=Path, help="in place of our sources: a library that was built for AMD, such "
                        "as libggml-hip.so, whose kernels are disassembled")  # fmt: skip
    parser.add_argument("--only", default="", help="a regular expression that names of kernels must match")
    parser.add_argument("--out", type=Path, help="write the table as CSV too")
    parser.add_argument("--append", action="store_true", help="keep the rows that --out has")
    options = parser.parse_args(argv)
    try:
        if options.library:
            found = [library(options.library, arch) for arch in (options.arch or "gfx906").split(",")]
        else:
            architectures = (options.arch or ",".join(build.ARCHITECTURES)).split(",")
            found = compile_all(architectures, sources(), options.compiler.split(","))
        only = re.compile(options.only)
        told = [row for row in rows(found) if "kernel" not in row or only.search(str(row["kernel"]))]
        if options.out:
            write(told, options.out, options.append)
    except KernelError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except re.error as error:
        print(f"error: --only {options.only} is no regular expression ({error}); write another", file=sys.stderr)
        return 2
    print(table(told))
    return int(any(row["status"] == "failed" for row in told))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

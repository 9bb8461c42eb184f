"""`python -m kernels.bench`: checks kernels against oracles, times them against ceilings and llama.cpp, records it.

It knows no verdict: shares, ratios and intervals are computed from the records by whoever reads them. The table that it
prints is of medians, for orientation.
"""

from __future__ import annotations

import argparse
import math
import platform
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from kernels import build, contest, operands, records, static, variants
from kernels.contest import Contender
from kernels.device import Buffer, Device
from kernels.errors import KernelError
from kernels.operands import PEER, Launch, Matrix
from kernels.reference import INT8_TOLERANCE
from kernels.variants import Case

SHAPES_27B = "17408x5120,5120x17408,12288x5120,10240x5120,6144x5120,5120x6144,1024x5120,248320x5120"
SHAPES_8B = "4096x4096,1024x4096,14336x4096,4096x14336,128256x4096"
CONTEXT, HEAD, VOCABULARY = 32768, 256, 248320
ROTATED_BYTES = 600e6  # several times the cache of any of these cards
SCRATCH_BYTES = 256 << 20


def parse(argv: list[str]) -> argparse.Namespace:
    """The command line. Ends the program with code 2 on one that cannot be read."""
    p = argparse.ArgumentParser(prog="python -m kernels.bench", description=__doc__.splitlines()[0])
    p.add_argument("--out", type=Path, default=Path("results/kernels"), help="folder of the records")
    p.add_argument("--arch", help="sm_90, gfx906, ...; default: what the first GPU is")
    p.add_argument("--shapes", default=f"{SHAPES_27B},{SHAPES_8B}", help="ROWSxCOLS, separated by commas")
    p.add_argument("--formats", default="Q8_0,Q6_K,Q5_K,SSQ,F16,F32")
    p.add_argument("--streams", default="1,2,4,8")
    p.add_argument("--variants", default=",".join(variants.BY_NAME))
    p.add_argument("--blocks", type=int, default=20)
    p.add_argument("--caches", default="cold")
    p.add_argument("--peer", type=Path, help="folder of libggml-base.so and libggml-cuda.so of a llama.cpp build")
    p.add_argument("--seed", type=int, default=None, help="default: the clock")
    p.add_argument("--static", action="store_true", help="write registers, loops and static bounds for this GPU too")
    p.add_argument("--engine", type=Path, help="with --static on AMD: libggml-hip.so, whose kernels are counted too")
    p.add_argument("--once", action="store_true", help="check only: one launch of each case, for a profiler")
    return p.parse_args(argv)


def shapes_of(text: str) -> list[tuple[int, int]]:
    """`17408x5120,1024x4096` as pairs of rows and columns. KernelError."""
    try:
        pairs = [tuple(int(n) for n in part.split("x")) for part in text.split(",")]
    except ValueError:
        pairs = [()]
    if any(len(pair) != 2 or min(pair) < 1 for pair in pairs):
        raise KernelError(f"shapes are ROWSxCOLS, separated by commas, not {text!r}.")
    return [(rows, cols) for rows, cols in pairs]


def streams_of(text: str) -> list[int]:
    """`1,2,4` as numbers. KernelError."""
    try:
        return [int(n) for n in text.split(",")]
    except ValueError:
        raise KernelError(f"streams are whole numbers, separated by commas, not {text!r}.") from None


def chosen(text: str, known: Iterable[str], what: str) -> list[str]:
    """The names in a list with commas; `what` they are is said in the KernelError about one that is not known."""
    names = text.split(",")
    for name in names:
        if name not in known:
            raise KernelError(f"{what} {name!r} is not known; choose from {', '.join(known)}.")
    return names


def cases_of(fmt: str, rows: int, cols: int, names: list[str], streams: list[int]) -> list[Case]:
    """Every variant of the format; those that take one number of streams only are asked for that one."""
    cases = []
    for name in names:
        v = variants.BY_NAME[name]
        if fmt in v.formats:
            wanted = v.streams if len(v.streams) == 1 else streams
            cases += [Case(v, fmt, n, rows, cols) for n in wanted]
    return cases


def blank(case: Case, cache: str, status: str, reason: str, error: float = math.nan) -> records.Sample:
    """The row of a case without a time. `error` is relative, nan where nothing was computed."""
    v, size = case.variant, variants.weight_bytes(case.format, case.rows, case.cols)
    read = size + variants.activation_bytes(v, case.cols, case.streams)
    return records.Sample(
        v.name, case.format, case.streams, case.rows, case.cols, cache, status, reason, v.layout,
        size / (case.rows * case.cols), size, read, error, v.tolerance,
    )  # fmt: skip


class Session:
    """One device, and the rows gathered so far. KernelError when the kernels cannot be built or there is no GPU."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.rng = np.random.default_rng(time.time_ns() if options.seed is None else options.seed)
        self.arch = options.arch or detect()
        self.device = Device(build.build(self.arch))
        self.peer = False
        if options.peer:
            self.device.open_peer(options.peer)
            self.peer = True
        self.scratch = Buffer(self.device, SCRATCH_BYTES)
        self.rows: list[records.Sample] = []

    def matrix(self, fmt: str, rows: int, cols: int, cases: list[Case]) -> None:
        """All cases of one matrix: check each, then time those that passed, in balanced blocks."""
        able = []
        for case in cases:
            reason = variants.can_run(case, self.arch)
            if reason:
                self.rows.append(blank(case, "cold", "unsupported", reason))
            else:
                able.append(case)
        if not able:
            return
        try:
            self._contest(fmt, rows, cols, able)
        except KernelError as error:
            self.rows += [blank(case, "cold", "unsupported", str(error)) for case in able]
            print(f"{fmt} {rows} x {cols}: {error}", file=sys.stderr)

    def _contest(self, fmt: str, rows: int, cols: int, cases: list[Case]) -> None:
        size = variants.weight_bytes(fmt, rows, cols) or cases[-1].streams * cols * 4
        copies = 1 if self.options.once else max(2, int(-(-ROTATED_BYTES // size)))
        matrix = Matrix(self.device, fmt, rows, cols, min(copies, 128), self.rng)
        passed: list[tuple[Case, float, Launch]] = []
        for case in cases:
            launch = operands.launch(self.device, matrix, case, self.rng)
            error = launch.error(self.device)
            if error <= case.variant.tolerance:
                passed.append((case, error, launch))
            else:
                reason = f"relative error {error:.2e} is above {case.variant.tolerance:g}: it is not timed."
                self.rows.append(blank(case, "cold", "failed", reason, error))
                print(f"{case.variant.name} {fmt} {rows} x {cols}, {case.streams} streams: {reason}", file=sys.stderr)
        peers = self._peers(matrix, fmt, {case.streams for case, _, _ in passed})
        if not self.options.once:
            for cache in self.options.caches.split(","):
                self._time(matrix, size, passed, peers, cache)
        matrix.free()

    def _peers(self, matrix: Matrix, fmt: str, streams: set[int]) -> dict[int, Launch]:
        if not self.peer or fmt not in variants.K_FORMATS:
            return {}
        peers = {n: operands.peer_launch(self.device, matrix, n, self.rng) for n in sorted(streams)}
        for n, launch in peers.items():
            error = launch.error(self.device)
            if not error <= INT8_TOLERANCE:
                raise KernelError(
                    f"{PEER}'s own kernel gave a relative error of {error:.2e} at {n} streams; nothing is timed."
                )
        return peers

    def _time(
        self, matrix: Matrix, size: int, passed: list[tuple[Case, float, Launch]], peers: dict[int, Launch], cache: str
    ) -> None:
        source = (
            matrix.buffers("file")
            if matrix.name != "F32"
            else [Buffer(self.device, size) for _ in range(matrix.copies)]
        )
        reads, copy = contest.ceilings(self.device, source, size, self.scratch, cache)
        entries = [Contender(case.variant.name, launch.launcher, launch.args) for case, _, launch in passed]
        peer_entries = {n: Contender(PEER, launch.launcher, launch.args) for n, launch in peers.items()}
        everyone = [*reads, copy, *entries, *peer_entries.values()]
        contest.run(self.device, everyone, cache, self.options.blocks, self.rng)
        ceiling = np.min([read.times for read in reads], axis=0)
        copied = 2 * copy.args[0].bytes / 1e3
        for (case, error, _), entry in zip(passed, entries, strict=True):
            empty = blank(case, cache, "unsupported", "", error)
            rival = peer_entries.get(case.streams) if case.format in variants.K_FORMATS else None
            for i, us in enumerate(entry.times):
                self.rows.append(
                    replace(
                        empty, status="ok", block=i, us=us, ceiling_us=float(ceiling[i]),
                        copy_gb_s=copied / copy.times[i], peer_us=rival.times[i] if rival else math.nan,
                    )
                )  # fmt: skip
            self._line(case, cache, entry, ceiling, rival, error)

    def _line(
        self, case: Case, cache: str, entry: Contender, ceiling: np.ndarray, rival: Contender | None, error: float
    ) -> None:
        us, top = float(np.median(entry.times)), float(np.median(ceiling))
        against = f"{np.median(rival.times) / us:5.2f}x {PEER}" if rival else ""
        print(
            f"{case.variant.name:17} {case.format:5} n={case.streams} {case.rows:6} x {case.cols:5} {cache} "
            f"{us:8.2f} us"
            f" {top / us:6.1%} of a plain read ({top:.2f} us)  err {error:.1e}  {against}",
            flush=True,
        )


def detect() -> str:
    """The architecture of the first GPU, as its own tool names it. KernelError where there is none."""
    for command in (["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], ["rocm_agent_enumerator"]):
        try:
            out = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        except (OSError, subprocess.CalledProcessError):
            continue
        names = [word if word.startswith("gfx") else "sm_" + word.replace(".", "") for word in out if word != "gfx000"]
        if names:
            return names[0]
    raise KernelError(
        "no GPU was found (neither nvidia-smi nor rocm_agent_enumerator names one); give --arch to compile for one."
    )


def environment(session: Session) -> dict[str, object]:
    """What the records say of device, compiler and sources. Bandwidth in GB/s, sizes in bytes."""
    facts, arch = session.device.facts, session.arch
    compiler = (
        subprocess.run([build.flags(arch)[0], "--version"], capture_output=True, text=True).stdout.strip().splitlines()
    )
    return {
        "gpu": facts.name, "arch": arch, "driver": facts.driver, "compiler": compiler[-2:],
        "flags": build.flags(arch)[1:],
        "peak_gb_s": facts.peak_gb_s, "l2_bytes": facts.l2_bytes, "multiprocessors": facts.multiprocessors,
        "llama_cpp_commit": session.device.peer_commit() if session.peer else None, "source_hash": build.source_hash(),
        "activations":
            "int8, a float scale for 32 values, quantised before the kernel (not counted, ours or the peer's)",
        "python": platform.python_version(),
    }  # fmt: skip


def write_static(folder: Path, arch: str, engine: Path | None) -> None:
    """`static.csv` of our kernels for one architecture, and of an engine's. KernelError."""
    found = static.compile_all([arch], static.sources())
    if engine and arch in build.AMD:
        found.append(static.library(engine, arch))
    static.write(static.rows(found), folder / "static.csv")


def shapes_for(fmt: str, shapes: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Keys and logits have shapes of their own."""
    return {"F16": [(CONTEXT, HEAD)], "F32": [(1, VOCABULARY)]}.get(fmt, shapes)


def main(argv: list[str]) -> int:
    """0 when every variant passed its check, 1 when one failed, 2 for something to mend."""
    options = parse(argv)
    try:
        names = chosen(options.variants, variants.BY_NAME, "variant")
        formats = chosen(options.formats, ("Q8_0", "Q6_K", "Q5_K", "Q4_K", "SSQ", "F16", "F32"), "format")
        chosen(options.caches, contest.CACHES, "cache state")
        streams = streams_of(options.streams)
        if options.blocks < 1:
            raise KernelError(f"the number of blocks must be at least 1, not {options.blocks}.")
        shapes = shapes_of(options.shapes)
        session = Session(options)
        for rows, cols in shapes:
            for fmt in formats:
                cases = cases_of(fmt, rows, cols, names, streams)
                if (rows, cols) in shapes_for(fmt, shapes) and cases:
                    session.matrix(fmt, rows, cols, cases)
        for fmt in [f for f in formats if f in ("F16", "F32")]:
            rows, cols = shapes_for(fmt, shapes)[0]
            # Logits: each number of streams has bytes of its own.
            for some in [[n] for n in streams] if fmt == "F32" else [streams]:
                session.matrix(fmt, rows, cols, cases_of(fmt, rows, cols, names, some))
        if not options.once:
            records.write(options.out, session.rows, environment(session))
            if options.static:
                write_static(options.out, session.arch, options.engine)
    except KernelError as error:
        print(f"kernels.bench: {error}", file=sys.stderr)
        return 2
    return 1 if any(row.status == "failed" for row in session.rows) else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

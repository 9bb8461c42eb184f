"""Commands of the profilers that count what a program's kernels read: ncu, rocprof and rocprofv3.

Each reads its counters in one or several passes, each a run of the program. What they print is read by
`kernels.counters`. It runs nothing and knows nothing about the program.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernels.counters import Launch, Profile, parse, read_profile
from kernels.errors import KernelError

CUDA, HIP = "cuda", "hip"
PLACES = ("/usr/local/cuda/bin", "/opt/rocm/bin")
"""Where the toolkits put them, beside the PATH."""
_DENIED = {
    "ERR_NVGPUCTRPERM": "the driver keeps the counters to administrators (ERR_NVGPUCTRPERM); run it as one, or load "
                        "the driver with NVreg_RestrictProfilingToAdminUsers=0",
    "/dev/kfd": "the card cannot be opened (/dev/kfd); put the user into the groups render and video",
}  # fmt: skip
"""What a profiler says where it may not count, and what to do."""
_ERROR = re.compile(r"^.*(==ERROR==|\bERROR\b|\berror\b|not found|FATAL|fatal).*$", re.MULTILINE)
_LETTERS = 200


@dataclass(frozen=True, slots=True)
class Profiler:
    """One tool. `ranged`: it counts between the runtime's start and stop alone; else from the program's beginning."""

    name: str
    runtime: str
    passes: tuple[tuple[str, ...], ...]
    ranged: bool


PROFILERS = {
    one.name: one for one in (
        # What one run of a launch counts: 231 launches on an H200 took 11 s with loading. With the hit rate of L2 they
        # took 44, since a launch is then run several times, whatever it wrote being saved and put back in between, and
        # from the second time on it finds in the cache what the first one left there.
        Profiler("ncu", CUDA, (("dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_bytes.sum",
                                "gpu__time_duration.sum"),), ranged=True),
        # FETCH_SIZE alone takes all four counters that a channel of gfx906 has, both memory ports.
        Profiler("rocprof", HIP, (("FETCH_SIZE",), ("WRITE_SIZE",), ("TCC_HIT_sum", "TCC_MISS_sum")), ranged=False),
        Profiler("rocprofv3", HIP, (("FETCH_SIZE",), ("WRITE_SIZE",), ("TCC_HIT_sum", "TCC_MISS_sum")), ranged=False),
    )
}  # fmt: skip
OF_VENDOR = {"nvidia": ("ncu",), "amd": ("rocprofv3", "rocprof")}
"""By the maker of the GPU, the newer first."""


def program(name: str) -> str | None:
    """Path of a profiler's program; None where it is not installed."""
    return shutil.which(name) or next((found for place in PLACES if (found := shutil.which(name, path=place))), None)


def command(tool: Profiler, path: str, counters: Sequence[str], folder: Path, words: Sequence[str]) -> list[str]:
    """The profiler around a program, for one pass. Some write files into `folder`, which must be there."""
    if tool.name == "ncu":
        # The clocks and caches are left as they are in a decode; a decode's launches follow each other there, too.
        return [path, "--profile-from-start", "off", "--clock-control", "none", "--cache-control", "none", "--csv",
                "--print-units", "base", "--metrics", ",".join(counters), *words]  # fmt: skip
    if tool.name == "rocprof":
        asked = folder / "counters.txt"
        asked.write_text(f"pmc: {' '.join(counters)}\n")
        return [path, "--timestamp", "on", "-i", str(asked), "-o", str(folder / "counted.csv"), *words]
    return [path, "--pmc", *counters, "--output-format", "csv", "-d", str(folder), "-o", "counted", "--", *words]


def read(tool: Profiler, folder: Path, printed: str) -> Profile:
    """What a pass collected. Raises `KernelError` where there is no table."""
    if tool.name == "ncu":
        return parse(printed)
    pattern = "counted.csv" if tool.name == "rocprof" else "**/*counter_collection.csv"
    path = next(iter(sorted(folder.glob(pattern))), None)
    if path is None:
        raise KernelError(f"{tool.name} has left no table of counters")
    return read_profile(path)


def denied(printed: str) -> str:
    """Why the profiler may not count here, as a sentence; empty where it says no such thing."""
    return next((why for word, why in _DENIED.items() if word in printed), "")


def last_error(printed: str) -> str:
    """The line that tells why a profiler failed, else its last one."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    errors = [match[0].strip() for match in _ERROR.finditer(printed)]
    return (errors or lines or ["it printed nothing"])[-1][:_LETTERS]


def of_decodes(launches: Sequence[Launch], decodes: int) -> list[list[Launch]]:
    """The launches of the last `decodes` alike decodes of a program, by decode: the longest tail that repeats itself.

    A decode launches the same kernels in the same order each time, and what came before it (loading, the prompt) does
    not. Raises `KernelError` where no tail does so.
    """
    names = [one.kernel for one in launches]
    for length in range(len(names) // decodes, 0, -1):
        tail = names[len(names) - decodes * length :]
        if tail[length:] == tail[:-length]:
            first = len(launches) - decodes * length
            return [list(launches[first + place * length : first + (place + 1) * length]) for place in range(decodes)]
    raise KernelError(f"the {len(names)} launches do not end with {decodes} decodes that are alike")


def joined(passes: Sequence[Sequence[Launch]]) -> list[Launch]:
    """The launches of several passes of one program as one, each with the counters of all.

    Raises `KernelError` where a pass launched other kernels, or in another order.
    """
    first, *others = passes
    values = [dict(one.values) for one in first]
    for other in others:
        if [one.kernel for one in other] != [one.kernel for one in first]:
            raise KernelError("the passes of the profiler did not launch the same kernels in the same order")
        for known, one in zip(values, other, strict=True):
            known.update({name: value for name, value in one.values.items() if name not in known})
    return [Launch(one.kernel, one.dispatch, own) for one, own in zip(first, values, strict=True)]

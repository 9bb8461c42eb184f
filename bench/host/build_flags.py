"""By which compiler and with which settings a library of the engine was built, as far as its files tell.

The compiler leaves its name in the library; the settings are in CMake's cache of a build tree, or in what set-up wrote
into its environment. Neither decides which build it is: the files do (`bench.host.libraries`). It loads nothing.
"""

from __future__ import annotations

import json
import mmap
import re
import sys
from collections.abc import Iterator
from pathlib import Path

CACHE = "CMakeCache.txt"
STAMP = "bench-setup.json"
"""What set-up leaves in the environment that it made (`bench.setup.setup`)."""
_ABOVE = 3
"""How far above a library the cache of its build tree lies: `bin/`, `build/bin/`, `src/Release/`."""
_COMPILER = re.compile(rb"(?:GCC: \([^)\0]*\) [\w.-]+|[\w .-]*clang version [^\0\n]{1,80})(?=\0)")
_ENTRY = re.compile(r"^([A-Za-z_][\w-]*):(?:BOOL|STRING)=(.*)$")
_TOLD = re.compile(r"(GGML|LLAMA)_\w+|CMAKE_BUILD_TYPE|CMAKE_(C|CXX|CUDA|HIP)_FLAGS(_RELEASE)?|CMAKE_CUDA_ARCHITECTURES"
                   r"|(GPU|AMDGPU)_TARGETS")  # fmt: skip
_DEFINE = "cmake.define."
OFF = ("OFF", "")
PROCESSOR = ("GGML_NATIVE", "GGML_SSE42", "GGML_AVX", "GGML_AVX2", "GGML_AVX512", "GGML_FMA", "GGML_F16C", "GGML_BMI2")


def compiler(library: Path) -> str:
    """Name and version, as `GCC: (Debian 12.2.0-14) 12.2.0`, of several joined by '; '; empty where it is not told."""
    try:
        with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            found = {match[0].decode("ascii", "replace").strip() for match in _COMPILER.finditer(content)}
    except (OSError, ValueError):  # an empty file cannot be mapped
        return ""
    return "; ".join(sorted(found))


def settings(library: Path, prefix: Path = Path(sys.prefix)) -> dict[str, str]:
    """CMake's settings of the build by name; nothing where no file tells them.

    A build tree's cache lists a hundred that are off, of which those of the processor alone are told. Paths are left
    out: they tell about a machine only, and records travel.
    """
    cached = [(name, value) for name, value in _cached(library) if value not in OFF or name in PROCESSOR]
    found = dict(cached or _stamped(library, prefix))
    return {name: value for name, value in sorted(found.items()) if _TOLD.fullmatch(name) and "/" not in value}


def _cached(library: Path) -> list[tuple[str, str]]:
    for folder in library.resolve().parents[:_ABOVE]:
        try:
            lines = (folder / CACHE).read_text(errors="replace").splitlines()
        except OSError:
            continue
        return [(match[1], match[2]) for line in lines if (match := _ENTRY.match(line))]
    return []


def _stamped(library: Path, prefix: Path) -> Iterator[tuple[str, str]]:
    if not library.resolve().is_relative_to(prefix.resolve()):
        return
    try:
        stamp = json.loads((prefix / STAMP).read_text())
    except (OSError, ValueError):
        return
    found = stamp.get("settings") if isinstance(stamp, dict) else None
    for key, value in (found if isinstance(found, dict) else {}).items():
        yield str(key).removeprefix(_DEFINE), str(value)

"""What building and installing needs from the machine, checked before it starts: each lack is a sentence.

Standard library only, and its own syntax stays old enough that an old Python can say that it is too old.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.errors import UserError
from pti_loop import cxx

GIB = 1 << 30
NEEDED_BYTES = {"cpu": 2 * GIB, "cuda": 8 * GIB, "hip": 6 * GIB}
"""Free disk for the environment and the build. The portable CPU build takes 1.3 GiB; the GPU ones are estimates."""
BYTES_PER_COMPILER = 3 * GIB // 2


def check_python(minimum: Sequence[int], version: Sequence[int] = tuple(sys.version_info[:3])) -> None:
    """Raise `UserError` unless this Python is new enough; name a newer one when there is one on the PATH."""
    if tuple(version[:2]) >= tuple(minimum):
        return
    newer = [name for name in ("python3.14", "python3.13", "python3.12", "python3.11") if shutil.which(name)]
    hint = f"run `make setup PYTHON={newer[0]}`" if newer else "install it, then run `make setup PYTHON=python3.11`"
    needed, present = (".".join(map(str, numbers)) for numbers in (minimum, version))
    raise UserError(f"Python {needed} or newer is needed, {sys.executable} is {present}; {hint}")


def check_venv_module(find: Callable[[str], object] = importlib.util.find_spec) -> None:
    """Raise `UserError` when this Python cannot make virtual environments (Debian ships `ensurepip` apart)."""
    missing = [name for name in ("venv", "ensurepip") if find(name) is None]
    if missing:
        version = "{}.{}".format(*sys.version_info[:2])
        raise UserError(
            f"{sys.executable} has no module '{missing[0]}', so it cannot make a virtual environment; "
            f"on Debian or Ubuntu run `apt-get install python3-venv python{version}-venv`"
        )


def compiler(environ: Mapping[str, str] = os.environ) -> str:
    """Path of the C++ compiler that the build will use. Raises `UserError` when there is none."""
    if found := cxx.compiler(environ):
        return found
    names = cxx.names(environ)
    if names != cxx.USUAL:
        raise UserError(f"the C++ compiler that CXX names, '{names[0]}', is not there; correct or unset CXX")
    raise UserError(
        "no C++ compiler is on the PATH (looked for {}); on Debian or Ubuntu run `apt-get install g++`".format(
            ", ".join(cxx.USUAL)
        )
    )


def check_gpu_compiler(backend: str, environ: Mapping[str, str] = os.environ) -> None:
    """Raise `UserError` when the backend's own compiler is missing."""
    tool, home = {"cuda": ("nvcc", "CUDACXX")}.get(backend, ("", ""))
    if tool and not environ.get(home) and not shutil.which(tool, path=environ.get("PATH")):
        raise UserError(
            f"backend '{backend}' needs {tool}, which is not on the PATH; add its folder to PATH, or run "
            "`make setup BACKEND=cpu`"
        )


def check_disk(folder: Path, backend: str, usage: Callable[[Path], Any] = shutil.disk_usage) -> None:
    """Raise `UserError` when the environment's or the temporary folder's file system is too full."""
    for what, place in (("the environment", existing(folder)), ("the build (TMPDIR)", Path(tempfile.gettempdir()))):
        free = usage(place).free
        if free < NEEDED_BYTES[backend]:
            raise UserError(
                f"{what} needs {NEEDED_BYTES[backend] / GIB:.0f} GiB free in {place}, {free / GIB:.1f} GiB are; "
                "make room, or set VENV or TMPDIR to a folder elsewhere"
            )


def existing(folder: Path) -> Path:
    """The folder, or its closest parent that exists."""
    folder = folder.absolute()
    while not folder.exists():
        folder = folder.parent
    return folder


def build_jobs() -> int:
    """Compilers at once: one a CPU that this process may use, fewer when memory is short."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(cpus, memory // BYTES_PER_COMPILER))


def first_line(command: Sequence[str]) -> str:
    """First line that a command prints, or an empty text when it cannot run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout or "").strip().splitlines()[0] if done.returncode == 0 and done.stdout.strip() else ""


def gpu_architectures(backend: str) -> str:
    """Targets of the GPUs here, separated by semicolons: '90' for CUDA, 'gfx906' for HIP; empty when none is found."""
    command = {
        "cuda": ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"],
        "hip": ["rocm_agent_enumerator"],
    }.get(backend)
    if command is None or os.environ.get("CUDAARCHS"):
        return ""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    words = done.stdout.split() if done.returncode == 0 else []
    found = [word.replace(".", "") for word in words if word != "gfx000"]
    return ";".join(dict.fromkeys(found))

"""llama.cpp's own drafters: `own_drafters.cpp` compiled against the headers that set-up keeps, and called by ctypes.

It is compiled on first use and kept beside the headers, by llama.cpp's commit. It knows nothing about methods, and
makes no context.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pti_loop import cxx
from pti_loop.engine import EngineError, OwnDrafterSpec, Unsupported
from pti_loop.llama.header_folder import FOLDERS, headers, kept
from pti_loop.llama.library import build, library, library_path

SOURCE = Path(__file__).with_suffix(".cpp")
_FLAGS = ("-O2", "-std=c++17", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden", "-DNDEBUG", "-DLLAMA_SHARED",
          "-DGGML_SHARED", "-DGGML_BACKEND_SHARED")  # fmt: skip
_ERRORS = 1
"""What llama.cpp's drafters print: a warning of theirs would stand between a sweep's lines."""


def common_library() -> Path:
    """`libllama-common` of the build that is loaded. Raises `Unsupported` where the build has none."""
    here = library_path()
    name = here.name.replace("llama", "llama-common")
    for folder in (here.parent, here.parents[2] / "lib" if len(here.parents) > 2 else here.parent):
        for path in (folder / name, folder / f"{name}.0"):
            if path.is_file():
                return path
    raise Unsupported(f"the build has no {name}, in which llama.cpp's own drafters are; looked beside {here.name}")


def compiled(commit: str) -> Path:
    """The compiled file, made when it is not there. Raises `Unsupported` without headers or without a compiler."""
    folder = headers(commit)
    if not kept(commit):
        raise Unsupported(f"llama.cpp's own drafters need the headers of its commit {commit}, which are not kept here; "
                          f"run `make setup`")  # fmt: skip
    compiler = _compiler()
    key = hashlib.sha256("\n".join((SOURCE.read_text(), compiler, *_FLAGS)).encode()).hexdigest()[:16]
    made = folder / f"own_drafters-{key}.so"
    if not made.is_file():
        _compile(compiler, folder, made)
    return made


def _compiler() -> str:
    found = cxx.compiler()
    if not found:
        raise Unsupported(
            "llama.cpp's own drafters are compiled on first use, and no C++ compiler is on the PATH (looked for "
            f"{', '.join(cxx.names())}); on Debian or Ubuntu run `apt-get install g++`"
        )
    return found


def _compile(compiler: str, folder: Path, made: Path) -> None:
    """Into a name of its own first: two processes may want it at once."""
    common = common_library()
    part = made.with_name(f"{made.name}.{os.getpid()}.part")
    undefined = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
    command = [compiler, *_FLAGS, *(f"-I{folder / one}" for one in FOLDERS), str(SOURCE), "-o", str(part),
               f"-L{common.parent}", "-lllama-common", "-lllama", *undefined]  # fmt: skip
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        part.unlink(missing_ok=True)
        error = next((line for line in done.stderr.splitlines() if "error" in line), "it printed no error")
        raise Unsupported(f"{SOURCE.name} does not compile against this llama.cpp ({error.strip()[:160]}); look at "
                          f"`{compiler}` and at the pinned engine")  # fmt: skip
    os.replace(part, made)


@cache
def load() -> ctypes.CDLL:
    """The compiled file, loaded behind llama.cpp's library. Raises `Unsupported`, and `EngineError` for a second one.

    The two libraries that it needs are there already under their own names, so it finds these and no others.
    """
    library()
    commit = build()["llama_cpp_commit"]
    made = compiled(commit)
    ctypes.CDLL(str(common_library()))
    drafters = ctypes.CDLL(str(made))
    _declare(drafters)
    if (own := drafters.drafter_commit().decode().removesuffix("-dirty")) != commit:
        raise Unsupported(f"libllama-common is of llama.cpp {own} and libllama of {commit}; both must be one build")
    if len(loaded := _loaded("libllama.so")) > 1:
        raise EngineError(f"llama.cpp is loaded twice ({', '.join(sorted(loaded))}); import llama_cpp before all else")
    drafters.drafter_verbosity(_ERRORS)
    return drafters


def _declare(drafters: ctypes.CDLL) -> None:
    text, number, handle = ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p
    for name, result, arguments in (
        ("error", text, ()), ("commit", text, ()), ("types", text, ()), ("verbosity", None, (number,)),
        ("open", handle, (text, *[number] * 5, ctypes.c_float, handle, handle)), ("close", None, (handle,)),
        ("most", number, (handle,)), ("begin", number, (handle, handle, number)),
        ("process", number, (handle, handle, number, number)),
        ("draft", number, (handle, ctypes.c_int32, number, handle)),
        ("accept", number, (handle, number, handle, number)), ("statistics", number, (handle, text)),
    ):  # fmt: skip
        function = getattr(drafters, f"drafter_{name}")
        function.restype, function.argtypes = result, arguments


def _loaded(name: str) -> set[str]:
    """Paths of the libraries of a name in this process; empty where the system does not tell."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return set()
    return {words[-1] for line in lines if len(words := line.split()) > 5 and Path(words[-1]).name.startswith(name)}


class LlamaDrafter:
    """One of llama.cpp's drafters, with what it has learnt. `target` and `beside` are its contexts' handles.

    Raises `Unsupported` where llama.cpp makes none like it.
    """

    def __init__(self, spec: OwnDrafterSpec, target: int | None, beside: int | None) -> None:
        self._drafters = drafters = load()
        self._handle: int | None = drafters.drafter_open(
            ",".join(spec.types).encode(), spec.n, spec.m, spec.hits, spec.n_min, spec.draft, spec.p_min, target,
            beside,
        )  # fmt: skip
        if not self._handle:
            raise Unsupported(f"llama.cpp makes no {'+'.join(spec.types)} here: {drafters.drafter_error().decode()}")
        self.most = int(drafters.drafter_most(self._handle))
        self._out = np.zeros(max(self.most, 1), dtype=np.int32)

    def begin(self, tokens: Sequence[int]) -> None:
        """An answer starts. Raises `EngineError`."""
        ids = _ids(tokens)
        self._checked(self._drafters.drafter_begin(self._handle, ids.ctypes.data, len(ids)))

    def process(self, start: int, tokens: Sequence[int]) -> None:
        """The target decoded these rows. Raises `EngineError`."""
        ids = _ids(tokens)
        self._checked(self._drafters.drafter_process(self._handle, ids.ctypes.data, len(ids), start))

    def draft(self, last: int, limit: int) -> list[int]:
        """At most `limit` guesses. Raises `EngineError`."""
        room = min(limit, len(self._out))
        size = self._checked(self._drafters.drafter_draft(self._handle, last, room, self._out.ctypes.data))
        found: list[int] = self._out[:size].tolist()
        return found

    def accept(self, accepted: int, confirmed: Sequence[int]) -> None:
        """So many were right. Raises `EngineError`."""
        ids = _ids(confirmed)
        self._checked(self._drafters.drafter_accept(self._handle, accepted, ids.ctypes.data, len(ids)))

    def statistics(self, path: Path) -> str:
        """llama.cpp's own counters as it prints them; `path` is written on the way. Raises `EngineError`."""
        self._checked(self._drafters.drafter_statistics(self._handle, str(path).encode()))
        return path.read_text()

    def close(self) -> None:
        """Free it, before its contexts. Calling twice is allowed."""
        if self._handle:
            self._drafters.drafter_close(self._handle)
            self._handle = None

    def _checked(self, code: int) -> int:
        if code < 0:
            raise EngineError(f"llama.cpp's drafter failed: {self._drafters.drafter_error().decode()}")
        return code


def _ids(tokens: Sequence[int]) -> NDArray[np.int32]:
    return np.array(tokens, dtype=np.int32)

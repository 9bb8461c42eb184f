"""A draw in one call of machine code, compiled once a machine from `draw.cpp`; nothing where there is no compiler.

numpy needs ten calls for a draw, and in a decode loop, where each finds its code and its arrays gone from the caches,
they take three to four times what this does. It knows nothing about temperatures and keys, and decides no token that
rounding could change.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from weakref import ReferenceType, ref

import numpy as np
from numpy.typing import NDArray

from pti_loop import cxx
from pti_loop.user_cache import user_cache

SOURCE = Path(__file__).with_name("draw.cpp")
BLOCK = 256
"""Tokens that share a partial sum."""
ADDED = 10
"""Float32 numbers that are added to each other before a sum goes on in float64: eight of a block in each lane, and
four lanes in pairs."""
_KEPT = 64
"""Rows whose addresses are kept: an engine hands out the same ones again and again."""
_FLAGS = ("-O3", "-fno-trapping-math", "-fno-math-errno", "-shared", "-fPIC")
_SECONDS = 60
_FLOAT: Any = ctypes.c_float
_FLOAT32 = np.dtype(np.float32)


class NativeDraw:
    """The compiled function with what it writes to, for one vocabulary."""

    added = ADDED

    def __init__(self, function: Callable[..., int], n_vocab: int) -> None:
        self._function, self._n_vocab, self._shape = function, n_vocab, (n_vocab,)
        self._ends = (ctypes.c_double * -(-n_vocab // BLOCK))()
        self._squares = ctypes.c_double()
        self._written = ctypes.addressof(self._ends), ctypes.addressof(self._squares)
        self._known: dict[int, tuple[ReferenceType[NDArray[np.float32]], int]] = {}
        """Addresses of rows that may come again, by the number of the row's object while there is that row."""

    def __call__(self, logits: NDArray[np.float32], scale: float, u: float, slack: float) -> tuple[int, float]:
        """(token, collision probability) of float32 (n_vocab,) logits at `u` in [0, 1); token -1 where none is sure.

        Raises ValueError for a row of another length.
        """
        known = self._known.get(id(logits))
        at = known[1] if known and known[0]() is logits else self._address(logits)
        token = self._function(at, self._n_vocab, scale, u, slack, *self._written)
        return token, self._squares.value

    def _address(self, logits: NDArray[np.float32]) -> Any:
        """What the function takes for a row. An engine's own has an address, which is kept: to ask takes longer."""
        if logits.shape != self._shape:
            raise ValueError(f"a row of logits is of shape {logits.shape}, {self._shape} is expected")
        try:
            if logits.dtype != _FLOAT32:
                raise TypeError
            at = ctypes.addressof(_FLOAT.from_buffer(logits))  # half of the time of asking numpy
        except TypeError:  # no array of the engine's own, not contiguous, or not to be written to
            return ctypes.byref(_FLOAT.from_buffer(np.array(logits, dtype=np.float32)))
        if len(self._known) >= _KEPT:
            self._known.clear()
        self._known[id(logits)] = ref(logits), at
        return at


@cache
def compiled() -> Callable[..., int] | None:
    """The function of `draw.cpp`, compiled at the first call of a machine; None where that does not work."""
    try:
        path = _library()
        try:
            return _load(path)
        except OSError:  # damaged: it is made again
            path.unlink()
            return _load(_library())
    except (OSError, AttributeError, subprocess.SubprocessError):
        return None


def _load(path: Path) -> Callable[..., int]:
    function: Any = ctypes.CDLL(str(path)).pti_draw
    function.restype = ctypes.c_int
    function.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_double, ctypes.c_double, ctypes.c_double,
                         ctypes.c_void_p, ctypes.c_void_p]  # fmt: skip
    found: Callable[..., int] = function
    return found


def _library() -> Path:
    """The compiled library by its source and its machine. Raises OSError or SubprocessError where it cannot be made."""
    compiler = cxx.compiler()
    if compiler is None:
        raise OSError(f"no C++ compiler ({', '.join(cxx.names())}) is on the PATH")
    key = hashlib.sha256(SOURCE.read_bytes())
    key.update("\0".join([compiler, platform.machine(), platform.system(), *_FLAGS]).encode())
    path = user_cache() / "pti-loop" / "draw" / f"{key.hexdigest()[:16]}.so"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        try:
            _compile(compiler, partial)
            partial.replace(path)  # two processes may compile at once
        finally:
            partial.unlink(missing_ok=True)
    return path


def _compile(compiler: str, out: Path) -> None:
    """With versions for several processors where the compiler makes them, else for the least of its kind."""
    command = [compiler, *_FLAGS, str(SOURCE), "-o", str(out)]
    common: dict[str, Any] = {"capture_output": True, "timeout": _SECONDS}
    if subprocess.run([*command, "-DPTI_CLONES"], **common).returncode:
        subprocess.run(command, check=True, **common)

"""The exponentials of a draw, by numpy or by the engine's own vector code, which takes a quarter of the time.

They are for machines on which `native_draw` cannot be compiled. It knows nothing about temperatures, keys or engines.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Weigh: TypeAlias = Callable[[NDArray[np.float32], float], None]
"""Replaces contiguous float32 (n,) by exp(value - top) in place; `top` is their maximum."""

FLOOR = -80.0
"""Log weights below it are raised to it: they change no sum, and denormal numbers would cost ten times the time."""
_SYMBOL = "ggml_vec_soft_max_f32"


def by_numpy(values: NDArray[np.float32], top: float) -> None:
    """The weights by numpy alone: float32 (n,) becomes exp(value - top) in place."""
    np.subtract(values, np.float32(top), out=values)
    # An array of floors: against a single number numpy takes three times as long.
    np.maximum(values, _floors(len(values)), out=values)
    np.exp(values, out=values)


@lru_cache(maxsize=8)
def _floors(size: int) -> NDArray[np.float32]:
    return np.full(size, FLOOR, dtype=np.float32)


def by_ggml(library: Path) -> Weigh:
    """The weights by ggml's vector code for this processor; by numpy where a build does not export it.

    `library` is the build's `ggml-cpu`.
    """
    try:
        function = getattr(ctypes.CDLL(str(library)), _SYMBOL)
    except (OSError, AttributeError):
        return by_numpy
    function.restype = ctypes.c_double
    function.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_float]

    def weigh(values: NDArray[np.float32], top: float) -> None:
        address = values.ctypes.data
        function(len(values), address, address, top)

    return weigh

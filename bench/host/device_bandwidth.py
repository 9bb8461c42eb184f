"""How fast a GPU's memory moves bytes: a copy inside the device, through the runtime that the engine has loaded.

A copy reads and writes, so both are counted; counting it once would halve the ceiling. It needs no compiler: the
runtime's C interface is the same in CUDA and HIP but for the names. Knows nothing about models.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.host.bandwidth import Bandwidth

_BYTES = 512 << 20
"""Each of two buffers: many times any device's cache."""
_COPIES = 8
_DEVICE_TO_DEVICE = 3
_RUNTIMES = {
    "cuda": ("libcudart.so.13", "libcudart.so.12", "libcudart.so"),
    "hip": ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"),
}


class NoDevice(RuntimeError):
    """There is no GPU runtime here, or it refuses; the sentence says which."""


def measure(repeats: int = 9, load: Callable[[str], ctypes.CDLL] = ctypes.CDLL) -> Bandwidth:
    """Copy a buffer over and over. `read_gb_s` is the best repeat, bytes read and written together. Takes milliseconds.

    Raises `NoDevice` when no runtime is found, memory is short, or a call fails.
    """
    prefix, runtime = _runtime(load)
    buffers = [_allocate(runtime, prefix) for _ in range(2)]
    try:
        _rate(runtime, prefix, buffers)  # the first pass maps the memory
        rates = [_rate(runtime, prefix, buffers) for _ in range(repeats)]
    finally:
        for buffer in buffers:
            getattr(runtime, f"{prefix}Free")(buffer)
    reader = f"{prefix} copy, read and written"
    return Bandwidth(max(rates), statistics.median(rates), tuple(rates), 1, _BYTES, reader, 0)


@contextmanager
def profiled(load: Callable[[str], ctypes.CDLL] = ctypes.CDLL) -> Iterator[None]:
    """A profiler that waits for the runtime's start counts what runs in here. Raises `NoDevice` without a runtime."""
    prefix, runtime = _runtime(load)
    _check(getattr(runtime, f"{prefix}ProfilerStart")(), f"{prefix}ProfilerStart")
    try:
        yield
    finally:
        _check(getattr(runtime, f"{prefix}DeviceSynchronize")(), f"{prefix}DeviceSynchronize")
        _check(getattr(runtime, f"{prefix}ProfilerStop")(), f"{prefix}ProfilerStop")


def _runtime(load: Callable[[str], ctypes.CDLL]) -> tuple[str, ctypes.CDLL]:
    for prefix, names in _RUNTIMES.items():
        for name in names:
            try:
                return prefix, load(name)
            except OSError:
                continue
    raise NoDevice("neither the CUDA nor the HIP runtime library can be loaded")


def _check(code: int, call: str) -> None:
    if code:
        raise NoDevice(f"{call} returned {code}")


def _allocate(runtime: ctypes.CDLL, prefix: str) -> ctypes.c_void_p:
    buffer = ctypes.c_void_p()
    _check(getattr(runtime, f"{prefix}Malloc")(ctypes.byref(buffer), ctypes.c_size_t(_BYTES)), f"{prefix}Malloc")
    _check(getattr(runtime, f"{prefix}Memset")(buffer, 1, ctypes.c_size_t(_BYTES)), f"{prefix}Memset")
    return buffer


def _rate(runtime: ctypes.CDLL, prefix: str, buffers: list[ctypes.c_void_p]) -> float:
    """GB/s of a few copies."""
    synchronize = getattr(runtime, f"{prefix}DeviceSynchronize")
    _check(synchronize(), f"{prefix}DeviceSynchronize")
    began = time.perf_counter_ns()
    for _ in range(_COPIES):
        code = getattr(runtime, f"{prefix}Memcpy")(
            buffers[1], buffers[0], ctypes.c_size_t(_BYTES), ctypes.c_int(_DEVICE_TO_DEVICE)
        )
        _check(code, f"{prefix}Memcpy")
    _check(synchronize(), f"{prefix}DeviceSynchronize")
    return 2 * _COPIES * _BYTES / (time.perf_counter_ns() - began)

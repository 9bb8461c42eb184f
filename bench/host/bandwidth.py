"""How fast this machine reads memory with a given number of threads: the ceiling that bounds a decode step.

The buffer should be as large as what a step reads (`bytes_`): a machine whose last-level cache holds part of them
reads them faster than its memory, and so does this. Knows nothing about models. Host memory only.
"""

from __future__ import annotations

import ctypes
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

MIN_BYTES = 64 << 20
MAX_BYTES = 192 << 20
"""Keeps a worker's memory small."""
PAGE = 4096
Part: TypeAlias = NDArray[np.uint8]
"""The bytes, uint8 (n,), that one thread reads."""
_FILL = 1
_ABSENT = 0
"""`memchr` reads every byte because it looks for one that is nowhere in the buffer."""


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """GB/s (1e9 bytes a second) read by all threads together. `read_gb_s`, a ceiling, is the best repeat."""

    read_gb_s: float
    median_gb_s: float
    repeats: tuple[float, ...]
    threads: int
    bytes: int
    reader: str
    cache_bytes: int
    """Last-level cache. A buffer that fits in it measures the cache: a ceiling still, but a loose one."""

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a record."""
        return {**asdict(self), "repeats": list(self.repeats)}


def measure(threads: int, bytes_: int = MAX_BYTES, repeats: int = 9, seconds: float = 0.04) -> Bandwidth:
    """Read a buffer over and over with `threads` threads, `repeats` times for about `seconds` each.

    Two ways of reading are tried and the faster one is used: which of them the C library or numpy has a fast loop for
    differs between platforms. Takes about (repeats + 4) x seconds and the buffer's bytes, which are freed on return.
    Raises `ValueError` for `threads` below 1.
    """
    if threads < 1:
        raise ValueError(f"threads is {threads}, below 1")
    size = min(max(bytes_, MIN_BYTES), MAX_BYTES)
    slice_bytes = size // threads // PAGE * PAGE
    buffer = np.empty(slice_bytes * threads, dtype=np.uint8)
    slices = [buffer[i * slice_bytes : (i + 1) * slice_bytes] for i in range(threads)]
    # Each thread writes its own part first, so that the pages lie in the memory next to it.
    _together([partial(part.fill, _FILL) for part in slices])
    _, name, read, passes = max(_calibrate(name, read, slices, seconds) for name, read in _readers())
    rates = tuple(_rate(read, slices, passes) for _ in range(repeats))
    return Bandwidth(max(rates), statistics.median(rates), rates, threads, buffer.nbytes, name, last_level_cache())


def _readers() -> list[tuple[str, Callable[[Part], object]]]:
    """Functions that read every byte of an array once, without holding the interpreter's lock."""
    return [("memchr", _memchr()), ("numpy", lambda part: part.view(np.int64).max())]


def _memchr() -> Callable[[Part], object]:
    function = ctypes.CDLL(None).memchr  # CDLL releases the lock during the call
    function.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
    function.restype = ctypes.c_void_p
    return lambda part: function(part.ctypes.data, _ABSENT, part.nbytes)


def _calibrate(name: str, read: Callable[[Part], object], slices: list[Part],
               seconds: float) -> tuple[float, str, Callable[[Part], object], int]:  # fmt: skip
    """(GB/s, name, reader, passes that take about `seconds`) of one reader, after a warm-up pass."""
    _rate(read, slices, 1)
    rate = _rate(read, slices, 1)
    total = sum(part.nbytes for part in slices)
    return rate, name, read, max(1, round(rate * 1e9 * seconds / total))


def _rate(read: Callable[[Part], object], slices: list[Part], passes: int) -> float:
    """GB/s of all slices read `passes` times, each by its own thread; from the first start to the last end."""

    def work(part: Part) -> None:
        for _ in range(passes):
            read(part)

    start, end = _together([partial(work, part) for part in slices])
    return passes * sum(part.nbytes for part in slices) / (end - start) / 1e9


def _together(jobs: list[Callable[[], None]]) -> tuple[float, float]:
    """Run the jobs at once, one thread each. Returns when the first began and the last ended, in seconds."""
    barrier = threading.Barrier(len(jobs))
    times: list[tuple[float, float]] = []

    def run(job: Callable[[], None]) -> None:
        barrier.wait()
        start = time.perf_counter()
        job()
        times.append((start, time.perf_counter()))

    workers = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return min(start for start, _ in times), max(end for _, end in times)


def last_level_cache(root: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> int:
    """Bytes of the largest cache that the first CPU sees; 0 when unknown."""
    sizes = [0]
    for path in root.glob("index*/size"):
        text = path.read_text().strip()
        unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
        digits = text.rstrip("KMG")
        sizes.append(int(digits) * unit if digits.isdigit() else 0)
    return max(sizes)

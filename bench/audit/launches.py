"""Launches of a kernel as a profiler tells them. None is missing, 0 is 0; it does not know what a kernel should do."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

RESOURCES = re.compile(
    r"vgpr|sgpr|lds|scratch|scr$|wave_?size|workgroup|grid|timestamp|(begin|end|duration|dispatch|complete)ns$|32B|"
    r"registers|__occupancy",
    re.IGNORECASE,
)
"""Columns in which 0 is a value: a kernel that spills nothing, a chip without accumulators, no small request."""


@dataclass(frozen=True)
class Launches:
    """One kernel in one table: how often it ran and what was counted. Times in microseconds, sizes in bytes."""

    kernel: str
    place: str
    calls: int
    us: float | None = None
    """Mean time of a launch."""
    us_low: float | None = None
    us_high: float | None = None
    share: float | None = None
    """Share of all kernels' time, 0 to 1."""
    registers: float | None = None
    dram_bytes: float | None = None
    """Bytes read from the device's memory by a launch."""
    hit_rate: float | None = None
    share_of_peak: float | None = None
    counters: dict[str, float] = field(default_factory=dict)
    """Every counter as the table names it, a mean over launches."""
    zeros: tuple[str, ...] = ()
    """Counters that read 0 in every launch."""
    absent: tuple[str, ...] = ()
    """Counters that have a column and no value."""

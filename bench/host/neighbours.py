"""What else ran on the machine since one last looked: load, CPU time of others and of the hypervisor, the GPU's users.

A neighbour that no lock keeps away shows here, and nowhere else in a record. Unknown is nan, or -1 for a count. It
knows nothing about what the numbers mean for a measurement.
"""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass
from pathlib import Path

UNKNOWN = -1
_IDLE, _WAITING, _STOLEN, _GUESTS = 3, 4, 7, 8
"""Places in the first line of /proc/stat; guests are counted as users, too."""


@dataclass(frozen=True, slots=True)
class Around:
    """Between two looks."""

    load: float
    """Processes that ran or waited, a mean of the last minute."""
    other_cpus: float
    """CPUs' worth of time that everything but this process took."""
    steal: float
    """CPUs' worth of time that the hypervisor gave to others while this machine wanted it."""
    gpu_others: int
    """Processes beside this one that hold something on the GPUs that this process may use."""


class Neighbours:
    """Looks around: each `look` is about the time since the one before."""

    def __init__(self, device: str = "cpu", proc: Path = Path("/proc")) -> None:
        self._device, self._proc = device, proc
        self._before = self._times()

    def look(self) -> Around:
        """Never raises: what the machine does not tell is unknown."""
        before, self._before = self._before, self._times()
        return Around(self._load(), *_between(before, self._before), self._gpu_others())

    def _times(self) -> tuple[float, float, float, float]:
        """Seconds: on the clock, of this process, of all CPUs at work, stolen."""
        clock, own = time.monotonic(), time.process_time()
        try:
            words = (self._proc / "stat").read_text().split("\n", 1)[0].split()[1:]
            ticks = [int(word) / os.sysconf("SC_CLK_TCK") for word in words]
            busy = sum(ticks[:_GUESTS]) - ticks[_IDLE] - ticks[_WAITING] - ticks[_STOLEN]
            return clock, own, busy, ticks[_STOLEN]
        except (OSError, ValueError, IndexError):
            return clock, own, math.nan, math.nan

    def _load(self) -> float:
        try:
            return float((self._proc / "loadavg").read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return math.nan

    def _gpu_others(self) -> int:
        if self._device == "cpu":
            return UNKNOWN
        try:
            import pynvml

            from bench.host import devices

            pynvml.nvmlInit()
            handles = [pynvml.nvmlDeviceGetHandleByUUID(gpu.id) for gpu in devices.visible() if gpu.vendor == "nvidia"]
            users = [one.pid for handle in handles for one in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)]
            # In a container the driver may give numbers of another name space, so this process is one of them, unnamed.
            return max(len(set(users)) - 1, 0) if handles else UNKNOWN
        except Exception:  # without the package, the driver or a card there is nobody to ask
            return UNKNOWN


def _between(before: tuple[float, ...], after: tuple[float, ...]) -> tuple[float, float]:
    """CPUs' worth of time of others, and stolen."""
    clock, own, busy, stolen = (later - earlier for earlier, later in zip(before, after, strict=True))
    if not clock > 0:
        return math.nan, math.nan
    return max((busy - own) / clock, 0.0) if busy == busy else math.nan, max(stolen / clock, 0.0)

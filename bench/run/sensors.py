"""What is read right after a run: the device's clock and temperature, what else ran, and the limits it worked under."""

from __future__ import annotations

from collections.abc import Callable

from bench.host.clocks import Clocks
from bench.host.energy import Meter
from bench.host.neighbours import Neighbours


def sensors(device: str) -> tuple[Callable[[], tuple[float, ...]], Meter, str]:
    """A reader of the columns that a run has of them, the counter of joules, and what is not told here.

    `device` is `cpu` or `gpu`.
    """
    clocks, meter = Clocks(device), Meter(device)
    neighbours = Neighbours(clocks.device)

    def sample() -> tuple[float, ...]:
        now, around, limits = clocks.sample(), neighbours.look(), meter.limits()
        return (now.clock_mhz, now.temp_c, around.load, around.other_cpus, around.steal, around.gpu_others,
                limits.power_w, limits.power_cap_w, limits.memory_mhz)  # fmt: skip

    return sample, meter, clocks.note

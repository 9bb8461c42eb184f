"""Energy that a device has taken, and the limits that it works under, where its driver tells. Unknown is nan, never 0.

Of CPUs that is RAPL's counters in sysfs (readable by root alone on most systems), of NVIDIA GPUs NVML, of AMD GPUs the
hwmon files of amdgpu, which tell a power and no energy. It knows nothing about runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.host import devices
from bench.host.clocks import read_number, read_text

_AMD_DRIVER = "amdgpu"
_MICRO, _MILLI = 1e-6, 1e-3


@dataclass(frozen=True, slots=True)
class Limits:
    """One reading. nan where the driver does not tell."""

    power_w: float
    """The driver's own figure of the power, of about the last tenth of a second to second."""
    power_cap_w: float
    memory_mhz: float
    """Clock of the device's memory."""


def _nan() -> float:
    return math.nan


class Meter:
    """Readers for one device: `cpu` with all its packages, or `gpu` with all that this process may use.

    A clock is the first GPU's; energies, powers and caps of several are added.
    """

    def __init__(self, device: str = "cpu", sys_root: Path = Path("/sys")) -> None:
        self.source = "none"
        self._joules: Callable[[], float] = _nan
        self._power: Callable[[], float] = _nan
        self._cap: Callable[[], float] = _nan
        self._memory: Callable[[], float] = _nan
        if device == "cpu":
            self._use_rapl(sys_root / "class/powercap")
        elif not self._use_nvidia():
            self._use_amd(devices.amd_sensors(sys_root))

    def joules(self) -> float:
        """Energy since some moment in the past; only differences mean something. Never raises."""
        return _read(self._joules)

    def limits(self) -> Limits:
        """Read now. Never raises: what went away is nan."""
        return Limits(_read(self._power), _read(self._cap), _read(self._memory))

    def _use_rapl(self, root: Path) -> None:
        packages = [_Package(folder) for folder in sorted(root.glob("*-rapl:*"))
                    if read_text(folder / "name").strip().startswith("package-")]  # fmt: skip
        if not packages:
            return
        self.source = "RAPL"
        self._joules = lambda: sum(package.joules() for package in packages)
        self._cap = lambda: sum(package.cap_w() for package in packages)

    def _use_nvidia(self) -> bool:
        try:
            import pynvml

            pynvml.nvmlInit()
            own = [gpu.id for gpu in devices.visible() if gpu.vendor == "nvidia"]
            cards = [pynvml.nvmlDeviceGetHandleByUUID(one) for one in own] or [pynvml.nvmlDeviceGetHandleByIndex(0)]
        except Exception:  # without the package, the driver or a card there is simply no NVIDIA device here
            return False
        self.source = "NVML"

        def total(ask: Callable[[Any], float]) -> float:
            return sum(ask(card) for card in cards) * _MILLI

        self._joules = lambda: total(pynvml.nvmlDeviceGetTotalEnergyConsumption)  # mJ, since Volta
        self._power = lambda: total(pynvml.nvmlDeviceGetPowerUsage)  # mW
        self._cap = lambda: total(pynvml.nvmlDeviceGetEnforcedPowerLimit)
        self._memory = lambda: float(pynvml.nvmlDeviceGetClockInfo(cards[0], pynvml.NVML_CLOCK_MEM))
        return True

    def _use_amd(self, cards: list[Path]) -> None:
        if not cards:
            return
        self.source = _AMD_DRIVER
        # Kernels from 6.6 on call it `input` on newer cards, and `average` on older ones, the MI50 among them.
        powers = [next((path for path in (folder / "power1_average", folder / "power1_input") if path.exists()),
                       folder / "power1_average") for folder in cards]  # fmt: skip
        self._power = lambda: sum(map(read_number, powers)) * _MICRO
        self._cap = lambda: sum(read_number(folder / "power1_cap") for folder in cards) * _MICRO
        label = next(iter(sorted(path for path in cards[0].glob("freq*_label") if read_text(path).strip() == "mclk")),
                     None)  # fmt: skip
        if label:
            self._memory = partial(_scaled, label.with_name(label.name.replace("label", "input")))


class _Package:
    """A CPU package's counter in microjoules, which begins again at 0 when it is full."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._full = read_number(folder / "max_energy_range_uj")
        self._turns, self._last = 0, 0.0

    def joules(self) -> float:
        """Grows for ever, as long as it is asked more often than the counter turns: every few minutes."""
        value = read_number(self._folder / "energy_uj")
        self._turns += value < self._last
        self._last = value
        return (value + (self._turns * self._full if self._turns else 0)) * _MICRO

    def cap_w(self) -> float:
        """The long-term limit."""
        for path in sorted(self._folder.glob("constraint_*_name")):
            if read_text(path).strip() == "long_term":
                return read_number(path.with_name(path.name.replace("name", "power_limit_uw"))) * _MICRO
        return math.nan


def _scaled(path: Path) -> float:
    """Megahertz of a file in hertz."""
    return read_number(path) * _MICRO


def _read(reader: Callable[[], float]) -> float:
    try:
        return float(reader())
    except Exception:  # a driver's own error classes are not worth importing: the value is unknown
        return math.nan

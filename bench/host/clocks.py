"""Clock and temperature of the device that works, read cheaply enough for every run. Unknown is nan, never 0.

A `Clocks` finds the files or the driver once; `sample()` only reads. It knows nothing about what the numbers mean for a
measurement: that a run was throttled is for others to say.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.host import devices

SAMPLE_LIMIT_S = 200e-6
"""A sample that costs more than this is not taken inside a timed block."""
_CPU_SENSORS = ("k10temp", "zenpower", "coretemp", "cpu_thermal", "acpitz")
_AMD_DRIVER = "amdgpu"


@dataclass(frozen=True, slots=True)
class Sample:
    """One reading. nan where the machine does not tell."""

    clock_mhz: float
    temp_c: float


def _nan() -> float:
    return math.nan


class Clocks:
    """Readers for one device: `cpu`, or `gpu` for the first NVIDIA or AMD GPU of this process that has sensors."""

    def __init__(self, device: str = "cpu", sys_root: Path = Path("/sys"), proc: Path = Path("/proc")) -> None:
        self.device = device
        self.clock: Callable[[], float] = _nan
        self.temperature: Callable[[], float] = _nan
        self.source = "none"
        if device == "cpu":
            self._use_cpu(sys_root, proc)
        elif not self._use_nvidia():
            self._use_amd(sys_root)
        self.cost_s = self._cost()

    def sample(self) -> Sample:
        """Read now. Never raises: a sensor that went away is nan."""
        return Sample(_read(self.clock), _read(self.temperature))

    @property
    def note(self) -> str:
        """What to say beside the numbers; empty when both are there and cheap."""
        missing = [name for name, value in zip(("clock", "temperature"), _values(self.sample()), strict=True)
                   if math.isnan(value)]  # fmt: skip
        words = [f"this machine does not tell the {self.device}'s {' or '.join(missing)}"] if missing else []
        if self.cost_s > SAMPLE_LIMIT_S:
            words.append(f"a sample takes {self.cost_s * 1e6:.0f} us")
        return "; ".join(words)

    def _cost(self, repeats: int = 5) -> float:
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            self.sample()
            times.append(time.perf_counter() - start)
        return sorted(times)[repeats // 2]

    def _use_cpu(self, sys_root: Path, proc: Path) -> None:
        scaling = sorted((sys_root / "devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_cur_freq"))[:16]
        if scaling:
            self.clock = lambda: max(read_number(path) for path in scaling) / 1e3
            self.source = "cpufreq"
        elif "cpu MHz" in read_text(proc / "cpuinfo"):
            self.clock = lambda: _cpuinfo_mhz(proc / "cpuinfo")
            self.source = "cpuinfo"
        sensor = _cpu_sensor(sys_root)
        if sensor:
            self.temperature = partial(_scaled, sensor, 1e3)

    def _use_nvidia(self) -> bool:
        try:
            import pynvml

            pynvml.nvmlInit()
            # The first card that this process may use, not the machine's first one.
            own = [gpu.id for gpu in devices.visible() if gpu.vendor == "nvidia"]
            handle = pynvml.nvmlDeviceGetHandleByUUID(own[0]) if own else pynvml.nvmlDeviceGetHandleByIndex(0)
            pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)
        except Exception:  # without the package, the driver or a card there is simply no NVIDIA device here
            return False
        self.clock = lambda: float(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM))
        self.temperature = lambda: float(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU))
        self.source = "nvml"
        return True

    def _use_amd(self, sys_root: Path) -> None:
        for folder in devices.amd_sensors(sys_root)[:1]:
            self.clock = partial(_scaled, folder / "freq1_input", 1e6)
            self.temperature = partial(_scaled, folder / "temp1_input", 1e3)
            self.source = _AMD_DRIVER


def _values(sample: Sample) -> tuple[float, float]:
    return sample.clock_mhz, sample.temp_c


def _read(reader: Callable[[], float]) -> float:
    try:
        return reader()
    except Exception:  # a driver's own error classes are not worth importing: the value is unknown
        return math.nan


def read_text(path: Path) -> str:
    """A sensor's file; empty where it cannot be read."""
    try:
        return path.read_text()
    except OSError:
        return ""


def read_number(path: Path) -> float:
    """The number in a sensor's file; nan where it cannot be read."""
    try:
        return float(path.read_text())
    except (OSError, ValueError):
        return math.nan


def _scaled(path: Path, units: float) -> float:
    """A sensor's number in its own units, so many of which make one of ours."""
    return read_number(path) / units


def _cpuinfo_mhz(path: Path) -> float:
    """Highest `cpu MHz` line: the busy core's clock."""
    found = [float(line.rpartition(":")[2]) for line in read_text(path).splitlines() if line.startswith("cpu MHz")]
    return max(found, default=math.nan)


def _cpu_sensor(sys_root: Path) -> Path | None:
    for folder in sorted((sys_root / "class/hwmon").glob("hwmon*")):
        if read_text(folder / "name").strip() in _CPU_SENSORS and (folder / "temp1_input").exists():
            return folder / "temp1_input"
    for folder in sorted((sys_root / "class/thermal").glob("thermal_zone*")):
        if "cpu" in read_text(folder / "type").lower() or "x86_pkg_temp" in read_text(folder / "type"):
            return folder / "temp"
    return None

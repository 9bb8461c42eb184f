"""Energy and limits from files as the kernel writes them: RAPL, and hwmon of an MI50; and NVML by its own names."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.host.energy import Meter

MAX = 65532610987


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(f"{text}\n")
    return folder


@pytest.fixture
def rapl(tmp_path: Path) -> Path:
    """A machine with two packages, a core domain below one, and the platform's own."""
    root = tmp_path / "class/powercap"
    write(root / "intel-rapl", enabled="1")
    for number, energy in enumerate((123_456_789, 1_000_000)):
        write(root / f"intel-rapl:{number}", name=f"package-{number}", energy_uj=str(energy),
              max_energy_range_uj=str(MAX), constraint_0_name="long_term", constraint_0_power_limit_uw="125000000",
              constraint_1_name="short_term", constraint_1_power_limit_uw="188000000")  # fmt: skip
    write(root / "intel-rapl:0:0", name="core", energy_uj="99", max_energy_range_uj=str(MAX))
    write(root / "intel-rapl:2", name="psys", energy_uj="7", max_energy_range_uj=str(MAX))
    return tmp_path


def test_packages_are_added_and_their_parts_are_not_counted_twice(rapl: Path) -> None:
    meter = Meter("cpu", rapl)
    assert meter.source == "RAPL"
    assert meter.joules() == pytest.approx(123.456789 + 1.0)
    assert meter.limits().power_cap_w == 250 and math.isnan(meter.limits().power_w)


def test_a_counter_that_begins_again_goes_on(rapl: Path) -> None:
    meter = Meter("cpu", rapl)
    place = rapl / "class/powercap/intel-rapl:0/energy_uj"
    place.write_text(f"{MAX - 1_000_000}\n")
    before = meter.joules()
    place.write_text("2000000\n")
    assert meter.joules() - before == pytest.approx(3.0)
    place.write_text("5000000\n")
    assert meter.joules() - before == pytest.approx(6.0)


def test_what_only_root_may_read_is_unknown(rapl: Path) -> None:
    for number in range(2):
        (rapl / f"class/powercap/intel-rapl:{number}/energy_uj").unlink()
    assert math.isnan(Meter("cpu", rapl).joules())


def test_a_machine_without_any_of_it_is_unknown(tmp_path: Path) -> None:
    for device in ("cpu", "gpu"):
        meter = Meter(device, tmp_path)
        assert math.isnan(meter.joules()) and all(map(math.isnan, (meter.limits().power_w, meter.limits().memory_mhz)))


def test_an_amd_gpu_tells_power_cap_and_memory_clock(tmp_path: Path) -> None:
    root = tmp_path / "class/hwmon"
    write(root / "hwmon0", name="k10temp", temp1_input="41000")
    write(root / "hwmon3", name="amdgpu", power1_average="118000000", power1_cap="225000000",
          power1_cap_max="225000000", freq1_input="1725000000", freq1_label="sclk",
          freq2_input="1000000000", freq2_label="mclk")  # fmt: skip
    meter = Meter("gpu", tmp_path)
    found = meter.limits()
    assert (meter.source, found.power_w, found.power_cap_w, found.memory_mhz) == ("amdgpu", 118, 225, 1000)
    assert math.isnan(meter.joules()), "a power at one moment is no energy"
    (root / "hwmon3/power1_average").rename(root / "hwmon3/power1_input")
    assert Meter("gpu", tmp_path).limits().power_w == 118


def test_an_nvidia_gpu_counts_millijoules_and_milliwatts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cards = {"GPU-a": 5_000_000, "GPU-b": 1_000_000}
    fake = SimpleNamespace(
        NVML_CLOCK_MEM=2, nvmlInit=lambda: None, nvmlDeviceGetHandleByUUID=lambda uuid: uuid,
        nvmlDeviceGetTotalEnergyConsumption=cards.__getitem__, nvmlDeviceGetPowerUsage=lambda _: 300_000,
        nvmlDeviceGetEnforcedPowerLimit=lambda _: 700_000,
        nvmlDeviceGetClockInfo=lambda _, kind: 2619 if kind == 2 else 0,
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    visible = [SimpleNamespace(id=name, vendor="nvidia") for name in cards]
    monkeypatch.setattr("bench.host.devices.visible", lambda: visible)
    meter = Meter("gpu", tmp_path)
    assert (meter.source, meter.joules()) == ("NVML", 6000)
    assert (meter.limits().power_w, meter.limits().power_cap_w, meter.limits().memory_mhz) == (600, 1400, 2619)

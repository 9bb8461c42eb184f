"""CPUs, memory and sensors, against files made for the test and the operating system's own figures."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from bench.errors import UserError
from bench.host import clocks, cpus, memory
from bench.host.pins import ROOT


def write(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def test_more_threads_than_cpus_are_refused() -> None:
    with pytest.raises(UserError, match=r"engine\.threads is 16, but this process may use 4 CPUs.*engine\.threads=4"):
        cpus.check_threads(16, available=4)
    with pytest.raises(UserError, match=r"engine\.threads is 0"):
        cpus.check_threads(0, available=4)
    assert cpus.check_threads(4, available=4) == 4
    with pytest.raises(UserError):
        cpus.check_threads(cpus.available_cpus() + 1)


def test_affinity_counts_not_the_machine() -> None:
    code = "from bench.host import cpus; print(cpus.available_cpus())"
    one = min(os.sched_getaffinity(0))
    done = subprocess.run(
        [sys.executable, "-c", f"import os; os.sched_setaffinity(0, {{{one}}}); {code}"],
        capture_output=True, text=True, cwd=ROOT, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "1"


@pytest.mark.parametrize(
    ("files", "lines", "quota"),
    [
        ({"cpu.max": "max 100000"}, "0::/", None),
        ({"cpu.max": "150000 100000"}, "0::/", 1.5),
        ({"a/cpu.max": "400000 100000", "cpu.max": "200000 100000"}, "0::/a", 2.0),
        ({"cpu,cpuacct/b/cpu.cfs_quota_us": "250000", "cpu,cpuacct/b/cpu.cfs_period_us": "100000"},
         "3:cpu,cpuacct:/b", 2.5),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, "3:cpu:/", None),
        ({}, "0::/gone", None),
    ],
)  # fmt: skip
def test_container_quota_of_both_cgroup_versions(
    tmp_path: Path, files: dict, lines: str, quota: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "cgroup"
    root.mkdir()
    for name, content in files.items():
        write(root / name, content)
    write(tmp_path / "proc/self/cgroup", lines + "\n")
    assert cpus.cgroup_cpu_quota(tmp_path / "proc", root) == quota
    monkeypatch.setattr(cpus, "cgroup_cpu_quota", lambda: quota)
    monkeypatch.setattr(cpus, "affinity_cpus", lambda: set(range(8)))
    assert cpus.available_cpus() == (8 if quota is None else math.floor(quota))


def test_physical_cores_from_topology(tmp_path: Path) -> None:
    for cpu, core in ((0, 0), (1, 0), (2, 1), (3, 1)):
        write(tmp_path / f"cpu{cpu}/topology/core_id", f"{core}\n")
        write(tmp_path / f"cpu{cpu}/topology/physical_package_id", "0\n")
    assert cpus.physical_cores({0, 1, 2, 3}, tmp_path) == 2
    assert cpus.physical_cores({0, 2}, tmp_path) == 2
    assert cpus.physical_cores({0, 7}, tmp_path) == 2, "without topology, CPUs count"


def test_memory_limit_is_the_smallest_one(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    write(root / "a/memory.max", "4000000000")
    write(root / "memory.max", "max")
    write(tmp_path / "proc/self/cgroup", "0::/a\n")
    assert memory.cgroup_memory_limit(tmp_path / "proc", root) == 4_000_000_000
    write(root / "memory/b/memory.limit_in_bytes", "9223372036854771712")
    write(root / "memory/memory.limit_in_bytes", "3000000000")
    write(tmp_path / "proc/self/cgroup", "4:memory:/b\n")
    assert memory.cgroup_memory_limit(tmp_path / "proc", root) == 3_000_000_000
    write(tmp_path / "proc/self/cgroup", "")
    assert memory.cgroup_memory_limit(tmp_path / "proc", root) is None


def test_process_memory_agrees_with_psutil_and_grows() -> None:
    before = memory.process_memory()
    assert before.rss == pytest.approx(psutil.Process().memory_info().rss, rel=0.05)
    block = bytearray(b"\1") * (64 << 20)
    after = memory.process_memory()
    assert 60 << 20 <= after.rss - before.rss <= 80 << 20
    assert 60 << 20 <= after.anonymous - before.anonymous <= 80 << 20
    assert after.pss <= after.rss <= after.peak_rss + 4096
    del block
    assert memory.total_memory() == psutil.virtual_memory().total


def test_memory_of_another_process_and_of_none() -> None:
    child = subprocess.Popen(["sleep", "5"])
    try:
        assert 0 < memory.process_memory(child.pid).rss < 64 << 20
    finally:
        child.kill()
        child.wait()
    with pytest.raises(ProcessLookupError):
        memory.process_memory(child.pid)


def test_cpu_clock_and_temperature_from_sysfs(tmp_path: Path) -> None:
    for cpu, khz in ((0, 1_200_000), (1, 3_400_000)):
        write(tmp_path / f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq", f"{khz}\n")
    write(tmp_path / "sys/class/hwmon/hwmon0/name", "nvme\n")
    write(tmp_path / "sys/class/hwmon/hwmon0/temp1_input", "31000\n")
    write(tmp_path / "sys/class/hwmon/hwmon1/name", "k10temp\n")
    sensor = write(tmp_path / "sys/class/hwmon/hwmon1/temp1_input", "64500\n")
    reader = clocks.Clocks("cpu", tmp_path / "sys", tmp_path / "proc")
    assert reader.sample() == clocks.Sample(3400.0, 64.5)
    assert (reader.source, reader.note) == ("cpufreq", "")
    sensor.unlink()
    assert math.isnan(reader.sample().temp_c), "a sensor that went away is unknown, no error"


def test_cpu_clock_from_cpuinfo_and_thermal_zone(tmp_path: Path) -> None:
    write(tmp_path / "proc/cpuinfo", "cpu MHz\t\t: 1200.5\nmodel name : x\ncpu MHz\t\t: 2445.4\n")
    write(tmp_path / "sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n")
    write(tmp_path / "sys/class/thermal/thermal_zone0/temp", "55000\n")
    assert clocks.Clocks("cpu", tmp_path / "sys", tmp_path / "proc").sample() == clocks.Sample(2445.4, 55.0)


def test_amd_gpu_sensors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks.Clocks, "_use_nvidia", lambda _: False)
    folder = tmp_path / "class/hwmon/hwmon3"
    for name, content in (("name", "amdgpu\n"), ("freq1_input", "1725000000\n"), ("temp1_input", "71000\n")):
        write(folder / name, content)
    assert clocks.Clocks("gpu", tmp_path).sample() == clocks.Sample(1725.0, 71.0)


def test_nvidia_gpu_sensors_by_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    import pynvml

    monkeypatch.setattr(pynvml, "nvmlInit", lambda: None)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByIndex", lambda _: "card")
    monkeypatch.setattr(pynvml, "nvmlDeviceGetClockInfo", lambda card, kind: {pynvml.NVML_CLOCK_SM: 1980}[kind])
    monkeypatch.setattr(pynvml, "nvmlDeviceGetTemperature", lambda card, kind: {pynvml.NVML_TEMPERATURE_GPU: 48}[kind])
    reader = clocks.Clocks("gpu")
    assert (reader.sample(), reader.source) == (clocks.Sample(1980.0, 48.0), "nvml")


def test_unknown_is_nan_and_says_so(tmp_path: Path) -> None:
    reader = clocks.Clocks("cpu", tmp_path, tmp_path)
    sample = reader.sample()
    assert math.isnan(sample.clock_mhz)
    assert math.isnan(sample.temp_c)
    assert reader.note == "this machine does not tell the cpu's clock or temperature"


def test_a_slow_sensor_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "_cpuinfo_mhz", lambda _: time.sleep(0.002) or 1000.0)
    monkeypatch.setattr(
        clocks.Clocks, "_use_cpu", lambda self, *_: setattr(self, "clock", lambda: clocks._cpuinfo_mhz(""))
    )
    reader = clocks.Clocks("cpu")
    assert reader.cost_s >= 0.002
    assert re.search(r"a sample takes \d{4,} us", reader.note)


def test_a_sample_here_is_cheap_or_says_so() -> None:
    reader = clocks.Clocks("cpu")
    assert reader.cost_s < clocks.SAMPLE_LIMIT_S or "a sample takes" in reader.note

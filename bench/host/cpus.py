"""The CPUs that this process may really use. Knows nothing about what they will do."""

from __future__ import annotations

import math
import os
from pathlib import Path

from bench.errors import UserError
from bench.host.memory import cgroup_paths


def affinity_cpus() -> set[int]:
    """CPUs that the scheduler may put this process on."""
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))


def cgroup_cpu_quota(proc: Path = Path("/proc"), root: Path = Path("/sys/fs/cgroup")) -> float | None:
    """CPUs' worth of time that a container grants (1.5 is one and a half); None when there is no quota."""
    quotas = []
    for folder in cgroup_paths("cpu", proc, root):
        quota = _quota(folder)
        if quota is not None:
            quotas.append(quota)
    return min(quotas, default=None)


def _quota(folder: Path) -> float | None:
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text().strip()
            period = (folder / "cpu.cfs_period_us").read_text().strip()
        if quota in ("max", "-1") or int(period) <= 0:
            return None
        return int(quota) / int(period)
    except (OSError, ValueError):
        return None


def available_cpus() -> int:
    """Threads that can run at once here: affinity, and a container's quota rounded down, at least 1."""
    quota = cgroup_cpu_quota()
    count = len(affinity_cpus())
    return max(1, min(count, math.floor(quota))) if quota else count


def physical_cores(cpus: set[int] | None = None, root: Path = Path("/sys/devices/system/cpu")) -> int:
    """Physical cores among the CPUs given (default: those of this process); the CPUs themselves when unknown."""
    cpus = affinity_cpus() if cpus is None else cpus
    cores = set()
    for cpu in cpus:
        try:
            topology = root / f"cpu{cpu}" / "topology"
            cores.add(((topology / "physical_package_id").read_text(), (topology / "core_id").read_text()))
        except OSError:
            return len(cpus)
    return len(cores)


def check_threads(threads: int, available: int | None = None) -> int:
    """Return `threads` when they can all run at once. Raises `UserError`.

    More threads than CPUs make llama.cpp's spinning barriers wait for threads that cannot run: 10 to 100 times slower,
    and no property of the method that is measured.
    """
    available = available_cpus() if available is None else available
    if threads < 1:
        raise UserError(f"engine.threads is {threads}; at least 1 thread is needed, try engine.threads={available}")
    if threads > available:
        raise UserError(
            f"engine.threads is {threads}, but this process may use {available} CPUs (affinity and container limits); "
            f"set engine.threads={available} or less"
        )
    return threads

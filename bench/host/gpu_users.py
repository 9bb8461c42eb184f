"""Which other processes hold something on the GPUs that this process may use, by number and name.

It asks NVIDIA's driver, or what the kernel tells of AMD's compute processes. It does not know what they do there.
"""

from __future__ import annotations

import os
from pathlib import Path

from bench.host import devices

KFD = Path("/sys/class/kfd/kfd/proc")


def others(proc: Path = Path("/proc"), kfd: Path = KFD) -> list[str]:
    """`NAME (PID)` of each process beside this one and those that it came from; empty where none is known."""
    makers = {card.vendor for card in devices.visible()}
    found = set(_nvidia()) if "nvidia" in makers else set[int]()
    found |= set(_amd(kfd)) if "amd" in makers else set()
    return [f"{_name(pid, proc)} ({pid})" for pid in sorted(found - _own(proc))]


def _nvidia() -> list[int]:
    try:
        import pynvml

        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByUUID(card.id) for card in devices.visible() if card.vendor == "nvidia"]
        return [int(one.pid) for handle in handles for one in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)]
    except Exception:  # without the package, the driver or a card there is nobody to ask
        return []


def _amd(kfd: Path) -> list[int]:
    """Compute processes of the kernel's driver that hold memory of a card; their numbers are names of folders."""
    try:
        folders = [path for path in kfd.iterdir() if path.name.isdecimal()]
    except OSError:
        return []
    return [int(path.name) for path in folders if any(_bytes(file) for file in path.glob("vram_*"))]


def _bytes(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0


def _own(proc: Path) -> set[int]:
    """This process and those above it, whose device it may have been given."""
    found, pid = {os.getpid()}, os.getppid()
    while pid > 1 and pid not in found:
        found.add(pid)
        try:
            pid = int((proc / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            break
    return found


def _name(pid: int, proc: Path) -> str:
    """What the kernel calls it; a process of another name space has none here."""
    try:
        return (proc / str(pid) / "comm").read_text().strip() or "a process"
    except OSError:
        return "a process"

"""Memory of a process and what it may use, in bytes. Reads /proc and cgroups; psutil where there is no /proc."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_UNLIMITED = 1 << 60
"""cgroup v1 writes a huge number where v2 writes `max`."""


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """Resident bytes of one process; None when unknown."""

    rss: int
    pss: int | None
    """Like rss, but pages of mapped files are divided among the processes that map them."""
    peak_rss: int | None
    anonymous: int | None
    """Not backed by a file: what the process allocated itself, without mapped weights."""


def process_memory(pid: int | str = "self", proc: Path = Path("/proc")) -> ProcessMemory:
    """Memory of a process now. Raises `ProcessLookupError` when there is none."""
    folder = proc / str(pid)
    status = _fields(folder / "status")
    if not status:
        return _from_psutil(pid)
    rollup = _fields(folder / "smaps_rollup")
    return ProcessMemory(status.get("VmRSS", 0), rollup.get("Pss"), status.get("VmHWM"), status.get("RssAnon"))


def _from_psutil(pid: int | str) -> ProcessMemory:
    import psutil

    try:
        process = psutil.Process(None if pid == "self" else int(pid))
        return ProcessMemory(process.memory_info().rss, None, None, None)
    except psutil.NoSuchProcess as error:
        raise ProcessLookupError(f"there is no process {pid}") from error


def _fields(path: Path) -> dict[str, int]:
    """`Name: 12 kB` lines of a file of /proc, in bytes; empty when it cannot be read."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        name, _, rest = line.partition(":")
        words = rest.split()
        if len(words) == 2 and words[1] == "kB":
            found[name] = int(words[0]) * 1024
    return found


def total_memory() -> int:
    """Bytes of the machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def cgroup_paths(controller: str, proc: Path = Path("/proc"), root: Path = Path("/sys/fs/cgroup")) -> list[Path]:
    """Folders that limit this process, innermost first, in cgroup v2 or the controller's v1 hierarchy."""
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return []
    folders: list[Path] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            base = root
        elif controller in controllers.split(","):
            base = root / controllers if (root / controllers).is_dir() else root / controller
        else:
            continue
        inside = base / path.lstrip("/")
        folders += [folder for folder in (inside, *inside.parents) if folder == base or base in folder.parents]
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]


def cgroup_memory_limit(proc: Path = Path("/proc"), root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """The smallest memory limit that a container or slice sets for this process; None when there is none."""
    limits = []
    for folder in cgroup_paths("memory", proc, root):
        for name in ("memory.max", "memory.limit_in_bytes"):
            try:
                text = (folder / name).read_text().strip()
            except OSError:
                continue
            if text.isdigit() and int(text) < _UNLIMITED:
                limits.append(int(text))
    return min(limits, default=None)


def usable_memory() -> int:
    """Bytes that this process could have at most: the machine's, or its container's."""
    limit = cgroup_memory_limit()
    return min(total_memory(), limit) if limit else total_memory()


def meminfo_available(proc: Path = Path("/proc")) -> int | None:
    """Bytes of the machine that could be taken without paging, by the kernel's own estimate; None where it has none."""
    return _fields(proc / "meminfo").get("MemAvailable")


def give_back() -> None:
    """Return to the system what the process has freed, so that it does not stand in for what is allocated next."""
    import ctypes

    with suppress(OSError, AttributeError):  # another C library than glibc keeps what it keeps
        ctypes.CDLL(None).malloc_trim(0)

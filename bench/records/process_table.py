"""Which processes of this host still run, and what the host is called in the names of files on a shared disk.

Two hosts may have one name, and two containers of one host have process numbers of their own: the name here ends in a
few digits of the boot and of the table that the numbers are of. It knows nothing about what a process does.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
from functools import cache
from pathlib import Path

_DIGITS = 8
_STARTED = 19
"""Which word behind the name in /proc/PID/stat says when the process started."""


@cache
def host() -> str:
    """This host, and the table of its processes, in letters that cannot part a file name."""
    return f"{name_of_host()}-{table()}"


def name_of_host() -> str:
    """What this host is called, in letters that cannot part a file name."""
    return re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname()) or "host"


@cache
def table(proc: Path = Path("/proc")) -> str:
    """A few digits that processes have in common whose numbers are of one table, since one start of the machine."""
    return hashlib.sha256(f"{boot(proc)} {_namespace(proc)}".encode()).hexdigest()[:_DIGITS]


def boot(proc: Path = Path("/proc")) -> str:
    """What the kernel calls this start of the machine; empty where it does not tell."""
    try:
        return (proc / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _namespace(proc: Path) -> str:
    try:
        return os.readlink(proc / "self/ns/pid")
    except OSError:
        return ""


def runs(pid: int | str, started: str = "") -> bool:
    """Whether a process of this number runs, and is the one that `started` then, where that is told.

    One that has ended and waits to be collected does not.
    """
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    words = _stat(pid)
    if not words:
        return True
    return words[0] not in "ZX" and (not started or words[_STARTED] == started)


def started() -> str:
    """When this process started, as the kernel counts it; empty where it does not tell."""
    words = _stat("self")
    return words[_STARTED] if words else ""


def _stat(pid: int | str) -> list[str]:
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
    return words if len(words) > _STARTED else []

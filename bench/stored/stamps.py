"""How a cell's files lay on the disk when all of them were read, so that one that nothing touched is not read again.

A stamp is name, size, number and both times of every file. Whoever writes to a file moves its time of change, which no
program sets back; a cell that was touched shortly before it was read has no stamp, for a second writing within one tick
of the clock would not show. It knows nothing about what is in a file.
"""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

from bench.records.bounded import read_bytes
from bench.records.cells import MOST_TEXT_BYTES, file_contents
from bench.stored.cache_files import keep, place_of

SETTLED_NS = 2_000_000_000
"""Coarser than the clock of any file system that keeps a time of change."""
_PARTS = 3


class Stamps:
    """Those in one folder of the user's cache."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def digest(self, cell: Path) -> str:
        """Hash of every byte of a cell, read only where something touched it; empty where a file cannot be read."""
        began = time.time_ns()
        try:
            stamp, newest = stamp_of(cell)
        except OSError:
            return digest_of(cell)
        place = self._place(cell)
        if found := _known(place, stamp):
            return found
        digest = digest_of(cell)
        if digest and newest < began - SETTLED_NS:
            keep(place, f"{stamp} {digest} {_seal(place, stamp, digest)}\n".encode())
        return digest

    def _place(self, cell: Path) -> Path:
        return place_of(self._folder, hashlib.sha256(os.fsencode(cell.absolute())).hexdigest())


def digest_of(cell: Path) -> str:
    """Hash of every byte of a cell, all read; empty where a file cannot be. Whoever judges it says why."""
    try:
        contents = file_contents(cell)
        contents["status.json"] = read_bytes(cell / "status.json", MOST_TEXT_BYTES)
    except (OSError, ValueError):
        return ""
    found = hashlib.sha256()
    for name, content in contents.items():
        found.update(f"{name} {len(content)}\n".encode() + content)
    return found.hexdigest()


def stamp_of(cell: Path) -> tuple[str, int]:
    """The stamp, and the newest time in it in nanoseconds. Raises OSError."""
    with os.scandir(cell) as entries:
        told = {entry.name: entry.stat() for entry in entries}
    found = [(name, one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns)
             for name, one in sorted(told.items())]  # fmt: skip
    newest = max((max(one.st_mtime_ns, one.st_ctime_ns) for one in told.values()), default=0)
    return hashlib.sha256(repr(found).encode(errors="surrogateescape")).hexdigest(), newest


def _known(place: Path, stamp: str) -> str:
    try:
        parts = place.read_text("ascii").split()
    except (OSError, ValueError):
        return ""
    if len(parts) != _PARTS or parts[0] != stamp or parts[2] != _seal(place, *parts[:2]):
        return ""
    return parts[1]


def _seal(place: Path, *parts: str) -> str:
    """Ties what a file says to its name."""
    return hashlib.sha256(" ".join((place.name, *parts)).encode()).hexdigest()

"""Names of cell folders that are being written or replaced, and what becomes of those that a killed process left.

A name tells its cell, host and process, so that nothing is taken for a leftover but what a process of this host that
has ended left behind: not a `.git`, not the cell that another host or container is writing into the same folder.
It knows nothing about what is in a cell beyond its status.json, and reads none.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from bench.records.process_table import host, name_of_host, runs

PARTIAL, ASIDE = "partial", "aside"
"""A cell that is not whole yet, and a whole one that steps aside while another takes its place."""
OLD_S = 24 * 3600.0
"""A cell is written within seconds, so that whatever is a day old is written by nobody."""

_NAME = re.compile(
    r"\.(?P<cell>[\w-]+)\.(?P<host>[A-Za-z0-9-]+)\.(?P<pid>[1-9][0-9]*)\.[a-z0-9_]{8}\.(?P<kind>partial|aside)"
)


class Leftover(NamedTuple):
    """A folder of ours whose process has ended."""

    path: Path
    cell: str
    kind: str


def write_whole(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write a folder with these files, by their paths in it and in this order, whole or not at all. Raises `OSError`.

    What was there is replaced; its parent has to be there.
    """
    partial = make_partial(folder)
    try:
        for name, content in contents.items():
            (partial / name).parent.mkdir(parents=True, exist_ok=True)
            write_through(partial / name, content)
        os.chmod(partial, 0o755)
        put_in_place(partial, folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def make_partial(folder: Path) -> Path:
    """Make the empty folder that becomes the cell `folder`, beside it: the same disk, or renaming would be copying."""
    made = tempfile.mkdtemp(prefix=f".{folder.name}.{host()}.{os.getpid()}.", suffix=f".{PARTIAL}", dir=folder.parent)
    return Path(made)


def write_through(path: Path, content: bytes) -> None:
    """Write a file so that it is on the disk when this returns, not only in the system's memory. Raises `OSError`."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """The names in a folder, too. Some network disks cannot, and lose no more by it than before."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def put_in_place(partial: Path, folder: Path) -> None:
    """Rename over an existing cell: the old one steps aside first, so a reader sees one whole cell or none.

    Where the second renaming fails the old cell comes back; where a kill prevents it, `clear_leftovers` brings it back.
    """
    aside = partial.with_suffix(f".{ASIDE}")
    _sync_folder(partial)
    try:
        if folder.exists():
            folder.rename(aside)
        partial.rename(folder)
    except BaseException:
        if aside.exists() and not folder.exists():
            aside.rename(folder)
        raise
    _sync_folder(folder.parent)
    shutil.rmtree(aside, ignore_errors=True)


def clear_leftovers(machine_folder: Path) -> None:
    """Put back the cells that a killed process had set aside, and remove what it had half written."""
    for left in list(_leftovers(machine_folder)):
        place = machine_folder / left.cell
        if left.kind == ASIDE and not place.exists():
            left.path.rename(place)
        elif left.kind == PARTIAL or (place / "status.json").exists():
            shutil.rmtree(left.path, ignore_errors=True)


def _leftovers(machine_folder: Path) -> Iterator[Leftover]:
    for path in machine_folder.glob(".*"):
        named = _NAME.fullmatch(path.name)
        if named and path.is_dir() and not path.is_symlink() and _has_ended(path, named["host"], named["pid"]):
            yield Leftover(path, named["cell"], named["kind"])


def _has_ended(path: Path, of_host: str, pid: str) -> bool:
    """Whether the process that a folder is of writes it no more."""
    if of_host == host():
        return not runs(pid)
    if re.sub(r"-[0-9a-f]{8}$", "", of_host) != name_of_host():
        return False
    with suppress(OSError):  # of this host before it was started again, or of another one with its name
        return time.time() - path.stat().st_mtime > OLD_S
    return False

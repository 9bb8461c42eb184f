"""Which sweep measures a cell at this moment: a small file beside the cell's folder that says host, process and when.

Whoever takes a cell renews the file's time while it measures. A file whose process has ended on this host, or that
nobody has renewed for long on another one, counts for nothing, and the cell is taken again under the next number. So
two sweeps into one folder, on one host or on several, share the cells, and one that is lost gives back what it had.
It needs of a shared disk only that making a file that is there already fails. It knows nothing about measuring.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.records.bounded import json_value, read_text
from bench.records.cells import read_status
from bench.records.process_table import host, name_of_host, runs, started

BEAT_S = 15.0
STALE_S = 150.0
"""Without a beat for so long another host's process counts as lost."""
_MOST_BYTES = 4096
_NAME = re.compile(r"\.(?P<cell>[\w-]+)\.(?P<number>[1-9][0-9]{0,8})\.taken")
_ours: dict[Path, Path] = {}
"""The files of this process, by the folders of their cells."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who measures a cell."""

    host: str
    pid: int
    silent_s: float
    """Seconds since the last beat, by the clock of the disk."""

    @property
    def words(self) -> str:
        """As a sentence says it."""
        return f"process {self.pid} of {self.host} (heard of {max(self.silent_s, 0):.0f} s ago)"


class Taken:
    """Context manager of a cell that this process has taken; leaving it gives the cell back."""

    def __init__(self, folder: Path, path: Path) -> None:
        self._folder, self._path = folder, path
        self._end = threading.Event()

    def __enter__(self) -> Taken:
        _ours[self._folder] = self._path
        threading.Thread(target=self._beat, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        _ours.pop(self._folder, None)
        # The lower numbers first: whoever looks meanwhile sees the cell taken, or free and done.
        for path in _files(self._folder):
            if _number(path) <= _number(self._path):
                with suppress(OSError):  # one that stays says that a process which has ended has the cell
                    path.unlink()

    def _beat(self) -> None:
        while not self._end.wait(BEAT_S):
            with suppress(OSError):
                os.utime(self._path)


def file_of(folder: Path) -> Path | None:
    """The file by which this process has the cell of a folder; None where it has not taken it."""
    return _ours.get(folder)


def take(folder: Path) -> Taken | Holder:
    """Take the cell of a folder, or tell who has it. Raises `OSError`."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    while True:
        files = _files(folder)
        if files and (holder := _holder(files[-1])):
            return holder
        path = folder.parent / f".{folder.name}.{_number(files[-1]) + 1 if files else 1}.taken"
        if _make(path):
            return Taken(folder, path)


def clear_taken(machine_folder: Path) -> None:
    """Remove the files that lost processes left of cells that are done: nobody takes these any more."""
    for path in machine_folder.glob(".*.taken"):
        named = _NAME.fullmatch(path.name)
        status = read_status(machine_folder / named["cell"]) if named else None
        if status is not None and status["state"] == "done" and _holder(path) is None:
            path.unlink(missing_ok=True)


def is_newest(path: Path) -> bool:
    """Whether a file that says who measures a cell is there, and none of a higher number."""
    named = _NAME.fullmatch(path.name)
    found = _files(path.parent / named["cell"]) if named else []
    return bool(found) and found[-1] == path


def _make(path: Path) -> bool:
    """Make the file; False where another process was quicker. Raises `OSError`."""
    told = {"host": host(), "name": name_of_host(), "pid": os.getpid(), "started": started(), "since": time.time()}
    try:
        with path.open("x") as file:
            file.write(json.dumps(told))
    except FileExistsError:
        return False
    return True


def _files(folder: Path) -> list[Path]:
    """The files of a cell, by their numbers."""
    found = [path for path in folder.parent.glob(f".{folder.name}.*.taken") if _NAME.fullmatch(path.name)]
    return sorted(found, key=_number)


def _number(path: Path) -> int:
    named = _NAME.fullmatch(path.name)
    return int(named["number"]) if named else 0


def _holder(path: Path) -> Holder | None:
    """Who has the cell by this file; None where that is nobody any more."""
    try:
        told = _told(path)
    except FileNotFoundError:  # given back meanwhile
        return None
    except (OSError, ValueError, TypeError, KeyError):  # of no use, or being written
        told = {"host": "", "name": "another host", "pid": 0, "started": ""}
    if told["host"] == host() and not runs(told["pid"], told["started"]):
        return None
    silent = _silence(path)
    return None if told["host"] != host() and silent >= STALE_S else Holder(told["name"], told["pid"], silent)


def _told(path: Path) -> dict[str, Any]:
    """What a file says. Raises `OSError`, and `ValueError` or its like for what is none of ours."""
    told = json_value(read_text(path, _MOST_BYTES))
    return {"pid": int(told["pid"])} | {key: str(told[key]) for key in ("host", "name", "started")}


def _silence(path: Path) -> float:
    """Seconds since the last beat, by the disk's own clock, which is what the files' times are told by."""
    try:
        with tempfile.TemporaryFile(dir=path.parent) as file:
            return os.fstat(file.fileno()).st_mtime - path.stat().st_mtime
    except FileNotFoundError:
        return STALE_S
    except OSError:
        return 0.0

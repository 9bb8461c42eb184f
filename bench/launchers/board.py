"""What the workers of a launch tell each other: who said a fact first, how far a shard is, and whether to stop.

A board on a disk that all share is a folder of small files, each made once and whole. It knows nothing about what the
facts are of.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Protocol

_STOP, _MARK = "stop", "mark"


class Board(Protocol):
    """What every worker of a launch can reach."""

    def first(self, key: str, value: str, who: str) -> tuple[str, str]:
        """The value that was told first of `key`, this one where none was, and who told it."""

    def tell(self, shard: int, ended: int, what: str) -> None:
        """So many cells of a shard have ended, `what` last."""

    def told(self) -> dict[int, tuple[int, str]]:
        """What was told of each shard."""

    def stop(self) -> None:
        """Ask all workers to end, keeping what they have finished."""

    def is_stopped(self) -> bool:
        """Whether they were asked to."""


class FolderBoard:
    """A board in a folder that all workers see."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def first(self, key: str, value: str, who: str) -> tuple[str, str]:
        """See `Board`. Raises `OSError`."""
        path = self.folder / f"first-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
        if not path.exists():
            self._put(path, [key, value, who], over=False)
        _, told, by = json.loads(path.read_text())
        return str(told), str(by)

    def tell(self, shard: int, ended: int, what: str) -> None:
        """See `Board`."""
        with suppress(OSError):  # a line of progress is not worth a measurement
            self._put(self.folder / f"shard-{shard}.json", [ended, what], over=True)

    def told(self) -> dict[int, tuple[int, str]]:
        """See `Board`."""
        found: dict[int, tuple[int, str]] = {}
        for path in self.folder.glob("shard-*.json"):
            with suppress(OSError, ValueError):
                ended, what = json.loads(path.read_text())
                found[int(path.stem.removeprefix("shard-"))] = (int(ended), str(what))
        return found

    def stop(self) -> None:
        """See `Board`."""
        (self.folder / _STOP).touch()

    def is_stopped(self) -> bool:
        """See `Board`. A folder that was removed has nobody any more who waits."""
        return (self.folder / _STOP).exists() or not self.folder.exists()

    def mark(self, word: str) -> None:
        """Leave a word by which a worker knows the folder, wherever it is mounted."""
        (self.folder / _MARK).write_text(word)

    def is_marked(self, word: str) -> bool:
        """Whether this host sees the folder that was marked so."""
        with suppress(OSError):
            return (self.folder / _MARK).read_text() == word
        return False

    def _put(self, path: Path, value: object, over: bool) -> None:
        descriptor, name = tempfile.mkstemp(dir=self.folder)
        try:
            with os.fdopen(descriptor, "w") as file:
                json.dump(value, file)
            if over:
                os.replace(name, path)
            else:
                with suppress(FileExistsError):
                    os.link(name, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(name)

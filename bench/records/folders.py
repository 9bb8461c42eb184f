"""Where stored cells lie: `<root>/<machine>/<cell>/`, whatever else lies there. It opens no file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

KERNELS = "kernels"
"""Folder of a machine's kernel records, beside its cells."""
UNREADABLE = "*"
"""Stands for all cells of a machine whose folder cannot be listed: no cell's name has that letter."""

FIRST_FILES = ("status.json", "cell.yaml")


def cell_folders(root: Path) -> list[Path]:
    """Folders of the cells below `root`, by machine and id, not looking into the committed reference.

    A cell has one of its two first files, were it only a link to nowhere: whoever removed the other left a damaged one.
    What cannot be looked into is told as a cell too, and reading it says why. A folder that is linked twice is one.
    """
    # A cell of the reference lies one folder deeper, so it is not reached.
    return _once(_below(root, FIRST_FILES, unreadable=True))


def has_cells(root: Path) -> bool:
    """Whether there is any: the others are not looked at."""
    return any(True for _ in _below(root, FIRST_FILES, unreadable=True))


def folders_with(root: Path, name: str, files: Iterable[str]) -> list[Path]:
    """Folders `<machine>/<name>` below `root` that have one of some files."""
    return _once(_below(root, tuple(files), unreadable=False, name=name))


def _below(root: Path, files: tuple[str, ...], unreadable: bool, name: str = "") -> Iterator[Path]:
    """With a `name`, the folders that are called so alone."""
    with suppress(OSError):  # the root itself: the caller knows whether there is one
        for machine in sorted(_folders(root)):
            try:
                found = sorted(path for path in _folders(machine) if not name or path.name == name)
            except OSError:
                found = [machine / UNREADABLE] if unreadable else []
            for path in found:
                if path.name == UNREADABLE or (path.name[0] != "." and any(_is_there(path / file) for file in files)):
                    yield path


def _folders(folder: Path) -> list[Path]:
    """The folders in one, links to folders too. A loop of links is none. Raises `OSError`."""
    with os.scandir(folder) as entries:
        return [Path(entry.path) for entry in entries if _is_folder(entry)]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_there(path: Path) -> bool:
    """Whether a name is there, whatever it is; true where nobody may look."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _is_linked(path: Path) -> bool:
    return os.path.islink(path) or os.path.islink(path.parent)


def _once(paths: Iterable[Path]) -> list[Path]:
    found: dict[object, Path] = {}
    for path in sorted(paths, key=_is_linked):  # itself before a link
        key: object = path
        with suppress(OSError):
            status = path.stat()
            key = (status.st_dev, status.st_ino)
        found.setdefault(key, path)
    return sorted(found.values(), key=lambda path: (path.parent.name, path.name))

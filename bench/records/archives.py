"""One file of many cells, as it travels: a tar archive of `<machine>/<cell>/<file>`, packed with xz, gzip or not.

Kernel records stand beside the cells, and `contribution.json` tells what was packed. An archive comes from anybody:
nothing leaves the folder that it is unpacked into, no link and no device is made, and little cannot unpack to much. It
knows nothing about what is in a cell; `bench.records.cells.read_cell` checks that.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import lzma
import os
import re
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple, cast

from bench.errors import UserError
from bench.records.bounded import MOST_BYTES, json_value
from bench.records.folders import KERNELS
from bench.records.manifest import FILES

ABOUT = "contribution.json"
FORMAT = 1
SUFFIXES = (".tar.xz", ".tar.gz", ".tgz", ".tar")
MOST_UNPACKED = 64 << 30
"""Of one archive: some 400,000 cells as they are measured."""
MOST_A_CELL = 256 << 20
MOST_KERNEL_FILES = 2000
STATUS = "status.json"
_STARTS = {b"\xfd7zXZ\x00": "xz", b"\x1f\x8b": "gz"}
_MACHINE = re.compile(r"\w[\w.-]{0,199}")
_CELL = re.compile(r"[\w-]{1,64}")
_KERNEL_FILE = re.compile(r"env\.json|timings\.csv\.gz|static\.csv|counters/[\w.-]{1,200}\.csv")
_BROKEN = (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error, tarfile.TarError)


class PackedCell(NamedTuple):
    """One folder: a cell's, or a machine's kernel records (`cell` is `kernels`)."""

    machine: str
    cell: str
    contents: dict[str, bytes]

    @property
    def name(self) -> str:
        """What it is called in sentences and in `contribution.json`."""
        return f"{self.machine}/{self.cell}"

    @property
    def digest(self) -> str:
        """SHA-256 over its files and their names."""
        found = hashlib.sha256()
        for name in sorted(self.contents):
            found.update(f"{name} {len(self.contents[name])}\n".encode() + self.contents[name])
        return found.hexdigest()


@dataclass
class Unpacked:
    """What came out of an archive."""

    folders: list[Path] = field(default_factory=list)
    """Of the cells, in the order of the archive."""
    kernels: list[Path] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """A sentence on each thing that is not as it should be; what is sound was unpacked all the same."""
    ignored: int = 0
    """Files that are no part of a cell."""


def is_archive(path: Path) -> bool:
    """Whether a file is an archive by its first bytes; its name does not count."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file, _plain(file, file.peek(6)) as plain:
            head = plain.read(512)
    except _BROKEN:
        return path.name.endswith(SUFFIXES)
    return len(head) == 512 and head[257:262] == b"ustar"


def write_archive(path: Path, cells: Iterable[PackedCell], about: Mapping[str, Any]) -> dict[str, str]:
    """Write an archive whole or not at all; returns the digest of each cell, by name.

    The same cells give the same bytes: nobody's name, rights or clock is in it. Raises OSError.
    """
    descriptor, made = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    digests: dict[str, str] = {}
    try:
        with os.fdopen(descriptor, "wb") as raw, _packer(path.name, raw) as packed, _tar(packed) as tar:
            for one in cells:
                digests[one.name] = one.digest
                for name in sorted(one.contents):
                    _add(tar, f"{one.name}/{name}", one.contents[name])
            told = {"format": FORMAT, **about, "cells": digests}
            _add(tar, ABOUT, (json.dumps(told, indent=1, sort_keys=True) + "\n").encode())
        os.chmod(made, 0o644)
        os.replace(made, path)
    except BaseException:
        Path(made).unlink(missing_ok=True)
        raise
    return digests


def _tar(packed: IO[bytes]) -> tarfile.TarFile:
    return tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT)


def _packer(name: str, raw: IO[bytes]) -> IO[bytes]:
    """Cells are packed already: the quickest setting is as good as any."""
    if name.endswith((".gz", ".tgz")):
        return cast(IO[bytes], gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=1, mtime=0))
    if name.endswith(".tar"):
        return io.BufferedWriter(cast(io.RawIOBase, raw))
    return lzma.LZMAFile(raw, "wb", preset=1)


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    about = tarfile.TarInfo(name)
    about.size, about.mode = len(content), 0o644
    tar.addfile(about, io.BytesIO(content))


def unpack(path: Path, into: Path, most: int = MOST_UNPACKED) -> Unpacked:
    """Unpack the cells of an archive below an empty folder, as `<machine>/<cell>/`.

    A cell whose files are not those that were packed is not kept. Raises `UserError` for a file that is no archive, and
    OSError where `into` cannot be written.
    """
    if not is_archive(path):
        raise UserError(f"{path} is no archive of cells; `python -m bench pack CELLS.. -o {path.name}` makes one")
    found = Unpacked()
    digests: dict[str, str] = {}
    about: dict[str, Any] = {}
    for one in _cells_of(path, found, about, most):
        folder = into / one.machine / one.cell
        folder.mkdir(parents=True)
        for name, content in one.contents.items():
            place = folder / name
            place.parent.mkdir(exist_ok=True)
            with place.open("xb") as file:
                file.write(content)
        digests[one.name] = one.digest
        (found.kernels if one.cell == KERNELS else found.folders).append(folder)
    _compare(path, found, digests, about)
    return found


def _compare(path: Path, found: Unpacked, digests: Mapping[str, str], about: Mapping[str, Any]) -> None:
    """Hold what came out against what was packed, where the archive tells it."""
    told = about.get("cells")
    if not isinstance(told, Mapping):
        return
    for name in sorted({*told, *digests}):
        if name not in digests:
            found.faults.append(f"{path}: the cell {name} is missing, though it was packed; pack and send it again")
        elif told.get(name) != digests[name]:
            found.faults.append(f"{path}: the cell {name} is not as it was packed, and is left out; ask for it again")
            for folders in (found.folders, found.kernels):
                folders[:] = [one for one in folders if f"{one.parent.name}/{one.name}" != name]


def _cells_of(path: Path, found: Unpacked, about: dict[str, Any], most: int) -> Iterator[PackedCell]:
    """Whole cells one after another; faults are told in `found`, and what the archive says of itself in `about`."""
    done: set[tuple[str, str]] = set()
    cell: PackedCell | None = None
    try:
        for machine, name, file, content in _files_of(path, found, about, most):
            if cell is None or (cell.machine, cell.cell) != (machine, name):
                if cell is not None:
                    yield cell
                if (machine, name) in done:
                    raise ValueError(f"it has the cell {machine}/{name} twice")
                done.add((machine, name))
                cell = PackedCell(machine, name, {})
            if file in cell.contents:
                raise ValueError(f"it has the file {machine}/{name}/{file} twice")
            size = len(content) + sum(map(len, cell.contents.values()))
            if len(cell.contents) > MOST_KERNEL_FILES or size > MOST_A_CELL:
                raise ValueError(f"the cell {machine}/{name} has more than {MOST_A_CELL} bytes")
            cell.contents[file] = content
    except _BROKEN as error:
        why = " ".join(str(error).split())[:200] or type(error).__name__
        # The cell that it broke off in may lack files; the last of an archive whose account was read tells.
        whole = cell is not None and (about.get("cells") or {}).get(cell.name) == cell.digest
        count = len(done) - (not whole)
        kept = f"the {count} cells before it are kept" if count > 0 else "nothing of it is kept"
        found.faults.append(f"{path}: it breaks off or is no sound archive ({why}); {kept}, get the file again")
        cell = cell if whole else None
    if cell is not None:
        yield cell


def _files_of(path: Path, found: Unpacked, about: dict[str, Any], most: int) -> Iterator[tuple[str, str, str, bytes]]:
    """Machine, cell, file and content of each member that is a part of a cell; the others are counted."""
    with path.open("rb") as file, _plain(file, file.peek(6)) as plain:
        bounded = _Bounded(plain, most)
        with tarfile.open(fileobj=cast(IO[bytes], bounded), mode="r:") as tar:
            while (member := tar.next()) is not None:
                tar.__dict__["members"] = []  # or every header that was read is kept
                if member.isdir():
                    continue
                parts = _place(member.name)
                own = parts is not None or member.name == ABOUT
                if not own or not member.isreg() or member.sparse is not None:
                    found.ignored += 1
                    _refuse(path, member, found)
                    continue
                if member.size > MOST_BYTES:
                    raise ValueError(f"{member.name[:200]} has {member.size} bytes, at most {MOST_BYTES} are read")
                reader = tar.extractfile(member)
                content = reader.read() if reader is not None else b""
                if len(content) != member.size:
                    raise EOFError(f"it ends in the middle of {member.name[:200]}")
                if parts is None:
                    about.update(_about(content))
                else:
                    yield *parts, content
            if bounded.last != bytes(tarfile.BLOCKSIZE):  # what is cut behind a file would pass for whole
                raise EOFError("its end is missing")
            while bounded.read(1 << 20):  # to the checksum behind it all
                pass


def _refuse(path: Path, member: tarfile.TarInfo, found: Unpacked) -> None:
    """Say what nobody packs by mistake; that a folder of notes lies beside the cells is nothing to say."""
    name = member.name[:200]
    parts = PurePosixPath(name).parts
    if not (member.isreg() and member.sparse is None):
        found.faults.append(f"{path}: '{name}' is a link or a device, and was not unpacked; a cell has files alone")
    elif name.startswith("/") or ".." in parts:
        found.faults.append(f"{path}: '{name}' would lie outside the folder, and was not unpacked")


def _about(content: bytes) -> dict[str, Any]:
    try:
        found = json_value(content.decode())
    except (ValueError, UnicodeDecodeError) as error:
        raise ValueError(f"{ABOUT}: {error}") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ValueError(f"{ABOUT} is of no format that is known; a later release of pti-bench may read it")
    return found


def _place(name: str) -> tuple[str, str, str] | None:
    """Machine, cell and file of a member's name; None for what is no part of a cell."""
    parts = name.removeprefix("./").split("/", 2)
    if len(parts) != 3 or not _MACHINE.fullmatch(parts[0]) or not _CELL.fullmatch(parts[1]):
        return None
    machine, cell, file = parts
    own = _KERNEL_FILE.fullmatch(file) if cell == KERNELS else file in (*FILES, STATUS)
    return (machine, cell, file) if own else None


def _plain(file: IO[bytes], start: bytes) -> IO[bytes]:
    """The unpacked bytes of a file, by how it starts."""
    kind = next((kind for start_, kind in _STARTS.items() if start.startswith(start_)), "")
    if kind == "xz":
        return lzma.LZMAFile(file)
    return cast(IO[bytes], gzip.GzipFile(fileobj=file)) if kind == "gz" else file


class _Bounded:
    """Reads forward only, at most so many bytes in all and no more than a table's at once.

    A header of an archive may claim any length, and whoever reads it would set that much aside.
    """

    def __init__(self, file: IO[bytes], most: int) -> None:
        self._file, self._most, self._at = file, most, 0
        self.last = b""
        """What was read last."""

    def read(self, size: int = -1) -> bytes:
        """Raises ValueError beyond a bound."""
        if not 0 <= size <= MOST_BYTES:
            raise ValueError(f"it wants {size} bytes at once, at most {MOST_BYTES} are read")
        content = self._file.read(size)
        self._at, self.last = self._at + len(content), content
        if self._at > self._most:
            raise ValueError(f"it unpacks to more than {self._most} bytes")
        return content

    def tell(self) -> int:
        """How far it was read."""
        return self._at

    def seek(self, place: int) -> int:
        """Read on to a place. Raises ValueError for one that lies behind."""
        if place < self._at:
            raise ValueError("it goes back to what was read before")
        while self._at < place and self.read(min(place - self._at, 1 << 20)):
            pass
        return self._at

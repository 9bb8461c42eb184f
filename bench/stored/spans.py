"""Very many cells in spans of neighbours, each judged, or found as it was before, as one.

A span is kept under the name of its first cell, and counts while it has the same cells, no file of theirs was touched
and the same curves price them; what lies in it is what each cell would give by itself (`bench.stored.judging`). It
knows nothing about what is judged.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.judge.hosts import Origin
from bench.stored.cache_files import keep, place_of
from bench.stored.kept import NOTHING, plain
from bench.stored.stamps import SETTLED_NS, stamp_of

USUAL = 64
"""Cells of a span in the mean."""
MOST = 4 * USUAL
_SEAL = 32


@dataclass(frozen=True)
class Span:
    """What some neighbours say."""

    held: bytes
    """What is held of each, packed."""
    cells: Sequence[bytes]
    """All that each said, packed."""
    key: str = ""
    """Stands for all that it follows from; empty where nothing may rest on it."""
    place: str = ""
    """What it goes by where it is kept: another one of the same cells takes its place."""
    origins: Mapping[Origin, int] = field(default_factory=Counter)
    """How many of them are of which origin."""


def spans_of(folders: Sequence[Path]) -> list[list[Path]]:
    """The folders in spans, in their order; each is of one machine.

    Names alone tell where one ends, so that a cell that comes new changes no other span than its own.
    """
    found: list[list[Path]] = []
    for folder in folders:
        last = found[-1][-1] if found else folder
        if not found or folder.parent != last.parent or _ends(last) or len(found[-1]) >= MOST:
            found.append([])
        found[-1].append(folder)
    return found


def _ends(folder: Path) -> bool:
    return zlib.crc32(os.fsencode(folder.name)) % USUAL == 0


class KeptSpans:
    """The spans in one folder of the user's cache, as `about` tells what is held of them and what hosts are called."""

    def __init__(self, folder: Path, about: str = "") -> None:
        self._folder, self._about = folder, about

    def stamp(self, cells: Sequence[Path], now: int) -> str:
        """Which cells they are, and how their files lie; empty where one was touched shortly before `now`, or cannot be
        asked."""
        found = hashlib.sha256()
        for cell in cells:
            try:
                stamp, newest = stamp_of(cell)
            except OSError:
                return ""
            if newest >= now - SETTLED_NS:
                return ""
            found.update(os.fsencode(f"{cell.name} {stamp}\n"))
        return found.hexdigest()

    def origins(self, cells: Sequence[Path], stamp: str) -> Mapping[Origin, int] | None:
        """Where the cells of a span were measured, whatever was held of it; None where that is not known."""
        found = _read(self._named(f"origins {place(cells)}"), stamp)
        return None if found is None else Counter({Origin(*one): count for one, count in found})

    def keep_origins(self, cells: Sequence[Path], stamp: str, origins: Mapping[Origin, int]) -> None:
        """Keep them."""
        _write(self._named(f"origins {place(cells)}"), (stamp, [(tuple(one), count) for one, count in origins.items()]))

    def load(self, cells: Sequence[Path], stamp: str, prices: Mapping[bytes, bytes]) -> Span | None:
        """A span that nothing touched; None where there is none, or where other curves priced one of its cells."""
        found = _read(self._named(f"{self._about} {place(cells)}"), stamp)
        if found is None:
            return None
        priced, key, held, packed = found
        if any(prices.get(identity, NOTHING) != digest for identity, digest in priced):
            return None
        return Span(held, packed, key, place(cells))

    def store(self, cells: Sequence[Path], stamp: str, priced: Sequence[tuple[bytes, bytes]], span: Span) -> None:
        """Keep one. `priced` has the digests of what its cells share with curves, and of the curves."""
        value = list(priced), span.key, span.held, list(span.cells)
        _write(self._named(f"{self._about} {place(cells)}"), (stamp, value))

    def lines(self, where: str, key: str) -> tuple[dict[str, str], dict[str, Any]] | None:
        """What was kept of the lines of a span's rows, if they follow from what the key stands for."""
        found = _read(self._named(where), key)
        return plain(zlib.decompress(found)) if isinstance(found, bytes) else None

    def keep_lines(self, where: str, key: str, lines: tuple[dict[str, str], dict[str, Any]]) -> None:
        """Keep them: plain values."""
        _write(self._named(where), (key, zlib.compress(pickle.dumps(lines, 5), 1)))

    def _named(self, name: str) -> Path:
        return place_of(self._folder, hashlib.sha256(os.fsencode(name)).hexdigest())


def place(cells: Sequence[Path]) -> str:
    """What a span goes by: its first cell. So one of whose cells another came takes the place of the one before."""
    return str(cells[0].absolute())


def _write(file: Path, value: object) -> None:
    content = pickle.dumps(value, 5)
    keep(file, _seal(file, content) + content)


def _read(file: Path, stamp: str) -> Any:
    """What lies there, if it is of that stamp."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    seal, content = content[:_SEAL], content[_SEAL:]
    found = plain(content) if seal == _seal(file, content) else None
    return found[1] if isinstance(found, tuple) and len(found) == 2 and found[0] == stamp else None


def _seal(file: Path, content: bytes) -> bytes:
    return hashlib.sha256(file.name.encode() + content).digest()

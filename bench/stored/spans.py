"""Very many cells in spans of neighbours, each judged, or found as it was before, as one.

A span is kept under the names of its cells, and counts while no file of theirs was touched and the same curves price
them; what lies in it is what each cell would give by itself (`bench.stored.judging`). It knows nothing about what is
judged.
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
        """How all files of some cells lie; empty where one was touched shortly before `now`, or cannot be asked."""
        found = hashlib.sha256()
        for cell in cells:
            try:
                stamp, newest = stamp_of(cell)
            except OSError:
                return ""
            if newest >= now - SETTLED_NS:
                return ""
            found.update(stamp.encode())
        return found.hexdigest()

    def origins(self, cells: Sequence[Path], stamp: str) -> Mapping[Origin, int] | None:
        """Where the cells of a span were measured, whatever was held of it; None where that is not known."""
        found = _read(self._place(cells, "origins"), stamp)
        return None if found is None else Counter({Origin(*one): count for one, count in found})

    def keep_origins(self, cells: Sequence[Path], stamp: str, origins: Mapping[Origin, int]) -> None:
        """Keep them."""
        _write(self._place(cells, "origins"), (stamp, [(tuple(one), count) for one, count in origins.items()]))

    def load(self, cells: Sequence[Path], stamp: str, prices: Mapping[bytes, bytes]) -> Span | None:
        """A span that nothing touched; None where there is none, or where other curves priced one of its cells."""
        found = _read(self._place(cells, self._about), stamp)
        if found is None:
            return None
        priced, key, held, packed = found
        if any(prices.get(identity, NOTHING) != digest for identity, digest in priced):
            return None
        return Span(held, packed, key)

    def store(self, cells: Sequence[Path], stamp: str, priced: Sequence[tuple[bytes, bytes]], span: Span) -> None:
        """Keep one. `priced` has the digests of what its cells share with curves, and of the curves."""
        _write(self._place(cells, self._about), (stamp, (list(priced), span.key, span.held, list(span.cells))))

    def lines(self, key: str) -> tuple[dict[str, str], dict[str, Any]] | None:
        """What was kept of the lines of a span's rows."""
        found = _read(self._named(key), key)
        return plain(zlib.decompress(found)) if isinstance(found, bytes) else None

    def keep_lines(self, key: str, lines: tuple[dict[str, str], dict[str, Any]]) -> None:
        """Keep them: plain values."""
        _write(self._named(key), (key, zlib.compress(pickle.dumps(lines, 5), 1)))

    def _named(self, key: str) -> Path:
        return place_of(self._folder, hashlib.sha256(key.encode()).hexdigest())

    def _place(self, cells: Sequence[Path], about: str) -> Path:
        names = "\n".join([about, str(cells[0].parent.absolute()), *(cell.name for cell in cells)])
        return place_of(self._folder, hashlib.sha256(os.fsencode(names)).hexdigest())


def _write(place: Path, value: object) -> None:
    content = pickle.dumps(value, 5)
    keep(place, _seal(place, content) + content)


def _read(place: Path, stamp: str) -> Any:
    """What lies there, if it is of that stamp."""
    try:
        content = place.read_bytes()
    except OSError:
        return None
    seal, content = content[:_SEAL], content[_SEAL:]
    found = plain(content) if seal == _seal(place, content) else None
    return found[1] if isinstance(found, tuple) and len(found) == 2 and found[0] == stamp else None


def _seal(place: Path, content: bytes) -> bytes:
    return hashlib.sha256(place.name.encode() + content).digest()

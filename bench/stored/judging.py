"""One cell judged, or found as it was judged before. In a child process, or in this one.

It knows nothing about what is judged, and of other cells nothing but their step-cost curves.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.judge.cell import JudgedCell, Profiles, identity
from bench.judge.claims.relevant import Relevant
from bench.judge.damage import judge_curves, judge_whole, with_traces
from bench.judge.hosts import Origin
from bench.judge.tables.cell import DAMAGED
from bench.records.cells import DamagedCell, StoredCell, read_cell
from bench.stored.kept import NOTHING, Kept, Share, identity_digest, key_of, packed, unpacked
from bench.stored.origins import origin_of
from bench.stored.spans import KeptSpans, Span, place
from bench.stored.streamed import span


@dataclass(frozen=True)
class Judging:
    """How cells are judged: by which curves, told by their digests too, and whether shares are kept.

    `of_profiles`: whether it is about profiles, which nothing prices and of which nothing else is wanted.
    """

    profiles: Profiles = field(default_factory=Profiles)
    prices: Mapping[bytes, bytes] = field(default_factory=dict[bytes, bytes])
    keeps: bool = False
    traces: bool = False
    """Whether a share has what a reader can look at of the cell's records."""
    of_profiles: bool = True
    names: Mapping[Origin, str] = field(default_factory=dict[Origin, str])
    """What a machine is called on whose make's name other hosts stand."""
    relevant: Relevant | None = None
    """The rows that are held of each cell, where there are very many."""

    def share_of(self, folder: Path, key: str, found: Share | bytes | None) -> tuple[str, Share | None]:
        """Key and share of what `found` gave. One that holds anything but rows is judged in its place."""
        if not isinstance(found, bytes):
            return key, found
        share = unpacked(found)
        if share is not None:
            return key, share
        name = self.names.get(origin_of(folder), "") if self.names else ""
        return key, self._judged(_called(read_cell(folder), name))

    def found(self, folder: Path) -> tuple[str, Share | bytes | None]:
        """The same; a share that was kept is still packed. The key is empty where nothing may rest on it."""
        name = self.names.get(origin_of(folder), "") if self.names else ""
        key = key_of(folder, self.traces, name, Kept().stamps.digest(folder)) if self.keeps else ""
        if key and (kept := Kept().load(key, None if self.of_profiles else self.prices)) is not None:
            return key, kept
        cell = _called(read_cell(folder), name)
        share = self._judged(cell)
        if not key or share is None:
            return key, share
        if key_of(folder, self.traces, name, Kept().stamps.digest(folder)) != key:
            # It was written meanwhile, and nobody knows which of the two was read.
            return "", share
        # One that cannot be read or judged may be the next time: memory or the system may have been short.
        if isinstance(cell, StoredCell) and all(row.state != DAMAGED for row in share.judged.findings.cells):
            mine = NOTHING if self.of_profiles else identity_digest(identity(cell))
            Kept().store(key, packed(share), mine, self.prices.get(mine, NOTHING))
        return key, share

    def origins_of(self, folders: Sequence[Path]) -> tuple[str, Mapping[Origin, int]]:
        """How the files of a span lie, and where its cells were measured, which is not read again of what lies so."""
        spans = KeptSpans(Kept().folder / "spans")
        stamp = spans.stamp(folders, time.time_ns()) if self.keeps else ""
        if stamp and (known := spans.origins(folders, stamp)) is not None:
            return stamp, known
        found = Counter(map(origin_of, folders))
        if stamp:
            spans.keep_origins(folders, stamp, found)
        return stamp, found

    def span_of(self, folders: Sequence[Path], stamp: str, profiles: Mapping[Path, tuple[str, Share]]) -> Span:
        """What a span of very many cells says. Keys and shares of the profiles among them are told."""
        assert self.relevant is not None, "whoever holds little says what"
        spans = KeptSpans(Kept().folder / "spans", f"{self.relevant.digest} {sorted(self.names.items())}")
        keeps = self.keeps and bool(stamp)
        if keeps and (known := spans.load(folders, stamp, self.prices)) is not None:
            return known
        found = [profiles[folder] if folder in profiles else self.share_of(folder, *self.found(folder))
                 for folder in folders]  # fmt: skip
        shares = [share for _, share in found if share is not None]
        assert len(shares) == len(folders), "only profiles are asked for among others"
        made = span(shares, self.relevant)
        sure = [(key, priced) for key, _ in found if key and (priced := Kept().priced(key))] if keeps else []
        if not keeps or len(sure) < len(found):  # what a cell says that was not kept may be something else tomorrow
            return made
        made = replace(made, key=hashlib.sha256(repr(sure).encode()).hexdigest(), place=place(folders))
        spans.store(folders, stamp, sorted({priced for _, priced in sure}), made)
        return made

    def _judged(self, cell: StoredCell | DamagedCell) -> Share | None:
        if not self.of_profiles:
            return Share(self._traced(judge_whole(cell, self.profiles), cell))
        judged, profile = judge_curves(cell)
        return Share(self._traced(judged, cell), profile) if judged is not None else None

    def _traced(self, judged: JudgedCell, cell: StoredCell | DamagedCell) -> JudgedCell:
        return with_traces(judged, cell) if self.traces else judged


def _called(cell: StoredCell | DamagedCell, name: str) -> StoredCell | DamagedCell:
    return replace(cell, machine=name) if name and isinstance(cell, StoredCell) else cell


_CHOSEN: list[Judging] = []


def take(judging: Judging) -> None:
    """How this process judges from now on: handed over once, and not with every cell."""
    _CHOSEN[:] = [judging]


def judge_here(folder: Path) -> tuple[str, Share | bytes | None]:
    """A cell, judged as this process was told to."""
    return _CHOSEN[0].found(folder)


def origins_here(folders: Sequence[Path]) -> tuple[str, Mapping[Origin, int]]:
    """How the files of a span lie, and where its cells were measured."""
    return _CHOSEN[0].origins_of(folders)


def span_here(folders: Sequence[Path], stamp: str, profiles: Mapping[Path, tuple[str, Share]]) -> Span:
    """A span, judged as this process was told to."""
    return _CHOSEN[0].span_of(folders, stamp, profiles)

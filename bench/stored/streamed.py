"""The findings of very many cells: in memory what verdicts and the first screen need, the rows of all in a file.

Each cell is judged in a child process, which hands over its rows packed and the few that a claim may be about. What all
cells say together is put into the rows of each when they are read again, some at a time. It knows nothing about what is
judged, nor what becomes of the rows.
"""

from __future__ import annotations

import sys
import tempfile
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, TypeVar, cast

from bench.children import children
from bench.judge import Across, join
from bench.judge.cell import JudgedCell
from bench.judge.claims.relevant import Relevant
from bench.judge.columns import CONDITIONS, R
from bench.judge.findings import Findings
from bench.judge.hosts import Hosts
from bench.judge.tables import TABLES
from bench.stored.chosen import EVERYTHING, Chosen
from bench.stored.kept import Share, packed, unpacked

T = TypeVar("T")
SHOWN = 1000
"""Cells whose rows a page shows, of however many."""
BATCH = 64
"""Cells whose rows are read again at once."""
AHEAD = 4
"""Batches a process that are asked for before the first of them is taken."""
CHECKS = ("again", "stall")
"""Controls that the first screen counts."""
_EMPTY: Mapping[str, Any] = {}


@dataclass
class Light:
    """What is held of one cell, and all that it said, packed."""

    rows: dict[str, list[Any]]
    gathered: dict[str, Any]
    packed: bytes


def light(share: Share, relevant: Relevant) -> Light:
    """What is held of a share: the cell itself, the checks that are counted, and rows that a claim may be about."""
    found = share.judged.findings
    rows: dict[str, list[Any]] = {name: relevant.of(name, getattr(found, name)) for name in relevant.tables}
    rows["cells"] = [_with(row, about=_EMPTY) for row in found.cells]
    rows["controls"] = [_with(row, sentence="") for row in found.controls if row.control in CHECKS]
    whole = packed(Share(JudgedCell(found)))
    return Light({name: one for name, one in rows.items() if one}, share.judged.gathered, zlib.compress(whole, 1))


def _with(row: R, **values: Any) -> R:
    known = dict(zip(row.columns, type(row).unpack(row), strict=True))
    return type(row)(**known | values)


def _temporary() -> IO[bytes]:
    return cast(IO[bytes], tempfile.NamedTemporaryFile(prefix="pti-bench-"))


@dataclass
class _Held:
    """What is held of some cells."""

    light: Findings = field(default_factory=Findings)
    joined: Findings = field(default_factory=Findings)
    _gathered: dict[str, list[Any]] = field(default_factory=dict)

    def add(self, rows: Mapping[str, list[Any]], gathered: Mapping[str, Any]) -> None:
        for name, own in rows.items():
            getattr(self.light, name).extend(own)
        for name, said in gathered.items():
            self._gathered.setdefault(name, []).append(said)

    def end(self, hosts: Hosts) -> None:
        self.joined = join(self._gathered)
        self._gathered.clear()
        self.joined.hosts[:] = hosts.rows
        for name in ("contexts", "memory", "domain", "bandwidth", "hosts"):
            getattr(self.light, name)[:] = getattr(self.joined, name)
        Across(self.joined).finish(self.light)


@dataclass
class Streamed:
    """What many cells say. It holds a file that goes with it."""

    hosts: Hosts
    chosen: Chosen
    _asked: _Held = field(default_factory=_Held)
    _every: _Held = field(default_factory=_Held)
    """Of all cells, where some are chosen; else nothing."""
    _places: array[int] = field(default_factory=lambda: array("Q"))
    """Where each cell's rows begin in the file; one more for the end."""
    _alike: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _file: IO[bytes] = field(default_factory=_temporary)

    @property
    def light(self) -> Findings:
        """Of all cells that are asked for, what verdicts and the first screen need."""
        return self._asked.light

    @property
    def light_of_every(self) -> Findings:
        """The same of all that there are."""
        return self.light if self.chosen == EVERYTHING else self._every.light

    @property
    def joined(self) -> Findings:
        """The rows over several cells."""
        return self._asked.joined

    @property
    def cells(self) -> int:
        """How many there are."""
        return len(self._places) - 1

    def add(self, one: Light) -> None:
        """Take a cell, in the order in which its rows shall stand."""
        rows = {name: list(self._shared(own)) for name, own in one.rows.items()}
        if self.chosen != EVERYTHING:
            self._every.add(rows, one.gathered)
            if not all(map(self.chosen.keeps, rows.get("cells", ()))):
                return
        self._places.append(self._file.tell())
        self._file.write(one.packed)
        self._asked.add(rows, one.gathered)

    def end(self) -> None:
        """All cells were added. Raises `UserError` for a chosen name that none has."""
        self._places.append(self._file.tell())
        self._file.flush()
        for held in (self._asked, self._every):
            held.end(self.hosts)
        self.chosen.check(self.light_of_every.cells)

    def _shared(self, rows: Iterable[R]) -> Iterator[R]:
        """The rows with one object for each text and each set of conditions, of which many cells have the same."""
        seen: dict[int, Mapping[str, Any]] = {}
        for row in rows:
            values = dict(zip(row.columns, type(row).unpack(row), strict=True))
            for name, value in values.items():
                if type(value) is str:
                    values[name] = sys.intern(value)
            if told := values.get(CONDITIONS):
                if id(told) not in seen:
                    seen[id(told)] = self._alike.setdefault(repr(told), told)
                values[CONDITIONS] = seen[id(told)]
            yield type(row)(**values)

    def each(self, make: Callable[[Findings], T], processes: int) -> Iterator[T]:
        """What a function makes of the finished rows of some cells at a time, in their order."""
        reading = _Reading(Path(self._file.name), Across(self.joined), make)
        spans = [self._places[start : start + BATCH + 1].tolist() for start in range(0, self.cells, BATCH)]
        if processes < 2 or len(spans) < processes:
            yield from (reading.made(ends) for ends in spans)
            return
        with children(processes, reading.take) as pool:
            waiting = [pool.submit(_made, ends) for ends in spans[: AHEAD * processes]]
            for place in range(len(spans)):
                yield cast(T, waiting.pop(0).result())
                if (ahead := place + AHEAD * processes) < len(spans):
                    waiting.append(pool.submit(_made, spans[ahead]))

    def shown(self) -> Findings:
        """All rows of a few cells: of each machine, build, model and arm the first ones, and rows over these."""
        groups: dict[tuple[object, ...], list[int]] = {}
        for place in range(self.cells):
            row = self.light.cells[place]
            groups.setdefault((row.machine, row.build, row.model, row.kind, row.state, row.short), []).append(place)
        taken = sorted(_first(list(groups.values()), SHOWN))
        found = Findings()
        reading = _Reading(Path(self._file.name), Across(self.joined), _same)
        for place in taken:
            one = reading.made(self._places[place : place + 2].tolist())
            for name in TABLES:
                getattr(found, name).extend(getattr(one, name))
        ids = {row.cell for row in found.cells}
        for name in TABLES:
            rows = getattr(self.joined, name)
            few = name in ("contexts", "bandwidth", "hosts")
            getattr(found, name).extend(row for row in rows if few or ids.issuperset(row.cells))
        return found


def _first(groups: Sequence[Sequence[int]], most: int) -> Iterator[int]:
    """One of each group in turn, until there are so many."""
    left, depth = most, 0
    while left > 0 and any(depth < len(group) for group in groups):
        for group in groups:
            if depth < len(group) and left > 0:
                yield group[depth]
                left -= 1
        depth += 1


def _same(findings: Findings) -> Findings:
    return findings


@dataclass(frozen=True)
class _Reading:
    """Reads rows again, in whichever process."""

    path: Path
    across: Across
    make: Callable[[Findings], Any]

    def take(self) -> None:
        """From here on this process reads so."""
        _CHOSEN[:] = [self]

    def made(self, ends: Sequence[int]) -> Any:
        """What is made of the cells whose rows lie between these places."""
        found = Findings()
        with self.path.open("rb") as file:
            file.seek(ends[0])
            for start, end in pairwise(ends):
                share = unpacked(zlib.decompress(file.read(end - start)))
                assert share is not None, "it was packed by this very code"
                for name in TABLES:
                    getattr(found, name).extend(getattr(share.judged.findings, name))
        self.across.finish(found)
        return self.make(found)


_CHOSEN: list[_Reading] = []


def _made(ends: Sequence[int]) -> Any:
    return _CHOSEN[0].made(ends)

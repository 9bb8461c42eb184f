"""The findings of very many cells: in memory what verdicts and the first screen need, the rows of all in a file.

Each cell is judged in a child process, which hands over its rows packed and the few that a claim may be about. What all
cells say together is put into the rows of each when they are read again, some at a time. It knows nothing about what is
judged, nor what becomes of the rows.
"""

from __future__ import annotations

import pickle
import sys
import tempfile
import zlib
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar, cast

from bench.children import AHEAD, children, in_turn
from bench.errors import UserError
from bench.judge import Across, join
from bench.judge.cell import JudgedCell
from bench.judge.claims.relevant import Relevant
from bench.judge.columns import CONDITIONS, R
from bench.judge.findings import Findings
from bench.judge.hosts import Hosts
from bench.judge.measure.contexts import Widening
from bench.judge.tables import TABLES
from bench.stored.chosen import EVERYTHING, Chosen
from bench.stored.kept import Kept, Share, packed, rows_in, unpacked
from bench.stored.spans import KeptSpans, Span

T = TypeVar("T")


class Lines(Protocol):
    """Makes the lines of tables. What it makes is plain values."""

    def of(self, findings: Findings) -> dict[str, str]:
        """Those of each table that has rows and no interval that contexts widen."""

    def open(self, findings: Findings) -> dict[str, Any]:
        """The others with gaps, and what fills them, by table."""

    def filled(self, opened: Mapping[str, Any], widening: Widening) -> dict[str, str]:
        """Those lines."""


SHOWN = 1000
"""Cells whose rows a page shows, of however many."""
CHECKS = ("again", "stall")
"""Controls that the first screen counts."""
_EMPTY: Mapping[str, Any] = {}
CHANGED = "what is kept in {} is not as it was written; remove that folder and run the report again"


Held = tuple[dict[str, list[Any]], dict[str, Any]]
"""What is held of one cell: rows by table, and what it has to say in rows over several."""


def span(shares: Sequence[Share], relevant: Relevant) -> Span:
    """What neighbours say, of each what is held: the cell itself, the checks that are counted, and rows that a claim
    may be about."""
    alike = _Alike()
    held = [_held(share, relevant, alike) for share in shares]
    whole = [zlib.compress(packed(Share(JudgedCell(share.judged.findings))), 1) for share in shares]
    return Span(zlib.compress(pickle.dumps(held, 5), 1), whole)


def _held(share: Share, relevant: Relevant, alike: _Alike) -> Held:
    found = share.judged.findings
    rows: dict[str, list[Any]] = {name: relevant.of(name, getattr(found, name)) for name in relevant.tables}
    rows["cells"] = [_with(row, about=_EMPTY) for row in found.cells]
    rows["controls"] = [_with(row, sentence="") for row in found.controls if row.control in CHECKS]
    return {name: [*map(alike.row, one)] for name, one in rows.items() if one}, share.judged.gathered


class _Alike:
    """One object for each text and each set of conditions, of which many cells have the same."""

    def __init__(self) -> None:
        self._conditions: dict[str, Mapping[str, Any]] = {}

    def row(self, row: R) -> R:
        """The row with those."""
        values = dict(zip(row.columns, type(row).unpack(row), strict=True))
        for name, value in values.items():
            if type(value) is str:
                values[name] = sys.intern(value)
        if told := values.get(CONDITIONS):
            values[CONDITIONS] = self._conditions.setdefault(repr(told), told)
        return type(row)(**values)


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
    _spans: list[tuple[str, str, int]] = field(default_factory=list)
    """Key and place of each span, and how many cells of it there are."""
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

    def add(self, span: Span) -> None:
        """Take a span, in the order in which its rows shall stand. Raises `UserError` where it holds no rows."""
        found = rows_in(zlib.decompress(span.held))
        if not isinstance(found, list) or len(found) != len(span.cells):
            raise UserError(CHANGED.format(Kept().folder))
        before = self._written
        for (rows, gathered), content in zip(found, span.cells, strict=True):
            if self.chosen != EVERYTHING:
                self._every.add(rows, gathered)
                if not all(map(self.chosen.keeps, rows.get("cells", ()))):
                    continue
            self._places.append(self._file.tell())
            self._file.write(content)
            self._asked.add(rows, gathered)
        self._spans.append((span.key if self.chosen == EVERYTHING else "", span.place, self._written - before))

    @property
    def _written(self) -> int:
        return len(self._places)

    def end(self) -> None:
        """All cells were added. Raises `UserError` for a chosen name that none has."""
        self._places.append(self._file.tell())
        self._file.flush()
        for held in (self._asked, self._every):
            held.end(self.hosts)
        self.chosen.check(self.light_of_every.cells)

    def each(self, make: Callable[[Findings], T], processes: int) -> Iterator[T]:
        """What a function makes of the finished rows of some cells at a time, in their order."""
        return self._spread(make, "made", processes)

    def texts(self, lines: Lines, processes: int) -> Iterator[dict[str, str]]:
        """The lines of a table of all finished rows, by its name, some cells at a time. Those of a span are kept."""
        return self._spread(lines, "texts", processes)

    def _spread(self, make: Any, how: str, processes: int) -> Iterator[Any]:
        reading = _Reading(Path(self._file.name), Across(self.joined), make)
        spans = [*self._ends()]
        if processes < 2 or len(spans) < processes:
            yield from (getattr(reading, how)(*span) for span in spans)
            return
        with children(processes, reading.take) as pool:
            yield from in_turn(pool, _read_here, [(how, *span) for span in spans], AHEAD * processes)

    def _ends(self) -> Iterator[tuple[list[int], str, str]]:
        """Where the rows of each span's cells lie, its key and its place."""
        first = 0
        for key, place, count in self._spans:
            if count:
                yield self._places[first : first + count + 1].tolist(), key, place
            first += count

    def held(self, names: Sequence[str], processes: int) -> Findings:
        """All rows of some tables."""
        found = Findings(**{name: getattr(self.joined, name) for name in names})
        for one in self.each(partial(_only, names=names), processes):
            for name in names:
                getattr(found, name).extend(getattr(one, name))
        return found

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


def _only(findings: Findings, names: Sequence[str]) -> Findings:
    return Findings(**{name: getattr(findings, name) for name in names})


@dataclass(frozen=True)
class _Reading:
    """Reads rows again, in whichever process."""

    path: Path
    across: Across
    make: Any
    """Makes something of findings; for texts, `Lines`."""

    def take(self) -> None:
        """From here on this process reads so."""
        _CHOSEN[:] = [self]

    def made(self, ends: Sequence[int], *_: str) -> Any:
        """What is made of the cells whose rows lie between these places."""
        found = self._read(ends)
        self.across.finish(found)
        return self.make(found)

    def texts(self, ends: Sequence[int], key: str, place: str) -> dict[str, str]:
        """Their lines, which are made again where what all cells say together has taken something back in between."""
        kept, follows = KeptSpans(Kept().folder / "texts"), f"{key} {self.across.digest}"
        known = kept.lines(place, follows) if key else None
        if known is None:
            found = self._read(ends)
            self.across.withdraw(found)
            known = self.make.of(found), self.make.open(found)
            if key:
                kept.keep_lines(place, follows, known)
        lines, opened = known
        return {**lines, **self.make.filled(opened, self.across.widening)}

    def _read(self, ends: Sequence[int]) -> Findings:
        found = Findings()
        with self.path.open("rb") as file:
            file.seek(ends[0])
            for start, end in pairwise(ends):
                share = unpacked(zlib.decompress(file.read(end - start)))
                if share is None:
                    raise UserError(CHANGED.format(Kept().folder))
                for name in TABLES:
                    getattr(found, name).extend(getattr(share.judged.findings, name))
        return found


_CHOSEN: list[_Reading] = []


def _read_here(how: str, *span: Any) -> Any:
    return getattr(_CHOSEN[0], how)(*span)

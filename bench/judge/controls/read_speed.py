"""Whether one host's memory is read as fast in one cell as in its others, by as many threads and the same reader.

How far cells may be apart is what the others are apart among themselves: on a shared machine they may be by much, and
then this tells nothing. It looks at no run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.judge.findings import VOID, origin, rerun
from bench.judge.measure.case import host_of
from bench.judge.tables.cell import ControlRow

if TYPE_CHECKING:
    from bench.judge.measure.case import Case

NAME = "read_speed"
FACTOR = 1.5
"""What no memory is read quicker or slower by from cell to cell where the others agree."""
OTHERS = 3
"""Cells beside one from which on they say what is usual."""


@dataclass(frozen=True, slots=True)
class Read:
    """The quickest reading of one cell, in GB/s, and what it was made by."""

    about: Mapping[str, Any]
    by: tuple[str, ...]
    """Machine, host, reader and threads."""
    speed: float
    again: str


def read_of(case: Case) -> Read | None:
    """Of a finished cell that measured it."""
    told = case.cell.facts.get("bandwidth") or {}
    if not case.done or not told.get("read_gb_s"):
        return None
    by = (case.cell.machine, host_of(case.cell), str(told.get("reader")), str(told.get("threads")))
    return Read(origin(case.cell), by, float(told["read_gb_s"]), rerun(case.cell))


def read_checks(found: Sequence[Read]) -> list[ControlRow]:
    """One check for each cell whose memory is another's; none where all agree."""
    alike: dict[tuple[str, ...], list[Read]] = {}
    for one in found:
        alike.setdefault(one.by, []).append(one)
    return [row for members in alike.values() for one in members if (row := _check(one, members))]


def _check(one: Read, members: Sequence[Read]) -> ControlRow | None:
    others = [other.speed for other in members if other is not one]
    if len(others) < OTHERS:
        return None
    least, most = min(others), max(others)
    room = max(FACTOR, (most / least) ** 2)
    if least / room <= one.speed <= most * room:
        return None
    sentence = (f"the memory was read at {one.speed:.1f} GB/s, and in {len(others)} other cells of this host, by the "
                f"same reader, at {least:.1f} to {most:.1f}; {one.again}")  # fmt: skip
    return ControlRow(**one.about, cell=one.about["cells"][0], control=NAME, ok=False, severity=VOID, value=math.nan,
                      ci_low=math.nan, ci_high=math.nan, sentence=sentence)  # fmt: skip

"""Which cell of one set belongs to which of another. Reads the table of cells, and no figure."""

from __future__ import annotations

from collections.abc import Sequence

from bench.judge.compare.about import KEY, changes, conflict, other
from bench.judge.tables.cell import Cell

Pair = tuple[Cell, Cell]


def matched(base: Sequence[Cell], present: Sequence[Cell]) -> tuple[list[Pair], list[Cell], list[Cell]]:
    """Pairs in the order of `base`, and the cells of each side that have no counterpart. Every cell is in one pair.

    Cells of one id come first, on one machine before others; then those that are about the same thing, the most alike
    first.
    """
    candidates = _by_id(base, present) + _by_key(base, present)
    pairs: dict[int, Pair] = {}
    taken: set[int] = set()
    for _, one, another in sorted(candidates):
        if one not in pairs and another not in taken:
            pairs[one] = base[one], present[another]
            taken.add(another)
    return ([pairs[place] for place in sorted(pairs)],
            [cell for place, cell in enumerate(base) if place not in pairs],
            [cell for place, cell in enumerate(present) if place not in taken])  # fmt: skip


Candidate = tuple[tuple[int, ...], int, int]
"""How far two cells are apart, and their places."""


def _by_id(base: Sequence[Cell], present: Sequence[Cell]) -> list[Candidate]:
    places: dict[str, list[int]] = {}
    for place, cell in enumerate(present):
        places.setdefault(cell.cell, []).append(place)
    return [((0, int(cell.machine != present[place].machine)), one, place)
            for one, cell in enumerate(base) for place in places.get(cell.cell, ())]  # fmt: skip


def _by_key(base: Sequence[Cell], present: Sequence[Cell]) -> list[Candidate]:
    places: dict[str, list[int]] = {}
    for place, cell in enumerate(present):
        if cell.about:
            places.setdefault(cell.about[KEY], []).append(place)
    return [(_apart(cell, present[place]), one, place) for one, cell in enumerate(base) if cell.about
            for place in places.get(cell.about[KEY], ()) if not conflict(cell.about, present[place].about)]  # fmt: skip


def _apart(one: Cell, another: Cell) -> tuple[int, ...]:
    return (1, len(other(one.about, another.about)), int(one.machine != another.machine),
            len(changes(one.about, another.about)))  # fmt: skip

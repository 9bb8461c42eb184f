"""Copies of a sound toy cell with one thing changed, and what the invariants say of them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache

from bench.judge.invariants import invariants
from tests.judge.judge_cells import Cell, case_of, guess_cell

Edit = Callable[[Cell], None]


def told(cell: Cell) -> dict[str, str]:
    """The invariants that fail, with what they say before the command."""
    return {
        one.control: one.sentence.partition("; `rm ")[0] for one in invariants(case_of(cell)) if one.severity != "ok"
    }


def at(cell: Cell, arm: str, which: int = 0) -> int:
    """The number of an arm's run."""
    return int(cell.runs["run"][cell.runs["arm"] == arm].iloc[which])


def row(cell: Cell, table: str, arm: str, which: int, place: int) -> int:
    """Index of a row of a run of an arm."""
    rows = getattr(cell, table)
    return int(rows.index[rows["run"] == at(cell, arm, which)][place])


@cache
def sound() -> Cell:
    """A cell in which every invariant holds."""
    cell = guess_cell()
    assert told(cell) == {}
    return cell


def edited(edit: Edit) -> dict[str, str]:
    """What fails in a copy of the sound cell behind an edit."""
    cell = copy.deepcopy(sound())
    edit(cell)
    return told(cell)


def drop(cell: Cell, table: str, index: object) -> None:
    """Take rows out of a table."""
    cell.__dict__[table] = getattr(cell, table).drop(index)


def setting(table: str, column: str, value: object, arm: str = "treatment", which: int = 0, place: int = 0) -> Edit:
    """An edit of one value, which may be a function of the one before."""

    def edit(cell: Cell) -> None:
        rows = getattr(cell, table)
        index = row(cell, table, arm, which, place)
        rows.loc[index, column] = value(rows.loc[index, column]) if callable(value) else value

    return edit

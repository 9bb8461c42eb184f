"""A comparison in the terminal: nothing is cut off at any width. Computes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.judge.compare.rows import compared, worse
from bench.judge.tables.compare import ALIKE, BETTER, NOT_COMPARABLE, ONLY, WORSE, Comparison
from bench.plain_text import plain_text
from bench.report.compare import words

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

COLOURS = {WORSE: "red", BETTER: "green", ALIKE: "", NOT_COMPARABLE: "yellow", ONLY: "dim"}
MOST_REASONS = 10
"""So many are told of each kind; compare.md has them all."""


def print_comparison(rows: Sequence[Comparison]) -> None:
    """Prints each folder's figures beside the base's."""
    console = _console()
    for folder in dict.fromkeys(row.folder for row in rows):
        mine = [row for row in rows if row.folder == folder]
        _head(mine, console)
        _table(compared(mine), console)
        _reasons(mine, console)


def print_check(rows: Sequence[Comparison]) -> None:
    """Prints what is worse, and what could not be compared."""
    console, bad = _console(), worse(rows)
    _head(rows, console)
    if bad:
        _table(bad, console)
    _reasons(rows, console)
    told = f"worse: {len(bad)} figure{'s' * (len(bad) > 1)}" if bad else "nothing is worse beyond its interval"
    console.print(_text(told, COLOURS[WORSE if bad else BETTER]))


def _console() -> Console:
    from rich.console import Console

    return Console()


def _head(rows: Sequence[Comparison], console: Console) -> None:
    console.print(_text(words.title(rows), "bold"))
    console.print(_text(words.counts(rows)))
    if chance := words.chance(rows):
        console.print(_text(chance))
    for one in words.changes(rows):
        console.print(_text(f"  changed: {one}", "dim"))


def _table(rows: Sequence[Comparison], console: Console) -> None:
    from rich import box
    from rich.table import Table

    if not rows:
        return
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="")
    for heading in words.HEADINGS:
        table.add_column(heading, overflow="fold", justify="right" if heading in ("ratio", "95 %") else "left")
    last = ""
    for row in rows:
        arm, *told, outcome = words.cells(row)
        table.add_row(*map(_text, ("" if arm == last else arm, *told)), _text(outcome, COLOURS[row.outcome]))
        last = arm
    console.print(table)


def _reasons(rows: Sequence[Comparison], console: Console) -> None:
    for outcome in (NOT_COMPARABLE, ONLY):
        told = words.reasons(rows, outcome)
        for one in told[:MOST_REASONS]:
            console.print(_text(f"{outcome}: {one}", COLOURS[outcome]))
        if len(told) > MOST_REASONS:
            console.print(_text(f"{outcome}: {len(told) - MOST_REASONS} more", COLOURS[outcome]))


def _text(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(plain_text(text), style=style)

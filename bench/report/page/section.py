"""What a section of the Markdown report is made of: its tables, their columns, and how a cell of them is told.

It knows no table by name, and nothing about files and templates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bench.judge import columns as declared
from bench.judge.tables import columns_of
from bench.plain_text import markdown
from bench.report.tables.arms import is_void
from bench.report.tables.conditions import CellIndex, condition, grouped
from bench.report.tables.values import MISSING, Row, cells_of, fixed, line, listed_ids, mebibytes, percent

MAX_ROWS = 60
Column = tuple[str, Callable[[Row], str]]


@dataclass(frozen=True)
class Table:
    condition: str
    header: list[str]
    rows: list[list[str]]
    note: str = ""


@dataclass(frozen=True)
class Section:
    key: str
    title: str
    intro: str
    empty: str
    """What to say when there is no table."""
    tables: list[Table]
    figures: tuple[str, ...] = ()


def escaped(text: str) -> str:
    """Text that stays inside one cell of a Markdown table, and does nothing there."""
    return markdown(line(text)).replace("|", "\\|")


def tabulate(rows: Sequence[Row], columns: Sequence[Column], told: str, source: str, limit: int = MAX_ROWS) -> Table:
    """One table of at most `limit` rows; the note names the file that has the others."""
    body = [[escaped(text(row)) for _, text in columns] for row in rows[:limit]]
    hidden = len(rows) - len(body)
    note = f"{hidden} more rows are in `{source}`." if hidden else ""
    return Table(markdown(told), [escaped(name) for name, _ in columns], body, markdown(note))


def by_group(rows: Sequence[Row], columns: Sequence[Column], index: CellIndex, source: str) -> list[Table]:
    return [tabulate(members, columns, condition(members, index), source) for _, members in grouped(rows, index)]


def shown(table: str, *names: str) -> list[Column]:
    """Columns of a table under their own headings, each with the unit and the digits that it declares."""
    return [(columns_of(table)[name].heading, told(table, name)) for name in names]


def told(table: str, name: str) -> Callable[[Row], str]:
    """How one column's value is written."""
    one = columns_of(table)[name]
    return lambda row: _text(one, row.get(name))


def _text(one: declared.Column, value: object) -> str:
    if one.unit in (declared.SHARE, declared.DIFFERENCE) and one.decimals is not None:
        return percent(value, one.decimals)
    if one.unit == declared.BYTES and one.decimals is None:
        return mebibytes(value)
    if one.decimals is not None:
        return fixed(value, one.decimals)
    return line(value)


def limits(table: str, name: str, heading: str = "95 % interval") -> Column:
    """The interval of a column, in its digits; two behind the point where it has no number of its own."""
    return heading, _limits(table, name)


def _limits(table: str, name: str) -> Callable[[Row], str]:
    one = columns_of(table)[name]
    if one.decimals is None:
        one = replace(one, decimals=columns_of(table)[one.low].decimals or 2)

    def text(row: Row) -> str:
        ends = [_text(one, row.get(end)) for end in (one.low, one.high)]
        return MISSING if MISSING in ends else " to ".join(ends)

    return text


def spans(table: str, *names: str) -> list[Column]:
    """Columns with their intervals in brackets: with a column for each end a table would not fit a page."""
    return [(columns_of(table)[name].heading, _span(table, name)) for name in names]


def _span(table: str, name: str) -> Callable[[Row], str]:
    value, ends = told(table, name), _limits(table, name)

    def text(row: Row) -> str:
        found = value(row), ends(row)
        return found[0] if MISSING in found else f"{found[0]} ({found[1]})"

    return text


def unless_void(column: Column, word: str = "void") -> Column:
    """The column, with a word in place of what a void row says."""
    heading, text = column
    return heading, lambda row: word if is_void(row) else text(row)


def ids_of(row: Row) -> str:
    return listed_ids(cells_of(row), 3)

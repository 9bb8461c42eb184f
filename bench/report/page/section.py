"""What a section of the Markdown report is made of: its tables, their columns, and how a cell of them is told.

It knows no table by name, and nothing about files and templates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.report.tables.conditions import CellIndex, condition, grouped
from bench.report.tables.values import MISSING, Row, cells_of, fixed, get, interval, line, mebibytes, number, percent

MAX_ROWS = 60
MAX_IDS = 40
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
    """Text that stays inside one cell of a Markdown table."""
    return line(text).replace("|", "\\|")


def tabulate(rows: Sequence[Row], columns: Sequence[Column], told: str, source: str, limit: int = MAX_ROWS) -> Table:
    """One table of at most `limit` rows; the note names the file that has the others."""
    body = [[escaped(text(row)) for _, text in columns] for row in rows[:limit]]
    hidden = len(rows) - len(body)
    note = f"{hidden} more rows are in `{source}`." if hidden else ""
    return Table(told, [name for name, _ in columns], body, note)


def by_group(rows: Sequence[Row], columns: Sequence[Column], index: CellIndex, source: str) -> list[Table]:
    return [tabulate(members, columns, condition(members, index), source) for _, members in grouped(rows, index)]


def field_of(*names: str, digits: int = 4) -> Callable[[Row], str]:
    return lambda row: number(get(row, *names), digits)


def decimals_of(name: str, decimals: int) -> Callable[[Row], str]:
    return lambda row: fixed(row.get(name), decimals)


def share_of(name: str, decimals: int = 1) -> Callable[[Row], str]:
    return lambda row: percent(row.get(name), decimals)


def bytes_of(name: str) -> Callable[[Row], str]:
    return lambda row: mebibytes(row.get(name))


def interval_of(decimals: int = 2) -> Callable[[Row], str]:
    return lambda row: interval(row.get("ci_low"), row.get("ci_high"), decimals)


def percent_interval(row: Row) -> str:
    low, high = percent(row.get("ci_low")), percent(row.get("ci_high"))
    return MISSING if MISSING in (low, high) else f"{low} to {high}"


def ids_of(row: Row) -> str:
    return listed_ids(cells_of(row), 3)


def listed_ids(ids: Sequence[str], limit: int = MAX_IDS) -> str:
    told = " ".join(ids[:limit]) or "none"
    return told if len(ids) <= limit else f"{told} and {len(ids) - limit} more"

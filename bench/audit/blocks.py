"""The three kinds of block that a pasted text is made of: JSON values, tables, and plain lines. It knows no tool.

A reader is given a block, tells whether it is its own, and says which lines it has used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from bench.audit.launches import Launches
from bench.audit.numbers import decimal_comma
from bench.audit.trials import Flag, Trial

LONGEST_LINE = 20_000
"""Lines of a log above this length are not searched: no tool prints one."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the text; `number` counts from 1."""

    number: int
    text: str


@dataclass(frozen=True)
class Options:
    """What a reader may need to know of the command line."""

    streams: int | None = None


@dataclass
class Block:
    """A part of a text. `name` is the text's, for sentences."""

    name: str
    index: int = 0
    options: Options = field(default_factory=Options)


@dataclass
class JsonBlock(Block):
    """JSON values that follow one another with nothing but white space between them, an array's elements or lines."""

    values: list[tuple[int, Any]] = field(default_factory=list)
    """Line where it begins, and the value."""
    first: int = 0
    last: int = 0
    cut: str = ""
    """Where and how the text breaks off, empty where it does not."""

    @property
    def rows(self) -> list[tuple[int, dict[str, Any]]]:
        """The values that are objects."""
        return [(line, value) for line, value in self.values if isinstance(value, dict)]

    @cached_property
    def head(self) -> Mapping[str, Any]:
        """The first object, empty where there is none."""
        return next((value for _, value in self.rows), {})

    def has(self, *keys: str) -> bool:
        """Whether the first object has all of some keys."""
        return all(key in self.head for key in keys)


@dataclass(frozen=True)
class TableRow:
    """One row: `cells` has every column of the header."""

    line: int
    cells: dict[str, str]


@dataclass
class TableBlock(Block):
    """A table with a header, as CSV, as Markdown, or in columns under each other."""

    header: list[str] = field(default_factory=list)
    rows: list[TableRow] = field(default_factory=list)
    form: str = "csv"
    """csv, markdown or columns."""
    delimiter: str = ""
    line: int = 0
    last: int = 0
    above: list[Line] = field(default_factory=list)
    """Lines between the block before and this one: tools print their settings there."""
    below: list[Line] = field(default_factory=list)
    cut: str = ""
    """Sentence about a row that is not whole."""

    def has(self, *names: str) -> bool:
        """Whether the header has some columns, as they are written."""
        return set(names) <= set(self.header)

    @cached_property
    def comma(self) -> bool:
        """Whether the cells are written with a decimal comma."""
        return decimal_comma(cell for row in self.rows for cell in row.cells.values())


@dataclass
class LinesBlock(Block):
    """Lines of a log: all that is neither JSON nor a table, with their numbers."""

    lines: list[Line] = field(default_factory=list)

    @cached_property
    def text(self) -> str:
        """The lines as one text."""
        return "\n".join(line.text for line in self.lines)

    def search(self, pattern: re.Pattern[str]) -> Iterator[tuple[Line, re.Match[str]]]:
        """Lines in which a pattern is found."""
        for line in self.lines:
            if len(line.text) <= LONGEST_LINE:
                found = pattern.search(line.text)
                if found:
                    yield line, found


@dataclass
class Found:
    """What a reader has read. `used` are the numbers of the lines that it understood."""

    name: str
    """The tool, in words for the report."""
    trials: list[Trial] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    used: set[int] = field(default_factory=set)
    flags: list[Flag] = field(default_factory=list)
    launches: list[Launches] = field(default_factory=list)

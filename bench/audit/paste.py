"""Finds blocks in any text: JSON, tables and, of what is left, lines. It knows no tool and reads no number.

The text may have logs before, between and after, code fences, quotes, prompts of a shell, several runs. Every search
has a bound: a text that was made to be slow is skipped as lines.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from typing import Any

from bench.audit.blocks import Block, JsonBlock, Line, LinesBlock, Options, TableBlock, TableRow
from bench.errors import UserError

MOST_CELLS = 512
LONGEST_NAME = 100
MOST_UNKNOWN = 100_000
MOST_FAILURES = 200
"""Openings of JSON that came to nothing, after which a brace is taken as a letter."""
NEAR = 4
"""Lines below a table that may still belong to it: tools print their build there."""
MOST_VALUES = 1_000_000
DEEPEST = 3
"""Levels of a JSON value that are searched for something known."""
_C_NUMBERS = re.compile(r"(?<=[:\[,] )-?(?:nan|inf)\b")
_QUOTE = re.compile(r"^(?:>[ \t]?)+(?=[|{\[\"\w ])")
_FENCE = re.compile(r"^\s*(?:`{3,}|~{3,})")
_RULE = frozenset(" \t|:+-")
_UNDERLINE = frozenset(" \t=-")
_NO_NAME = re.compile(r"=\s*\S|:(?:\s|$)|[{}]|\d\.\d|\d{8}")
_GAPS = re.compile(r" {2,}|\t+")
_NUMERIC = re.compile(r"[-+~]?[\d.,]+%?")
Claims = Callable[[Block], bool]


class Paste:
    """Splits one text. `claims` tells whether some reader takes a block; what none takes stays lines."""

    def __init__(self, name: str, lines: list[str], claims: Claims, options: Options | None = None) -> None:
        self.name, self.claims, self.options = name, claims, options or Options()
        self.lines = ["" if _FENCE.match(line) else _QUOTE.sub("", line) for line in lines]
        self.text = _C_NUMBERS.sub(lambda found: "NaN".rjust(len(found[0])), "\n".join(self.lines))
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.failures = 0
        self.broken: list[str] = []
        """What could have been a block and is damaged, for a text in which nothing else is found."""
        self.unknown: set[tuple[str, ...]] = set()
        """Headers that no reader knows, so that a text of a million like lines asks once."""
        self.blocks: list[Block] = []
        self.loose: list[Line] = []
        self.above: list[Line] = []

    def split(self) -> list[Block]:
        """All blocks in order; the lines that are left come last, as one block."""
        at = 0
        while at < len(self.lines):
            end = self._json(at) or self._table(at)
            if end is None:
                line = Line(at + 1, self.lines[at])
                self.loose.append(line)
                self.above.append(line)
                at += 1
            else:
                at = end
        if any(line.text.strip() for line in self.loose):
            self.blocks.append(LinesBlock(self.name, len(self.blocks), self.options, self.loose))
        return self.blocks

    def _keep(self, block: Block) -> None:
        block.index = len(self.blocks)
        self.blocks.append(block)
        if isinstance(block, TableBlock):
            block.below = [
                Line(at + 1, self.lines[at]) for at in range(block.last, min(block.last + NEAR, len(self.lines)))
            ]
        self.above = []

    # JSON

    def _json(self, at: int) -> int | None:
        stripped = self.lines[at].lstrip()
        if stripped[:1] not in ("{", "[") or self.failures > MOST_FAILURES:
            return None
        if stripped[0] == "[" and not re.match(r"\[\s*($|[{\[\]])", stripped):
            return None
        block = JsonBlock(self.name, 0, self.options, first=at + 1)
        end = self._values(block, at)
        if not block.rows:
            self.failures += 1
            return None
        if self.claims(block):
            self._keep(block)
            return end
        found = self._inside(block)
        for inner in found:
            self._keep(inner)
        self.failures += not found
        if not found:
            self.loose += [Line(number + 1, self.lines[number]) for number in range(at, end)]
        return end

    def _inside(self, block: JsonBlock) -> list[JsonBlock]:
        """Objects and lists of objects that a reader knows, inside values that none does: an answer in an envelope."""
        found: list[JsonBlock] = []
        level: list[Any] = [value for _, value in block.values]
        for _ in range(DEEPEST):
            below: list[Any] = []
            for value in level[:MOST_CELLS]:
                below += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            level = []
            for value in below[:MOST_CELLS]:
                inner = value if isinstance(value, list) else [value]
                values = [(block.first, one) for one in inner]
                one = JsonBlock(self.name, 0, self.options, values, block.first, block.last)
                if inner and isinstance(inner[0], dict) and self.claims(one):
                    found.append(one)
                else:
                    level.append(value)
        return found

    def _values(self, block: JsonBlock, at: int) -> int:
        """Take values from line `at` on for as long as one begins where the last has ended; returns the next line."""
        decoder = json.JSONDecoder()
        place = self.starts[at] + len(self.lines[at]) - len(self.lines[at].lstrip())
        end = at
        kind: frozenset[str] | None = None
        while place < len(self.text) and len(block.values) < MOST_VALUES:
            line = self._line_of(place, end)
            try:
                value, after = decoder.raw_decode(self.text, place)
            except (ValueError, RecursionError) as error:
                if self.text[place] == "[":
                    after = self._elements(block, decoder, place)
                    return self._line_of(max(after - 1, place), line) + 1 if block.values else at
                self._note_cut(block, line, error)
                break
            keys = frozenset(value) if isinstance(value, dict) else None
            if kind is not None and keys is not None and len(keys & kind) < min(len(keys), len(kind)) / 2:
                break  # an object of another tool
            kind = keys if kind is None else kind
            for one in value if isinstance(value, list) else [value]:
                block.values.append((line + 1, one))
            end = self._line_of(max(after - 1, place), line) + 1
            block.last = end
            place = self._next_value(after, end)
            if place < 0:
                break
        return end

    def _next_value(self, after: int, end: int) -> int:
        """Where the next value begins if nothing but white space and a comma are before it, else -1."""
        found = re.compile(r"[\s,]*").match(self.text, after)
        place = found.end() if found else after
        return place if place < len(self.text) and self.text[place] in "{[" else -1

    def _elements(self, block: JsonBlock, decoder: json.JSONDecoder, place: int) -> int:
        """The whole elements of an array that does not end."""
        place += 1
        while True:
            found = re.compile(r"[\s,]*").match(self.text, place)
            place = found.end() if found else place
            line = self._line_of(place, 0)
            try:
                value, after = decoder.raw_decode(self.text, place)
            except (ValueError, RecursionError) as error:
                if block.values:
                    self._note_cut(block, line, error)
                    return len(self.text)
                return place
            if not isinstance(value, dict):
                return place
            block.values.append((line + 1, value))
            block.last, place = self._line_of(max(after - 1, place), line) + 1, after

    def _note_cut(self, block: JsonBlock, line: int, error: Exception) -> None:
        why = error.msg if isinstance(error, json.JSONDecodeError) else "it is nested too deeply"
        if not block.rows:
            self.broken.append(f"line {line + 1}: JSON that breaks off or is damaged ({why})")
        else:
            block.cut = (
                f"line {line + 1}: the JSON breaks off or is damaged there ({why}); the rows before it are whole"
            )

    def _line_of(self, place: int, from_line: int) -> int:
        """Index of the line in which a place of the text is."""
        low, high = max(from_line, 0), len(self.starts) - 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.starts[middle] <= place else (low, middle)
        return low

    # Tables

    def _table(self, at: int) -> int | None:
        for attempt in (self._markdown, self._delimited, self._columns):
            block = attempt(at)
            if block is not None:
                self._keep(block)
                return block.last
        return None

    def _claimed(self, at: int, header: list[str], form: str) -> TableBlock | None:
        """A table without rows if some reader knows its header: no row is looked at for a header that none does."""
        key = (form, *header)
        if key in self.unknown or not all(map(_is_name, header)):
            return None
        names = [name for name in dict.fromkeys(header) if name]
        block = TableBlock(self.name, 0, self.options, names, form=form, line=at + 1, above=list(self.above))
        if not self.claims(block):
            if len(self.unknown) < MOST_UNKNOWN:
                self.unknown.add(key)
            return None
        if len(names) == len(header):
            return block
        twice = next((name for name in header if name and header.count(name) > 1), None)
        fault = f"column '{twice}' stands twice in the header" if twice else "a column of the header has no name"
        self.broken.append(f"line {at + 1}: {fault}")
        return None

    def _damaged(self, block: TableBlock, what: str, goes_on: bool) -> None:
        """A row that is not whole: the text's end, or, where the table goes on below it, a table not to be trusted."""
        if goes_on:
            raise UserError(f"{self.name}, {what}; the table goes on below it, so take the text from its source again")
        block.cut = what

    def _markdown(self, at: int) -> TableBlock | None:
        line = self.lines[at]
        ruled = at + 1 < len(self.lines) and "|" in self.lines[at + 1] and _is_rule(self.lines[at + 1], _RULE)
        if (line.count("|") < 2 and not (ruled and "|" in line)) or _is_rule(line, _RULE):
            return None
        header = _pipes(line)
        if not 1 < len(header) <= MOST_CELLS:
            return None
        block = self._claimed(at, header, "markdown")
        if block is None:
            return None
        end = at + 1
        while end < len(self.lines) and "|" in self.lines[end]:
            cells = _pipes(self.lines[end])
            if not _is_rule(self.lines[end], _RULE):
                nxt = self.lines[end + 1] if end + 1 < len(self.lines) else ""
                if cells == header or (end > at + 1 and "|" in nxt and _is_rule(nxt, _RULE)):
                    break  # the next table's header
                if len(cells) != len(header):
                    what = f"line {end + 1}: {len(cells)} fields, expected {len(header)} ({' | '.join(header[:6])} ..)"
                    self._damaged(block, what, "|" in nxt and len(_pipes(nxt)) == len(header))
                    end += 1
                    break
                block.rows.append(TableRow(end + 1, dict(zip(header, cells, strict=True))))
            end += 1
        block.last = end
        return block

    def _delimited(self, at: int) -> TableBlock | None:
        line = self.lines[at]
        delimiter = max(",;\t", key=line.count)
        header = fields(line, delimiter)
        if header is None or not 1 < len(header) <= MOST_CELLS:
            return None
        block = self._claimed(at, [name.strip() for name in header], "csv")
        if block is None or any(_NUMERIC.fullmatch(name) for name in block.header):
            return None
        block.delimiter = delimiter
        end, last = at + 1, len(self.lines) - 1
        while end < len(self.lines):
            line = self.lines[end]
            if not line.strip():
                break
            if line.startswith(("#", "==")):
                end += 1
                continue
            cells = fields(line, delimiter)
            if cells is None or len(cells) != len(header):
                whole = cells is not None and len(cells) == 1
                if whole and end < last:
                    break  # a line of a log below the table
                why = "an open quote" if cells is None else f"{len(cells)} fields, expected {len(header)}"
                if delimiter == "," and cells is not None and len(cells) > len(header):
                    why += ", a decimal comma between commas?"
                after = fields(self.lines[end + 1], delimiter) if end < last else None
                what = f"line {end + 1}: is cut or damaged: {why} ({', '.join(block.header[:6])} ..)"
                self._damaged(block, what, after is not None and len(after) == len(header))
                end += 1
                break
            block.rows.append(TableRow(end + 1, dict(zip(block.header, cells, strict=True))))
            end += 1
        block.last = end
        return block

    def _columns(self, at: int) -> TableBlock | None:
        header = _GAPS.split(self.lines[at].strip())
        if not 2 < len(header) <= MOST_CELLS or any(map(_NUMERIC.fullmatch, header)):
            return None
        block = self._claimed(at, header, "columns")
        if block is None:
            return None
        end = at + 1
        while end < len(self.lines):
            line = self.lines[end]
            if _is_rule(line, _UNDERLINE) or (not line.strip() and end == at + 1):
                end += 1
                continue
            cells = _GAPS.split(line.strip())
            if len(cells) != len(header):
                cells = line.split()
            if len(cells) != len(header):
                break
            block.rows.append(TableRow(end + 1, dict(zip(header, cells, strict=True))))
            end += 1
        block.last = end
        return block if block.rows else None


def _is_name(cell: str) -> bool:
    """Whether a cell can be a column's name: no assignment, no figure, no sentence, as the parts of a log line are."""
    return len(cell) <= LONGEST_NAME and ("__" in cell or not _NO_NAME.search(cell))


def _is_rule(line: str, signs: frozenset[str]) -> bool:
    """Whether a line is what separates a header from its rows."""
    return "-" in line and signs.issuperset(line)


def fields(line: str, delimiter: str) -> list[str] | None:
    """One line as CSV, None where a quote is open. Lines are read one by one: an odd quote swallows no other."""
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True, skipinitialspace=True), [])
    except csv.Error:
        return None


def _pipes(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]

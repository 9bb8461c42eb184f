"""Strict reading of text that somebody else wrote: what is wrong is named with its file, line and what was expected.

It knows no record format.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.errors import UserError, nearest

FORMATS = (
    "a ledger.csv(.gz) or cell folder of this harness, llama-bench -o json or jsonl, llama-batched-bench's table "
    "or --output-format jsonl, or a CSV of steps or runs"
)
MAX_BYTES = 512 * 1024 * 1024
"""Above this a record is not read: a ledger of a million tokens is 40 MB."""


def read_text(path: Path) -> str:
    """Contents of a text file, gzip undone. UserError where there is nothing to judge."""
    if not path.exists():
        raise UserError(f"{path}: no such file; give {FORMATS}")
    try:
        raw = _read_bytes(path)
    except PermissionError as error:
        raise UserError(f"{path}: may not be read; run: chmod u+r {path}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path}: cannot be read as gzip ({error}); copy it again from its source") from error
    if not raw.strip():
        raise UserError(f"{path}: is empty; expected {FORMATS}")
    if raw[:4] == b"GGUF":
        raise UserError(f"{path}: is a model (GGUF), not a record; expected {FORMATS}")
    if b"\0" in raw[:65536]:
        raise UserError(f"{path}: is a binary file; expected {FORMATS}")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: byte {error.start} is not UTF-8 text; expected {FORMATS}") from error
    head = text.lstrip()[:200].lower()
    if head.startswith(("<!doctype", "<html", "<?xml")):
        raise UserError(f"{path}: is a web page, not a record; download the raw file instead")
    return text


def _read_bytes(path: Path) -> bytes:
    if path.stat().st_size > MAX_BYTES:
        raise UserError(f"{path}: has {path.stat().st_size} bytes, more than {MAX_BYTES}; cut it to one run")
    raw = path.read_bytes()
    if raw[:2] != b"\x1f\x8b":
        return raw
    with gzip.GzipFile(fileobj=io.BytesIO(raw)) as stream:
        text = stream.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise UserError(f"{path}: unpacks to more than {MAX_BYTES} bytes; cut it to one run")
    return text


@dataclass(frozen=True)
class Row:
    """One line of a table: `line` is where it starts in the file, `cells` has every column of the header."""

    path: Path
    line: int
    cells: dict[str, str]

    def error(self, sentence: str) -> UserError:
        """The error to raise about this line."""
        return UserError(f"{self.path}, line {self.line}: {sentence}")

    def integer(self, column: str, low: int | None = None) -> int:
        """A whole number, at least `low`."""
        text = self.cells[column].strip()
        try:
            value = int(text)
        except ValueError as error:
            raise self.error(f"{column} is '{text}', expected a whole number") from error
        if low is not None and value < low:
            raise self.error(f"{column} is {value}, expected {low} or more")
        return value

    def number(self, column: str, low: float | None = None) -> float:
        """A finite number, at least `low`."""
        text = self.cells[column].strip()
        try:
            value = float(text)
        except ValueError as error:
            raise self.error(f"{column} is '{text}', expected a number") from error
        if not math.isfinite(value):
            raise self.error(f"{column} is '{text}', expected a finite number")
        if low is not None and value < low:
            raise self.error(f"{column} is {text}, expected {low:g} or more")
        return value

    def integers(self, column: str) -> list[int]:
        """Whole numbers between spaces; a list in square brackets and commas is the same."""
        text = self.cells[column].strip().strip("[]").replace(",", " ")
        try:
            return [int(part) for part in text.split()]
        except ValueError as error:
            raise self.error(f"{column} is '{text[:60]}', expected whole numbers between spaces") from error


def csv_rows(path: Path, text: str) -> tuple[list[str], list[Row]]:
    """Header and rows of a CSV (comma, semicolon or tab; lines that start with # are skipped)."""
    lines = [
        (number, line)
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not lines:
        raise UserError(f"{path}: has comments and no table; expected {FORMATS}")
    first = lines[0][1]
    delimiter = max(",;\t", key=first.count)
    header: list[str] = []
    rows: list[Row] = []
    for number, line in lines:
        try:
            fields = next(csv.reader([line], delimiter=delimiter, strict=True))
        except csv.Error as error:
            raise UserError(f"{path}, line {number}: {error}; expected one record a line") from error
        if not header:
            header = _header(path, number, fields)
        elif len(fields) != len(header):
            raise UserError(
                f"{path}, line {number}: {len(fields)} fields, expected {len(header)} ({', '.join(header)})"
            )
        else:
            rows.append(Row(path, number, dict(zip(header, fields, strict=True))))
    return header, rows


def _header(path: Path, line: int, fields: Iterable[str]) -> list[str]:
    names = [name.strip() for name in fields]
    for name in names:
        if not name:
            raise UserError(f"{path}, line {line}: a column of the header has no name")
        if names.count(name) > 1:
            raise UserError(f"{path}, line {line}: column '{name}' stands twice in the header")
    return names


def need_columns(path: Path, header: list[str], wanted: Iterable[str]) -> None:
    """UserError that names the first column that is missing, and what stands there that resembles it."""
    for name in wanted:
        if name not in header:
            rest = [column for column in header if column not in wanted]
            hint = f"; {nearest(name, rest)}" if rest else ""
            raise UserError(f"{path}, line 1: column '{name}' is missing{hint}")

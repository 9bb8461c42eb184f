"""Tables and small files of the harness's own records, read as foreign ones: line by line, within bounds."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bench.audit.text import opened, read_some
from bench.errors import UserError, nearest

LONGEST = 4096
"""A line of one of these tables is shorter."""
MOST_SMALL = 16 * 1024 * 1024
Rows = Iterator[tuple[int, list[str]]]


def table(path: Path, stream: Any, wanted: Iterable[str]) -> Rows:
    """Line number and the wanted columns of each row of a CSV, read as it comes."""
    wanted = tuple(wanted)
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="\n")
    places: list[int] = []
    size, straight = 0, False
    number = 0
    try:
        while line := text.readline(LONGEST + 1):
            number += 1
            if len(line) > LONGEST:
                raise UserError(
                    f"{path}, line {number}: is longer than {LONGEST} characters; that is no row of a table"
                )
            if not line.strip() or line.startswith("#"):
                continue
            cells = line.rstrip("\r\n").split(",") if '"' not in line else next(csv.reader([line.rstrip("\r\n")]), [])
            if not places:
                header = [name.strip() for name in cells]
                places, size = _places(path, number, header, wanted), len(header)
                straight = places == list(range(size))
                continue
            if len(cells) != size:
                raise UserError(
                    f"{path}, line {number}: {len(cells)} fields, expected {size}; the line is cut or damaged"
                )
            yield number, cells if straight else [cells[place] for place in places]
    except (OSError, EOFError, zlib.error, csv.Error, gzip.BadGzipFile) as error:
        raise UserError(f"{path}: breaks off after line {number} ({error}); copy it again from its source") from error
    if not places:
        raise UserError(f"{path}: has comments and no table")


def _places(path: Path, line: int, header: list[str], wanted: Iterable[str]) -> list[int]:
    for name in wanted:
        if header.count(name) > 1:
            raise UserError(f"{path}, line {line}: column '{name}' stands twice in the header")
        if name not in header:
            rest = [column for column in header if column not in wanted]
            raise UserError(
                f"{path}, line {line}: column '{name}' is missing" + (f"; {nearest(name, rest)}" if rest else "")
            )
    return [header.index(name) for name in wanted]


def dicts(
    folder: Path, name: str, wanted: tuple[str, ...], more: tuple[str, ...] = ()
) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and named values of each row of a table of a cell; none where it has no such table.

    Columns of `more` are there where the table has them.
    """
    path = file_of(folder, name)
    if path is None:
        return
    with opened(path) as stream:
        head = read_some(path, stream, LONGEST).split(b"\n")[0].decode("utf-8", errors="replace")
    there = tuple(column for column in more if column in [cell.strip() for cell in head.split(",")])
    with opened(path) as stream:
        for line, cells in table(path, stream, wanted + there):
            yield line, dict(zip(wanted + there, cells, strict=True))


def file_of(folder: Path, name: str) -> Path | None:
    """The file of a table, packed or not."""
    return next((path for end in (".csv.gz", ".csv") if (path := folder / f"{name}{end}").is_file()), None)


def mapping(path: Path) -> dict[str, Any]:
    """Named values of a JSON or YAML file; none where there is no file. UserError where it is damaged."""
    if not path.is_file():
        return {}
    with opened(path) as stream:
        raw = read_some(path, stream, MOST_SMALL)
    try:
        value = json.loads(raw) if path.suffix == ".json" else _yaml(raw)
    except (ValueError, RecursionError) as error:
        why = " ".join(str(error).split())[:100]
        raise UserError(f"{path}: is damaged ({why}); run the cell again") from error
    if not isinstance(value, dict):
        raise UserError(f"{path}: holds {type(value).__name__}, expected named values; run the cell again")
    return value


def _yaml(raw: bytes) -> Any:
    """A YAML document. ValueError where it is none."""
    import yaml  # only a cell folder has one, and a small text is to be read at once

    from bench.records.bounded import yaml_value

    try:
        return yaml_value(raw.decode("utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def integer(where: str, name: str, text: str, low: int) -> int:
    """A whole number from `low` to 2^62. UserError says where it is none."""
    try:
        value = int(text)
    except ValueError:
        raise UserError(f"{where}: {name} is '{text[:40]}', expected a whole number") from None
    if not low <= value < 2**62:
        raise UserError(f"{where}: {name} is {value}, expected {low} or more")
    return value

"""The report's CSV files: the judge's rows under the columns that their types declare.

Knows nothing about how a value was obtained. A missing value is `n/a` (which pandas reads as nan), a row that rests on
no cell says `none`. What the columns are is in `bench.judge.tables`, and in words in `docs/columns.md`.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from bench.judge.columns import changed
from bench.judge.tables import TABLES, row_type, written
from bench.judge.tables.contrast import Timeline
from bench.plain_text import csv_cell
from bench.report.tables.files import remove_file, write_file
from bench.report.tables.values import MISSING, Row, cells_of, plain, sort_column

FILES = (*TABLES, "claims")
"""The report's files, by the name of their table."""


class Ordered:
    """The tables of the findings, each put in order once: the judge's own order may depend on how it read the cells.

    Takes any object with lists of rows as attributes; an absent one counts as empty.
    """

    def __init__(self, findings: Any, ordered: Mapping[str, list[Row]] | None = None) -> None:
        self._findings = findings
        self._tables = dict(ordered or {})

    def rows(self, name: str) -> list[Row]:
        if name not in self._tables:
            self._tables[name] = _ordered(name, list(getattr(self._findings, name, None) or []))
        return self._tables[name]

    def only(self, *names: str) -> Ordered:
        """Some of the tables, in order already: what another process needs of them."""
        return Ordered(None, {name: self.rows(name) for name in names})


def _ordered(name: str, rows: list[Row]) -> list[Row]:
    """Rows by machine, build, cell and then all their columns; points of a timeline are spread to one row each."""
    if name == "timeline":
        rows = [point for row in rows for point in _points(row)]
        # By far the longest table: its points are told apart by these columns alone.
        names: tuple[str, ...] = ("machine", "build", "cell", "t_s", "counted", "distinct")
    else:
        names = tuple(dict.fromkeys(("machine", "build", "cell", *written(name))))
    # By columns: most are of one type, and then nothing has to be asked of each value.
    columns = [sort_column(values) for values in _columns(name, rows, names)]
    keys = list(zip(*columns, map(cells_of, rows), strict=True))
    return [rows[place] for place in sorted(range(len(rows)), key=keys.__getitem__)]


def _columns(name: str, rows: Sequence[Row], names: Sequence[str]) -> list[list[Any]]:
    """The values of some columns, one list each. Typed rows are asked by attribute, which is several times as fast."""
    kind = row_type(name)
    if not all(type(row) is kind for row in rows):
        return [[row.get(key) for row in rows] for key in names]
    known = [key for key in names if key in kind.columns]
    found = {key: list(map(attrgetter(key), rows)) for key in known}
    return [found.get(key) or [None] * len(rows) for key in names]


def _points(row: Row) -> list[Row]:
    times = row.get("t_s")
    if not isinstance(row, Timeline) or not isinstance(times, Sequence):
        return [row]
    tracks = zip(times, row["counted"], row["distinct"], strict=True)
    return [changed(row, t_s=t, counted=counted, distinct=distinct) for t, counted, distinct in tracks]


def cell_text(value: Any) -> str:
    """One value as CSV text: full whole numbers, 9 significant digits of others, lists and dicts as JSON."""
    value = plain(value)
    if value is None:
        return MISSING
    kind = type(value)
    if kind is str:
        return csv_cell(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if kind is int:
        return str(value)
    if isinstance(value, float):
        whole = math.isfinite(value) and value.is_integer() and abs(value) < 1e15
        return str(int(value)) if whole else f"{value:.9g}"
    if isinstance(value, (Mapping, list, tuple)):
        return json.dumps(value, sort_keys=True, default=str)
    return csv_cell(str(value))


def column_text(values: list[Any]) -> list[str]:
    """A column as CSV text, like `cell_text` of each value; most columns are of one type, which saves the asking."""
    kinds = {*map(type, values)}
    if kinds == {str}:
        texts = {word: cell_text(word) for word in {*values}}
        return [texts[word] for word in values]
    if kinds == {int}:
        return [*map(str, values)]
    if kinds == {float}:
        # Below a thousand million, nine digits hold a whole number in full; adding zero mends a negative zero.
        return [f"{value + 0.0:.9g}" if -1e9 < value < 1e9 else cell_text(value) for value in values]
    return [cell_text(value) for value in values]


def table_text(name: str, rows: Sequence[Row], marks: Mapping[str, str] | None = None) -> str:
    """A whole CSV file. With no rows it is the header alone. Raises TypeError for a row with an undeclared column.

    `marks` stand in place of every value of their column.
    """
    header = written(name)
    kind = row_type(name)
    for row in rows:
        if type(row) is not kind and (undeclared := [key for key in row if key not in kind.columns]):
            raise TypeError(f"a row of {name} has the column '{undeclared[0]}', which {kind.__name__} does not declare")
    columns = dict(zip(header, _columns(name, rows, header), strict=True))
    marked = {key: [mark] * len(rows) for key, mark in (marks or {}).items()}
    texts = [
        marked.get(key) or ([csv_cell(" ".join(cells_of(row))) or "none" for row in rows] if key == "cells"
                            else column_text(values))
        for key, values in columns.items()
    ]  # fmt: skip
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(zip(*texts, strict=True))
    return out.getvalue()


def write_tables(tables: Ordered, claims: Sequence[Row], out: Path) -> list[Path]:
    """Writes a CSV file a table into the folder `out`, which must exist. Claims keep the order of their sheet.

    Files of optional tables that have no rows are removed. Raises UserError when a file cannot be written.
    """
    written_files = []
    for name in FILES:
        rows = claims if name == "claims" else tables.rows(name)
        path = out / f"{name}.csv"
        if rows or name == "claims" or not TABLES[name].optional:
            written_files.append(write_file(path, table_text(name, rows)))
        else:
            remove_file(path)
    return written_files

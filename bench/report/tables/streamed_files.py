"""The CSV files of more rows than are held: the rows of some cells at a time, appended in their order.

Within these cells the rows are in the order of every other CSV file. Knows nothing about where they come from.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar

from bench.judge.tables import TABLES
from bench.report.tables.csv_files import Ordered, table_text
from bench.report.tables.files import refusal, remove_file, write_file
from bench.report.tables.values import Row, cells_of

T = TypeVar("T")


class Many(Protocol):
    """Findings of which few rows are held."""

    @property
    def joined(self) -> Any:
        """Rows over several cells."""

    def each(self, make: Callable[[Any], T], processes: int) -> Iterator[T]:
        """What a function makes of the rows of some cells at a time."""


def texts_of(findings: Any) -> dict[str, str]:
    """The lines of each table that has rows, without their header."""
    tables = Ordered(findings)
    made = {name: table_text(name, rows) for name in TABLES if (rows := tables.rows(name))}
    return {name: text.partition("\n")[2] for name, text in made.items()}


def write_streamed(many: Many, kernels: Any, processes: int, claims: Sequence[Row], out: Path) -> list[Path]:
    """Write a CSV file a table into the folder `out`: rows of cells first, then those over several cells, then those of
    kernels, which `kernels` has.

    Files of optional tables without rows are removed. Raises UserError when a file cannot be written.
    """
    over = {name: getattr(kernels, name) for name in ("kernels", "ssq", "kernel_resources")}
    over["counters"] = [row for row in kernels.counters if not cells_of(row)]
    over["cells"] = [row for row in kernels.cells if row.kind == "kernels"]
    filled: set[str] = set()
    partial = {name: out / f".{name}.csv.partial" for name in TABLES}
    try:
        with ExitStack() as stack:
            files = {name: stack.enter_context(path.open("w", encoding="utf-8")) for name, path in partial.items()}
            for name, file in files.items():
                file.write(table_text(name, []))
            for texts in (*many.each(texts_of, processes), texts_of(many.joined), texts_of(_Rows(over))):
                _append(files, texts, filled)
        written = [write_file(out / "claims.csv", table_text("claims", claims))]
        for name, path in partial.items():
            if name in filled or not TABLES[name].optional:
                os.replace(path, out / f"{name}.csv")
                written.append(out / f"{name}.csv")
            else:
                remove_file(out / f"{name}.csv")
        return written
    except OSError as error:
        raise refusal(out, error) from error
    finally:
        for path in partial.values():
            remove_file(path)


class _Rows:
    """Some tables as findings have them."""

    def __init__(self, tables: dict[str, list[Row]]) -> None:
        self.__dict__.update(tables)


def _append(files: Mapping[str, IO[str]], texts: Mapping[str, str], filled: set[str]) -> None:
    for name, text in texts.items():
        files[name].write(text)
        filled.add(name)

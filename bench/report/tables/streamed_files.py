"""What is written of more rows than are held: of some cells at a time, in their order, and the CSV files of it.

Within these cells the rows are in the order of every other CSV file. Knows nothing about where they come from.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar

import numpy as np

from bench.judge import Across
from bench.judge.measure.contexts import ENDS, Told, Widening
from bench.judge.tables import TABLES, written
from bench.report.tables.csv_files import Ordered, column_text, table_text
from bench.report.tables.files import refusal, remove_file, write_file
from bench.report.tables.values import Row, cells_of

T = TypeVar("T")
GAPS = (*ENDS, "direction")
MARK = "\x01"
"""In place of a value. No text of a record has one here."""


class Many(Protocol):
    """Findings of which few rows are held."""

    @property
    def joined(self) -> Any:
        """Rows over several cells."""

    def each(self, make: Callable[[Any], T], processes: int) -> Iterator[T]:
        """What a function makes of the rows of some cells at a time."""

    def texts(self, lines: Lines, processes: int) -> Iterator[dict[str, str]]:
        """The lines of all of them by table, some cells at a time."""


def pieces(many: Many, kernels: Any, make: Callable[[Any], T], processes: int) -> Iterator[T]:
    """What a function makes of the rows of cells, some at a time, then of those over several cells, then of those of
    kernels, which `kernels` has."""
    yield from many.each(make, processes)
    yield from _behind(many, kernels, make)


def _behind(many: Many, kernels: Any, make: Callable[[Any], T]) -> Iterator[T]:
    yield make(many.joined)
    over = {name: getattr(kernels, name) for name in ("kernels", "ssq", "kernel_resources")}
    over["counters"] = [row for row in kernels.counters if not cells_of(row)]
    over["cells"] = [row for row in kernels.cells if row.kind == "kernels"]
    yield make(_Rows(over))


def texts_of(findings: Any) -> dict[str, str]:
    """The lines of each table that has rows, without their header."""
    tables = Ordered(findings)
    made = {name: table_text(name, rows) for name in TABLES if (rows := tables.rows(name))}
    return {name: text.partition("\n")[2] for name, text in made.items()}


class Lines:
    """The lines of some cells' rows, those of widened intervals apart: what widens them changes with every cell.

    What it makes is plain values, to be kept by whoever asks.
    """

    def of(self, findings: Any) -> dict[str, str]:
        """The lines of each table that has rows, but for those with such intervals."""
        return texts_of(_Rows({name: getattr(findings, name) for name in TABLES if name not in Across.WIDENED}))

    def open(self, findings: Any) -> dict[str, Any]:
        """Those of the others with gaps in place of what is widened, and what has to be known for that."""
        found = {}
        for name in Across.WIDENED:
            if rows := Ordered(findings).rows(name):
                text = table_text(name, rows, dict.fromkeys(GAPS, MARK)).partition("\n")[2]
                told = Told.of(rows)
                found[name] = text.split(MARK), told.builds, told.figures.tobytes(), told.directions
        return found

    def filled(self, opened: Mapping[str, Any], widening: Widening) -> dict[str, str]:
        """The lines of what was left open."""
        made = {}
        for name, (pieces, builds, figures, directions) in opened.items():
            told = Told(builds, np.frombuffer(figures).reshape(len(builds), -1), directions)
            _, ends, directions = widening.of(told)
            texts = {one: column_text(values) for one, values in zip(ENDS, ends.T.tolist(), strict=True)}
            texts["direction"] = column_text(directions)
            values = zip(*(texts[key] for key in written(name) if key in GAPS), strict=True)
            made[name] = "".join(chain.from_iterable(zip(pieces, chain(*values, [""]), strict=True)))
        return made


def write_streamed(many: Many, kernels: Any, processes: int, claims: Sequence[Row], out: Path) -> list[Path]:
    """Write a CSV file a table into the folder `out`, its rows in the order of `pieces`.

    Files of optional tables without rows are removed. Raises UserError when a file cannot be written.
    """
    filled: set[str] = set()
    partial = {name: out / f".{name}.csv.partial" for name in TABLES}
    try:
        with ExitStack() as stack:
            files = {name: stack.enter_context(path.open("w", encoding="utf-8")) for name, path in partial.items()}
            for name, file in files.items():
                file.write(table_text(name, []))
            for texts in chain(many.texts(Lines(), processes), _behind(many, kernels, texts_of)):
                _append(files, texts, filled)
        paths = [write_file(out / "claims.csv", table_text("claims", claims))]
        for name, path in partial.items():
            if name in filled or not TABLES[name].optional:
                os.replace(path, out / f"{name}.csv")
                paths.append(out / f"{name}.csv")
            else:
                remove_file(out / f"{name}.csv")
        return paths
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

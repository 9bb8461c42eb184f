"""The rows of one table on a stream, as Markdown, JSON, JSON lines or CSV. Computes nothing.

Markdown has the few columns that a reader compares; the others have all that the table's file has.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, TextIO

from bench.errors import UserError, nearest
from bench.judge.tables import columns_of, written
from bench.report.page.section import Column, escaped, limits, shown, tabulate
from bench.report.paste.values import row_of
from bench.report.tables.csv_files import FILES, Ordered, table_text
from bench.report.tables.streamed_files import Many, pieces
from bench.report.tables.values import Row

MARKDOWN = {
    "speedup": ("model", "quantization", "short", "temperature", "prompt_class", "scope", "speedup", "tok_s",
                "baseline_tok_s", "lossless"),
    "trials": ("model", "quantization", "short", "was", "speedup", "lossless"),
    "step_cost": ("model", "quantization", "layout", "width", "step_ms", "relative_cost"),
    "acceptance": ("model", "quantization", "short", "temperature", "depth", "tested", "accepted", "rate"),
    "claims": ("claim_id", "says", "verdict", "why"),
}  # fmt: skip
"""Columns by table, those of machine and build behind them. Of other tables the first ones."""
FIRST = 8


def write(table: str, form: str, findings: Any, claims: Sequence[Row], out: TextIO) -> None:
    """Writes the rows. Raises `UserError` for a table that there is not."""
    _check(table)
    rows: Sequence[Row] = claims if table == "claims" else Ordered(findings).rows(table)
    _write(table, form, [_text(table, form, rows)], out)


def write_streamed(table: str, form: str, many: Many, kernels: Any, claims: Sequence[Row], out: TextIO,
                   processes: int) -> None:  # fmt: skip
    """The same of more rows than are held, in the order of `pieces`. Raises `UserError`, too."""
    _check(table)
    if table == "claims":
        write(table, form, kernels, claims, out)
    else:
        _write(table, form, pieces(many, kernels, partial(_of_some, table=table, form=form), processes), out)


def _check(table: str) -> None:
    if table not in FILES:
        raise UserError(f"there is no table '{table}'; {nearest(table, FILES)}")


def _of_some(findings: Any, table: str, form: str) -> str:
    return _text(table, form, Ordered(findings).rows(table))


def _write(table: str, form: str, texts: Iterable[str], out: TextIO) -> None:
    """The texts of some rows each; empty ones are of none."""
    before, between, behind, empty = _frame(table, form)
    began = False
    for text in filter(None, texts):
        out.write(between if began else before)
        out.write(text)
        began = True
    out.write(behind if began else empty)


def _frame(table: str, form: str) -> tuple[str, str, str, str]:
    """What stands before all rows, between those of two texts, behind all, and in place of them where there are none.
    """
    if form == "csv":
        return table_text(table, []), "", "", table_text(table, [])
    if form == "json":
        return "[\n ", ",\n ", "\n]\n", "[]\n"
    if form == "jsonl":
        return "", "", "", ""
    header = [escaped(name) for name, _ in _columns(table)]
    return _line(header) + _line(["---"] * len(header)), "", "", f"No row of {escaped(table)}.\n"


def _text(table: str, form: str, rows: Sequence[Row]) -> str:
    """Some rows; nothing of none."""
    if form == "csv":
        return table_text(table, rows).partition("\n")[2]
    if form == "md":
        made = tabulate(rows, _columns(table), "", f"{table}.csv", limit=len(rows))
        return "".join(map(_line, made.rows))
    lines = [json.dumps(row_of(table, row), ensure_ascii=False, allow_nan=False) for row in rows]
    return ",\n ".join(lines) if form == "json" else "".join(f"{line}\n" for line in lines)


def _columns(table: str) -> list[Column]:
    """What the Markdown of a table has."""
    names = MARKDOWN.get(table) or tuple(name for name in written(table) if name != "cells")[:FIRST]
    columns: list[Column] = []
    for name in dict.fromkeys((*names, "machine", "build")):
        if name in columns_of(table):
            columns += shown(table, name)
            columns += [limits(table, name, "95 %")] if columns_of(table)[name].low else []
    return columns


def _line(words: Sequence[str]) -> str:
    return f"| {' | '.join(words)} |\n"

"""The rows of one table on a stream, as Markdown, JSON, JSON lines or CSV. Computes nothing.

Markdown has the few columns that a reader compares; the others have all that the table's file has.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TextIO

from bench.errors import UserError, nearest
from bench.report.page.section import Column, escaped, limits, shown, tabulate
from bench.report.paste.values import row_of
from bench.report.tables.csv_files import FILES, Ordered, table_text
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
    if table not in FILES:
        raise UserError(f"there is no table '{table}'; {nearest(table, FILES)}")
    rows: Sequence[Row] = claims if table == "claims" else Ordered(findings).rows(table)
    if form == "csv":
        out.write(table_text(table, rows))
    elif form == "md":
        out.write(_markdown(table, rows))
    elif form == "jsonl":
        out.writelines(f"{_json(table, row)}\n" for row in rows)
    else:
        lines = ",\n ".join(_json(table, row) for row in rows)
        out.write(f"[\n {lines}\n]\n" if rows else "[]\n")


def _json(table: str, row: Row) -> str:
    return json.dumps(row_of(table, row), ensure_ascii=False, allow_nan=False)


def _markdown(table: str, rows: Sequence[Row]) -> str:
    from bench.judge.tables import columns_of, written

    names = MARKDOWN.get(table) or tuple(name for name in written(table) if name != "cells")[:FIRST]
    columns: list[Column] = []
    for name in dict.fromkeys((*names, "machine", "build")):
        if name in columns_of(table):
            columns += shown(table, name)
            columns += [limits(table, name, "95 %")] if columns_of(table)[name].low else []
    made = tabulate(rows, columns, "", f"{table}.csv", limit=len(rows))
    lines = [made.header, ["---"] * len(made.header), *made.rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) if rows else f"No row of {escaped(table)}.\n"

"""A whole report as one JSON document: the first screen, and every table. `docs/report.schema.json` describes it.

Its schema is made from the same types (`bench.report.paste.schema`). Computes nothing.
"""

from __future__ import annotations

import io
import json
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import chain
from typing import Any, TextIO

from bench.judge.summary import Headline, Summary
from bench.judge.tables import TABLES
from bench.judge.tables.claims import Verdict
from bench.report.paste.values import row_of, value
from bench.report.tables.csv_files import FILES, Ordered
from bench.report.tables.streamed_files import Many, pieces
from bench.report.tables.values import Row

FORMAT, VERSION = "pti-bench report", 1
"""The version is raised when a reader of the older documents could not read the newer ones; a further column or table
does not raise it."""
OF_MACHINE = ("machine", "verdict", "sentence", "contrasts", "held_up", "stalled", "again_ok", "again_wide",
              "again_off", "other_cpus", "steal")  # fmt: skip
OF_MISSING = ("kind", "sentence", "count", "cells")
BETWEEN, END = ",\n   ", "\n }\n}\n"
"""Between the rows of a table, and behind the last table."""
OF_HEADLINE = ("claim_id", "says", "verdict", "why", "would_change", "kind")


def told(summary: Summary) -> dict[str, Any]:
    """The first screen."""
    return {
        "machines": [_fields(one, OF_MACHINE) for one in summary.machines],
        "headlines": [_headline(one) for one in summary.headlines],
        "marked": summary.marked, "only": summary.only,
        "evidence": [{"kind": one.kind, "counts": dict(one.counts)} for one in summary.evidence],
        "claims": summary.claims, "verdicts": summary.verdicts,
        "missing": [_fields(one, OF_MISSING) for one in summary.missing],
    }  # fmt: skip


def write(summary: Summary, findings: Any, claims: Sequence[Verdict], out: TextIO) -> None:
    """Writes the document to a stream, one line a row, so that two of them can be compared."""
    tables = Ordered(findings)
    _begin(summary, out)
    for name in FILES:
        _write_table(name, io.StringIO(_lines(name, claims if name == "claims" else tables.rows(name))), out)
    out.write(END)


def write_streamed(summary: Summary, many: Many, kernels: Any, claims: Sequence[Verdict], out: TextIO,
                   processes: int) -> None:  # fmt: skip
    """The same of more rows than are held, in the order of `pieces`: a temporary file a table has them meanwhile."""
    with ExitStack() as stack:
        files = {name: stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8")) for name in FILES}
        filled: set[str] = set()
        for texts in chain(pieces(many, kernels, lines_of, processes), [{"claims": _lines("claims", claims)}]):
            for name, text in texts.items():
                files[name].write((BETWEEN if name in filled else "") + text)
                filled.add(name)
        _begin(summary, out)
        for name, file in files.items():
            file.seek(0)
            _write_table(name, file, out)
        out.write(END)


def lines_of(findings: Any) -> dict[str, str]:
    """The rows of each table that has some, a line each."""
    tables = Ordered(findings)
    return {name: _lines(name, rows) for name in TABLES if (rows := tables.rows(name))}


def _lines(name: str, rows: Sequence[Row]) -> str:
    return BETWEEN.join(json.dumps(row_of(name, row), ensure_ascii=False, allow_nan=False) for row in rows)


def _begin(summary: Summary, out: TextIO) -> None:
    made = {"format": FORMAT, "version": VERSION, "summary": told(summary)}
    head = json.dumps(made, indent=1, ensure_ascii=False, allow_nan=False)
    out.write(head.removesuffix("\n}") + ',\n "tables": {')


def _write_table(name: str, lines: TextIO, out: TextIO) -> None:
    """A table of the document; `lines` are read to their end."""
    out.write(f'{"" if name == FILES[0] else ","}\n  {json.dumps(name)}: [')
    if first := lines.read(1):
        out.write(f"\n   {first}")
        shutil.copyfileobj(lines, out)
        out.write("\n  ")
    out.write("]")


def _fields(one: object, names: Sequence[str]) -> dict[str, Any]:
    return {name: value(getattr(one, name)) for name in names}


def _headline(one: Headline) -> dict[str, Any]:
    """A claim with its verdict on every machine; figures are in the table of claims under its id."""
    places = [{"verdict": verdict, "machines": list(machines)} for verdict, machines in one.places]
    ratios = {name: value(getattr(one.lead, name)) for name in RATIOS}
    return {**_fields(one, OF_HEADLINE), **ratios, "places": places}


RATIOS = ("published_ratio", "ratio", "ratio_low", "ratio_high")

"""A whole report as one JSON document: the first screen, and every table. `docs/report.schema.json` describes it.

Its schema is made from the same types (`bench.report.paste.schema`). Computes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TextIO

from bench.judge.summary import Headline, Summary
from bench.judge.tables.claims import Verdict
from bench.report.paste.values import row_of, value
from bench.report.tables.csv_files import FILES, Ordered
from bench.report.tables.values import Row

FORMAT, VERSION = "pti-bench report", 1
"""The version is raised when a reader of the older documents could not read the newer ones; a further column or table
does not raise it."""
OF_MACHINE = ("machine", "verdict", "sentence", "contrasts", "held_up", "stalled", "again_ok", "again_wide",
              "again_off", "other_cpus", "steal")  # fmt: skip
OF_MISSING = ("kind", "sentence", "count", "cells")
OF_HEADLINE = ("claim_id", "says", "verdict", "why", "would_change", "kind")


def document(summary: Summary, findings: Any, claims: Sequence[Row]) -> dict[str, Any]:
    """The document."""
    tables = Ordered(findings)
    rows = {name: claims if name == "claims" else tables.rows(name) for name in FILES}
    return {
        "format": FORMAT, "version": VERSION, "summary": told(summary),
        "tables": {name: [row_of(name, row) for row in found] for name, found in rows.items()},
    }  # fmt: skip


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
    made = document(summary, findings, claims)
    tables = made.pop("tables")
    head = json.dumps(made, indent=1, ensure_ascii=False, allow_nan=False)
    out.write(head.removesuffix("\n}") + ',\n "tables": {')
    for place, (name, rows) in enumerate(tables.items()):
        lines = ",\n   ".join(json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows)
        out.write(f'{"," if place else ""}\n  {json.dumps(name)}: [' + (f"\n   {lines}\n  ]" if rows else "]"))
    out.write("\n }\n}\n")


def _fields(one: object, names: Sequence[str]) -> dict[str, Any]:
    return {name: value(getattr(one, name)) for name in names}


def _headline(one: Headline) -> dict[str, Any]:
    """A claim with its verdict on every machine; figures are in the table of claims under its id."""
    places = [{"verdict": verdict, "machines": list(machines)} for verdict, machines in one.places]
    ratios = {name: value(getattr(one.lead, name)) for name in RATIOS}
    return {**_fields(one, OF_HEADLINE), **ratios, "places": places}


RATIOS = ("published_ratio", "ratio", "ratio_low", "ratio_high")

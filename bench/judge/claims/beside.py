"""Ratios that stand beside a projection: what was measured of the same mechanism, wherever that was. It judges nothing.

A projected rate is neither confirmed nor refuted by a ratio of another machine; a reader is told both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from bench.errors import UserError
from bench.judge.claims.claim import Claim
from bench.judge.claims.intervals import Ends, quotient
from bench.judge.claims.names import Names
from bench.judge.claims.rows import Row, Tables, cells, figure, in_scope
from bench.judge.claims.scope import check_scope
from bench.judge.claims.words import known, number, word
from bench.judge.tables.contrast import GRADES

COLUMN = {"speedup": "speedup", "trials": "speedup", "step_cost": "relative_cost"}
"""The ratio of each table that may be told, by table."""
KEYS = ("says", "table", "scope", "over")
SAME = ("machine", "model", "quantization")
"""What two rows share of which one is divided by the other: each is a ratio to plain decoding by stock there."""


def check_beside(where: str, entries: Any) -> None:
    """Raises UserError for an entry that names no table, no words, or a key that the table does not have."""
    if not isinstance(entries, (list, tuple)):
        raise UserError(f"{where}: rule.beside is '{entries}'; write a list, each with {', '.join(KEYS[:3])}")
    for entry in entries:
        if not isinstance(entry, Mapping):
            raise UserError(f"{where}: rule.beside has the entry '{entry}'; write {', '.join(KEYS[:3])}")
        known(where, "key of beside", entry, KEYS)
        for key in KEYS[:3]:
            if not entry.get(key):
                raise UserError(f"{where}: an entry of beside has no {key}; add it")
        _check_part(where, entry)
        if "over" in entry:
            _check_part(where, entry["over"])


def _check_part(where: str, part: Mapping[str, Any]) -> None:
    word(where, "table of beside", part.get("table", ""), COLUMN)
    check_scope(where, part["table"], part.get("scope", {}))


def told(claim: Claim, findings: Tables, names: Names) -> tuple[str, tuple[str, ...]]:
    """What was measured beside a projection, as sentences, and the cells that it is from; nothing where nothing was."""
    words, rests = [], []
    for entry in claim.rule.beside:
        for row, ends in _found(entry, findings, names):
            where = f"on {row['machine']} ({row['model']} {row.get('quantization', '')}{_divergent(row)})"
            words.append(f"{entry['says']} {number(ends[0])} [{number(ends[1])}, {number(ends[2])}] {where}")
            rests.append(row)
    if not words:
        return "", ()
    return f" Measured ratios stand beside it, and no rate of another machine: {'; '.join(words)}.", tuple(cells(rests))


def _found(entry: Mapping[str, Any], findings: Tables, names: Names) -> list[tuple[Row, Ends]]:
    """Rows with their figure and its ends; with `over`, over that of the row of the same model on the same machine."""
    rows = _rows(entry, findings, names)
    if "over" not in entry:
        return rows
    below = _rows(entry["over"], findings, names)
    return [
        ({**row, "cells": cells([row, other]), "lossless": _worst(row, other)}, quotient(ends, under))
        for row, ends in rows for other, under in below if all(row.get(key) == other.get(key) for key in SAME)
    ]  # fmt: skip


def _rows(part: Mapping[str, Any], findings: Tables, names: Names) -> list[tuple[Row, Ends]]:
    column = COLUMN[part["table"]]
    found = []
    for row in in_scope(part["table"], part["scope"], str(part["scope"].get("per", "answer")), findings, names):
        values = [figure(row, name) for name in (column, "ci_low", "ci_high")]
        ends = [value for value in values if value is not None and 0 < value < math.inf]
        if not row.get("void") and len(ends) == 3:
            found.append((row, (ends[0], ends[1], ends[2])))
    return found


def _worst(row: Row, other: Row) -> Any:
    grades = [one.get("lossless") for one in (row, other)]
    return GRADES[-1] if GRADES[-1] in grades else row.get("lossless")


def _divergent(row: Row) -> str:
    return ", output divergent" if row.get("lossless") == GRADES[-1] else ""

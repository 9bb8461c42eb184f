"""What stands beside a verdict and decides nothing: measured ratios of a mechanism, and static counts of kernels.

A projected rate is neither confirmed nor refuted by a ratio of another machine; a reader is told both. A static count
is evidence of a kind of its own: what a compiler made of a kernel for a card that nobody had.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import islice
from typing import Any

from bench.errors import UserError
from bench.judge.claims.claim import Claim
from bench.judge.claims.intervals import Ends, quotient
from bench.judge.claims.names import Names
from bench.judge.claims.rows import Row, Tables, cells, figure, in_scope
from bench.judge.claims.scope import check_scope
from bench.judge.claims.words import known, number, word
from bench.judge.tables.contrast import GRADES
from bench.judge.tables.kernels import KernelResource

COLUMN = {"speedup": "speedup", "trials": "speedup", "step_cost": "relative_cost"}
"""The ratio of each table that may be told, by table."""
KEYS = ("says", "table", "scope", "over", "column")
STATIC = "kernel_resources"
STATIC_SCOPE = ("kernel", "format", "arch")
STATIC_COLUMN = "vector_bound"
MOST_TOLD = 100
"""Ratios of one entry: the first ones, where there are more."""
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
        if entry["table"] == STATIC:
            _check_static(where, entry)
            continue
        if "column" in entry:
            raise UserError(f"{where}: an entry of beside has a column only where its table is {STATIC}; leave it out")
        _check_part(where, entry)
        if "over" in entry:
            _check_part(where, entry["over"])


def _check_static(where: str, entry: Mapping[str, Any]) -> None:
    known(where, f"scope key of table '{STATIC}'", entry["scope"], STATIC_SCOPE)
    word(where, f"column of table '{STATIC}'", entry.get("column", STATIC_COLUMN), KernelResource.columns)


def _check_part(where: str, part: Mapping[str, Any]) -> None:
    word(where, "table of beside", part.get("table", ""), COLUMN)
    check_scope(where, part["table"], part.get("scope", {}))


def told(claim: Claim, findings: Tables, names: Names) -> tuple[str, tuple[str, ...]]:
    """What was measured beside a projection, as sentences, and the cells that it is from; nothing where nothing was."""
    words, rests = [], []
    static = [text for entry in claim.rule.beside if entry["table"] == STATIC for text in _static(entry, findings)]
    for entry in (one for one in claim.rule.beside if one["table"] != STATIC):
        for row, ends in _found(entry, findings, names):
            where = f"on {row['machine']} ({row['model']} {row.get('quantization', '')}{_divergent(row)})"
            words.append(f"{entry['says']} {number(ends[0])} [{number(ends[1])}, {number(ends[2])}] {where}")
            rests.append(row)
    text = f" Measured ratios stand beside it, and no rate of another machine: {'; '.join(words)}." if words else ""
    if static:
        text += f" Static count, compiled and not run: {'; '.join(static)}."
    return text, tuple(cells(rests))


def _found(entry: Mapping[str, Any], findings: Tables, names: Names) -> list[tuple[Row, Ends]]:
    """Rows with their figure and its ends; with `over`, over that of the row of the same model on the same machine."""
    rows = _rows(entry, findings, names)
    if "over" not in entry:
        return rows[:MOST_TOLD]
    below: dict[tuple[Any, ...], list[tuple[Row, Ends]]] = {}
    for other, under in _rows(entry["over"], findings, names):
        below.setdefault(tuple(other.get(key) for key in SAME), []).append((other, under))
    pairs = ((row, ends, other, under) for row, ends in rows
             for other, under in below.get(tuple(row.get(key) for key in SAME), ()))  # fmt: skip
    # Very many cells of one arm make a sentence that nobody reads, and as many pairs as their square.
    return [({**row, "cells": cells([row, other]), "lossless": _worst(row, other)}, quotient(ends, under))
            for row, ends, other, under in islice(pairs, MOST_TOLD)]  # fmt: skip


def _rows(part: Mapping[str, Any], findings: Tables, names: Names) -> list[tuple[Row, Ends]]:
    column = COLUMN[part["table"]]
    found = []
    for row in in_scope(part["table"], part["scope"], str(part["scope"].get("per", "answer")), findings, names):
        values = [figure(row, name) for name in (column, "ci_low", "ci_high")]
        ends = [value for value in values if value is not None and 0 < value < math.inf]
        if not row.get("void") and len(ends) == 3:
            found.append((row, (ends[0], ends[1], ends[2])))
    return found


def _static(entry: Mapping[str, Any], findings: Tables) -> list[str]:
    """A column of the static counts by number of vectors, in words; one for each compiler and architecture."""
    column, scope = entry.get("column", STATIC_COLUMN), entry["scope"]
    series: dict[tuple[str, str], dict[int, str]] = {}
    for row in findings.kernel_resources:
        same = all(str(row.get(key)) == str(scope[key]) for key in scope if key != "kernel")
        if same and str(row.get("kernel")).split("<")[0] == scope.get("kernel") and row.get(column) and row["streams"]:
            made = series.setdefault((str(row["compiler"]).split(" (")[0], str(row["arch"])), {})
            made[int(str(row["streams"]))] = str(row[column])
    return [
        f"{entry['says']} {', '.join(made[n] for n in sorted(made))} at {', '.join(map(str, sorted(made)))} vectors "
        f"({compiler} for {arch})" for (compiler, arch), made in sorted(series.items())
    ]  # fmt: skip


def _worst(row: Row, other: Row) -> Any:
    grades = [one.get("lossless") for one in (row, other)]
    return GRADES[-1] if GRADES[-1] in grades else row.get("lossless")


def _divergent(row: Row) -> str:
    return ", output divergent" if row.get("lossless") == GRADES[-1] else ""

"""The figures of a cell that are compared with another's: each with its interval, and which way is worse.

It knows no method, and computes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.judge.columns import Row
from bench.judge.compare.welch import Side
from bench.judge.findings import Findings
from bench.judge.tables.contrast import ANSWER, THESE

SPEEDUP, TRIAL, PLAIN = "speed-up", "on trial / baseline", "plain tok/s"
STEP_COST, ACCEPTANCE, OUTPUT = "step cost", "acceptance", "output"
ALL = "all"
"""The class of all prompts together."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a cell: a number with its interval, or a grade of losslessness."""

    side: Side | None = None
    grade: str = ""
    less_is_better: bool = False


Key = tuple[str, str]
"""What it is a figure of, and which part of it: the width of a step."""


def figures(findings: Findings) -> dict[tuple[str, str], dict[Key, Figure]]:
    """The figures of every cell, by its machine and id. Of a contrast those over all of its prompts."""
    found: dict[tuple[str, str], dict[Key, Figure]] = {}
    for table, name in (("speedup", SPEEDUP), ("trials", TRIAL)):
        for row in getattr(findings, table):
            # In sum over several answers the ratio is the same, but for a constant that both sides share.
            if row["prompt_class"] == ALL and row["scope"] == ANSWER:
                _of(found, row).update(_contrast(row, name))
    for row in findings.acceptance:
        if row["depth"] == 0:
            _of(found, row)[ACCEPTANCE, ""] = Figure(_side(row, "rate", "ci", _texts_freedom(row)))
    for row in findings.step_cost:
        if row["width"] > 1 and not row["void"]:
            part = f"width {row['width']}, {row['layout']}, {row['n_past']} past"
            side = _side(row, "relative_cost", "ci", float(row["passes"] - 1))
            _of(found, row)[STEP_COST, part] = Figure(side, less_is_better=True)
    return found


def _of(found: dict[tuple[str, str], dict[Key, Figure]], row: Row) -> dict[Key, Figure]:
    return found.setdefault((row["machine"], row["cells"][0]), {})


def _contrast(row: Row, name: str) -> Mapping[Key, Figure]:
    """The ratio, plain decoding's rate, and the grade. Both sides ran the same texts, so the interval is for these."""
    stem = "noise" if row["speaks_of"] != THESE and not math.isnan(row["noise_low"]) else "ci"
    freedom = row["noise_freedom"] if stem == "noise" else row["freedom"]
    side = _side(row, "speedup", stem, freedom)
    share = row["baseline_tok_s"] / side.value
    plain = Side(row["baseline_tok_s"], side.low * share, side.high * share, side.freedom)
    return {(name, ""): Figure(side), (PLAIN, ""): Figure(plain), (OUTPUT, ""): Figure(grade=row["lossless"])}


def _side(row: Row, column: str, stem: str, freedom: Any) -> Side:
    return Side(row[column], row[f"{stem}_low"], row[f"{stem}_high"], freedom)


def _texts_freedom(row: Row) -> float:
    """Of a share over texts; over one of them it is a normal interval."""
    return row["clusters"] - 1.0 if row["clusters"] > 1 else math.inf

"""Which rows of the findings a claim is about, and in what their conditions differ from the claim's.

Knows nothing about verdicts. A row is a dict as the judge made it; a value that is absent, None or nan is missing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

from bench.judge.claims.arithmetic import BYTE_UNITS
from bench.judge.claims.sheet import Claim
from bench.judge.claims.synthetic import of_another_model

Row = Mapping[str, Any]


class Tables(Protocol):
    """The tables of `bench.judge.findings.Findings` that claims are judged on."""

    speedup: Sequence[Row]
    step_cost: Sequence[Row]
    acceptance: Sequence[Row]
    domain: Sequence[Row]
    memory: Sequence[Row]
    bandwidth: Sequence[Row]
    kernels: Sequence[Row]
    counters: Sequence[Row]
    ssq: Sequence[Row]


NAMES = ("machine", "model")
"""Scope keys that are compared as names: only rows of that machine or model can say anything."""

DEFAULTS = {"prompt_class": "all", "position": 0, "layout": "sequences"}
"""What a row must be when the claim says nothing: all prompts together, all positions pooled, one token a sequence."""

DEFAULTS_OF = {
    "domain": DEFAULTS | {"signal": "acceptance", "window": 0},
    "kernels": {"cache": "cold"},
    "counters": {"helper": False},
    "ssq": {},
}  # fmt: skip
"""The same for other tables: acceptance itself as the signal of a domain, and whole answers; of kernels, nothing of the
weights in the cache before, and the kernel that the case is about."""

TABLES = {
    "speedup": "speedup", "rate": "speedup", "aggregate": "speedup", "tokens_per_round": "speedup",
    "lossless": "speedup", "step_cost": "step_cost", "acceptance": "acceptance", "memory": "memory",
    "bandwidth": "bandwidth", "kernel": "kernels",
}  # fmt: skip

COLUMNS = {
    "tokens_per_round": "tokens_per_round", "lossless": "identical_share", "step_cost": "relative_cost",
    "acceptance": "rate", "memory": "per_stream_bytes", "bandwidth": "read_gb_s", "kernel": "gb_s",
}  # fmt: skip

KERNEL_TABLES = ("kernels", "counters", "ssq")
"""Tables that `python -m bench kernels` fills."""

INTERVAL_OF = {"speedup": "speedup", "step_cost": "relative_cost", "acceptance": "rate"}
"""The column that `ci_low` and `ci_high` of a table belong to."""

OWN_INTERVAL = {
    ("domain", column): (f"{stem}_low", f"{stem}_high")
    for column, stem in (("on_mean", "on"), ("off_mean", "off"), ("drop", "drop"), ("auc", "auc"))
}
"""Columns of tables in which several figures of a row have an interval: where its ends are."""

NEEDED_FOR_SPEED = ("machine", "model", "quantization", "build", "n_predict", "baseline_tok_s")
"""What a speed has to be published with before anybody can call it a gain."""

RECORDED = ("machine", "model", "quantization", "n_predict", "build")
"""Conditions that every row of the findings can be compared in."""


def table_of(claim: Claim) -> str:
    return claim.rule.table or TABLES.get(claim.metric, "speedup")


def column_of(claim: Claim) -> str:
    """The column that holds the claim's figure."""
    if claim.rule.column:
        return claim.rule.column
    if claim.metric in COLUMNS:
        return COLUMNS[claim.metric]
    per = claim.scope.get("per", "answer")
    if claim.unit == "tok/s":
        return {"answer": "tok_s", "aggregate": "aggregate_tok_s", "counted": "counted_tok_s"}[per]
    return "counted_speedup" if per == "counted" else "speedup"


def figure(row: Row, column: str) -> float | None:
    """A finite or infinite number, or None when it is missing."""
    value = row.get(column)
    if value is None or isinstance(value, (str, bool)):
        return None
    value = float(value)
    return None if math.isnan(value) else value


def measured(row: Row, claim: Claim) -> float | None:
    """The claim's figure in the claim's unit; byte columns are converted."""
    column = column_of(claim)
    found = figure(row, column)
    scaled = found is not None and column.endswith("_bytes") and claim.unit in BYTE_UNITS
    return found / BYTE_UNITS[claim.unit] if scaled else found  # type: ignore[operator]


def interval(row: Row, claim: Claim) -> tuple[float, float] | None:
    """The 95 % interval of the claim's column in this row, or None."""
    place = table_of(claim), column_of(claim)
    if place not in OWN_INTERVAL and INTERVAL_OF.get(place[0]) != place[1]:
        return None
    low, high = (figure(row, name) for name in OWN_INTERVAL.get(place, ("ci_low", "ci_high")))
    return None if low is None or high is None else (low, high)


def matching(claim: Claim, findings: Tables) -> list[Row]:
    """Rows of the claim's table that its scope is about, void ones too."""
    scope = claim.scope
    per = "aggregate" if scope.get("per") == "aggregate" else "answer"
    defaults = DEFAULTS_OF.get(table_of(claim), DEFAULTS)
    silent = [(key, value) for key, value in defaults.items() if key not in scope]
    wanted = [(key, value) for key, value in scope.items() if key != "per"]
    rows = getattr(findings, table_of(claim), None) or ()
    # What the claim names first: that leaves few rows to look at further.
    return [row for row in rows if row.get("scope", per) == per and _matches(row, wanted) and _is_default(row, silent)]


def _is_default(row: Row, silent: Sequence[tuple[str, Any]]) -> bool:
    """Whether a row is as the defaults say, in the columns that it has and the claim is silent about."""
    return all(key not in row or _equal(row[key], value) for key, value in silent)


def _matches(row: Row, wanted: Sequence[tuple[str, Any]]) -> bool:
    for key, value in wanted:
        found = row.get(key)
        if not (_same(value, found or "") if key in NAMES else _equal(found, value)):
            return False
    return True


def _equal(found: Any, wanted: Any) -> bool:
    """Whether a row's value is the one, one of those, or inside the range that the scope names."""
    if found is None:
        return False
    if isinstance(wanted, str):
        return wanted in (found, "any") or str(found) == wanted
    if isinstance(wanted, Mapping):
        return wanted["from"] <= float(found) <= wanted["to"]
    if isinstance(wanted, (list, tuple)):
        return any(_equal(found, one) for one in wanted)
    if isinstance(wanted, (int, float)) and not isinstance(found, str):
        return math.isclose(float(found), float(wanted), abs_tol=1e-9)
    return str(found) == str(wanted)


def by_machine(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    """Rows by machine and engine build, in order of appearance."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((str(row.get("machine") or "unknown"), str(row.get("build") or "unknown")), []).append(row)
    return groups


def differing(claim: Claim, row: Row) -> list[str]:
    """Conditions of the claim that the row does not share, each as a phrase."""
    phrases = []
    for key in RECORDED:
        if key not in claim.conditions:
            continue
        claimed, found = claim.conditions[key], row.get(key)
        other = key == "model" and of_another_model(table_of(claim), row)
        if found in (None, "") or other or not _same(claimed, found):
            phrases.append(f"{key} (claim: {claimed}, here: {found if found not in (None, '') else 'not recorded'})")
    return phrases


def missing_for_speed(claim: Claim) -> list[str]:
    """What a speed-up published in tok/s was not published with. Without a baseline nobody can judge it."""
    if claim.metric != "speedup" or claim.unit != "tok/s" or "baseline_tok_s" in claim.conditions:
        return []
    absent = [key for key in NEEDED_FOR_SPEED if key not in claim.conditions]
    return absent + [key for key in ("streams", "temperature") if key not in claim.scope]


def _same(claimed: Any, found: Any) -> bool:
    """Equal numbers, or one name inside the other: 'mi50' is the same as 'AMD Instinct MI50'."""
    if isinstance(claimed, (int, float)):
        return isinstance(found, (int, float)) and math.isclose(claimed, found)
    one, other = _letters(str(claimed)), _letters(str(found))
    return bool(one and other) and (one in other or other in one)


@lru_cache(maxsize=4096)
def _letters(text: str) -> str:
    """A name without case and punctuation. Every claim is held against the names of all rows."""
    return re.sub(r"[^a-z0-9]", "", text.lower())


def cells(rows: Sequence[Row]) -> list[str]:
    """Ids of all cells that the rows rest on, sorted."""
    found: set[str] = set()
    for row in rows:
        value = row.get("cells") or row.get("cell") or ()
        found.update(value.split() if isinstance(value, str) else map(str, value))
    return sorted(found)


def label(row: Row) -> str:
    """A row in a few words."""
    words = [str(row[key]) for key in ("model", "variant", "format") if row.get(key)]
    if row.get("rows"):
        words.append(f"{row['rows']} x {row['cols']}")
    for key, unit in (("streams", "streams"), ("width", "wide"), ("temperature", "")):
        if row.get(key) is not None:
            words.append(f"temperature {row[key]:g}" if key == "temperature" else f"{row[key]} {unit}")
    return ", ".join(words) or "this machine"


def scope_text(claim: Claim) -> str:
    """The scope on one line, as key=value pairs."""
    parts = []
    for key, value in claim.scope.items():
        if isinstance(value, Mapping):
            value = f"{value['from']:g}..{value['to']:g}"
        elif isinstance(value, (list, tuple)):
            value = "/".join(str(one) for one in value)
        parts.append(f"{key}={value}")
    return ", ".join(parts)

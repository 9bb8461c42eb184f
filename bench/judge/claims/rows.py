"""Which rows of the findings a claim is about, and its figure and interval in one of them.

Knows nothing about verdicts. A row is a mapping as the judge made it; a value that is absent, None or nan is missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from itertools import chain
from typing import Any, Protocol

from bench.judge.claims.claim import Claim
from bench.judge.claims.columns import BEHIND, COLUMNS, UNITS, Column
from bench.judge.claims.names import KINDS, Names, without_mark
from bench.judge.claims.rule import NOISE, PROMPTS
from bench.judge.claims.scope import ANY
from bench.judge.claims.words import number
from bench.judge.measure.estimands import ENOUGH
from bench.judge.measure.intervals import wilson
from bench.judge.tables.contrast import THESE
from bench.records.drawing import USUAL

Row = Mapping[str, Any]


class Tables(Protocol):
    """The tables of `bench.judge.findings.Findings` that claims are judged on."""

    @property
    def speedup(self) -> Sequence[Row]: ...

    @property
    def trials(self) -> Sequence[Row]: ...

    @property
    def step_cost(self) -> Sequence[Row]: ...

    @property
    def acceptance(self) -> Sequence[Row]: ...

    @property
    def domain(self) -> Sequence[Row]: ...

    @property
    def memory(self) -> Sequence[Row]: ...

    @property
    def bandwidth(self) -> Sequence[Row]: ...

    @property
    def kernels(self) -> Sequence[Row]: ...

    @property
    def counters(self) -> Sequence[Row]: ...

    @property
    def ssq(self) -> Sequence[Row]: ...

    @property
    def kernel_resources(self) -> Sequence[Row]: ...


DEFAULTS: Mapping[str, Any] = {"prompt_class": "all", "depth": 0, "layout": "sequences", "kv_unified": False, **USUAL}
"""What a row must be when the claim says nothing: all prompts together and behind no other text, guesses at all depths
pooled, one token a sequence, a cache for each; prompts as they stand, draws from the whole distribution, and answers of
one length."""

DEFAULTS_OF: dict[str, Mapping[str, Any]] = {
    "trials": {"prompt_class": "all", "depth": 0, "kv_unified": False, **USUAL},
    "domain": {**DEFAULTS, "signal": "acceptance", "window": 0},
    "kernels": {"cache": "cold"},
    "counters": {"helper": False, "of": "launch"},
    "ssq": {},
}  # fmt: skip
"""The same for other tables: acceptance itself as the signal of a domain, and whole answers; of kernels, nothing of the
weights in the cache before, and the kernel that the case is about."""

NOISE_ENDS = ("noise_low", "noise_high")
"""Columns of the interval for these very texts."""

FORMER = {"depth": "position"}
"""What a key was called in rows of earlier versions."""


def figure(row: Row, column: str) -> float | None:
    """A finite or infinite number, or None when it is missing."""
    value = row.get(column)
    if value is None or isinstance(value, (str, bool)):
        return None
    value = float(value)
    return None if math.isnan(value) else value


def column_of(claim: Claim) -> Column:
    """What the claim's figure is."""
    return COLUMNS[claim.table][claim.column]


def in_claim_unit(claim: Claim, value: float) -> float:
    """A value of the claim's column in the claim's unit."""
    return value / UNITS[column_of(claim).kind][claim.unit]


def measured(row: Row, claim: Claim) -> float | None:
    """The claim's figure in the claim's unit."""
    found = figure(row, claim.column)
    return None if found is None else in_claim_unit(claim, found)


def interval(row: Row, claim: Claim) -> tuple[float, float] | None:
    """The 95 % interval of the claim's figure in the claim's unit, or None.

    A figure without an interval of its own has the relative one of a ratio in the same row. Where a row has one
    for these texts and one for texts like these, it is the one that the claim is about; None where there is none.
    """
    column, found = column_of(claim), figure(row, claim.column)
    trials = figure(row, column.trials) if column.trials else None
    if trials and found is not None:
        ends = wilson(round(found * trials), round(trials))
        return in_claim_unit(claim, ends[0]), in_claim_unit(claim, ends[1])
    if column.ends is None or found is None:
        return None
    names = ends_for(claim, row)
    if names is None:
        return None
    low, high = (figure(row, name) for name in names)
    middle = figure(row, column.ends.middle) if column.ends.middle else 1.0
    if low is None or high is None or not middle:
        return None
    if column.ends.middle:
        low, high = found * low / middle, found * high / middle
    return in_claim_unit(claim, low), in_claim_unit(claim, high)


def ends_for(claim: Claim, row: Row) -> tuple[str, str] | None:
    """Columns of the interval of the claim's figure that is about what its sentence is about; None where there is none.

    A row that does not say of which texts it speaks has one interval, for whatever it is about.
    """
    ends = column_of(claim).ends
    if ends is None:
        return None
    if (ends.low, ends.high) != ("ci_low", "ci_high") or row.get("speaks_of") is None:
        return ends.low, ends.high
    if claim.rule.interval == NOISE:
        return NOISE_ENDS
    return None if row["speaks_of"] == THESE else (ends.low, ends.high)


def behind(claim: Claim, row: Row) -> tuple[str, int]:
    """The column with the number of units behind a Student's interval of the claim's figure, and how many of them are
    no degree of freedom."""
    if ends_for(claim, row) == NOISE_ENDS:
        return "noise_freedom", 0
    return BEHIND.get((claim.table, claim.column), BEHIND.get((claim.table, ""), ("", 0)))


def freedom(row: Row, claim: Claim) -> float:
    """Degrees of freedom of the interval of the claim's figure; infinite where it is not Student's or is not told."""
    name, less = behind(claim, row)
    known = figure(row, name)
    # One unit leaves the spread open, and its interval is of another kind.
    return math.inf if column_of(claim).trials or known is None or known - less < 1 else known - less


def no_interval(claim: Claim, row: Row) -> str:
    """Why a row has no interval for a claim, and what would give it one, as a sentence."""
    if row.get("speaks_of") == THESE and claim.rule.interval == PROMPTS:
        count = row.get("n_prompts")
        return (f"{count} prompt{'s speak' if count != 1 else ' speaks'} of {'themselves' if count != 1 else 'itself'} "
                f"alone, and the claim is about texts like them: {number(row['speedup'])} "
                f"[{number(row['noise_low'])}, {number(row['noise_high'])}] on these. Measure "
                f"{ENOUGH} prompts (measure=thorough).")  # fmt: skip
    return "The record gives no interval for it; measure more blocks."


def matching(claim: Claim, findings: Tables, names: Names) -> list[Row]:
    """Rows of the claim's table that its scope is about, void ones too."""
    return in_scope(claim.table, claim.scope, claim.per, findings, names, claim.conditions)


def in_scope(table: str, scope: Mapping[str, Any], whose: str, findings: Tables, names: Names,
             told: Container[str] = ()) -> list[Row]:  # fmt: skip
    """Rows of a table that a scope is about, void ones too; `whose` speed they are is the scope's `per`.

    What a claim has told among its conditions may be any, and is compared there.
    """
    per = "aggregate" if whose == "aggregate" else "answer"
    defaults = DEFAULTS_OF.get(table, DEFAULTS)
    silent = [(key, value) for key, value in defaults.items() if key not in scope and key not in told]
    wanted = [(key, value) for key, value in scope.items() if key != "per"]

    def fits(row: Row) -> bool:
        # What the claim names first: that leaves few rows to look at further.
        return row.get("scope", per) == per and _matches(row, wanted, names) and _is_default(row, silent)

    if isinstance(findings, Indexed):
        return findings.rows_that(table, fits)
    return [row for row in getattr(findings, table, None) or () if fits(row)]


class Indexed:
    """Tables of which many rows read alike to every claim: those are asked about once.

    `keys` are the columns that claims ask of each table, as `bench.judge.claims.relevant` tells them; a table without
    is asked row by row. The rows must stay as they are.
    """

    def __init__(self, findings: Tables, keys: Mapping[str, Sequence[str]]) -> None:
        self._findings, self._keys = findings, keys
        self._alike: dict[str, list[list[int]]] = {}

    def __getattr__(self, table: str) -> Any:
        return getattr(self._findings, table)

    def rows_that(self, table: str, fits: Callable[[Row], bool]) -> list[Row]:
        """The rows of a table for which `fits` says so, in their order. It looks at nothing but those columns."""
        rows: Sequence[Row] = getattr(self._findings, table, None) or ()
        if table not in self._keys:
            return [row for row in rows if fits(row)]
        if table not in self._alike:
            self._alike[table] = _alike(rows, self._keys[table])
        found = [places for places in self._alike[table] if fits(rows[places[0]])]
        return [rows[place] for place in (found[0] if len(found) == 1 else sorted(chain.from_iterable(found)))]


def _alike(rows: Sequence[Row], keys: Sequence[str]) -> list[list[int]]:
    """Places of the rows that have the same values in some columns, of the same types."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for place, row in enumerate(rows):
        values = [value_of(row, key) for key in keys]
        kinds = tuple(map(type, values))
        same = (kinds, *(repr(value) if isinstance(value, (list, dict)) else value for value in values))
        groups.setdefault(same, []).append(place)
    return list(groups.values())


def value_of(row: Row, key: str) -> Any:
    """A scope key's value in a row, None where the row has none."""
    found = row.get(key)
    return row.get(FORMER[key]) if found is None and key in FORMER else found


def _is_default(row: Row, silent: Sequence[tuple[str, Any]]) -> bool:
    """Whether a row is as the defaults say, in the columns that it has and the claim is silent about."""
    return all(value_of(row, key) is None or equal(value_of(row, key), value) for key, value in silent)


def _matches(row: Row, wanted: Sequence[tuple[str, Any]], names: Names) -> bool:
    for key, value in wanted:
        if key in KINDS:
            alike = [value] if not isinstance(value, (list, tuple)) else value
            found = names.of_row(key, row)
            if value != ANY and not any(names.same(key, one, without_mark(found)) for one in alike):
                return False
        elif not equal(value_of(row, key), value):
            return False
    return True


def equal(found: Any, wanted: Any) -> bool:
    """Whether a row's value is the one, one of those, or inside the range that the scope names."""
    if found is None or found == "":
        return False
    if isinstance(wanted, str):
        return wanted == ANY or str(found) == wanted
    if isinstance(wanted, Mapping):
        return bool(wanted["from"] <= float(found) <= wanted["to"])
    if isinstance(wanted, (list, tuple)):
        return any(equal(found, one) for one in wanted)
    if isinstance(wanted, bool) or isinstance(found, bool):
        return bool(found == wanted)
    if isinstance(found, str):
        return found == str(wanted)
    return math.isclose(float(found), float(wanted), abs_tol=1e-9)


def by_machine(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    """Rows by machine and engine build, in order of appearance."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((str(row.get("machine") or "unknown"), str(row.get("build") or "unknown")), []).append(row)
    return groups


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
    if row.get("was") is not None:
        words.append(f"{row['short']} against {row['was']}")
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

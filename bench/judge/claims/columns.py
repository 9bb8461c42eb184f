"""What a claim may rest on: the figures of the findings, each with its table, unit, interval, and the tests it allows.

A typed table: a combination of metric, test and column that is not in it cannot be judged and is an error when a sheet
is read. It knows no verdict and reads no row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from bench.errors import UserError, nearest
from bench.judge.columns import RATIO
from bench.judge.tables import TABLES, ends_of, metric_columns, unit_of

BYTE_UNITS = {
    "B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30,
}  # fmt: skip

UNITS: Mapping[str, Mapping[str, float]] = {
    "x": {"x": 1.0, "of one stream's time": 1.0, "of one model's time": 1.0, "of one model's bytes": 1.0},
    "share": {"share": 1.0, "%": 0.01},
    "difference": {"difference": 1.0, "percentage points": 0.01},
    "area": {"area under the curve": 1.0},
    "tokens": {"tokens": 1.0},
    "tok/s": {"tok/s": 1.0},
    "GB/s": {"GB/s": 1.0, "MB/s": 1e-3, "TB/s": 1e3},
    "us": {"us": 1.0, "ms": 1e3, "s": 1e6},
    "ms": {"ms": 1.0, "us": 1e-3, "s": 1e3},
    "bytes": BYTE_UNITS,
    "growth": {"x KV cache and state": 1.0},
}
"""By kind of figure: the units that a claim about it may have, and how much of the column's own unit one of them is."""

RATIO_KINDS = ("x", "share", "difference", "area", "tokens", "growth")
"""Kinds that mean the same on another machine, whether or not the claim is judged there."""

SIDES = ("greater_than_one", "less_than_one", "less_than", "greater_than")


class Ends(NamedTuple):
    """Columns with the ends of a 95 % interval, and with the figure in their middle where it is another one."""

    low: str
    high: str
    middle: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A figure of a table. `tests` are those that mean something for it, by metric.

    Where a figure has no interval of its own, `ends` are those of a ratio in the same row whose relative interval it
    shares. `exact` figures are counts, which have none.
    """

    kind: str
    tests: Mapping[str, tuple[str, ...]]
    ends: Ends | None = None
    exact: bool = False
    trials: str = ""
    """Column with the number of trials behind a share, which give it an interval."""
    per: tuple[str, ...] = ("answer",)
    counted: bool = False
    """Whether it counts emit calls, which are no tokens of an answer."""


def _figure(
    table: str, name: str, tests: Mapping[str, tuple[str, ...]], exact: bool = False,
    per: tuple[str, ...] = ("answer",), counted: bool = False, trials: str = "",
) -> Column:  # fmt: skip
    """A figure whose unit and interval are those that its table declares."""
    unit, ends = unit_of(table, name), ends_of(table, name)
    own = Ends(*ends) if ends and not exact else None
    return Column("x" if unit == RATIO else unit, tests, own, exact, trials, per, counted)


_RATE = {"rate": ("absolute",)}
_KERNEL = {"kernel": ("absolute",)}
_DOMAIN = {"acceptance": ("value", "absolute", "direction")}
_GAIN = ("ratio", "direction", "absolute", "over")
_BYTES = {"memory": ("absolute",)}

_FIGURES: dict[str, dict[str, tuple[Any, ...]]] = {
    "speedup": {
        "speedup": ({"speedup": _GAIN, "aggregate": _GAIN}, False, ("answer", "aggregate")),
        "tok_s": ({**_RATE, "speedup": ("one_answer",)},),
        "steady_tok_s": (_RATE,),
        "aggregate_tok_s": ({**_RATE, "aggregate": ("absolute",)}, False, ("aggregate",)),
        "counted_tok_s": (_RATE, False, ("counted",), True),
        "counted_speedup": (_RATE, False, ("counted",), True),
        "baseline_tok_s": (_RATE,),
        "solo_tok_s": (_RATE,), "sabotage_tok_s": (_RATE,), "guess_ms": (_KERNEL, True),
        "tokens_per_round": ({"tokens_per_round": ("value", "absolute")}, True),
        "identical_share": ({"lossless": ("lossless", "absolute")}, True, ("answer",), False, "answers_graded"),
    },
    "trials": {"speedup": ({"trial": ("direction", "absolute", "ratio")}, False, ("answer", "aggregate"))},
    "step_cost": {
        "relative_cost": ({"step_cost": ("direction", "absolute", "over")},),
        "step_ms": ({"step_cost": ("absolute",)},),
    },
    "acceptance": {
        "rate": ({"acceptance": ("value", "absolute", "direction")},),
        "difference": ({"acceptance": ("collision",)},),
    },
    "domain": {
        "on_mean": (_DOMAIN,), "off_mean": (_DOMAIN,),
        "drop": ({"acceptance": ("direction",)},), "auc": ({"acceptance": ("direction",)},),
    },
    "memory": dict.fromkeys(("measured_bytes", "per_stream_bytes", "kv_bytes", "state_bytes", "card_bytes",
                             "process_bytes", "held_bytes", "extra_bytes"), (_BYTES, True)),
    "bandwidth": {"read_gb_s": ({"bandwidth": ("absolute",)},)},
    "kernels": {
        "gb_s": (_KERNEL,), "us": (_KERNEL,), "cost_over_best_single": ({"kernel": ("best_kernel",)},),
    },
    "counters": dict.fromkeys(("other_l2_over_weights", "dram_over_weights", "share_of_products", "us", "gb_s",
                               "dram_bytes", "l2_hit_rate"), (_KERNEL, True)),
    "ssq": {
        "measured_over_one_model": ({"kernel": ("value", "absolute")}, True), "us_over_one_model": (_KERNEL,),
    },
}  # fmt: skip
"""By table and column: the tests by metric, whether it is a count, per what it is, whether it counts emit calls, and
the column with its number of trials."""
COLUMNS: dict[str, dict[str, Column]] = {
    table: {name: _figure(table, name, *more) for name, more in figures.items()} for table, figures in _FIGURES.items()
}
COLUMNS["memory"]["growth"] = Column("growth", {"memory": ("stream_memory",)}, exact=True)
"""Figures that a claim may rest on, by table. `growth` is no column: its test makes it from several rows."""

BEHIND: Mapping[tuple[str, str], tuple[str, int]] = {
    ("speedup", ""): ("freedom", 0), ("step_cost", ""): ("passes", 1), ("acceptance", ""): ("clusters", 1),
    ("kernels", ""): ("blocks", 1), ("domain", "on_mean"): ("on_prompts", 1),
    ("domain", "off_mean"): ("off_prompts", 1),
}  # fmt: skip
"""By table and column (empty for all that are not named): the column that tells how many units are behind a Student's
interval, and how many of them are no degree of freedom."""

TABLE_OF = {metric: table for metric, (table, _) in metric_columns().items()}
"""Where a metric is measured, unless the rule names a table. Metrics that are not here have no rows."""

KERNEL_TABLES = tuple(table for table in COLUMNS if TABLES[table].row.startswith("bench.judge.tables.kernels:"))
"""Tables of kernels, which `python -m bench kernels` fills, counters of a decode aside."""

_SPEEDS = ("speedup", "aggregate", "rate")
"""Metrics whose column the unit and `per` of the claim decide."""
_USUAL = {metric: name for metric, (_, name) in metric_columns().items() if metric not in _SPEEDS}
_OF_TEST = {"collision": "difference", "stream_memory": "growth", "best_kernel": "cost_over_best_single"}


PER_OF = {"rate": ("answer", "aggregate", "counted"), "aggregate": ("aggregate",)}
"""Whose figure a metric may be, one answer's where it is not here."""


def usual_per(metric: str) -> str:
    """Whose speed a claim is about that does not say."""
    return "aggregate" if metric == "aggregate" else "answer"


def usual_column(metric: str, test: str, unit: str, per: str) -> str:
    """The column of a claim whose rule names none."""
    if test in _OF_TEST:
        return _OF_TEST[test]
    if metric in _USUAL:
        return _USUAL[metric]
    if unit == "tok/s":
        return {"aggregate": "aggregate_tok_s", "counted": "counted_tok_s"}.get(per, "tok_s")
    return "counted_speedup" if per == "counted" else "speedup"


def find_column(where: str, metric: str, table: str, name: str) -> Column:
    """The column of a table. Raises UserError for a metric without rows, an unknown table or an unknown column."""
    if metric not in TABLE_OF:
        raise UserError(f"{where}: no record measures the metric '{metric}'; use a rule of another kind, or one of "
                        + ", ".join(TABLE_OF))  # fmt: skip
    if table not in COLUMNS:
        raise UserError(f"{where} has the unknown table '{table}'; {nearest(table, COLUMNS)}")
    if name not in COLUMNS[table]:
        raise UserError(f"{where}: table '{table}' has no column '{name}' to judge; {nearest(name, COLUMNS[table])}")
    return COLUMNS[table][name]


def check_combination(where: str, metric: str, test: str, unit: str, per: str, name: str, column: Column) -> None:
    """Raises UserError when the test says nothing about that column, or the unit or `per` is not the column's."""
    if metric not in column.tests:
        counted = " that counts emit calls, which are no speed of an answer" if column.counted else ""
        raise UserError(f"{where}: metric '{metric}' cannot rest on the column '{name}'{counted}; "
                        f"it is for {', '.join(column.tests)}")  # fmt: skip
    if test not in column.tests[metric]:
        raise UserError(f"{where}: test '{test}' says nothing about metric '{metric}' in the column '{name}'; "
                        f"use {' or '.join(column.tests[metric])}")  # fmt: skip
    if per not in PER_OF.get(metric, ("answer",)):
        raise UserError(f"{where}: metric '{metric}' is no figure per {per}; use metric: "
                        f"{'aggregate' if per == 'aggregate' else 'rate'}")  # fmt: skip
    units = UNITS[column.kind]
    if unit not in units:
        raise UserError(f"{where}: the unit '{unit}' does not fit the column '{name}'; {nearest(unit, units)}")
    if per not in column.per:
        raise UserError(f"{where}: scope.per is '{per}', and the column '{name}' is per {' or '.join(column.per)}")

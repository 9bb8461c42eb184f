"""What a claim may rest on: the figures of the findings, each with its table, unit, interval, and the tests it allows.

A typed table: a combination of metric, test and column that is not in it cannot be judged and is an error when a sheet
is read. It knows no verdict and reads no row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from bench.errors import UserError, nearest

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
    per: tuple[str, ...] = ("answer",)
    counted: bool = False
    """Whether it counts emit calls, which are no tokens of an answer."""


def _ends(name: str, middle: str = "") -> Ends:
    return Ends(f"{name}_low", f"{name}_high", middle)


_CI, _OF_RATIO = Ends("ci_low", "ci_high"), Ends("ci_low", "ci_high", "speedup")
_RATE = {"rate": ("absolute",)}
_KERNEL = {"kernel": ("absolute",)}
_DOMAIN = {"acceptance": ("value", "absolute", "direction")}

COLUMNS: dict[str, dict[str, Column]] = {
    "speedup": {
        "speedup": Column("x", {"speedup": ("ratio", "direction", "absolute"),
                                "aggregate": ("ratio", "direction", "absolute")},
                          _CI, per=("answer", "aggregate")),
        "tok_s": Column("tok/s", {**_RATE, "speedup": ("one_answer",)}, _OF_RATIO),
        "steady_tok_s": Column("tok/s", _RATE, _OF_RATIO),
        "aggregate_tok_s": Column("tok/s", {**_RATE, "aggregate": ("absolute",)}, _OF_RATIO, per=("aggregate",)),
        "counted_tok_s": Column("tok/s", _RATE, _OF_RATIO, per=("counted",), counted=True),
        "counted_speedup": Column("x", _RATE, _OF_RATIO, per=("counted",), counted=True),
        "baseline_tok_s": Column("tok/s", _RATE, _OF_RATIO),
        "solo_tok_s": Column("tok/s", _RATE, Ends("solo_ci_low", "solo_ci_high", "solo_speedup")),
        "tokens_per_round": Column("tokens", {"tokens_per_round": ("value", "absolute")}, exact=True),
        "identical_share": Column("share", {"lossless": ("lossless", "absolute")}, exact=True),
    },
    "step_cost": {
        "relative_cost": Column("x", {"step_cost": ("direction", "absolute")}, _CI),
        "step_ms": Column("ms", {"step_cost": ("absolute",)}, Ends("ci_low", "ci_high", "relative_cost")),
    },
    "acceptance": {
        "rate": Column("share", {"acceptance": ("value", "absolute", "direction")}, _CI),
        "difference": Column("difference", {"acceptance": ("collision",)}, _ends("difference")),
    },
    "domain": {
        "on_mean": Column("share", _DOMAIN, _ends("on")),
        "off_mean": Column("share", _DOMAIN, _ends("off")),
        "drop": Column("difference", {"acceptance": ("direction",)}, _ends("drop")),
        "auc": Column("area", {"acceptance": ("direction",)}, _ends("auc")),
    },
    "memory": {
        "growth": Column("growth", {"memory": ("stream_memory",)}, exact=True),
        "measured_bytes": Column("bytes", {"memory": ("absolute",)}, exact=True),
        "per_stream_bytes": Column("bytes", {"memory": ("absolute",)}, exact=True),
        "kv_bytes": Column("bytes", {"memory": ("absolute",)}, exact=True),
        "state_bytes": Column("bytes", {"memory": ("absolute",)}, exact=True),
    },
    "bandwidth": {"read_gb_s": Column("GB/s", {"bandwidth": ("absolute",)}, Ends("low_gb_s", "high_gb_s"))},
    "kernels": {
        "gb_s": Column("GB/s", _KERNEL, _ends("share_of_read_peak", "share_of_read_peak")),
        "us": Column("us", _KERNEL, _ends("share_of_read_peak", "share_of_read_peak")),
        "cost_over_best_single": Column("x", {"kernel": ("best_kernel",)}, _ends("cost_over_best_single")),
    },
    "counters": {"other_l2_over_weights": Column("x", _KERNEL, exact=True),
                 "dram_over_weights": Column("x", _KERNEL, exact=True)},
    "ssq": {"measured_over_one_model": Column("x", {"kernel": ("value", "absolute")}, exact=True),
            "us_over_one_model": Column("x", _KERNEL, _ends("us_over_one_model"))},
}  # fmt: skip

TABLE_OF = {
    "speedup": "speedup", "rate": "speedup", "aggregate": "speedup", "tokens_per_round": "speedup",
    "lossless": "speedup", "step_cost": "step_cost", "acceptance": "acceptance", "memory": "memory",
    "bandwidth": "bandwidth", "kernel": "kernels",
}  # fmt: skip
"""Where a metric is measured, unless the rule names a table. Metrics that are not here have no rows."""

KERNEL_TABLES = ("kernels", "counters", "ssq")
"""Tables that `python -m bench kernels` fills."""

_USUAL = {
    "tokens_per_round": "tokens_per_round", "lossless": "identical_share", "step_cost": "relative_cost",
    "acceptance": "rate", "memory": "per_stream_bytes", "bandwidth": "read_gb_s", "kernel": "gb_s",
}  # fmt: skip
_OF_TEST = {"collision": "difference", "stream_memory": "growth", "best_kernel": "cost_over_best_single"}


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
    units = UNITS[column.kind]
    if unit not in units:
        raise UserError(f"{where}: the unit '{unit}' does not fit the column '{name}'; {nearest(unit, units)}")
    if per not in column.per:
        raise UserError(f"{where}: scope.per is '{per}', and the column '{name}' is per {' or '.join(column.per)}")

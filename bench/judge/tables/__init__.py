"""Every table of the findings: the type of its rows, and what makes them. Knows no figure.

A table is one line here, with names that are imported when they are needed (`module:name`). What makes rows takes the
`Case` of one cell (`bench.judge.measure.case`); what several cells say together is gathered from each, then made rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from bench.errors import UserError, nearest
from bench.judge.columns import Column, Row

CONTRAST, TRIAL, SERVED, PROFILE = "contrast", "trial", "served", "profile"
COUNTERS, ANY = "counters", "any"
"""Which cells a table asks: finished ones of a kind, or all there are, failed ones too. A trial is the contrast of a
build or a setting of the engine; one of servers has no rounds."""
CONTRASTS = (CONTRAST, TRIAL)


@dataclass(frozen=True, slots=True)
class Table:
    """How a table of the findings comes about."""

    row: str
    """Class of its rows."""
    made_by: str = ""
    """Makes the rows of one cell: `Case -> list[Row]`."""
    of: tuple[str, ...] = (CONTRAST,)
    gathered_by: str = ""
    """Takes from one cell what rows over several need: `Case -> object | None`."""
    joined_by: str = ""
    """Makes the rows over several cells: `list[object] -> list[Row]`."""
    optional: bool = False
    """Whether a report without such rows has no file of them."""


_ROWS, _MEASURE, _CONTROLS = "bench.judge.tables", "bench.judge.measure", "bench.judge.controls"
TABLES: dict[str, Table] = {
    "speedup": Table(f"{_ROWS}.contrast:SpeedUp", f"{_MEASURE}.speedup:speedup_rows"),
    "trials": Table(f"{_ROWS}.trial:Trial", f"{_MEASURE}.trial:trial_rows", (TRIAL, SERVED), optional=True),
    "servers": Table(f"{_ROWS}.served:ServerAnswers", f"{_MEASURE}.served:server_rows", (SERVED,), optional=True),
    "energy": Table(f"{_ROWS}.trial:Energy", f"{_MEASURE}.trial:energy_rows", CONTRASTS, optional=True),
    "stalls": Table(f"{_ROWS}.contrast:Stall", "bench.judge.controls.stalls:stall_rows", CONTRASTS),
    "contexts": Table(f"{_ROWS}.cell:Contexts", of=CONTRASTS, gathered_by="bench.judge.measure.again:readings",
                      joined_by="bench.judge.measure.again:context_rows"),
    "step_cost": Table(f"{_ROWS}.machine:StepCost", f"{_MEASURE}.step_cost:step_cost_rows", (PROFILE,)),
    "acceptance": Table(f"{_ROWS}.contrast:Acceptance", f"{_MEASURE}.acceptance:acceptance_rows"),
    "kept_drafters": Table(f"{_ROWS}.contrast:KeptDrafter", f"{_CONTROLS}.drafters:kept_rows", optional=True),
    "domain": Table(f"{_ROWS}.domain:Domain", gathered_by=f"{_MEASURE}.domain:answers_of",
                    joined_by=f"{_MEASURE}.domain:domain_rows"),
    "memory": Table(f"{_ROWS}.machine:Memory", of=(CONTRAST, PROFILE), gathered_by=f"{_MEASURE}.memory:memory_rows",
                    joined_by=f"{_MEASURE}.memory:preferred"),
    "decomposition": Table(f"{_ROWS}.contrast:Decomposition", f"{_MEASURE}.decomposition:decomposition_rows"),
    "predictions": Table(f"{_ROWS}.prediction:Prediction", "bench.judge.predict.predictions:prediction_rows"),
    "controls": Table(f"{_ROWS}.cell:ControlRow", "bench.judge.cell:control_rows", (ANY,),
                      f"{_CONTROLS}.across:share_of", f"{_CONTROLS}.across:checks"),
    "differences": Table(f"{_ROWS}.differences:Difference", f"{_MEASURE}.differences:difference_rows", CONTRASTS,
                         optional=True),
    "timeline": Table(f"{_ROWS}.contrast:Timeline", f"{_MEASURE}.tokens_over_time:timeline_rows"),
    "bandwidth": Table(f"{_ROWS}.machine:Bandwidth", of=(*CONTRASTS, PROFILE),
                       gathered_by=f"{_MEASURE}.bandwidth:reading", joined_by=f"{_MEASURE}.bandwidth:bandwidth_rows"),
    "peers": Table(f"{_ROWS}.machine:Peer", f"{_MEASURE}.peer_programs:peer_rows", (PROFILE,)),
    "distribution": Table(f"{_ROWS}.contrast:Distribution", f"{_MEASURE}.sampled_tokens:distribution_rows"),
    "cells": Table(f"{_ROWS}.cell:Cell", "bench.judge.cell:cell_rows", (ANY,)),
    "hosts": Table(f"{_ROWS}.hosts:Host", optional=True),
    "kernels": Table(f"{_ROWS}.kernels:Kernel", optional=True),
    "counters": Table(f"{_ROWS}.kernels:Counter", f"{_MEASURE}.decode_counters:decode_counter_rows", (COUNTERS,),
                      optional=True),
    "ssq": Table(f"{_ROWS}.kernels:Ssq", optional=True),
    "kernel_resources": Table(f"{_ROWS}.kernels:KernelResource", optional=True),
}  # fmt: skip

_INVARIANTS = "bench.judge.invariants:invariants"
CONTROLS = {
    CONTRAST: (
        _INVARIANTS, f"{_CONTROLS}.again:same_arm_twice", f"{_CONTROLS}.stalls:stalls",
        f"{_CONTROLS}.repeated:repeated", f"{_CONTROLS}.turns:switching",
        f"{_CONTROLS}.arms:arm_controls", f"{_CONTROLS}.drafters:kept", f"{_CONTROLS}.drafters:padded",
        f"{_CONTROLS}.conditions:conditions", f"{_CONTROLS}.places:places",
        f"{_CONTROLS}.packing:packing", f"{_MEASURE}.roofline:physics", f"{_MEASURE}.decomposition:closes",
        f"{_MEASURE}.sampled_tokens:distribution_control", f"{_CONTROLS}.trial:limits",
    ),
    TRIAL: (
        _INVARIANTS, f"{_CONTROLS}.again:same_arm_twice", f"{_CONTROLS}.stalls:stalls",
        f"{_CONTROLS}.repeated:repeated", f"{_CONTROLS}.arms:arm_controls",
        f"{_CONTROLS}.trial:trial_conditions", f"{_CONTROLS}.trial:limits",
        f"{_CONTROLS}.packing:packing",
        f"{_MEASURE}.roofline:physics", f"{_MEASURE}.decomposition:closes",
        f"{_MEASURE}.sampled_tokens:distribution_control",
    ),
    SERVED: (_INVARIANTS, f"{_CONTROLS}.again:same_arm_twice", f"{_CONTROLS}.served:served_conditions",
             f"{_CONTROLS}.trial:limits"),
    PROFILE: (_INVARIANTS, f"{_CONTROLS}.repeated:repeated"),
    COUNTERS: (_INVARIANTS, f"{_MEASURE}.decode_counters:traffic"),
}  # fmt: skip
"""The checks of a cell by its kind, each `Case -> list[Control]`, in the order in which they are told."""

CLAIMS = Table(f"{_ROWS}.claims:Verdict")
"""The table of verdicts, which rests on all others and is none of the findings."""
COMPARE = Table(f"{_ROWS}.compare:Comparison")
"""The table of two results folders side by side, which rests on the findings of both."""
OTHERS = {"claims": CLAIMS, "compare": COMPARE}


@cache
def named(name: str) -> Any:
    """What stands behind `module:name`."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


def row_type(table: str) -> type[Row]:
    """The class of a table's rows. Raises UserError with the nearest name for an unknown table."""
    if table in OTHERS:
        return _class(OTHERS[table])
    if table not in TABLES:
        raise UserError(f"the findings have no table '{table}'; {nearest(table, TABLES)}")
    return _class(TABLES[table])


def _class(table: Table) -> type[Row]:
    found = named(table.row)
    assert isinstance(found, type) and issubclass(found, Row)
    return found


def columns_of(table: str) -> Mapping[str, Column]:
    """Columns of a table by name, in the order of its file, those that are not written too."""
    return row_type(table).columns


def written(table: str) -> tuple[str, ...]:
    """Columns of a table's file."""
    return tuple(name for name, one in columns_of(table).items() if one.written)


@cache
def metric_columns() -> Mapping[str, tuple[str, str]]:
    """Table and column of every claim metric that has one figure. Raises TypeError where two columns claim a metric."""
    found: dict[str, tuple[str, str]] = {}
    for table in TABLES:
        for name, one in columns_of(table).items():
            for metric in one.metrics:
                if metric in found:
                    raise TypeError(f"{table}.{name} and {'.'.join(found[metric])} are both '{metric}'; leave one")
                found[metric] = table, name
    return found


def metric_column(metric: str) -> tuple[str, str]:
    """Table and column of a claim metric. Raises UserError with the nearest name where there is no such metric."""
    known = metric_columns()
    if metric not in known:
        raise UserError(f"no column is the metric '{metric}'; {nearest(metric, known)}")
    return known[metric]


def interval_of(table: str, column: str) -> tuple[str, str] | None:
    """Columns of the ends of a column's interval, None where it has none or the table has no such column."""
    one = columns_of(table).get(column)
    return (one.low, one.high) if one and one.low else None


def ends_of(table: str, column: str) -> tuple[str, str, str] | None:
    """Columns of a column's interval: low, high, and the ratio that it is relative to, or an empty word."""
    one = columns_of(table).get(column)
    if one is None or not (one.low or one.scaled_by):
        return None
    if one.low:
        return one.low, one.high, ""
    ratio = columns_of(table)[one.scaled_by]
    return ratio.low, ratio.high, ratio.name


def unit_of(table: str, column: str) -> str:
    """Unit of a column: tok/s, ms, bytes, share, ratio and so on; empty for words, counts and unknown columns."""
    one = columns_of(table).get(column)
    return one.unit if one else ""

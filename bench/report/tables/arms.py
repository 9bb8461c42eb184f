"""What an arm is called in tables and figures, and how far the predictions of some arms were off, in words."""

from __future__ import annotations

from collections.abc import Sequence

from bench.judge.arm import ROLES
from bench.judge.predict.predictions import median_errors
from bench.judge.tables.contrast import AGGREGATE
from bench.report.tables.conditions import CellIndex
from bench.report.tables.values import Row, get, line, number, percent, plain

ALL = "all"
"""The class of all prompts together."""


def is_void(row: Row) -> bool:
    """Whether a control voided what the row rests on."""
    return bool(plain(row.get("void")))


def of_all_prompts(rows: Sequence[Row]) -> list[Row]:
    """The rows that are about all prompts together."""
    return [row for row in rows if get(row, "prompt_class") in (ALL, None)]


def describe(row: Row, index: CellIndex) -> str:
    """`stagger x4 emission=published` and whatever else tells one arm from another."""
    words = [number(index.find(row, "short"))]
    words += ["sum of streams"] if get(row, "scope") == AGGREGATE else []
    temperature = index.find(row, "temperature")
    return ", ".join(words) + (f", T={number(temperature)}" if temperature else "")


def with_role(row: Row, index: CellIndex) -> str:
    """The same with what the row's arm of the contrast is: a control with planted guesses, or one stream alone."""
    words = ROLES[line(get(row, "arm"))].words
    return describe(row, index) + (f", {words}" if words else "")


def prediction_line(rows: Sequence[Row]) -> str:
    """How far the cost model was off, one sentence a machine and build; empty without a prediction."""
    told = []
    for found in median_errors(rows):
        told.append(
            f"Cost model on {found['machine']} ({found['build']}): off by {percent(found['abs_error'])} in the median "
            f"of {found['arms']} arms, {percent(found['curve_error'])} with the step-cost curve alone."
        )
    return " ".join(told)

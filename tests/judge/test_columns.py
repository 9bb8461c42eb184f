"""Rows that are built whole, read by name, and say what their columns are."""

from __future__ import annotations

import pickle

import pytest

from bench.judge.columns import SHARE, Row, changed, column, table


@table
class Base(Row):
    """What both have."""

    cells: list = column("ids", place=1)
    conditions: dict = column("of the cell", written=False, default_factory=dict)


@table
class Found(Base):
    """A finding."""

    rate: float = column("accepted over tested", SHARE, decimals=1, interval="ci", metric="acceptance")
    ci_low: float = column("lower end")
    ci_high: float = column("upper end")
    depth: int = column("which guess", formerly="position", default=0)


def row(**more) -> Found:
    return Found(**{"cells": ["a"], "rate": 0.5, "ci_low": 0.4, "ci_high": 0.6, **more})


def test_a_row_is_read_by_name_and_falls_back_on_the_conditions_of_its_cell() -> None:
    one = row(conditions={"emission": "distinct", "rate": 7})
    assert (one["rate"], one.get("emission"), one["emission"], one.get("other"), one.get("other", 1)) == (
        0.5, "distinct", "distinct", None, 1,
    )  # fmt: skip
    assert "emission" in one and "rate" in one and "other" not in one
    assert dict(one) == {"rate": 0.5, "ci_low": 0.4, "ci_high": 0.6, "depth": 0, "cells": ["a"], "emission": "distinct"}
    with pytest.raises(KeyError):
        one["other"]


def test_a_column_has_a_former_name_too() -> None:
    assert row(depth=3)["position"] == row(depth=3).get("position") == 3
    assert "position" in row() and "position" not in [*row()]


@pytest.mark.parametrize("bad", [{"unknown": 1}, {"rate": None}])
def test_an_unknown_column_and_a_needed_one_that_lacks_are_errors(bad: dict) -> None:
    known = {"cells": [], "rate": 0.5, "ci_low": 0.4, "ci_high": 0.6} | bad
    if bad.get("rate", 1) is None:
        del known["rate"]
    with pytest.raises(TypeError, match=r"unknown|rate"):
        Found(**known)


def test_a_row_cannot_be_written_to_and_a_changed_one_is_another() -> None:
    one = row()
    with pytest.raises(AttributeError):
        one.rate = 0.9
    assert changed(one, rate=0.9).rate == 0.9 and one.rate == 0.5
    with pytest.raises(TypeError):
        changed(one, unknown=1)


def test_columns_say_what_they_are_in_the_order_of_the_file() -> None:
    assert [name for name, one in Found.columns.items() if one.written] == [
        "rate", "ci_low", "ci_high", "depth", "cells",
    ]  # fmt: skip
    rate = Found.columns["rate"]
    assert (rate.unit, rate.low, rate.high, rate.metrics, rate.heading) == (
        "share", "ci_low", "ci_high", ("acceptance",), "rate",
    )  # fmt: skip


def test_an_interval_without_its_ends_cannot_be_declared() -> None:
    with pytest.raises(TypeError, match=r"Broken\.rate has its interval in nowhere_low"):

        @table
        class Broken(Row):
            rate: float = column("a rate", interval="nowhere")


def test_a_row_travels_between_processes_and_shares_its_conditions() -> None:
    shared = {"threads": 2}
    first, second = pickle.loads(pickle.dumps([row(conditions=shared), row(rate=0.1, conditions=shared)]))
    assert first == row(conditions=shared) and second.rate == 0.1
    assert first.conditions is second.conditions

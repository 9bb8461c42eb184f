"""Values as text, missing values, scopes and the order of rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bench.report.tables import values


@pytest.mark.parametrize(
    "value", [None, float("nan"), np.float64("nan"), pd.NA, pd.NaT, "", "  ", "nan", "None", "NaN"]
)
def test_missing_values_print_as_one_word(value: object) -> None:
    assert values.plain(value) is None
    assert values.number(value) == values.fixed(value, 2) == values.percent(value) == values.MISSING


@pytest.mark.parametrize(
    ("value", "text"),
    [(np.int64(317), "317"), (np.float64(2.0), "2"), (0.50999, "0.51"), (24220000000.0, "24220000000"), (True, "yes"),
     (np.bool_(False), "no"), ("none", "none"), ([0.7, 0.8], "0.7 to 0.8"), (float("inf"), "inf")],
)  # fmt: skip
def test_numbers_are_short_and_whole_numbers_whole(value: object, text: str) -> None:
    assert values.number(value) == text


def test_formats() -> None:
    assert values.fixed(0.5, 2) == "0.50"
    assert values.percent(0.714) == "71.4 %"
    assert values.mebibytes(2**24) == "16.0 MiB"
    assert values.interval(0.5, 0.53) == "0.50 to 0.53"
    assert values.interval(0.5, float("nan")) == values.MISSING
    assert values.line("two\nlines  here") == "two lines here"


def test_first_name_with_a_value_wins_and_groups_give_their_name() -> None:
    assert values.get({"a": float("nan"), "b": 0}, "a", "b") == 0
    assert values.get({"method": {"name": "stagger", "emission": "published"}}, "method") == "stagger"


@pytest.mark.parametrize(
    "scope",
    [{"method": "stagger", "streams": 4}, "method=stagger, streams=4", "{'method': 'stagger', 'streams': 4}",
     "method stagger, streams 4", "method: stagger; streams: 4"],
)  # fmt: skip
def test_scope_reads_the_same_from_a_dict_and_from_text(scope: object) -> None:
    assert values.scope_of({"scope": scope}) == {"method": "stagger", "streams": 4}


def test_a_scope_that_is_no_scope_is_empty() -> None:
    assert (
        values.scope_of({}) == values.scope_of({"scope": "{broken"}) == values.scope_of({"scope": "everywhere"}) == {}
    )


def test_cells_are_sorted_unique_and_read_from_lists_and_text() -> None:
    assert values.cells_of({"cells": ["b", "a", "b"]}) == values.cells_of({"cells": "b a"}) == ["a", "b"]
    assert values.cells_of({"cell": "c"}) == ["c"]
    assert values.cells_of({"cells": "none"}) == values.cells_of({"cells": []}) == values.cells_of({}) == []


def test_rows_of_mixed_types_can_be_ordered() -> None:
    rows = [{"x": None}, {"x": "b"}, {"x": 10}, {"x": 9.5}, {"x": "a"}]
    ordered = sorted(rows, key=lambda row: values.sort_key(row, ["x"]))
    assert [row["x"] for row in ordered] == [9.5, 10, "a", "b", None]


@pytest.mark.parametrize(
    "column",
    [[3, 1, 2], [2.5, -1.0, 7.0], [2, 0.5, 9], ["b", "", "a"], ["b", "c", "a"], [1.0, float("nan"), 0.5], [True, 2, 0],
     [None, "x", 1]],
)  # fmt: skip
def test_a_whole_column_sorts_as_its_values_do(column: list) -> None:
    keys = values.sort_column(column)
    one_by_one = sorted(range(len(column)), key=lambda place: values.sort_key({"x": column[place]}, ["x"]))
    assert sorted(range(len(column)), key=keys.__getitem__) == one_by_one

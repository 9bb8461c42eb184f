"""Measured memory beside the computed bytes that the records hold."""

from __future__ import annotations

import math

import pytest

from bench.judge import judge
from bench.judge.measure.memory import memory_rows
from tests.judge.judge_cells import case_of, guess_cell, profile_cell


def test_profile_rows_set_measured_beside_computed() -> None:
    cell = profile_cell({1: 50, 2: 60})
    cell.facts["memory_by_streams"] = [
        {"streams": 2, "kv_bytes": 1100.0, "state_bytes": 50.0, "computed_kv_bytes": 1000.0,
         "computed_state_bytes": 50.0, "measured_bytes": 5000, "per_stream_bytes": 575.0}
    ]  # fmt: skip
    row = memory_rows(case_of(cell))[0]
    assert (row["streams"], row["source"], row["per_stream_bytes"]) == (2, "profile", 575.0)
    assert (row["kv_ratio"], row["state_ratio"]) == pytest.approx((1.1, 1.0))


def test_contrast_rows_set_measured_beside_computed_for_the_context_of_each_arm() -> None:
    cell = guess_cell(blocks=1)
    cell.facts["model"]["state_bytes_per_sequence"] = 300
    cell.facts["engine"]["treatment"]["n_ctx"] = 2048
    cell.facts["memory"] = {
        "baseline": {"kv_bytes": 512_000, "state_bytes": 300, "compute_bytes": 7, "process_bytes": 9},
        "treatment": {"kv_bytes": 2_048_000, "state_bytes": 1200, "compute_bytes": 7, "process_bytes": 10},
        "again": {"kv_bytes": 512_000, "state_bytes": 300},
    }
    rows = {row["arm"]: row for row in memory_rows(case_of(cell))}
    assert set(rows) == {"baseline", "treatment"}
    assert (rows["baseline"]["streams"], rows["treatment"]["streams"]) == (1, 4)
    assert rows["treatment"]["per_stream_bytes"] == pytest.approx((2_048_000 + 1200) / 4)
    assert rows["treatment"]["computed_kv_bytes"] == 2_048_000
    assert (rows["treatment"]["kv_ratio"], rows["treatment"]["state_ratio"]) == pytest.approx((1.0, 1.0))


def test_contexts_of_contrasts_stand_in_only_where_no_profile_measured_memory() -> None:
    cell, profile = guess_cell(blocks=1), profile_cell({1: 50})
    cell.facts["memory"] = {"baseline": {"kv_bytes": 512_000, "state_bytes": 0}}
    assert [row["source"] for row in judge([cell, profile]).memory] == ["contrast"]
    profile.facts["memory_by_streams"] = [{"streams": 1, "kv_bytes": 1, "computed_kv_bytes": 1, "measured_bytes": 1}]
    assert [row["source"] for row in judge([cell, profile]).memory] == ["profile"]


def test_what_an_arm_took_is_what_process_and_cards_held_more_than_before() -> None:
    """10 MB more of the process and 3 of the cards; an old record has no look before, and half a look is none."""
    cell = guess_cell(blocks=1)
    looked = {"process_bytes": 40e6, "process_bytes_before": 30e6, "card_bytes": 8e6, "card_bytes_before": 5e6}
    cell.facts["memory"] = {"baseline": looked, "treatment": looked | {"process_bytes": 47e6}}
    cell.facts["drafter"] = {"model": "small"}
    plain, treated = memory_rows(case_of(cell))
    assert (plain["held_bytes"], treated["held_bytes"], treated["extra_bytes"]) == (13e6, 20e6, 7e6)
    assert (plain["drafts"], treated["drafts"], treated["method"]) == (False, True, "jacobi")
    assert math.isnan(plain["extra_bytes"])
    for gone in ("process_bytes", "process_bytes_before"):
        cell.facts["memory"]["baseline"] = {name: value for name, value in looked.items() if name != gone}
        assert memory_rows(case_of(cell))[0]["held_bytes"] == 3e6
    cell.facts["memory"]["baseline"] = {"kv_bytes": 1, "process_bytes": 40e6}
    plain, treated = memory_rows(case_of(cell))
    assert math.isnan(plain["held_bytes"]) and math.isnan(treated["extra_bytes"])


def test_contexts_of_a_contrast_that_was_looked_around_stand_beside_a_profile_s() -> None:
    cell, profile = guess_cell(blocks=1), profile_cell({1: 50})
    cell.facts["memory"] = {"baseline": {"process_bytes": 5, "process_bytes_before": 2}, "treatment": {"kv_bytes": 1}}
    profile.facts["memory_by_streams"] = [{"streams": 1, "kv_bytes": 1, "computed_kv_bytes": 1, "measured_bytes": 1}]
    assert [(row["source"], row["arm"]) for row in judge([cell, profile]).memory] == [
        ("contrast", "baseline"), ("profile", "")]  # fmt: skip

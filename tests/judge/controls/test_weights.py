"""Cells of one file of weights beside each other: which of them are void, and what stays of the others."""

from __future__ import annotations

from typing import Any

import pytest

from bench.judge import judge
from bench.judge.findings import Findings
from tests.judge.judge_cells import Cell, guess_cell, profile_cell

FACTS = {"sha256": "ab" * 32, "architecture": "toy", "n_vocab": 1000, "file_bytes": 106_000_000,
         "tensor_bytes": 105_000_000}  # fmt: skip


def cell(name: str, kind: str = "contrast", cache: str = "f16", **facts: Any) -> Cell:
    made = guess_cell(cell=name) if kind == "contrast" else profile_cell({1: 20.0, 2: 22.0}, cell=name)
    made.facts["model"] |= FACTS | facts
    made.config["engine"] |= {"type_k": cache}
    return made


def void(findings: Findings) -> set[str]:
    return {row.cell for row in findings.cells if row.void}


def names(count: int) -> list[str]:
    return [f"{number:012d}" for number in range(count)]


def test_cells_that_agree_have_no_such_check() -> None:
    found = judge([cell(name) for name in names(3)])
    assert not void(found) and not [row for row in found.controls if row.control == "weights"]


def test_the_one_that_differs_is_void_with_all_its_rows() -> None:
    cells = [cell(name) for name in names(4)]
    cells[1].facts["model"]["file_bytes"] = 107_000_000
    found = judge(cells)
    assert void(found) == {cells[1].cell}
    (row,) = [row for row in found.controls if row.control == "weights"]
    assert (row.cell, row.severity, row.ok, list(row.cells)) == (cells[1].cell, "void", False, [cells[1].cell])
    assert row.sentence == (
        "facts.json says file_bytes 107000000 of weights abababababab, and other cells of the same weights say "
        f"106000000 in 3: one file is one thing; `rm -r results/box/{cells[1].cell}` and the same sweep "
        "again")  # fmt: skip
    for table in ("speedup", "acceptance", "decomposition"):
        rows = getattr(found, table)
        assert {one["void"] for one in rows if one["cells"] == [cells[1].cell]} == {True}, table
        assert {one["void"] for one in rows if one["cells"] != [cells[1].cell]} == {False}, table
    assert all(row.sentence in one["void_reason"] for one in found.speedup if one["void"])


def test_where_none_are_the_fewer_nothing_tells_which_is_wrong() -> None:
    first, second = (cell(name) for name in names(2))
    second.facts["model"]["n_vocab"] = 2000
    assert void(judge([first, second])) == {first.cell, second.cell}


def test_several_facts_are_told_by_the_first_and_their_number() -> None:
    cells = [cell(name) for name in names(3)]
    cells[2].facts["model"] |= {"architecture": "other", "n_vocab": 2000, "tensor_bytes": 104_500_000}
    (row,) = [row for row in judge(cells).controls if row.control == "weights"]
    assert "says architecture other" in row.sentence and "and 2 more facts differ" in row.sentence


@pytest.mark.parametrize("other", [{"sha256": "cd" * 32}, {"sha256": ""},
                                   {"quantization": "Q8_0 as float32"}])  # fmt: skip
def test_other_weights_and_widened_ones_are_not_compared(other: dict[str, Any]) -> None:
    cells = [cell(name) for name in names(2)] + [cell("odd000000000", **other | {"n_vocab": 2000})]
    assert not void(judge(cells))


def test_bytes_of_a_token_are_compared_within_a_format_of_the_cache() -> None:
    plain, again, short = (cell(name) for name in names(3))
    short.config["engine"]["type_k"] = "q8_0"
    short.facts["model"]["kv_bytes_per_token"] = 500
    assert not void(judge([plain, again, short]))
    short.config["engine"]["type_k"] = "f16"
    assert void(judge([plain, again, short])) == {short.cell}


def test_a_fact_that_a_cell_does_not_tell_is_not_asked_and_any_value_can_be_told() -> None:
    cells = [cell(name) for name in names(3)]
    del cells[0].facts["model"]["n_vocab"]
    cells[1].facts["model"]["architecture"] = [1, 2]
    assert void(judge(cells)) == {cells[1].cell}


def test_a_profile_with_other_facts_prices_nothing() -> None:
    odd = cell("profile00000", "profile", file_bytes=105_500_000)
    found = judge([cell(name) for name in names(2)] + [odd])
    assert void(found) == {"profile00000"}
    assert found.step_cost and {row.void for row in found.step_cost} == {True}
    assert found.predictions and {row.void for row in found.predictions} == {True}
    assert {row.void for row in found.speedup} == {False}

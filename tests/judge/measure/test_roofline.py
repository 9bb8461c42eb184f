"""The physical bound, and what exceeding it voids."""

from __future__ import annotations

import pytest

from bench.judge import judge
from bench.judge.measure.roofline import bounds, ceiling, is_possible, max_tok_s
from tests.judge.judge_cells import Arm, Cell, case_of, guess_cell


def limits(cell: Cell) -> dict:
    return {bound.arm: bound for bound in bounds(case_of(cell))}


def test_c06_sixty_tokens_of_24_gb_from_1000_gb_s_are_impossible() -> None:
    assert max_tok_s(24e9, 1000) == pytest.approx(41.7, abs=0.05)
    assert not is_possible(60, 24e9, 1000)
    assert is_possible(60, 24e9, 1000, tokens_per_pass=2)


def test_bound_counts_weights_and_the_cache_that_a_round_reads() -> None:
    cell = guess_cell(noise=lambda arm, block, order: 1.0)
    found = limits(cell)
    # 10 prompt tokens, 40 timed tokens, half of them there on average: 30 x 1000 B.
    assert found["baseline"].bytes_per_pass == pytest.approx(100_000_000 + 30 * 1000)
    assert found["baseline"].reached_gb_s == pytest.approx(20 * 0.10003, rel=1e-6)
    assert found["treatment"].bound_tok_s == pytest.approx(21e9 / 100_030_000 * 2)


def test_the_ceiling_is_the_best_repeat() -> None:
    assert ceiling({"bandwidth": {"read_gb_s": 20.0, "repeats": [19.0, 22.0]}}) == 22.0
    assert ceiling({}) is None


def test_sequential_decodes_of_a_rebuild_read_the_weights_too() -> None:
    plain = limits(guess_cell(Arm(per_round=2, drafted=2, accepted=1)))["treatment"]
    rebuilt = limits(guess_cell(Arm(per_round=2, drafted=2, accepted=1, redecoded=3)))["treatment"]
    assert rebuilt.reached_gb_s == pytest.approx(4 * plain.reached_gb_s)
    assert rebuilt.bound_tok_s == pytest.approx(plain.bound_tok_s / 4)


def test_above_the_bound_the_cell_and_the_ceiling_are_void() -> None:
    def shrink(builder) -> None:
        builder.facts["bandwidth"] = {"read_gb_s": 1.0, "repeats": [1.0], "threads": 2, "bytes": 1}

    findings = judge([guess_cell(change=shrink)])
    physics = next(row for row in findings.controls if row["control"] == "physics")
    assert not physics["ok"] and physics["value"] > 1.9
    assert "impossible" in physics["sentence"]
    assert all(row["void"] and "physics" in row["void_reason"] for row in findings.speedup)
    assert findings.bandwidth[0]["void"] is True


def test_below_the_bound_nothing_is_void() -> None:
    findings = judge([guess_cell(cell="a"), guess_cell(cell="b")])
    assert findings.bandwidth[0]["void"] is False
    assert findings.bandwidth[0]["cells"] == ["a", "b"]
    assert findings.bandwidth[0]["read_gb_s"] == 21.0
    assert 0 < findings.bandwidth[0]["largest_share"] < 0.2


def test_without_bandwidth_the_bound_is_said_to_be_missing() -> None:
    findings = judge([guess_cell(change=lambda builder: builder.facts.pop("bandwidth"))])
    physics = next(row for row in findings.controls if row["control"] == "physics")
    assert (physics["ok"], physics["severity"]) == (True, "warning")
    assert findings.bandwidth == []

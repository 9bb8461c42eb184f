"""Where the verdict of each test of one row changes: the last figure of one verdict and the first of the next.

An interval that supports is 1.1072 times as wide as one of 95 % (2.1701 against 1.9600 standard errors), one that
refutes 1.3142 times (2.5758).
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.judge.claims.arithmetic import FORMULAS, half_last_digit, other_reading, reachable, recompute
from bench.judge.claims.claim import Claim
from bench.judge.claims.conditions import differing
from bench.judge.claims.names import Names
from bench.judge.claims.outcome import half_widths, refuting, supporting, told_tolerance, tolerance
from bench.judge.claims.table_tests import TABLE_TESTS
from bench.judge.claims.tests import ROW_TESTS
from tests.judge.claims.claim_findings import accepted, claim_of, speed

NEAR, FAR = 2.170090 / 1.959964, 2.575829 / 1.959964


def ends(middle: float, at: float, factor: float) -> tuple[float, float, float]:
    """A ratio with the 95 % interval whose wider one ends at a value, alike on both sides on the log scale."""
    half = abs(math.log(at / middle)) / factor
    return middle, middle * math.exp(-half), middle * math.exp(half)


def judged(claim: Claim, row: dict[str, Any], other: str = "") -> str:
    return ROW_TESTS[claim.rule.test](claim, row, other).verdict


@pytest.mark.parametrize(
    ("formula", "inputs", "value"),
    [
        ("ratio", {"numerator": 3, "denominator": 4}, 0.75),
        ("percent", {"part": 3, "whole": 4}, 75),
        ("excess_percent", {"larger": 5, "smaller": 4}, 25),
        ("shortfall_percent", {"smaller": 3, "larger": 4}, 25),
        ("sum", {"a": 1.5, "b": 2, "c": 4}, 7.5),
        ("difference", {"larger": 5, "smaller": 3}, 2),
        ("product", {"a": 2, "b": 3, "c": 4}, 24),
        ("byte_product", {"a": 2, "b": 3}, 6),
        ("quotient_per", {"last": 11, "first": 5, "parts": 3}, 2),
        (
            "traffic_ratio",
            {"blocks": 6, "streams": 4, "columns": 10, "value_bytes": 2, "rows": 8, "weight_bytes": 3},
            2,
        ),
        ("tiles", {"rows": 9, "rows_per_tile": 4}, 3),
        ("expected_tokens", {"p": 0.5, "streams": 3}, 1.75),
        ("counted_tokens", {"rounds": 79, "streams": 4}, 317),
        ("distinct_tokens", {"rounds": 79, "streams": 4}, 83),
        ("distinct_rate", {"counted_rate": 31.7, "rounds": 79, "streams": 4}, 8.3),
        ("distinct_ratio", {"counted_rate": 31.7, "rounds": 79, "streams": 4, "baseline": 16.6}, 0.5),
        ("seconds", {"tokens": 30, "rate": 12}, 2.5),
        ("rate_bound", {"gb_s": 100, "gb": 8}, 12.5),
        ("read_ms", {"gb": 2, "gb_s": 500}, 4),
        ("read_rate", {"gb": 2, "step_ms": 4}, 500),
        ("rate_at_step_cost", {"streams": 4, "step_cost": 2, "baseline": 10}, 20),
        ("step_cost", {"streams": 4, "multiplier": 1.6}, 2.5),
        ("packed_block_bytes", {"scales": 2, "scale_bytes": 3, "weights": 5, "slot_bytes": 7}, 41),
        ("kv_bytes", {"attention_layers": 3, "kv_heads": 5, "head_size": 7, "value_bytes": 2, "tokens": 11}, 4620),
        (
            "delta_state_bytes",
            {"layers": 2, "value_heads": 3, "key_heads": 5, "head_size": 7, "convolution_width": 4, "value_bytes": 2},
            2 * (147 + 3 * (70 + 21)) * 2,
        ),
        (
            "sequence_bytes",
            {
                "attention_layers": 3,
                "kv_heads": 5,
                "head_size": 7,
                "kv_value_bytes": 2,
                "tokens": 11,
                "delta_layers": 2,
                "value_heads": 3,
                "key_heads": 5,
                "delta_head_size": 7,
                "convolution_width": 4,
                "state_value_bytes": 2,
            },
            4620 + 1680,
        ),
        ("grown_increments", {"a": 1, "b": 2, "c": 4, "d": 6, "e": 9}, 2),
        ("least", {"a": 3, "b": 1.5, "c": 2}, 1.5),
        ("greatest", {"a": 3, "b": 1.5, "c": 2}, 3),
        ("least_gain", {"plain_a": 40, "flag_a": 50, "plain_b": 20, "flag_b": 30}, 25),
        ("greatest_gain", {"plain_a": 40, "flag_a": 50, "plain_b": 20, "flag_b": 30}, 50),
    ],
)
def test_every_formula_by_hand(formula: str, inputs: dict[str, float], value: float) -> None:
    assert recompute(formula, inputs) == pytest.approx(value, rel=1e-12)


def test_formulas_by_hand_are_all_but_one() -> None:
    marks = next(mark for mark in test_every_formula_by_hand.pytestmark if mark.name == "parametrize")
    assert set(FORMULAS) - {case[0] for case in marks.args[1]} == {"line_bytes_gain"}


def test_digits_and_rounding_by_hand() -> None:
    assert [half_last_digit(text) for text in ("1.36", "89", "0.5", "1e3")] == [0.005, 0.5, 0.05, 500]
    low, high = reachable("ratio", {"numerator": 10, "denominator": 4}, {"numerator": 1, "denominator": 1})
    assert (low, high) == (9 / 5, 11 / 3)
    assert other_reading(1.5 * 2**30, 1.5, 0.05, "GB") == "it is the figure in GiB"
    assert other_reading(1.5 * 2**30, 1.4, 0.05, "GB") == "" == other_reading(1.5 * 2**30, 1.5, 0.05, "GiB")
    mixed = other_reading(5000 * 2**20, 5.0, 0.05, "GB")
    assert mixed == "5000 MiB over 1000 prints so, which mixes two kinds of prefix"
    assert other_reading(5000 * 2**10, 5.0, 0.05, "MB").startswith("5000 KiB over 1000")
    assert other_reading(5000.0, 4.0, 0.05, "KB") == ""


@pytest.mark.parametrize(("family", "sure"), [(1, 2.575829), (2, 2.807034), (10, 3.290527)])
def test_a_refutation_is_shared_among_the_rows(tmp_path: Path, family: int, sure: float) -> None:
    claim = replace(claim_of(tmp_path), family=family)
    low, high = refuting(claim, speed(), 2.0, (1.8, 2.4), ratio=False)
    assert (low, high) == pytest.approx((2 - 0.2 * sure / 1.959964, 2 + 0.4 * sure / 1.959964), rel=1e-5)


def test_the_intervals_of_a_verdict(tmp_path: Path) -> None:
    claim = claim_of(tmp_path)
    for made, factor in ((refuting, FAR), (supporting, NEAR)):
        found = made(claim, speed(), 2.0, (1.8, 2.4), ratio=True)
        assert found == pytest.approx((2 * 0.9**factor, 2 * 1.2**factor), rel=1e-5)
        assert made(claim, speed(), 2.0, (-1.0, 2.4), ratio=True)[0] == pytest.approx(2 - 3 * factor, rel=1e-5)
        assert made(claim, speed(), 2.0, (1.0, math.inf), ratio=True)[1] == math.inf
    assert half_widths(0.99, 4) == pytest.approx(4.604095 / 2.776445, rel=1e-5)


def test_the_tolerance_is_the_last_digit_or_the_rules_own(tmp_path: Path) -> None:
    value = "{kind: records, test: value, tolerance: %s}"
    scope = {"metric": "tokens_per_round", "unit": "tokens", "scope": "{method: mtp, temperature: 0}"}
    printed = claim_of(tmp_path, published="1.36", **scope, rule="{kind: records, test: value}")
    assert (tolerance(printed), told_tolerance(printed)) == (0.005, "to 0.005 as printed")
    wider = claim_of(tmp_path, published="1.36", **scope, rule=value % 0.05)
    assert (tolerance(wider), told_tolerance(wider)) == (0.05, "to 0.05 as the rule allows")
    narrow = claim_of(tmp_path, published="1.36", **scope, rule=value % 0.001)
    assert told_tolerance(narrow) == "to 0.001 as printed"


def gain(middle: float, low: float, high: float, **more: Any) -> dict[str, Any]:
    return speed(method="mtp", streams=1, speedup=middle, ci_low=low, ci_high=high, counted_tok_s=25.0, **more)


@pytest.mark.parametrize(
    ("row", "other", "verdict"),
    [
        (ends(2.0, 1.901, NEAR), "", "reproduced"),
        (ends(2.0, 1.899, NEAR), "", "inconclusive"),
        (ends(2.0, 1.901, NEAR), "x", "reproduced"),
        (ends(1.7, 1.899, FAR), "", "refuted"),
        (ends(1.7, 1.901, FAR), "", "inconclusive"),
        ((1.7, 1.6, 1.8), "x", "not_comparable"),
        ((1.0, 0.9, 1.1), "x", "inconclusive"),
        (ends(0.9, 0.999, FAR), "x", "refuted"),
        (ends(0.9, 1.001, FAR), "x", "inconclusive"),
        ((1.05, 1.01, 1.8), "x", "not_comparable"),
        ((1.05, 1.0, 1.8), "x", "inconclusive"),
    ],
)
def test_a_gain_is_reached_from_five_per_cent_below(tmp_path, row, other, verdict) -> None:
    claim = claim_of(tmp_path)
    assert judged(claim, gain(*row), other) == verdict
    if verdict == "reproduced":
        assert judged(claim, gain(*row, lossless="divergent"), other) == "inconclusive"
    assert judged(claim, {**gain(*row), "ci_low": None}, other) == "inconclusive"


def test_what_a_counter_says_stands_beside(tmp_path: Path) -> None:
    claim = claim_of(tmp_path)

    def reason(**more: Any) -> str:
        return ROW_TESTS["ratio"](claim, {**gain(2.0, 1.95, 2.1), **more}, "").reason

    assert reason(counted_tok_s=50.0, counted_speedup=4.0).endswith(
        " Counted: 50 tok/s (4x); distinct: 25 tok/s; 50.0 % of the counted tokens are distinct."
    )
    assert "Counted: 50 tok/s; distinct" in reason(counted_tok_s=50.0, counted_speedup=None)
    assert "Counted" not in reason(counted_tok_s=25.02) and "Counted" in reason(counted_tok_s=25.03)


@pytest.mark.parametrize(
    ("expect", "row", "verdict"),
    [
        ("greater_than_one", ends(1.1, 1.001, NEAR), "reproduced"),
        ("greater_than_one", ends(1.1, 0.999, NEAR), "inconclusive"),
        ("greater_than_one", ends(0.9, 0.999, FAR), "refuted"),
        ("greater_than_one", ends(0.9, 1.001, FAR), "inconclusive"),
        ("less_than_one", ends(0.9, 0.999, NEAR), "reproduced"),
        ("less_than_one", ends(0.9, 1.001, NEAR), "inconclusive"),
        ("less_than_one", ends(1.1, 1.001, FAR), "refuted"),
        ("less_than_one", ends(1.1, 0.999, FAR), "inconclusive"),
        ("greater_than", ends(1.6, 1.501, NEAR), "reproduced"),
        ("greater_than", ends(1.6, 1.499, NEAR), "inconclusive"),
        ("less_than", ends(1.4, 1.499, NEAR), "reproduced"),
        ("less_than", ends(1.4, 1.501, NEAR), "inconclusive"),
    ],
)
def test_a_direction_is_that_of_the_whole_interval(tmp_path, expect, row, verdict) -> None:
    own = expect in ("greater_than", "less_than")
    edge = ", edge: 1.5" if own else ""
    published = "1.5" if own else "2.0" if expect.startswith("greater") else "0.5"
    rule = f"{{kind: records, test: direction, expect: {expect}{edge}}}"
    claim = claim_of(tmp_path, published=published, rule=rule)
    assert judged(claim, gain(*row)) == verdict
    if verdict == "reproduced":
        told = judged(claim, gain(*row, lossless="divergent"))
        assert told == ("inconclusive" if expect.startswith("greater") else "reproduced")
    assert judged(claim, {**gain(*row), "ci_high": None}) == "inconclusive"


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (ends(2.0, 2.099, NEAR), "reproduced"),
        (ends(2.0, 2.101, NEAR), "inconclusive"),
        (ends(1.98, 1.901, NEAR), "reproduced"),
        (ends(1.98, 1.899, NEAR), "inconclusive"),
        (ends(1.8, 1.899, FAR), "refuted"),
        (ends(1.8, 1.901, FAR), "inconclusive"),
        (ends(2.2, 2.101, FAR), "refuted"),
        (ends(2.2, 2.099, FAR), "inconclusive"),
    ],
)
def test_an_absolute_figure_is_within_five_per_cent(tmp_path, row, verdict) -> None:
    claim = claim_of(tmp_path, rule="{kind: records, test: absolute}")
    assert judged(claim, gain(*row)) == verdict
    if verdict == "reproduced":
        assert judged(claim, gain(*row, lossless="divergent")) == "inconclusive"
    assert judged(claim, {**gain(*row), "speedup": None}) == "inconclusive"
    ranged = claim_of(tmp_path, published="[2.0, 3.0]", rule="{kind: records, test: absolute}")
    assert judged(ranged, gain(*ends(2.5, 3.149, NEAR))) == "reproduced"
    assert judged(ranged, gain(*ends(2.5, 3.151, NEAR))) != "reproduced"


@pytest.mark.parametrize(
    ("middle", "half", "verdict"),
    [
        (0.70, 0.0315, "reproduced"),
        (0.70, 0.0318, "inconclusive"),
        (0.75, 0.034, "refuted"),
        (0.75, 0.0345, "inconclusive"),
        (0.65, 0.034, "refuted"),
        (0.65, 0.0345, "inconclusive"),
    ],
)
def test_a_share_is_inside_what_the_rule_allows(tmp_path, middle, half, verdict) -> None:
    claim = claim_of(
        tmp_path,
        metric="acceptance",
        published="0.70",
        unit="share",
        scope="{method: stagger, temperature: 0.6}",
        rule="{kind: records, test: value, max_half_width: 0.05}",
    )
    assert judged(claim, accepted(rate=middle, ci_low=middle - half, ci_high=middle + half)) == verdict


@pytest.mark.parametrize(
    ("grade", "share", "asked", "other", "verdict"),
    [
        ("identical", 1.0, "identical", "", "reproduced"),
        ("near_tie", 0.9, "identical", "", "refuted"),
        ("near_tie", 0.9, "identical", "x", "not_comparable"),
        ("near_tie", 0.9, "near_tie", "", "reproduced"),
        ("divergent", 0.9, "near_tie", "x", "refuted"),
        ("divergent", 1.0, "identical", "", "refuted"),
        (None, 1.0, "identical", "", "inconclusive"),
        ("identical", None, "identical", "", "inconclusive"),
        ("identical", 0.999, "identical", "", "refuted"),
    ],
)
def test_lossless_is_every_token(tmp_path, grade, share, asked, other, verdict) -> None:
    claim = claim_of(
        tmp_path,
        metric="lossless",
        published="1.0",
        unit="share",
        rule=f"{{kind: records, test: lossless, grade: {asked}}}",
    )
    assert judged(claim, speed(method="mtp", lossless=grade, identical_share=share), other) == verdict


@pytest.mark.parametrize(
    ("middle", "half", "verdict"),
    [
        (0.0, 0.0451, "reproduced"),
        (0.0, 0.0453, "inconclusive"),
        (0.02, 0.027, "reproduced"),
        (0.02, 0.0272, "inconclusive"),
        (0.05, 0.0381, "inconclusive"),
        (0.05, 0.0380, "refuted"),
        (0.01, 0.0077, "reproduced"),
        (0.01, 0.0076, "refuted"),
    ],
)
def test_collision_of_one_temperature(tmp_path, middle, half, verdict) -> None:
    claim = claim_of(
        tmp_path,
        metric="acceptance",
        published="0",
        unit="difference",
        scope="{method: stagger, draws: independent, temperature: {from: 0.01, to: 10}}",
        rule="{kind: records, test: collision, max_half_width: 0.05}",
    )
    row = accepted(difference=middle, difference_low=middle - half, difference_high=middle + half)
    found = TABLE_TESTS["collision"](claim, [row])
    assert [one.verdict for one in found] == [verdict]
    more = TABLE_TESTS["collision"](
        claim, [row, {**row, "tested": 900, "difference": 0.5}, {**row, "temperature": 0.0}]
    )
    assert [one.measured for one in more] == [0.5], "the row with the most guesses"
    assert [one.verdict for one in TABLE_TESTS["collision"](claim, [{**row, "temperature": 0.0}])] == ["inconclusive"]


@pytest.mark.parametrize(("grown", "verdict"), [(91, "reproduced"), (109, "reproduced"), (111, "refuted")])
def test_memory_of_a_further_stream(tmp_path, grown, verdict) -> None:
    claim = claim_of(
        tmp_path,
        metric="memory",
        published="1.0",
        unit="x KV cache and state",
        scope="{streams: [1, 4]}",
        rule="{kind: records, test: stream_memory}",
    )

    def row(streams: int, measured: float) -> dict[str, Any]:
        return {
            "model": "m",
            "streams": streams,
            "kv_bytes": 80.0 * streams,
            "state_bytes": 20.0 * streams,
            "measured_bytes": measured,
            "cells": ["c"],
            "source": "profile",
        }

    found = TABLE_TESTS["stream_memory"](claim, [row(4, 1000 + 4 * grown), row(1, 1000 + grown)])
    assert [(one.verdict, one.measured) for one in found] == [(verdict, pytest.approx(grown / 100))]
    alone = TABLE_TESTS["stream_memory"](claim, [row(1, 1100)])
    assert [one.verdict for one in alone] == ["inconclusive"]
    sums = TABLE_TESTS["stream_memory"](claim, [row(1, 100), row(4, 400)])
    assert "sum of KV cache and state itself" in sums[0].reason
    contrast = TABLE_TESTS["stream_memory"](claim, [{**row(4, 1400), "source": "contrast"}])
    assert contrast[0].reason.startswith("Neither a profile")


def test_conditions_that_differ_are_named(tmp_path: Path) -> None:
    claim = claim_of(tmp_path, conditions="{machine: laptop, n_predict: 80, baseline_tok_s: 20, flash_attn: on}")
    same = speed(n_predict=80, baseline_tok_s=22.0, flash_attn="on")
    assert differing(claim, same, Names()) == []
    assert differing(claim, {**same, "baseline_tok_s": 18.0}, Names()) == []
    assert differing(claim, {**same, "baseline_tok_s": 22.1, "n_predict": 81}, Names()) == [
        "n_predict (claim: 80, here: 81)",
        "baseline_tok_s (claim: 20, here: 22.1)",
    ]
    assert differing(claim, {**same, "n_predict": None, "flash_attn": ""}, Names()) == [
        "n_predict (claim: 80, here: not recorded)",
        "flash_attn (claim: on, here: not recorded)",
    ]
    assert differing(claim, {**same, "machine": "LAP-top"}, Names()) == []
    assert differing(claim, {**same, "machine": "laptop2"}, Names()) == ["machine (claim: laptop, here: laptop2)"]

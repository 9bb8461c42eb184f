"""Cells made one row and set against each other: by hand and with scipy's quantiles; and why an arm is not worth it."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import pytest
from scipy import stats

from bench.judge import judge
from bench.judge.columns import changed
from bench.judge.predict.advice import _drafters, _prices, sweep_words, why_not
from bench.judge.predict.cost_model import Prices
from bench.judge.predict.pooled import (
    apart,
    estimate_of,
    fastest_settings,
    of_one_text,
    of_texts,
    over_the_fastest,
    pooled,
    together,
)
from bench.judge.tables.contrast import LIKE_THESE, THESE, SpeedUp
from tests.judge.judge_cells import guess_cell

NAN = math.nan


@cache
def usual() -> SpeedUp:
    """A row as it is judged."""
    return next(row for row in judge([guess_cell()]).speedup if row["prompt_class"] == "all")


def row(speedup: float, half: float, freedom: float = 4.0, **more: Any) -> SpeedUp:
    """A row whose 95 % interval has that half-width on the log scale, for texts like these."""
    values = {
        "speedup": speedup,
        "ci_low": speedup * math.exp(-half),
        "ci_high": speedup * math.exp(half),
        "freedom": freedom,
        "speaks_of": LIKE_THESE,
        "n_blocks": 4,
        "cells": ["a"],
    }
    told = {name: more.pop(name) for name in ("threads", "n_predict") if name in more}
    values["conditions"] = {**usual().conditions, **told}
    return changed(usual(), **{**values, **more})


def t(freedom: float, sure: float = 0.95) -> float:
    return float(stats.t.ppf(0.5 + sure / 2, freedom))


def test_the_estimate_behind_an_interval() -> None:
    found = estimate_of(row(2.0, 0.3))
    assert (found.log_mean, found.log_se, found.freedom) == pytest.approx((math.log(2), 0.3 / t(4), 4))
    lopsided = estimate_of(row(2.0, 0.3, ci_high=2.0 * math.exp(0.5)))
    assert lopsided.log_se == pytest.approx(0.5 / t(4)), "the wider half on both sides"
    assert estimate_of(row(2.0, 0.3, ci_low=2.0 * math.exp(-0.6))).log_se == pytest.approx(0.6 / t(4))
    assert estimate_of(row(2.0, 0.3, freedom=0.5)).log_se == pytest.approx(0.3 / t(1))
    assert estimate_of(row(2.0, 0.0)).log_se == 1e-6 or estimate_of(row(2.0, 0.0)).log_se > 0
    for nothing in (row(2.0, 0.3, ci_low=0.0), row(2.0, 0.3, ci_high=math.inf)):
        assert estimate_of(nothing).log_se == math.inf


def test_cells_that_agree_are_pooled_by_their_blocks() -> None:
    (found,) = pooled([row(1.5, 0.3, cells=["b"]), row(1.52, 0.6, n_blocks=12, cells=["a", "c"])])
    mean = (4 * math.log(1.5) + 12 * math.log(1.52)) / 16
    parts = [(0.25 * 0.3 / t(4)) ** 2, (0.75 * 0.6 / t(4)) ** 2]
    freedom = sum(parts) ** 2 / sum(part**2 / 4 for part in parts)
    assert (found["speedup"], found["n_blocks"], found["cells"]) == (pytest.approx(math.exp(mean)), 16, ["a", "b", "c"])
    assert found["freedom"] == pytest.approx(freedom)
    assert math.log(found["ci_high"]) - mean == pytest.approx(t(freedom) * math.sqrt(sum(parts)), rel=1e-6)


def test_cells_that_disagree_have_the_spread_between_them() -> None:
    (found,) = pooled([row(1.2, 0.01), row(1.8, 0.01), row(1.5, 0.01)])
    logs = [math.log(one) for one in (1.2, 1.8, 1.5)]
    mean = sum(logs) / 3
    between = sum((one - mean) ** 2 for one in logs) / 3 / 2
    assert found["freedom"] == pytest.approx(2.0) and found["speedup"] == pytest.approx(math.exp(mean))
    assert math.log(found["ci_high"]) - mean == pytest.approx(t(2) * math.sqrt(between), rel=1e-6)


def test_other_conditions_stay_apart_and_the_most_thorough_length_counts() -> None:
    own = row(1.5, 0.1)
    for more in ({"temperature": 0.7}, {"prompt_class": "code"}, {"threads": 9}, {"streams": 3}, {"method": "mtp"}):
        assert len(pooled([own, row(1.5, 0.1, **more)])) == 2
    (length,) = pooled([row(1.5, 0.1, n_predict=64, n_blocks=4), row(1.1, 0.1, n_predict=128, n_blocks=6)])
    assert length["speedup"] == 1.1
    (more,) = pooled(
        [
            row(1.5, 0.1, n_predict=64, n_blocks=4),
            row(1.1, 0.1, n_predict=128, n_blocks=6),
            row(1.5, 0.1, n_predict=64, n_blocks=4),
        ]
    )
    assert more["speedup"] == pytest.approx(1.5)


def test_what_is_advised_is_for_other_texts() -> None:
    these = row(1.5, 0.1, speaks_of=THESE, prompts_low=1.2, prompts_high=1.9, n_prompts=3)
    found = of_texts(these)
    assert (found["ci_low"], found["ci_high"], found["freedom"]) == (1.2, 1.9, 2.0) and not of_one_text(these)
    single = row(1.5, 0.1, speaks_of=THESE, prompts_low=NAN, prompts_high=NAN, n_prompts=1)
    assert of_texts(single)["ci_low"] == single["ci_low"] and of_one_text(single)
    like = row(1.5, 0.1, prompts_low=1.2, prompts_high=1.9)
    assert of_texts(like)["ci_low"] == like["ci_low"] and not of_one_text(like)
    assert of_texts(row(1.5, 0.1, speaks_of=THESE, prompts_low=1.2, prompts_high=1.9, n_prompts=1))["freedom"] == 1.0


def test_arms_are_held_against_the_fastest_plain_decoding() -> None:
    slow, fast = row(2.0, 0.1, threads=1, baseline_tok_s=10.0), row(1.5, 0.1, threads=2, baseline_tok_s=16.0)
    again = row(1.8, 0.1, threads=1, baseline_tok_s=40.0)
    found = over_the_fastest([slow, fast, again])
    # Plain decoding with one thread has a geometric mean of 20, above 16.
    assert [one["speedup"] for one in found] == pytest.approx([2.0, 1.5 * 16 / 20, 1.8])
    assert found[1]["ci_low"] == pytest.approx(fast["ci_low"] * 0.8)
    assert fastest_settings([slow, fast, again])["threads"] == 1 and fastest_settings([slow, fast])["threads"] == 2
    assert over_the_fastest([slow, again])[0]["speedup"] == 2.0
    assert apart([slow, fast]) == ("threads",) and apart([slow, again]) == ()


def test_an_interval_that_holds_together_with_others() -> None:
    one = row(1.5, 0.3)
    assert together(one, 1)["ci_high"] == one["ci_high"]
    two = together(one, 2)
    assert math.log(two["ci_high"] / 1.5) == pytest.approx(0.3 / t(4) * t(4, 0.975), rel=1e-6)
    assert together(row(1.5, 0.3, ci_high=math.inf), 5)["ci_high"] == math.inf


TOLD = {
    "predicted": 0.9,
    "acceptance": 0.5,
    "keeps": True,
    "free_break_even": 0.3,
    "break_even": 0.6,
    "draft_cost": 0.25,
}


@pytest.mark.parametrize(
    ("prediction", "words"),
    [
        (None, "1.86 new tokens a round at"),
        ({"predicted": NAN}, "new tokens a round"),
        ({"acceptance": NAN}, "step cost too steep: "),
        ({"keeps": False}, "an accepted guess is said again"),
        ({"free_break_even": NAN}, "even guesses that are free"),
        (
            {"break_even": NAN},
            "guesses too dear: 0.25 plain steps a round, so not even right ones pay; free ones would from an"
            " acceptance of 0.30",
        ),
        ({}, "acceptance too low: 0.50, it pays from 0.60"),
        ({"acceptance": 0.6}, "another draft length would do better"),
    ],
)
def test_why_an_arm_is_not_worth_it(prediction: dict[str, Any] | None, words: str) -> None:
    slow = row(0.9, 0.1, tokens_per_round=1.86, relative_round_cost=2.0)
    told = why_not(slow, None if prediction is None else {**TOLD, **prediction})
    assert words in told
    assert why_not(changed(slow, lossless="divergent"), None).startswith("its output differs")


def test_what_a_drafter_has_to_reach() -> None:
    assert _drafters(None) == [] == _drafters(Prices({1: 1.0}))
    two, four = _drafters(Prices({1: 1.0, 2: 1.2, 4: 1.5, 5: 1.6}))
    assert (two.length, two.cost, two.ceiling) == (1, 1.2, pytest.approx(2 / 1.2))
    assert two.break_even == pytest.approx(0.2, abs=1e-5) and two.dearest == pytest.approx((1.8 - 1.2) / 1)
    assert (four.length, four.cost, four.ceiling) == (3, 1.5, pytest.approx(4 / 1.5))
    assert four.dearest == pytest.approx((1 + 0.8 + 0.64 + 0.512 - 1.5) / 3)
    a = four.break_even
    assert a + a**2 + a**3 == pytest.approx(0.5, abs=1e-5)


def test_the_curve_for_tokens_goes_first() -> None:
    def cost(layout: str, width: int, value: float, void: bool = False) -> dict[str, Any]:
        return {"layout": layout, "width": width, "relative_cost": value, "void": void}

    rows = [cost("sequences", 1, 1.0), cost("sequences", 2, 1.1), cost("tokens", 1, 1.0), cost("tokens", 2, 1.3)]
    found = _prices(rows)
    assert found is not None and found.cost == {1: 1.0, 2: 1.3}
    other = _prices([*rows[:2], cost("tokens", 2, 9.0, void=True), cost("sequences", 4, NAN)])
    assert other is not None and other.cost == {1: 1.0, 2: 1.1} and _prices([]) is None


def test_words_of_a_sweep() -> None:
    one = {"method": "mtp", "parameters": {"draft": 2, "adaptive": True}, "streams": 1, "temperature": 0.0}
    assert sweep_words(one) == ("method=mtp", "method.draft=2", "method.adaptive=true", "temperature=0")
    assert sweep_words({**one, "streams": 3}, {"draft": 4}) == (
        "method=mtp",
        "method.draft=4",
        "streams=3",
        "temperature=0",
    )

"""What one arm has over another: which rows are set against each other, and the interval of the two ratios."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from bench.errors import UserError
from bench.judge.claims.claim import Claim
from bench.judge.claims.over import over
from tests.judge.claims.claim_findings import Row, claim_of, speed, verdict

SCOPE = "{method: packed, drafter: [none, lookup], streams: 4, temperature: 0, per: aggregate}"
RULE = "{kind: records, test: over, against: {drafter: none}}"


def about(tmp_path: Path, rule: str = RULE) -> Claim:
    return claim_of(tmp_path, metric="aggregate", scope=SCOPE, published="0.86", rule=rule)


def packed(drafter: str, gain: float, wide: float = 0.01, **changes: Any) -> Row:
    """A sum over four answers, with an interval of `wide` in the logarithm to either side."""
    ends = {"ci_low": gain * math.exp(-wide), "ci_high": gain * math.exp(wide)}
    return speed(method="packed", drafter=drafter, scope="aggregate", speedup=gain, counted_tok_s=None, freedom=30,
                 cells=[drafter], **ends, **changes)  # fmt: skip


@pytest.mark.parametrize(
    ("gain", "found"),
    [(1.72, "reproduced"), (1.75, "reproduced"), (1.2, "refuted"), (2.2, "refuted"), (1.82, "inconclusive")],
)
def test_the_gain_of_one_arm_over_another_is_judged_by_both_of_their_intervals(tmp_path, gain, found) -> None:
    """Published 0.86 to 5 %: lookup at 1.72 over 2.00 without it is it, and 1.2 over 2.00 is 0.6."""
    row = verdict(about(tmp_path), speedup=[packed("none", 2.0), packed("lookup", gain)])
    assert (row["verdict"], row["cells"]) == (found, ["lookup", "none"]), row["reason"]
    wide = math.hypot(0.01, 0.01)
    assert (row["measured"], row["ci_low"], row["ci_high"]) == pytest.approx(
        (gain / 2, gain / 2 * math.exp(-wide), gain / 2 * math.exp(wide)))  # fmt: skip


def test_the_interval_covers_as_often_as_it_says(tmp_path: Path) -> None:
    """Two independent log ratios with skewed ends: 95 % of intervals made of theirs hold the true quotient."""
    rng = np.random.default_rng(3)
    half = stats.norm.ppf(0.975)
    held, claim = 0, about(tmp_path)
    for _ in range(2000):
        rows = []
        for drafter, true, sd in (("lookup", 1.5, 0.03), ("none", 2.0, 0.01)):
            log = math.log(true) + rng.normal(0, sd)
            rows.append({"drafter": drafter, "speedup": math.exp(log), "ci_low": math.exp(log - half * sd),
                         "ci_high": math.exp(log + half * sd), "cells": [drafter]})  # fmt: skip
        (one,) = over(claim, rows)
        held += one.ci_low <= 0.75 <= one.ci_high
    assert stats.binomtest(held, 2000, 0.95).pvalue > 1e-3


def test_only_rows_that_are_alike_but_for_what_is_compared_are_set_against_each_other(tmp_path: Path) -> None:
    claim = about(tmp_path)
    found = verdict(claim, speedup=[packed("none", 2.0), packed("none", 4.0, n_predict=40), packed("lookup", 1.72)])
    assert (found["verdict"], found["measured"]) == ("reproduced", pytest.approx(0.86))
    plain, lookup = packed("none", 2.0), packed("lookup", 2.0)
    for other in ([plain], [lookup], [plain | {"n_ctx": 9}, lookup]):
        found = verdict(claim, speedup=other)
        assert found["verdict"] == "inconclusive" and "a row with drafter=none and one without" in found["reason"]


def test_it_is_as_sure_as_the_less_sure_of_the_two_and_unsure_without_either_interval(tmp_path: Path) -> None:
    """At 4.4 % below 0.86 intervals of 0.35 % are inside 5 % with many units behind them, and not with two."""
    claim = about(tmp_path)
    sides = [packed("none", 2.0, 0.0035), packed("lookup", 1.645, 0.0035)]
    assert verdict(claim, speedup=sides)["verdict"] == "reproduced"
    for place in (0, 1):
        few = [row | ({"freedom": 1} if k == place else {}) for k, row in enumerate(sides)]
        assert verdict(claim, speedup=few)["verdict"] == "inconclusive"
        none = [row | ({"ci_low": None} if k == place else {}) for k, row in enumerate(sides)]
        assert verdict(claim, speedup=none)["verdict"] == "inconclusive"
        bad = [row | ({"lossless": "divergent"} if k == place else {}) for k, row in enumerate(sides)]
        assert "the output diverges" in verdict(claim, speedup=bad)["reason"]


@pytest.mark.parametrize(("gain", "found"), [(1.9, "reproduced"), (2.1, "refuted"), (2.01, "inconclusive")])
def test_a_side_alone_may_be_what_is_said(tmp_path: Path, gain: float, found: str) -> None:
    rule = "{kind: records, test: over, against: {drafter: none}, expect: less_than_one}"
    rows = [packed("none", 2.0), packed("lookup", gain)]
    assert verdict(about(tmp_path, rule), speedup=rows)["verdict"] == found


@pytest.mark.parametrize(
    ("more", "told"),
    [("", "needs against"), (", against: none", "write keys of the scope"), (", against: {}", "write keys of"),
     (", against: {drafter: mtp}", "name it in scope.drafter"), (", against: {streams: 4}", "in scope.streams beside"),
     (", against: {n_ctx: 4}", "name it in scope.n_ctx"),
     (", against: {drafter: none}, expect: at_least", "knows expect"),
     (", against: {drafter: none}, expect: greater_than_one", "does not fit")],
)  # fmt: skip
def test_a_rule_that_sets_nothing_against_each_other_is_an_error(tmp_path: Path, more: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        about(tmp_path, f"{{kind: records, test: over{more}}}")

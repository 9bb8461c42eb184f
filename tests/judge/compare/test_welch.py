"""The ratio of two figures against scipy's own Welch test, from samples that both sides' intervals are made of."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from bench.judge.compare.welch import Side, ratio


def side(logs: np.ndarray) -> Side:
    """A figure with Student's interval, as a cell tells it."""
    mean, error = float(logs.mean()), float(stats.sem(logs))
    low, high = stats.t.interval(0.95, len(logs) - 1, loc=mean, scale=error)
    return Side(math.exp(mean), math.exp(low), math.exp(high), len(logs) - 1.0)


@pytest.mark.parametrize(("count", "other", "spread"), [(2, 2, 0.3), (3, 24, 0.01), (24, 6, 2.0), (100, 100, 0.1)])
def test_the_interval_is_scipys(count, other, spread):
    generator = np.random.default_rng(count * 1000 + other)
    base, present = generator.normal(1.0, 0.05, count), generator.normal(1.1, 0.05 * spread, other)
    found = ratio(side(base), side(present))
    test = stats.ttest_ind_from_stats(present.mean(), present.std(ddof=1), other, base.mean(), base.std(ddof=1), count,
                                      equal_var=False)  # fmt: skip
    ends = stats.ttest_ind(present, base, equal_var=False).confidence_interval(0.95)
    assert (math.log(found.low), math.log(found.high)) == pytest.approx((ends.low, ends.high), rel=1e-9)
    assert (not found.low <= 1 <= found.high) == (test.pvalue < 0.05)


def test_a_normal_side_has_no_bound_on_its_freedom():
    found = ratio(Side(1.0, math.exp(-0.196), math.exp(0.196)), Side(1.0, math.exp(-0.196), math.exp(0.196)))
    half = stats.norm.ppf(0.975) * math.hypot(0.196, 0.196) / stats.norm.ppf(0.975)
    assert math.log(found.high) == pytest.approx(half) and found.freedom == math.inf


def test_each_end_takes_the_ends_that_bear_on_it():
    """A share near 1 can be much smaller and hardly larger: less of it is told from less, not from more."""
    share = Side(0.99, 0.80, 0.999)
    found = ratio(share, share)
    both = math.hypot(math.log(0.99 / 0.80), math.log(0.999 / 0.99))
    assert (math.log(found.low), math.log(found.high)) == pytest.approx((-both, both))
    exact = ratio(Side(0.99, 0.99, 0.99), share)
    assert (exact.low, exact.high) == pytest.approx((0.80 / 0.99, 0.999 / 0.99))


@pytest.mark.parametrize("low, high, freedom", [
    (0.0, math.inf, 1.0), (math.nan, math.nan, 5.0), (0.9, 1.1, 0.0), (0.9, 1.1, math.nan), (0.0, 2.0, 3.0),
])  # fmt: skip
def test_a_side_without_an_interval_leaves_the_ratio_open(low, high, freedom):
    found = ratio(Side(1.0, 0.9, 1.1, 5.0), Side(2.0, low, high, freedom))
    assert (found.value, found.low, found.high) == (pytest.approx(2.0), 0.0, math.inf)


def test_nothing_over_nothing_is_alike_and_something_over_nothing_is_no_ratio():
    nothing, some = Side(0.0, 0.0, 0.1), Side(0.5, 0.4, 0.6)
    assert ratio(nothing, nothing).value == 1.0
    assert math.isnan(ratio(nothing, some).value) and ratio(nothing, some).low == 0.0

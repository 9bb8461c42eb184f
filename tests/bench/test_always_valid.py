"""The always-valid boundary against a test martingale that is integrated numerically, and against simulated peeking."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from bench.always_valid import boundary


def growth(t: float, df: int) -> float:
    """The Bayes factor for a standardised effect that is N(0, 1), from its definition: t is noncentral under it."""

    def under(effect: float) -> float:
        return float(stats.nct.pdf(t, df, effect * math.sqrt(df)) * stats.norm.pdf(effect))

    middle = t / math.sqrt(df)
    area = integrate.quad(under, middle - 9, middle + 9, points=[middle, 0.0], limit=200)[0]
    return float(area / stats.t.pdf(t, df))


@pytest.mark.parametrize("df", [6, 12, 40])
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_at_the_boundary_the_evidence_is_one_over_the_error(df, confidence):
    assert growth(boundary(df, confidence), df) == pytest.approx(1 / (1 - confidence), rel=1e-3)


def test_few_blocks_exclude_nothing_and_no_boundary_is_below_students():
    assert boundary(2, 0.95) == math.inf
    for df in (6, 12, 60, 600):
        assert boundary(df, 0.95) > 1.3 * stats.t.ppf(0.975, df)
        assert boundary(df, 0.999) > boundary(df, 0.95)


def test_whoever_looks_after_every_pass_is_misled_as_rarely_as_it_says():
    """Means of six, and as many measurements of the spread beside them, looked at 60 times. Student's is beaten."""
    rng, count, passes, size = np.random.default_rng(1), 4000, 60, 6
    sums = np.cumsum(rng.normal(size=(count, passes, size)).sum(axis=2), axis=1)
    squares = np.cumsum((rng.normal(size=(count, passes, size)) ** 2).sum(axis=2), axis=1)
    n = size * np.arange(1, passes + 1)
    t = np.abs(sums / n) / np.sqrt(squares / n / n)
    ours = np.array([boundary(float(one), 0.95) for one in n])
    students = stats.t.ppf(0.975, n)
    slack = 3 * math.sqrt(0.05 * 0.95 / count)
    assert (t > ours).any(axis=1).mean() < 0.05 + slack
    assert (t > students).any(axis=1).mean() > 0.2

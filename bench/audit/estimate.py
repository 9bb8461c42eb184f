"""A ratio with its interval and the smallest effect that could have been seen, without numpy or scipy.

The estimator is that of `bench.judge.measure.intervals` (mean and standard error of log ratios, Student's interval);
loading it would take longer than the whole audit of a pasted text. Tests hold the two together. It knows no record.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

CONFIDENCE = 0.95
POWER = 0.80
SE_FLOOR = 1e-6
"""A log standard error below this is finer than any clock."""
_STEPS = 400


@dataclass(frozen=True, slots=True)
class Estimate:
    """A ratio as mean and standard error of its logarithm. `df` is 0 where one unit leaves the spread unknown."""

    log_mean: float
    log_se: float
    df: float
    units: str

    @property
    def ratio(self) -> float:
        return math.exp(max(-700.0, min(self.log_mean, 700.0)))

    @property
    def known(self) -> bool:
        """Whether there is an interval at all."""
        return self.df > 0 and math.isfinite(self.log_se)

    def interval(self) -> tuple[float, float]:
        """The 95 % interval; (0, inf) where the spread is unknown."""
        if not self.known:
            return 0.0, math.inf
        half = t_quantile(self.df) * self.log_se
        return math.exp(max(self.log_mean - half, -700.0)), math.exp(min(self.log_mean + half, 700.0))

    def excludes(self, value: float) -> bool:
        """Whether the interval leaves `value` outside."""
        low, high = self.interval()
        return not low <= value <= high

    @property
    def min_visible_effect(self) -> float:
        """The smallest ratio above 1 that this spread and number of units tell from 1 in 80 % of runs."""
        return math.exp(min(detectable_shift(self.df) * self.log_se, 700.0)) if self.known else math.inf


def paired(logs: Sequence[float], units: str) -> Estimate:
    """From the log ratios of independent units."""
    mean = math.fsum(logs) / len(logs)
    if len(logs) < 2:
        return Estimate(mean, math.inf, 0, units)
    variance = math.fsum((value - mean) ** 2 for value in logs) / (len(logs) - 1)
    return Estimate(mean, max(math.sqrt(variance / len(logs)), SE_FLOOR), len(logs) - 1, units)


def welch(left: tuple[float, float, float], right: tuple[float, float, float], units: str) -> Estimate:
    """From two sides that are not paired, each a log mean, its standard error and degrees of freedom."""
    mean = left[0] - right[0]
    variance = left[1] ** 2 + right[1] ** 2
    if left[2] <= 0 or right[2] <= 0 or not math.isfinite(variance):
        return Estimate(mean, math.inf, 0, units)
    if variance < SE_FLOOR**2:
        return Estimate(mean, SE_FLOOR, left[2] + right[2], units)
    df = variance**2 / (left[1] ** 4 / left[2] + right[1] ** 4 / right[2])
    return Estimate(mean, math.sqrt(variance), max(df, 1.0), units)


@lru_cache(maxsize=1024)
def t_quantile(df: float, confidence: float = CONFIDENCE) -> float:
    """Two-sided Student-t quantile, by halving its distribution function."""
    low, high = 0.0, 1.0
    while 1 - _t_tails(high, df) < confidence and high < 1e9:
        high *= 2
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if 1 - _t_tails(middle, df) < confidence else (low, middle)
    return high


def t_probability(statistic: float, df: float) -> float:
    """Two-sided p-value of a t statistic."""
    return _t_tails(abs(statistic), df)


def _t_tails(t: float, df: float) -> float:
    return _incomplete_beta(df / 2, 0.5, df / (df + t * t))


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularised incomplete beta function by its continued fraction (Abramowitz and Stegun 26.5.8)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    tiny = 1e-300
    c, d = 1.0, 1 / ((1 - (a + b) * x / (a + 1)) or tiny)
    value = d
    for m in range(1, 300):
        for factor in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / ((1 + factor * d) or tiny)
            c = (1 + factor / c) or tiny
            value *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return front * value


@lru_cache(maxsize=256)
def detectable_shift(df: float) -> float:
    """How many standard errors a true effect must be away from 0 to be seen in 80 % of runs by the two-sided t-test.

    Averages the normal power over the distribution of the estimated spread.
    """
    critical = t_quantile(df)
    spreads = [(critical * s, weight) for s, weight in _spreads(df)]

    def seen(shift: float) -> float:
        return sum(w * (_normal(shift - s) + _normal(-shift - s)) for s, w in spreads)

    low, high = 0.0, critical * 4 + 10
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if seen(middle) < POWER else (low, middle)
    return high


def _spreads(df: float) -> list[tuple[float, float]]:
    """Values of sqrt(chi-square / df) with their weights: a grid over its density, wide enough for one degree."""
    top = 1 + 8 / math.sqrt(df)
    points = [(k + 0.5) / _STEPS * top for k in range(_STEPS)]
    logs = [(df - 1) * math.log(s) - df * s * s / 2 for s in points]
    peak = max(logs)
    weights = [math.exp(value - peak) for value in logs]
    total = sum(weights)
    return [(s, weight / total) for s, weight in zip(points, weights, strict=True)]


def _normal(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))

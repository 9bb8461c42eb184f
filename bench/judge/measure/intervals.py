"""The one estimator of a contrast, and the intervals around it. Knows nothing about tokens, models or methods.

It was fixed before any run. A block compares arms on one prompt in balanced order (A B B A), each arm twice.

1. In a block, the log ratio is the mean log rate of the arm minus that of the baseline: linear drift cancels.
2. Blocks of one prompt are averaged, then prompts: the ratio is a geometric mean in which every prompt weighs the same.
3. The interval is Student's on the log scale, over prompts; over blocks when there is one prompt; over the two
   replicate pairs when there is one block.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

CONFIDENCE = 0.95
CONTROL_CONFIDENCE = 0.999
POWER = 0.80
SE_FLOOR = 1e-6
"""A log standard error below this is finer than the clock: simulated times that agree exactly still get an interval."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A ratio, as mean and standard error of its logarithm over `n_units` units."""

    log_mean: float
    log_se: float
    n_units: int
    units: str
    n_blocks: int = 0
    n_prompts: int = 0

    @property
    def ratio(self) -> float:
        return float(np.exp(self.log_mean))

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Student-t interval of the ratio; (0, inf) when one unit leaves the spread unknown."""
        if self.n_units < 2:
            return 0.0, float("inf")
        half = t_quantile(self.n_units - 1, confidence) * self.log_se
        return float(np.exp(self.log_mean - half)), float(np.exp(min(self.log_mean + half, 700.0)))

    def excludes(self, value: float, confidence: float = CONFIDENCE) -> bool:
        """Whether the interval leaves `value` outside."""
        low, high = self.interval(confidence)
        return not low <= value <= high

    @property
    def min_visible_effect(self) -> float:
        """The smallest ratio above 1.00 that this spread and number of units tell from 1.00 in 80 % of runs."""
        if self.n_units < 2:
            return float("inf")
        return float(np.exp(min(detectable_shift(self.n_units - 1) * self.log_se, 700.0)))


def mean_estimate(logs: np.ndarray, units: str, n_blocks: int = 0, n_prompts: int = 0) -> Estimate:
    """Estimate from the log ratios of independent units."""
    logs = np.asarray(logs, dtype=float)
    mean, count = log_mean(logs), len(logs)
    spread = float("inf")
    if count > 1:
        # What `logs.std(ddof=1)` computes, without the checks that cost more than the sums of a few numbers do.
        off = logs - mean
        spread = float(np.sqrt(np.add.reduce(off * off) / (count - 1)) / np.sqrt(count))
    if spread < SE_FLOOR:
        spread = SE_FLOOR
    return Estimate(float(mean), spread, count, units, n_blocks, n_prompts)


def log_mean(values: np.ndarray) -> np.floating:
    """Mean of the logs of some units. numpy's own takes ten times as long on a few."""
    total: np.floating = np.add.reduce(values)
    return total / len(values)


def known_mean(values: np.ndarray) -> float:
    """Mean of the values that are not nan, nan when there are none."""
    known = values[values == values]
    return float(log_mean(known)) if len(known) else float("nan")


def direction(estimate: Estimate) -> str:
    """`faster`, `slower`, or `inconclusive` when the interval spans 1.00."""
    if not estimate.excludes(1.0):
        return "inconclusive"
    return "faster" if estimate.ratio > 1.0 else "slower"


@lru_cache(maxsize=4096)
def t_quantile(df: float, confidence: float) -> float:
    """Two-sided Student-t quantile."""
    return float(special.stdtrit(df, 0.5 + confidence / 2))


@lru_cache(maxsize=4096)
def detectable_shift(df: int, confidence: float = CONFIDENCE, power: float = POWER) -> float:
    """How many standard errors a true effect must be away from 0 to be seen with `power` by the two-sided t-test.

    Averages the normal power over quantiles of the estimated spread: the noncentral t without its tails' overflow.
    """
    critical = t_quantile(df, confidence)
    spread = critical * np.sqrt(2 * special.gammaincinv(df / 2, (np.arange(4000) + 0.5) / 4000) / df)

    def seen(shift: float) -> float:
        return float(np.mean(special.ndtr(shift - spread) + special.ndtr(-shift - spread)))

    # Halving, not scipy.optimize: to load that takes longer than a report over twenty cells.
    low, high = 0.0, critical * 4 + 10
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if seen(middle) < power else (low, middle)
    return high


@lru_cache(maxsize=64)
def z_quantile(confidence: float) -> float:
    """Two-sided normal quantile."""
    return float(special.ndtri(0.5 + confidence / 2))


def wilson(successes: float, trials: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Wilson's score interval of a share; (nan, nan) without trials. A trial may be a success in part."""
    if trials == 0:
        return float("nan"), float("nan")
    z = z_quantile(confidence)
    share, weight = successes / trials, z * z / trials
    centre = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * np.sqrt(share * (1 - share) / trials + weight / (4 * trials))
    # Rounding must not push an end of 0 or 1 across the share itself.
    return float(min(max(0.0, centre - half), share)), float(max(min(1.0, centre + half), share))


def mean_interval(values: np.ndarray, confidence: float = CONFIDENCE) -> tuple[float, float, float]:
    """Mean of paired differences with its Student-t interval; infinite ends for one value, nan for none."""
    values = np.asarray(values, dtype=float)
    if len(values) == 0:
        return float("nan"), float("nan"), float("nan")
    mean = float(values.mean())
    if len(values) == 1:
        return mean, float("-inf"), float("inf")
    half = t_quantile(len(values) - 1, confidence) * float(values.std(ddof=1)) / np.sqrt(len(values))
    return mean, mean - half, mean + half

"""The one estimator of a contrast, and the intervals around it. Knows nothing about tokens, models or methods.

It was fixed before any run. A block compares arms on one prompt in balanced order (A B B A), each arm twice.

1. In a block, the log ratio is the mean log rate of the arm minus that of the baseline: linear drift cancels.
2. Blocks of one prompt are averaged, then prompts: the ratio is a geometric mean in which every prompt weighs the same.
3. The interval is Student's on the log scale, over prompts; over blocks when there is one prompt; over the two
   replicate pairs when there is one block. Where a cell got blocks until it was decided, it is the always-valid one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from bench.always_valid import boundary

CONFIDENCE = 0.95
CONTROL_CONFIDENCE = 0.999
POWER = 0.80
FEWEST_RANKED = 6
"""The smallest and the largest of so many hold their median in more than 95 % of samples."""
UNSEEN = 0.5
"""Groups, of which half succeeds, that few groups may not have shown: the least with which the interval of a share over
texts holds it in 93 % of all designs of the calibration."""
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
    df: float = 0.0
    """Degrees of freedom of the spread; 0 for one less than the units."""
    skew: float = 0.0
    """Of the units, where the interval has to hold for skewed ones too."""
    always: bool = False
    """Whether the interval has to hold at any number of blocks: that of the cell was chosen by looking at them."""
    stop_se: float = 0.0
    """Standard error of the noise by which the last block may have been chosen, where `log_se` is of something else."""
    stop_df: float = 0.0

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the spread."""
        return self.df or self.n_units - 1.0

    @property
    def ratio(self) -> float:
        return float(np.exp(self.log_mean))

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Student's interval of the ratio, or the always-valid one; (0, inf) when one unit leaves no spread."""
        if self.freedom < 1:
            return 0.0, float("inf")
        quantile = (boundary if self.always else t_quantile)(self.freedom, confidence)
        below = above = quantile * self.log_se
        if self.skew:
            below = max(below, _without_skew(quantile, self.skew, self.n_units) * self.log_se)
            above = max(above, -_without_skew(-quantile, self.skew, self.n_units) * self.log_se)
        if self.stop_se:
            moved = boundary(self.stop_df, confidence) * self.stop_se
            below, above = float(np.hypot(below, moved)), float(np.hypot(above, moved))
        return float(np.exp(self.log_mean - below)), float(np.exp(min(self.log_mean + above, 700.0)))

    def excludes(self, value: float, confidence: float = CONFIDENCE) -> bool:
        """Whether the interval leaves `value` outside."""
        low, high = self.interval(confidence)
        return not low <= value <= high

    @property
    def min_visible_effect(self) -> float:
        """The smallest ratio above 1.00 that so many units tell from 1.00 in 80 % of runs.

        The spread of a few units is often estimated far too small, so its upper bound at 80 % stands in for it.
        """
        if self.freedom < 1:
            return float("inf")
        shift = detectable_shift(self.freedom)
        if self.always or self.stop_se:
            half = float(np.log(self.interval()[1])) - self.log_mean
            shift = half / self.log_se + float(special.ndtri(POWER))
        return float(np.exp(min(shift * spread_bound(self.freedom) * self.log_se, 700.0)))


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


def middle_of(ratios: np.ndarray) -> tuple[float, float, float]:
    """Median of paired ratios with an interval that holds it: (nan, nan, nan) for none.

    The order statistics that do so by the binomial law; of fewer than six, which hold no 95 %, Student's of the
    geometric mean. The median of so few is never outside that: it is within one standard deviation of the mean.
    """
    count = len(ratios)
    if not count:
        return float("nan"), float("nan"), float("nan")
    if count < FEWEST_RANKED:
        return (float(np.median(ratios)), *mean_estimate(np.log(ratios), "pairs").interval())
    ranked, place = np.sort(ratios), _rank(count)
    return float(np.median(ranked)), float(ranked[place]), float(ranked[count - 1 - place])


@lru_cache(maxsize=512)
def _rank(count: int) -> int:
    """Largest place, from 0, whose order statistic lies above the median of all in at most 2.5 % of samples."""
    place = 0
    while special.bdtr(place + 1, count, 0.5) <= (1 - CONFIDENCE) / 2:
        place += 1
    return place


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


def satterthwaite(variances: Sequence[float], freedoms: Sequence[float]) -> float:
    """Degrees of freedom of a sum of independent variances; infinite where none of them is in doubt.

    Satterthwaite 1946, Biometrics Bulletin 2, 110-114.
    """
    doubt = sum(one**2 / freedom for one, freedom in zip(variances, freedoms, strict=True))
    return float(sum(variances) ** 2 / doubt) if doubt > 0 else float("inf")


@lru_cache(maxsize=4096)
def spread_bound(df: float, confidence: float = POWER) -> float:
    """How many times the estimated spread the true one is at most, in `confidence` of samples (chi-square)."""
    return float(np.sqrt(df / (2 * special.gammaincinv(df / 2, 1 - confidence))))


def _without_skew(quantile: float, skew: float, count: int) -> float:
    """The quantile of a mean over its standard error where the units are skewed: Hall's transformation.

    Hall 1992, On the removal of skewness by transformation, J. R. Stat. Soc. B 54, 221-228.
    """
    inner = 1 + skew * (quantile / np.sqrt(count) - skew / (6 * count))
    return float(3 * np.sqrt(count) / skew * (np.cbrt(inner) - 1))


def skewness(values: np.ndarray) -> float:
    """Of a sample, without the bias of a small one; 0 where all are alike or there are two."""
    count, off = len(values), values - values.mean()
    variance = float(off @ off) / max(count - 1, 1)
    if count < 3 or variance <= SE_FLOOR**2:
        return 0.0
    return float((off**3).sum() / variance**1.5) * count / ((count - 1) * (count - 2))


@lru_cache(maxsize=4096)
def detectable_shift(df: float, confidence: float = CONFIDENCE, power: float = POWER) -> float:
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
    return _score(successes / trials, trials, z_quantile(confidence))


def _score(share: float, trials: float, z: float) -> tuple[float, float]:
    """Ends of the score interval of a share."""
    weight = z * z / trials
    centre = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * np.sqrt(share * (1 - share) / trials + weight / (4 * trials))
    # Rounding must not push an end of 0 or 1 across the share itself.
    return float(min(max(0.0, centre - half), share)), float(max(min(1.0, centre + half), share))


def clustered_share(
    successes: np.ndarray, trials: np.ndarray, confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """Interval of a share whose trials come in groups that have something in common, one number a group each.

    Wilson's, with as many trials as say as much when they are independent (design effect, never below 1), and Student's
    quantile for as many groups as say as much when they are of one size (Kish 1965). The variance between groups has
    each off the mean that it pulls towards itself (CR2: Bell and McCaffrey, Survey Methodology 28, 2002, 169-181).
    Few groups do not show the rare one that differs from all, so the end that faces one half also allows for `UNSEEN`
    groups of which half succeeds, as an independent error. One group has no spread: then it is Wilson's alone.
    """
    groups, total = int(np.count_nonzero(trials)), float(trials.sum())
    if groups < 2:
        return wilson(float(successes.sum()), int(total), confidence)
    share, pull = float(successes.sum()) / total, trials / total
    off = successes - share * trials
    variance = float((off * off / (1 - pull)).sum()) / total**2
    single = share * (1 - share) / total
    effective = total / max(variance / single, 1.0) if single else total
    alike = 1 / float(pull @ pull)
    low, high = _score(share, effective, t_quantile(max(alike - 1, 1.0), confidence))
    unseen = z_quantile(confidence) * UNSEEN * abs(0.5 - share) / groups
    if share > 0.5:
        return max(share - float(np.hypot(share - low, unseen)), 0.0), high
    return low, min(share + float(np.hypot(high - share, unseen)), 1.0)


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

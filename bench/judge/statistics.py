"""The one estimator of a contrast, and the intervals around it. Knows nothing about tokens, models or methods.

It was fixed before any run. A block compares arms on one prompt in balanced order (A B B A), each arm twice.

1. In a block, the log ratio is the mean log rate of the arm minus that of the baseline: linear drift cancels.
2. Blocks of one prompt are averaged, then prompts: the ratio is a geometric mean in which every prompt weighs the same.
3. The interval is Student's on the log scale, over prompts; over blocks when there is one prompt; over the two
   replicate pairs when there is one block.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

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


@dataclass(frozen=True)
class Design:
    """Which runs speak for an arm and which for the baseline, as weights: units x runs, each row sums to 1."""

    arm: np.ndarray
    baseline: np.ndarray
    units: str
    n_blocks: int
    n_prompts: int

    @cached_property
    def used(self) -> np.ndarray:
        """Runs that have a weight; what the others did does not matter, even where it is nan."""
        return np.flatnonzero(self.arm.any(axis=0) | self.baseline.any(axis=0))

    @cached_property
    def _difference(self) -> np.ndarray:
        return (self.arm - self.baseline)[:, self.used]

    @cached_property
    def _level(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Of arm and baseline, the runs that have a weight, and the weights."""
        means = (self.arm.mean(axis=0), self.baseline.mean(axis=0))
        return [(runs, mean[runs]) for mean in means for runs in [np.flatnonzero(mean > 0)]]

    def contrast(self, log_values: np.ndarray) -> Estimate:
        """The ratio arm / baseline of exp(log_values), one value a run."""
        return mean_estimate(self._logs(log_values), self.units, self.n_blocks, self.n_prompts)

    def ratio(self, log_values: np.ndarray) -> float:
        """The ratio alone, for half the price of `contrast`."""
        return float(np.exp(_mean(self._logs(log_values))))

    def _logs(self, log_values: np.ndarray) -> np.ndarray:
        return self._difference @ log_values[self.used]

    def levels(self, log_values: np.ndarray) -> tuple[float, float]:
        """Geometric means of arm and baseline, with the weights of the contrast: their quotient is its ratio."""
        # One after the other: a nan of one arm must not reach the other.
        arm, baseline = (float(np.exp(weights @ log_values[runs])) for runs, weights in self._level)
        return arm, baseline


def design(
    arms: np.ndarray, blocks: np.ndarray, prompts: np.ndarray, orders: np.ndarray, arm: object, baseline: object,
    pairs: bool = False,
) -> Design | None:  # fmt: skip
    """Lay out a contrast over runs; None when no block has both arms.

    `pairs` takes the replicate pairs as units whatever the number of prompts: right for controls, whose true ratio
    does not depend on the prompt.
    """
    masks = [arms == name for name in (arm, baseline)]
    # Flags by block number: with so few runs, set operations on arrays would take most of a report's time.
    shared = np.logical_and(*(block_flags(blocks, mask) for mask in masks))
    n_shared, rank = int(shared.sum()), np.cumsum(shared) - 1
    if not n_shared:
        return None
    sides = [np.flatnonzero(mask & shared[blocks]) for mask in masks]
    names, first = np.unique(prompts[sides[0]], return_inverse=True)
    if pairs or n_shared == 1:
        return _pair_design(blocks, orders, sides[0], sides[1], n_shared, len(names))
    owner = np.zeros(n_shared, dtype=np.int64)
    owner[rank[blocks[sides[0]]]] = first
    by_prompt = len(names) > 1
    unit_of_block = owner if by_prompt else np.arange(n_shared)
    blocks_of_unit = np.bincount(unit_of_block)
    weights = []
    for rows in sides:
        block = rank[blocks[rows]]
        unit = unit_of_block[block]
        matrix = np.zeros((len(blocks_of_unit), len(arms)))
        matrix[unit, rows] = 1.0 / np.bincount(block)[block] / blocks_of_unit[unit]
        weights.append(matrix)
    return Design(weights[0], weights[1], "prompts" if by_prompt else "blocks", n_shared, len(names))


def block_flags(blocks: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Which block numbers, from 0 to the highest of all runs, have a run under the mask."""
    flags = np.zeros(int(blocks.max(initial=-1)) + 1, dtype=bool)
    flags[blocks[mask]] = True
    return flags


def mean_estimate(logs: np.ndarray, units: str, n_blocks: int = 0, n_prompts: int = 0) -> Estimate:
    """Estimate from the log ratios of independent units."""
    logs = np.asarray(logs, dtype=float)
    mean, count = _mean(logs), len(logs)
    spread = float("inf")
    if count > 1:
        # What `logs.std(ddof=1)` computes, without the checks that cost more than the sums of a few numbers do.
        off = logs - mean
        spread = float(np.sqrt(np.add.reduce(off * off) / (count - 1)) / np.sqrt(count))
    if spread < SE_FLOOR:
        spread = SE_FLOOR
    return Estimate(float(mean), spread, count, units, n_blocks, n_prompts)


def _mean(values: np.ndarray) -> np.floating:
    return np.add.reduce(values) / len(values)


def known_mean(values: np.ndarray) -> float:
    """Mean of the values that are not nan, nan when there are none. numpy's own takes ten times as long on a few."""
    known = values[values == values]
    return float(_mean(known)) if len(known) else float("nan")


def direction(estimate: Estimate) -> str:
    """`faster`, `slower`, or `inconclusive` when the interval spans 1.00."""
    if not estimate.excludes(1.0):
        return "inconclusive"
    return "faster" if estimate.ratio > 1.0 else "slower"


@lru_cache(maxsize=4096)
def t_quantile(df: int, confidence: float) -> float:
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
def _z_quantile(confidence: float) -> float:
    return float(special.ndtri(0.5 + confidence / 2))


def wilson(successes: int, trials: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Wilson's score interval of a share; (nan, nan) without trials."""
    if trials == 0:
        return float("nan"), float("nan")
    z = _z_quantile(confidence)
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


def _pair_design(
    blocks: np.ndarray, orders: np.ndarray, arm: np.ndarray, baseline: np.ndarray, n_blocks: int, n_prompts: int
) -> Design:
    """Units are replicate pairs: the k-th run of the arm against the k-th run of the baseline in a block."""
    keyed = []
    for rows in (arm, baseline):
        rows = rows[np.lexsort((orders[rows], blocks[rows]))]
        replicate = np.arange(len(rows)) - np.searchsorted(blocks[rows], blocks[rows])
        keyed.append((blocks[rows] * len(blocks) + replicate, rows))
    if np.array_equal(keyed[0][0], keyed[1][0]):
        # The usual case, both arms equally often in each block: the keys are in order already.
        left = right = np.arange(len(arm))
    else:
        _, left, right = np.intersect1d(keyed[0][0], keyed[1][0], assume_unique=True, return_indices=True)
    weights = np.zeros((2, len(left), len(blocks)))
    weights[0, np.arange(len(left)), keyed[0][1][left]] = 1.0
    weights[1, np.arange(len(left)), keyed[1][1][right]] = 1.0
    return Design(weights[0], weights[1], "replicate pairs", n_blocks, n_prompts)

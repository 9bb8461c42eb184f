"""Whether counts of next tokens come from the probabilities that the baseline gives them, prefix by prefix.

Above temperature 0 a method may say another text than plain decoding and still be lossless: its tokens have to come
from the same distribution. A group holds the tokens that were drawn behind one prefix, as counts over cells that the
probabilities alone decide, so that they are multinomial. The test is Pearson's chi-square summed over groups, cells
with fewer than five expected draws pooled (Cochran 1954). Total variation is shown beside its mean and upper end under
the null, by simulation, since counts of a finite sample never agree exactly.
It does not know how draws are made, nor what a guess is worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from bench.judge.measure.intervals import CONTROL_CONFIDENCE, POWER

SAME, DIFFERENT, TOO_FEW = "same", "different", "too few draws"
ALPHA = 1 - CONTROL_CONFIDENCE
"""Chance of calling the same distribution different. Small, since a sweep has many cells."""
LEAST_EXPECTED = 5.0
VISIBLE = 0.2
"""A test that cannot see a fifth of the draws handed to one token says nothing."""
SIMULATIONS = 2000


@dataclass(frozen=True)
class Group:
    """Draws behind one prefix: counts and probabilities of the same cells, which together are the whole vocabulary.

    `moved` are the probabilities of the same prefix decoded in the method's own shape; what rounding alone moves is no
    fault of the method.
    """

    counts: np.ndarray
    probability: np.ndarray
    moved: np.ndarray | None = None

    @property
    def n(self) -> int:
        """Draws."""
        return int(self.counts.sum())


@dataclass(frozen=True)
class Assessment:
    """What the draws of one arm say. Total variations are means over groups, weighted by their draws."""

    draws: int
    groups: int
    tv: float
    tv_expected: float
    """Mean under the null, for so many draws."""
    tv_high: float
    """The 99.9 % point under the null."""
    rounding_tv: float
    """What the shape of the decode alone moves."""
    chi2: float
    df: int
    p: float
    visible: float
    """Smallest total variation, by draws handed to the likeliest token, that is seen in 80 % of such tests."""
    verdict: str


def assess(groups: Sequence[Group], tested: Sequence[Group] | None = None, seed: int = 0,
           simulations: int = SIMULATIONS) -> Assessment:
    """Judge the groups together. `different` at a p value below `ALPHA`; `too few draws` when little would be seen.

    What would be seen is asked of the groups in `tested`, those that a fault can be in; None means all.
    """
    used = [(group, cells) for group in groups if len(cells := pooled(group)) > 1]
    draws = sum(group.n for group, _ in used)
    if not draws:
        nan = float("nan")
        return Assessment(0, 0, nan, nan, nan, nan, nan, 0, nan, nan, TOO_FEW)
    parts = [_pearson(group, cells) for group, cells in used]
    chi2, df, allowed = (sum(column) for column in zip(*parts, strict=True))
    weights = np.array([group.n for group, _ in used]) / draws
    measured = sum(w * total_variation(g.counts / g.n, g.probability) for w, (g, _) in zip(weights, used, strict=True))
    null = simulated([group for group, _ in used], np.random.default_rng(seed), simulations)
    rounding = sum(
        w * total_variation(g.moved, g.probability) for w, (g, _) in zip(weights, used, strict=True)
        if g.moved is not None
    )  # fmt: skip
    faulty = [group for group, _ in used] if tested is None else tested
    p, seen = _tail(chi2, df, allowed), visible(faulty, df, allowed)
    verdict = DIFFERENT if p < ALPHA else SAME if seen <= VISIBLE else TOO_FEW
    high = float(np.quantile(null, CONTROL_CONFIDENCE))
    return Assessment(draws, len(used), float(measured), float(null.mean()), high, float(rounding), chi2, df, p, seen,
                      verdict)  # fmt: skip


def total_variation(left: np.ndarray, right: np.ndarray) -> float:
    """Half the sum of absolute differences of two distributions over the same cells."""
    return 0.5 * float(np.abs(left - right).sum())


def pooled(group: Group) -> list[np.ndarray]:
    """Cells of the group, as indices: those with fewer than five expected draws are one, or join the smallest other."""
    expected = group.n * group.probability
    large = np.flatnonzero(expected >= LEAST_EXPECTED)
    small = np.flatnonzero(expected < LEAST_EXPECTED)
    cells = [np.array([index]) for index in large[np.argsort(-expected[large], kind="stable")]]
    if not len(small):
        return cells
    if expected[small].sum() >= LEAST_EXPECTED or not cells:
        return [*cells, small]
    return [*cells[:-1], np.concatenate([cells[-1], small])]


def _pearson(group: Group, cells: Sequence[np.ndarray]) -> tuple[float, int, float]:
    """(chi-square, degrees of freedom, noncentrality that rounding accounts for)."""
    counts, share = (np.array([values[cell].sum() for cell in cells]) for values in (group.counts, group.probability))
    expected = group.n * share
    chi2 = float(((counts - expected) ** 2 / expected).sum())
    if group.moved is None:
        return chi2, len(cells) - 1, 0.0
    moved = np.array([group.moved[cell].sum() for cell in cells])
    return chi2, len(cells) - 1, group.n * float(((moved - share) ** 2 / share).sum())


def _tail(chi2: float, df: int, allowed: float) -> float:
    """Chance of a statistic at least as large, when the truth is as far away as rounding may take it."""
    return float(1 - special.chndtr(chi2, df, allowed)) if allowed > 0 else float(special.chdtrc(df, chi2))


def simulated(groups: Sequence[Group], rng: np.random.Generator, times: int) -> np.ndarray:
    """Total variations of `times` repetitions in which the probabilities are the truth."""
    draws = sum(group.n for group in groups)
    total = np.zeros(times)
    for group in groups:
        counts = rng.multinomial(group.n, group.probability / group.probability.sum(), times)
        total += 0.5 * np.abs(counts - group.n * group.probability).sum(axis=1)
    return total / draws


def visible(groups: Sequence[Group], df: int, allowed: float = 0.0) -> float:
    """Total variation of the smallest visible bias: a share of all draws is handed to each prefix's likeliest token.

    A share s moves the distribution p to (1 - s) p + s e, which gives Pearson's statistic the noncentrality
    n s^2 (1/p_top - 1) and is s (1 - p_top) away in total variation. Infinite when even all draws would not be seen.
    """
    tops = np.array([group.probability.max() for group in groups])
    draws = np.array([group.n for group in groups], dtype=float)
    strength = float(draws @ (1 / tops - 1)) if len(groups) else 0.0
    share = np.sqrt(needed_noncentrality(df, allowed) / strength) if strength > 0 else np.inf
    return float(share * (draws @ (1 - tops)) / draws.sum()) if share <= 1 else float("inf")


@lru_cache(maxsize=256)
def needed_noncentrality(df: int, allowed: float = 0.0) -> float:
    """Noncentrality at which the chi-square test at `ALPHA` rejects in 80 % of cases (Patnaik 1949's power)."""
    critical = float(special.chdtri(df, ALPHA)) if not allowed else float(special.chndtrix(1 - ALPHA, df, allowed))
    return float(special.chndtrinc(critical, df, 1 - POWER))

"""Shares of guesses that come in texts: how often their interval holds the share over all texts of the kind."""

from __future__ import annotations

import numpy as np

from bench.judge.measure.intervals import clustered_share, wilson

UNLIKE = 0.7
"""Of the logarithm of a text's guesses, where texts differ in length: most lie between a half and twice the median."""


def coverage(seed: int, count: int, texts: int, guesses: int, share: float, sd: float,
             unlike: float = 0.0) -> tuple[float, float, float]:  # fmt: skip
    """Coverage of Wilson's interval and of the one over texts, and the median half width of that.

    The share of a text is Beta-distributed around `share` with a standard deviation of `sd`, and the logarithm of its
    guesses normal with one of `unlike`.
    """
    rng = np.random.default_rng(seed)
    size = share * (1 - share) / sd**2 - 1 if sd else np.inf
    alone, over, halves = [], [], []
    for _ in range(count):
        of_text = rng.beta(share * size, (1 - share) * size, texts) if sd else np.full(texts, share)
        trials = np.maximum(guesses * rng.lognormal(0.0, unlike, texts), 1).astype(int)
        hits = rng.binomial(trials, of_text)
        low, high = wilson(float(hits.sum()), int(trials.sum()))
        alone.append(low <= share <= high)
        low, high = clustered_share(hits.astype(float), trials.astype(float))
        over.append(low <= share <= high)
        halves.append((high - low) / 2)
    return float(np.mean(alone)), float(np.mean(over)), float(np.median(halves))

"""Whose stalls are: how often the judge takes them for the work of one arm."""

from __future__ import annotations

import numpy as np

from bench.judge.measure.stalls import settled
from tests.calibration.simulation import Noise, contrast


def blamed(seed: int, count: int, noise: Noise, design: tuple[int, int]) -> tuple[float, float]:
    """Shares of contrasts whose stalls stay in the estimate as the treatment's own, and as the baseline's."""
    rng = np.random.default_rng(seed)
    found = [settled(contrast(rng, 1.1, noise, *design)[0]).own for _ in range(count)]
    return float(np.mean([one == "treatment" for one in found])), float(np.mean([one == "baseline" for one in found]))

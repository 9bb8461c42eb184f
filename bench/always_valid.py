"""How far a mean may be off when the number of its measurements was not fixed beforehand: a t quantile for that case.

Whoever ends a measurement and whoever judges it take both from here. It knows nothing about verdicts.
"""

from __future__ import annotations

import math
from functools import lru_cache

CARRIED = 1.13
"""Variance of a block's ratio over that of half the difference of its pairs. It is 1.00 for independent runs and 1.29
at most where a run is like the one before (a correlation of a half from run to run); this is the geometric middle."""


@lru_cache(maxsize=4096)
def boundary(df: float, confidence: float) -> float:
    """Standard errors that a mean is off at most, at all times together, in `confidence` of cases; inf for few `df`.

    `df` are those of the spread so far; they must grow with the measurements and not depend on their values. Where
    Student's quantile holds at one number of measurements, this holds at every number, so also at one that was chosen
    by looking at them. It inverts the right-Haar t test whose effect is normal with the standard error that one degree
    of freedom leaves. That is a test martingale (Lai 1976, Annals of Statistics 4, 265-280; Perez-Ortiz, Lardy, de
    Heide and Gruenwald 2024, Annals of Statistics 52, 1410-1432; Wang and Ramdas 2025, Sequential Analysis 44), so by
    Ville's inequality the chance that it is ever beaten is 1 - confidence; "ever" makes any rule of stopping right.
    """
    spread = 1.0 + df
    log_growth = 2 / (df + 1) * (0.5 * math.log(spread) - math.log1p(-confidence))
    if log_growth >= math.log(spread):
        return math.inf
    growth = math.exp(log_growth)
    return math.sqrt(df * (growth - 1) / (1 - growth / spread))

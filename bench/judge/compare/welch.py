"""The ratio of two figures that were measured apart, with its interval. Knows nothing of what they are figures of."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bench.judge.measure.intervals import CONFIDENCE, satterthwaite, t_quantile


@dataclass(frozen=True, slots=True)
class Side:
    """A positive figure with its 95 % interval, and the degrees of freedom of that; infinite for a normal one."""

    value: float
    low: float
    high: float
    freedom: float = math.inf


@dataclass(frozen=True, slots=True)
class Ratio:
    """One figure over another. (0, inf) where a side has no interval; nan where the ratio is none."""

    value: float
    low: float
    high: float
    freedom: float


def ratio(base: Side, present: Side) -> Ratio:
    """`present` over `base` with Welch's interval of the difference of their logarithms.

    Each side's standard errors come from its own interval, one below and one above it: where those are alike it is
    Welch 1947 (Biometrika 34, 28-35), else its limits are put together from the two sides' as in Zou and Donner 2008
    (Statistics in Medicine 27, 1693-1702). Nothing is known of how the sides go together, so they count as independent.
    """
    if not (base.value > 0 and present.value > 0):
        equal = base.value == present.value
        return Ratio(1.0, 1.0, 1.0, math.inf) if equal else Ratio(math.nan, 0.0, math.inf, math.nan)
    middle = math.log(present.value / base.value)
    ours, theirs = _errors(present), _errors(base)
    if not all(map(math.isfinite, (*ours, *theirs))):
        return Ratio(math.exp(middle), 0.0, math.inf, math.nan)
    variances = [(sum(errors) / 2) ** 2 for errors in (ours, theirs)]
    freedom = satterthwaite(variances, [present.freedom, base.freedom])
    quantile = t_quantile(freedom, CONFIDENCE)
    below, above = (quantile * math.hypot(ours[end], theirs[1 - end]) for end in (0, 1))
    return Ratio(math.exp(middle), math.exp(middle - below), math.exp(min(middle + above, 700.0)), freedom)


def _errors(side: Side) -> tuple[float, float]:
    """Standard errors of the logarithm below and above; infinite without an interval."""
    if not (side.low > 0 and math.isfinite(side.high) and side.freedom >= 1):
        return math.inf, math.inf
    quantile = t_quantile(side.freedom, CONFIDENCE)
    return (max(math.log(side.value / side.low), 0.0) / quantile, max(math.log(side.high / side.value), 0.0) / quantile)

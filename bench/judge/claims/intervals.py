"""The interval of a figure over another one, both with intervals that are taken for independent. Knows no row."""

from __future__ import annotations

import math

Ends = tuple[float, float, float]
"""A figure, and the ends of its interval."""


def between(above: Ends, below: Ends) -> Ends:
    """The difference of two figures, which for logarithms is that of their quotient."""
    middle = above[0] - below[0]
    low = middle - math.hypot(above[0] - above[1], below[2] - below[0])
    high = middle + math.hypot(above[2] - above[0], below[0] - below[1])
    return middle, low, high


def quotient(above: Ends, below: Ends) -> Ends:
    """One figure over another, both above 0."""
    logs = [(math.log(one[0]), math.log(one[1]), math.log(one[2])) for one in (above, below)]
    middle, low, high = between(logs[0], logs[1])
    return math.exp(middle), math.exp(low), math.exp(high)

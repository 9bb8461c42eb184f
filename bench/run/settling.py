"""When a series of equal decodes has become flat: which of them are the steady state, and which came before it.

It knows durations only: no model, no width, no file.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

LEAST = 2
"""The first decodes of a series that never count: the shape of the decode has just changed."""
MOST = 8
"""A series that is not flat after so many is not waited for any longer."""
TOLERANCE = 0.03
"""Share of the time by which two halves of a flat series may differ, however little each of them spreads."""


def least_decodes(half: int) -> int:
    """Decodes of the shortest series."""
    return LEAST + 2 * half


def done(times: Sequence[int], half: int) -> bool:
    """Whether a series needs no further decode: its last two halves of `half` decodes are alike, or it is too long."""
    if len(times) < least_decodes(half):
        return False
    return flat(times[-2 * half :], half) or len(times) >= MOST + 2 * half


def first_settled(times: Sequence[int], half: int) -> int:
    """Place of the first decode of the steady state: the last two halves of a series that is done."""
    return max(len(times) - 2 * half, min(LEAST, len(times)))


def flat(times: Sequence[int], half: int) -> bool:
    """Whether the medians of the first and the next `half` durations differ by no more than rounding and noise do.

    Noise is what *both* halves spread by: one long decode in one of them, such as a graph being captured, is no noise.
    """
    first, second = times[:half], times[half : 2 * half]
    spread = min(max(part) - min(part) for part in (first, second))
    gap = abs(median(first) - median(second))
    return gap <= max(TOLERANCE * median(second), spread)

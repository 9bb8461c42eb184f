"""Before which blocks of a contrast all contexts are made anew: what was configured, and what a record has to show."""

from __future__ import annotations

ON_A_GPU = 3
"""How many times contexts are made where layers are offloaded: there two of one kind differ by 1 to 2 %."""


def usual(offloaded: bool) -> int:
    """How many times the contexts of all arms are made, where nobody says."""
    return ON_A_GPU if offloaded else 1


def renewed(blocks: int, contexts: int) -> set[int]:
    """Blocks before which all contexts are made anew, so that each set of them has as many."""
    return {round(place * blocks / contexts) for place in range(1, contexts)} - {0, blocks}


def anew(planned: int, blocks: int, contexts: int) -> set[int]:
    """The same over all passes of `planned` blocks each, until there are `blocks`: a pass begins with new ones.

    No block where `contexts` is 0: nobody has said what is usual.
    """
    if not contexts:
        return set()
    passes = range(0, blocks, planned)
    return {first + place for first in passes for place in renewed(planned, contexts)} | set(passes) - {0}

"""Guesses that cost nothing: what the target drew behind its first miss (Jacobi iteration).

It knows nothing about the text before the last round.
"""

from __future__ import annotations

from collections.abc import Sequence

from pti_loop.drafter import Drafter


class Opinions(Drafter):
    """The draws of the round before become the next window, filled up with the newest token."""

    def __init__(self) -> None:
        self._newest = 0
        self._rest: list[int] = []

    def begin(self, tokens: Sequence[int], n_prompt: int = 0) -> None:
        """Nothing has been drawn yet."""
        self._newest, self._rest = tokens[-1], []

    def propose(self, limit: int) -> list[int]:
        """The window, always full."""
        return (self._rest + [self._newest] * limit)[:limit]

    def observe(self, confirmed: Sequence[int], rejected: Sequence[int], drafted: int) -> None:
        """Keep what was drawn behind the miss."""
        self._newest, self._rest = confirmed[-1], list(rejected)

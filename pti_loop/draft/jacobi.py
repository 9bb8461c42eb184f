"""Guesses that cost nothing: what the target drew behind its first miss (Jacobi iteration).

It knows nothing about the text before the last round.
"""

from __future__ import annotations

from collections.abc import Sequence

from pti_loop.drafter import Drafter, Plain, Source, Target
from pti_loop.parameters import ROLLBACK, Parameter, Spec
from pti_loop.settings import Settings

SPEC = Spec(
    "jacobi", "guesses of the step before, window {window}",
    help="a window of guesses that the round before drew behind its first miss",
    parameters=(Parameter("window", 4, "tokens in a decode: the newest one and the guesses behind it", least=2,
                          shown=True, drafts=-1),
                Parameter("draws", "coupled", "coupled: what is drawn behind a miss shares the random number of the "
                          "draw that it will be compared with; independent: it has one of its own",
                          choices=("coupled", "independent"), warm=True), ROLLBACK),
)  # fmt: skip


class Opinions(Drafter):
    """The draws of the round before become the next window, filled up with the newest token."""

    def __init__(self, twin: int = 0) -> None:
        self.listens = twin
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


def length(settings: Settings) -> int:
    """The window without its confirmed token."""
    return int(settings.window) - 1


def make(target: Target) -> Source:
    """Needs nothing but the draws of the round before."""
    return Plain(lambda: Opinions(twin=0 if target.settings.draws == "coupled" else 1))

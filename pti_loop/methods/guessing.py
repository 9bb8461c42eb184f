"""Every method that guesses for one answer and verifies: one loop, and a drafter for each name."""

from __future__ import annotations

from collections.abc import Sequence

from pti_loop import speculative
from pti_loop.draft.sources import KINDS, Target
from pti_loop.drafter import Source
from pti_loop.loop import Decoder, Settings
from pti_loop.rollback import STRATEGIES


class Guessing:
    """A method whose guesses come from one kind of drafter."""

    def __init__(self, name: str) -> None:
        self.NAME = name
        self._kind = KINDS[name]

    def guesses(self, settings: Settings) -> bool:
        """Whether it proposes tokens that may be wrong."""
        return True

    def rolls_back(self, settings: Settings) -> bool:
        """Whether it forgets rejected tokens by a strategy of `pti_loop.rollback`."""
        return True

    def layout(self, settings: Settings) -> str:
        """What the rows of a decode are."""
        return "tokens"

    def sequences(self, settings: Settings) -> int:
        """Sequences that the context must hold."""
        return 1 + STRATEGIES[settings.rollback].spares

    def width(self, settings: Settings) -> int:
        """Most guesses of one decode, and the token before them."""
        return 1 + self._kind.length(settings)

    def needs(self, settings: Settings) -> dict:
        """Fields of the context's spec that this method sets."""
        return self._kind.needs(settings)

    def source(self, target: Target) -> Source:
        """What its drafters need, made once. Raises `Unsupported` when this model has no such drafter."""
        return self._kind.make(target)

    def run(self, decoder: Decoder, prompts: Sequence[Sequence[int]]) -> None:
        """Decode one prompt. Raises `Unsupported` when the memory cannot forget a rejected tail."""
        speculative.decode(decoder, prompts[:1], self._kind.length(decoder.settings))

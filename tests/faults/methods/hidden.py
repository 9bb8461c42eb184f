"""Prompt lookup that says it guesses nothing, so that neither sabotage nor oracle is asked of it."""

from __future__ import annotations

from collections.abc import Sequence

from pti_loop import speculative
from pti_loop.draft.lookup import Lookup
from pti_loop.drafter import Plain, Source, Target
from pti_loop.loop import Decoder
from pti_loop.method import Method
from pti_loop.parameters import ROLLBACK, Spec
from pti_loop.settings import Settings

SPEC = Spec("hidden", "guesses that nobody is told of", guesses=False, parameters=(ROLLBACK,))
DRAFT = 3


class Loop(Method):
    """The loop that guesses and verifies, as it should be."""

    def rolls_back(self, settings: Settings) -> bool:
        return True

    def sequences(self, settings: Settings) -> int:
        return 2

    def width(self, settings: Settings) -> int:
        return 1 + DRAFT

    def source(self, target: Target) -> Source:
        return Plain(Lookup)

    def run(self, decoder: Decoder, prompts: Sequence[Sequence[int]]) -> None:
        speculative.decode(decoder, prompts[:1], DRAFT)

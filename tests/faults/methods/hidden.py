"""Prompt lookup that says it guesses nothing, so that neither sabotage nor oracle is asked of it."""

from __future__ import annotations

from pti_loop.draft.lookup import Lookup
from pti_loop.drafter import Plain, Source, Target
from pti_loop.parameters import ROLLBACK, Spec
from tests.faults.speculating import Speculating

SPEC = Spec("hidden", "guesses that nobody is told of", guesses=False, parameters=(ROLLBACK,))


class Loop(Speculating):
    """The loop that guesses and verifies, as it should be."""

    draft = 3

    def source(self, target: Target) -> Source:
        return Plain(Lookup)

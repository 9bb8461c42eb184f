"""Lookup where the text repeats, the nextn head where it does not, and the head's veto in between.

A fresh n-gram match is taken when the head's own guess is its first token; a disagreement vetoes it, and the head's
guesses are used. A run of copies that were right to the end is escalated: it is believed without asking, which saves
the head's decode. Source: PTI's combination (2026-06-10). It knows how neither of the two guesses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pti_loop.draft.heads import Heads
from pti_loop.draft.lookup import Lookup, length, lookup_of
from pti_loop.draft.mtp import Mtp
from pti_loop.drafter import Drafter, Source, Target
from pti_loop.parameters import DRAWS, LOOKUP, ROLLBACK, Parameter, Spec, with_defaults

__all__ = ["SPEC", "LookupMtp", "length", "make"]

SPEC = Spec(
    "lookup_mtp", "lookup up to {draft}, or the nextn head",
    help="lookup where the text repeats, the nextn head where it does not; the head vetoes a fresh match",
    parameters=(*with_defaults(LOOKUP, gate=True),
                Parameter("head_draft", 1, "guesses that the head makes where lookup has none", least=1,
                          drafts=0),
                DRAWS, ROLLBACK), hidden=True,
)  # fmt: skip

ESCALATED = 1
"""Full accepts of a copy in a row behind which the head is not asked."""


class LookupMtp(Drafter):
    """Arbitration of the two. `head_draft` is how many guesses the head makes when it is used."""

    def __init__(self, lookup: Lookup, mtp: Mtp, head_draft: int) -> None:
        self._lookup, self._mtp, self._head_draft = lookup, mtp, head_draft
        self._run = 0
        self._copied = False

    def watch(self, start: int, tokens: Sequence[int], hidden: Callable[[], np.ndarray]) -> None:
        """The head's states."""
        self._mtp.watch(start, tokens, hidden)

    def begin(self, tokens: Sequence[int], n_prompt: int = 0) -> None:
        """Both begin."""
        self._run, self._copied = 0, False
        self._lookup.begin(tokens, n_prompt)
        self._mtp.begin(tokens, n_prompt)

    def propose(self, limit: int) -> list[int]:
        """The copy when it is escalated or the head agrees with its first token, else the head's guesses."""
        copy = self._lookup.propose(limit)
        if copy and self._run >= ESCALATED:
            self._copied = True
            return copy
        own = self._mtp.propose(min(self._head_draft, limit))
        self._copied = bool(copy) and copy[:1] == own[:1]
        return copy if self._copied else own

    def observe(self, confirmed: Sequence[int], rejected: Sequence[int], drafted: int) -> None:
        """Both take the text; the gate of lookup learns from its own guesses only."""
        self._lookup.observe(confirmed, rejected, drafted if self._copied else 0)
        self._mtp.observe(confirmed, rejected, drafted)
        right = self._copied and drafted > 0 and len(confirmed) - 1 == drafted
        self._run = self._run + 1 if right else 0


def make(target: Target) -> Source:
    """The head's context. Raises `Unsupported` on a model without a head that guesses ahead."""
    settings = target.settings
    return Heads(target, lambda head, speak, answer: LookupMtp(lookup_of(settings), Mtp(head, speak, answer),
                                                               settings.head_draft))  # fmt: skip

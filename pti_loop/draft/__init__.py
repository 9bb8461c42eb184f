"""Drafters: where the guesses of a speculative loop come from, one module each.

A drafter sees the tokens of one answer as they are confirmed, and proposes what may come next. It decides nothing: what
is emitted is the target's own draw, whatever was proposed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Drafter(Protocol):
    """Guesses for one answer. All times that it takes are charged to the round as drafting."""

    def begin(self, tokens: Sequence[int]) -> None:
        """The answer starts: prompt tokens, then the first token of the answer. Forgets everything before."""

    def propose(self, limit: int) -> list[int]:
        """At most `limit` tokens that may follow; none is a guess too."""

    def observe(self, confirmed: Sequence[int], rejected: Sequence[int], drafted: int) -> None:
        """What a round made of the guesses.

        `confirmed` are the tokens that were emitted, the last of them the target's own draw behind the accepted ones;
        `rejected` are the draws behind a wrong guess, which only hold if that guess had been right; `drafted` is the
        number of guesses.
        """

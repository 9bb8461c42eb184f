"""A drafter: where the guesses of a speculative loop come from.

A drafter sees the tokens of one answer as they are confirmed, and proposes what may come next. It decides nothing: what
is emitted is the target's own draw, whatever was proposed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pti_loop.engine import Context, Model
from pti_loop.sampling import Sampler
from pti_loop.settings import Settings


class Drafter:
    """Guesses for one answer. All times that it takes are charged to the round as drafting."""

    listens: int | None = None
    """Twin whose key draws what lies behind a wrong guess; None when the drafter has no use for it, so that nothing is
    drawn there."""

    def watch(self, start: int, tokens: Sequence[int], hidden: Callable[[], np.ndarray]) -> None:
        """The target decoded these tokens of this answer's sequence, in one decode, from position `start` on.

        `hidden` gives float32 (n_rows, n_embd), the hidden states of those rows, of which those behind a wrong guess
        mean nothing. Most drafters need none, and then nothing is read.
        """

    def begin(self, tokens: Sequence[int], n_prompt: int = 0) -> None:
        """The answer starts: prompt tokens, then the first token of the answer. Forgets every answer before."""
        raise NotImplementedError

    def propose(self, limit: int) -> list[int]:
        """At most `limit` tokens that may follow; none is a guess too."""
        raise NotImplementedError

    def observe(self, confirmed: Sequence[int], rejected: Sequence[int], drafted: int) -> None:
        """What a round made of the guesses.

        `confirmed` are the tokens that were emitted, the last of them the target's own draw behind the accepted ones;
        `rejected` are the draws behind a wrong guess, which only hold if that guess had been right, for a drafter that
        `listens`; `drafted` is the number of guesses.
        """
        raise NotImplementedError


class Source:
    """What the drafters of a method need beside the target's context: made once, before anything is timed."""

    remembers = False
    """Whether an engine that serves would keep such a drafter from one answer to the next, with what it has learnt."""

    watches = False
    """Whether its drafters have to see every row that the target decodes, those of the prompt too."""

    def keep(self, kept: bool) -> None:
        """From here on the drafter of an answer is the one of the answer before, or made for it alone, which is usual.

        Only asked of a source that `remembers`.
        """

    def drafter(self, answer: int, sampler: Sampler) -> Drafter:
        """A drafter for one answer; `sampler` draws as the target's does, for drafters that draw."""
        raise NotImplementedError

    def facts(self) -> dict[str, Any]:
        """What it is made of, for a record."""
        return {}

    def close(self) -> None:
        """Free models and contexts."""


@dataclass(frozen=True)
class Target:
    """What drafters are made for: a model, the context that will verify, and a sample of the text it will see."""

    model: Model
    ctx: Context
    settings: Settings
    sample: Sequence[int]
    answers: int = 1


class Plain(Source):
    """Drafters that need nothing."""

    def __init__(self, make: Callable[[], Drafter]) -> None:
        self._make = make

    def drafter(self, answer: int, sampler: Sampler) -> Drafter:
        """One for each answer."""
        return self._make()

"""Guesses of the model's own nextn head: it is fed with the token just emitted and the hidden state before it.

Row p of the head has token p and the trunk's hidden state of p - 1, and speaks about token p + 1. So a head guesses the
second token behind the last hidden state (t + 2), one decode before the trunk says it. Further guesses are made from
its own hidden states. Source of the pairing: llama.cpp's `common/speculative.cpp` (draft-mtp); `head_probe` looks if
a model's head keeps to it. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pti_loop.draft.draws import Speak
from pti_loop.draft.heads import Heads
from pti_loop.drafter import Drafter, Source, Target
from pti_loop.engine import EngineError, Head
from pti_loop.parameters import DRAFT, DRAWS, ROLLBACK, Spec, with_defaults

SPEC = Spec(
    "mtp", "the model's nextn head drafts up to {draft}",
    help="guesses of the model's own nextn head",
    parameters=(*with_defaults((DRAFT,), draft=1), DRAWS, ROLLBACK), hidden=True,
)  # fmt: skip

_STUCK = "the memory of the nextn head does not drop its own guesses"


class Mtp(Drafter):
    """Drafts in `sequence` of a head. `speak` chooses the token behind the head's last decode."""

    def __init__(self, head: Head, speak: Speak, sequence: int = 0) -> None:
        self._head, self._speak, self._sequence = head, speak, sequence
        self._text: list[int] = []
        self._n_prompt = 0
        self._held = 0
        self._states: dict[int, np.ndarray] = {}
        """Hidden state of the trunk by position, as far as the head has not been fed with it."""

    def watch(self, start: int, tokens: Sequence[int], hidden: Callable[[], np.ndarray]) -> None:
        """Keep the states; those of guesses that turn out wrong are written over before the head sees them."""
        if start == 0:
            self._states = {}
        for place, row in enumerate(hidden().copy(), start):
            self._states[place] = row

    def begin(self, tokens: Sequence[int], n_prompt: int = 0) -> None:
        """Feed the prompt. The newest token waits for the proposal."""
        self._text, self._n_prompt, self._held = list(tokens), n_prompt, 0
        self._head.drop(self._sequence)
        self._feed(len(tokens) - 1, last=False)

    def propose(self, limit: int) -> list[int]:
        """Feed what was confirmed, then guess `limit` tokens in a row."""
        if limit < 1:
            return []
        head, end = self._head, len(self._text)
        self._feed(end, last=True)
        guesses = [self._speak(head, end - self._n_prompt, self._text, [])]
        while len(guesses) < limit:
            state = head.hidden()[-1:].copy()
            head.decode_after([guesses[-1]], [end + len(guesses) - 1], [self._sequence], state, [0])
            guesses.append(self._speak(head, end - self._n_prompt + len(guesses), self._text, guesses))
        if limit > 1 and not head.rewind(self._sequence, end):
            raise EngineError(_STUCK)
        return guesses

    def observe(self, confirmed: Sequence[int], rejected: Sequence[int], drafted: int) -> None:
        """Take the confirmed tokens; their hidden states came with the decode that confirmed them."""
        self._text += confirmed
        for place in [place for place in self._states if place < self._held - 1]:
            del self._states[place]

    def propose_behind(self, guesses: Sequence[int]) -> int:
        """One guess behind guesses of somebody else's, whose hidden states were shown; none of them is kept."""
        end = len(self._text)
        self._text += guesses
        token = self.propose(1)[0]
        del self._text[end:]
        if self._held > end and not self._head.rewind(self._sequence, end):
            raise EngineError(_STUCK)
        self._held = min(self._held, end)
        return token

    def _feed(self, end: int, last: bool) -> None:
        """Give the head the text from what it holds up to `end`, with an output for the last where one is wanted."""
        size = self._head.spec.n_batch
        while self._held < end:
            places = range(self._held, min(self._held + size, end))
            rows = np.stack([self._before(place) for place in places])
            self._held = places[-1] + 1
            outputs = [len(places) - 1] if last and self._held == end else []
            piece = [self._text[place] for place in places]
            self._head.decode_after(piece, places, [self._sequence] * len(piece), rows, outputs)

    def _before(self, place: int) -> np.ndarray:
        """State before a token; the first has none, which is zeros."""
        if place == 0:
            return np.zeros_like(next(iter(self._states.values())))
        return self._states[place - 1]


def make(target: Target) -> Source:
    """The head's context. Raises `Unsupported` on a model without a head that guesses ahead."""
    return Heads(target, Mtp)

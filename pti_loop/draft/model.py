"""Guesses of a model that runs beside the target: a smaller one, the same one at fewer bits, or one with an adapter.

It keeps a context of its own in step with the confirmed text. It knows nothing about the target.
"""

from __future__ import annotations

from collections.abc import Sequence

from pti_loop.draft.draws import Speak
from pti_loop.drafter import Drafter
from pti_loop.engine import Context
from pti_loop.rollback import Checkpoint, Rewind


class ModelDrafter(Drafter):
    """Draws guesses one after the other in `sequence` of `ctx`.

    `rollback` forgets the guesses that were not confirmed, `speak` chooses the token behind the last decode.
    """

    def __init__(self, ctx: Context, rollback: Rewind | Checkpoint, speak: Speak,
                 sequence: int = 0) -> None:
        self._ctx, self._rollback, self._speak, self._sequence = ctx, rollback, speak, sequence
        self._text: list[int] = []
        self._n_prompt = 0
        self._held = 0
        self._guesses: list[int] = []
        """Guesses that the context has decoded, behind the text as it was then."""

    def begin(self, tokens: Sequence[int], n_prompt: int = 0) -> None:
        """Evaluate all but the newest token."""
        self._text, self._n_prompt, self._guesses = list(tokens), n_prompt, []
        self._ctx.drop(self._sequence)
        self._held = 0
        self._catch_up(len(tokens) - 1, last=False)

    def propose(self, limit: int) -> list[int]:
        """Take in what was confirmed, then draw `limit` tokens, each behind the ones before."""
        if limit < 1:
            return []
        text = self._text
        self._catch_up(len(text), last=True)
        guesses = [self._speak(self._ctx, len(text) - self._n_prompt, text, [])]
        if limit > 1:
            self._rollback.mark(self._held)
        while len(guesses) < limit:
            self._ctx.decode([guesses[-1]], [len(text) + len(guesses) - 1], [self._sequence], None)
            guesses.append(self._speak(self._ctx, len(text) - self._n_prompt + len(guesses), text, guesses))
        self._guesses = guesses[:-1]
        return guesses

    def observe(self, confirmed: Sequence[int], rejected: Sequence[int], drafted: int) -> None:
        """Forget the guesses that were not confirmed. The newest token waits for the next proposal."""
        before, decoded = len(self._text), self._guesses
        self._text += confirmed
        right = 0
        while right < min(len(decoded), len(confirmed)) and decoded[right] == confirmed[right]:
            right += 1
        if right < len(decoded):
            self._held = self._rollback.forget(before + right)
        else:
            self._held += right
        self._guesses = []

    def _catch_up(self, end: int, last: bool) -> None:
        """Decode the text from what is held up to `end`, with an output for its last token where one is wanted."""
        size = self._ctx.spec.n_batch
        while self._held < end:
            piece = self._text[self._held : min(self._held + size, end)]
            places = range(self._held, self._held + len(piece))
            self._held += len(piece)
            outputs = [len(piece) - 1] if last and self._held == end else []
            self._ctx.decode(piece, places, [self._sequence] * len(piece), outputs)

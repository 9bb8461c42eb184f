"""What every decode loop shares: the draws of a round, the source of guesses, and the trace that it writes to.

It knows nothing about which method is running, and nothing about benchmarks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pti_loop.drafter import Source
from pti_loop.engine import Context, EngineError, prefill
from pti_loop.ledger import Trace
from pti_loop.sampling import Choice, Sampler
from pti_loop.settings import Settings


class Guesses:
    """Where guesses come from: the method itself, the answer known before (oracle), or its opposite (sabotage)."""

    def __init__(self, control: str = "none", answers: Sequence[Sequence[int]] = ((),), n_vocab: int = 0,
                 banned: Sequence[int] = ()) -> None:
        self.control, self.answers = control, answers
        self._n_vocab, self._banned = n_vocab, set(banned)

    def replace(self, position: int, proposed: int, answer: int = 0) -> int:
        """Guess to use at `position` of an answer, where the method proposes `proposed`."""
        known = self.answers[answer] if answer < len(self.answers) else ()
        if self.control == "none" or position >= len(known):
            return proposed
        right = known[position]
        return right if self.control == "oracle" else self._wrong(right)

    def _wrong(self, right: int) -> int:
        wrong = (right + 1) % self._n_vocab
        while wrong in self._banned:
            wrong = (wrong + 1) % self._n_vocab
        return wrong


class Decoder:
    """One run of a loop on one context: decodes, draws and times, and writes to the trace."""

    def __init__(self, ctx: Context, sampler: Sampler, trace: Trace, settings: Settings,
                 guesses: Guesses | None = None, source: Source | None = None, lazy_ns: float = 0.0) -> None:
        self.ctx, self.sampler, self.trace, self.settings = ctx, sampler, trace, settings
        self.guesses = guesses or Guesses()
        self.source = source
        self.lazy_ns = lazy_ns
        """What the engine pays inside a decode for a copy that was made before it, as `state_probe` measured it."""
        self.clock = ctx.clock
        self._on_backend = ctx.spec.sampler == "backend" and sampler.temperature == 0

    def prefill(self, prompt: Sequence[int], sequence: int, answer: int = 0,
                watch: Callable[[int, int], None] | None = None) -> int:  # fmt: skip
        """Evaluate a prompt and emit the first token of the answer. Outside every timed window.

        `watch` hears (first position, length) of each piece that was evaluated.
        """
        check_reset(self.ctx, sequence)
        began = self.clock()
        self.trace.n_prompt_evaluated += prefill(self.ctx, prompt, sequence, watch)
        token = self.draws([(answer, 0, 0)])[0].token
        self.trace.prefill_ns += self.clock() - began
        self.trace.emit(answer, 0, token, "prefill")
        return token

    def draws(self, keys: Sequence[tuple[int, int, int]]) -> list[Choice]:
        """One draw for each output row of the last decode; a key is (answer, twin, position in the answer)."""
        if self.sampler.temperature == 0:
            return [Choice(token, float("nan")) for token in self.ctx.greedy()]
        return [self.sampler.draw(row, *key) for row, key in zip(self.ctx.logits(), keys, strict=True)]

    def single(self, token: int, position: int, sequence: int, key: tuple[int, int, int]) -> int:
        """Decode one token and draw the next."""
        self.ctx.decode([token], [position], [sequence], None)
        return self.draws([key])[0].token


def verify(guesses: Sequence[int], choices: Sequence[Choice], trace: Trace, first_position: int) -> tuple[int, int]:
    """Compare guess i+1 with draw i until the first miss. Returns (verified, accepted) and notes each comparison.

    `guesses[0]` is the confirmed token; `first_position` is where draw 0 belongs in the answer.
    """
    accepted = 0
    for depth in range(1, len(guesses)):
        choice = choices[depth - 1]
        trace.draw(depth, first_position + depth - 1, guesses[depth], choice.token, choice.collision)
        if guesses[depth] != choice.token:
            return depth, accepted
        accepted = depth
    return accepted, accepted


def check_reset(ctx: Context, sequence: int) -> None:
    """A run starts from nothing: a sequence that still holds tokens would fake a prefill."""
    if ctx.length(sequence) != 0:
        raise EngineError(f"sequence {sequence} still holds {ctx.length(sequence)} tokens before the prefill")

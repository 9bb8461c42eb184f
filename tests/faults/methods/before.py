"""The whole answer is decoded before the window opens; inside it the known tokens are checked, eight a decode.

`where=target` does it in the context that it verifies in, `where=beside` in one that it opened for itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pti_loop.drafter import Source, Target
from pti_loop.engine import Context, prefill
from pti_loop.loop import Decoder
from pti_loop.method import Method
from pti_loop.parameters import Parameter, Spec
from pti_loop.settings import Settings

SPEC = Spec("before", "decoded before it is timed", guesses=False,
            parameters=(Parameter("where", "target", "which context", choices=("target", "beside")),))  # fmt: skip
WIDTH = 8


class Own(Source):
    """A context of the method's own."""

    def __init__(self, target: Target) -> None:
        self.ctx = target.model.context(replace(target.ctx.spec, n_seq_max=1))

    def close(self) -> None:
        self.ctx.close()


def answer_of(decoder: Decoder, ctx: Context, prompt: Sequence[int]) -> list[int]:
    """Plain decoding in a context, unseen by any window."""
    ctx.clear()
    prefill(ctx, prompt, 0)
    inner = Decoder(ctx, decoder.sampler, decoder.trace, decoder.settings)
    known = [inner.draws([(0, 0, 0)])[0].token]
    for position in range(1, decoder.settings.n_predict):
        ctx.decode([known[-1]], [len(prompt) + position - 1], [0], None)
        known.append(inner.draws([(0, 0, position)])[0].token)
    return known


def play(decoder: Decoder, prompt: Sequence[int], known: Sequence[int]) -> None:
    """Say a known answer as if it were made now: every token is the model's own draw, `WIDTH` of them a decode."""
    trace, clock, n_predict = decoder.trace, decoder.clock, decoder.settings.n_predict
    decoder.ctx.clear()
    decoder.prefill(prompt, 0)
    trace.open_window()
    for first in range(1, n_predict, WIDTH):
        began = clock()
        rows = known[first - 1 : min(first + WIDTH, n_predict) - 1]
        start = len(prompt) + first - 1
        decoder.ctx.decode(rows, range(start, start + len(rows)), [0] * len(rows), None)
        decoded = clock()
        for place, choice in enumerate(decoder.draws([(0, 0, first + place) for place in range(len(rows))])):
            trace.emit(0, first + place, choice.token, "verified")
        trace.round("steady", len(rows), (0, decoded - began, 0, 0, clock() - began), (0, 0, 0))
    trace.close_window()


class Loop(Method):
    """Knows what it will say."""

    def width(self, settings: Settings) -> int:
        return WIDTH

    def needs(self, settings: Settings) -> Mapping[str, Any]:
        return {}

    def source(self, target: Target) -> Source | None:
        return Own(target) if target.settings.where == "beside" else None

    def run(self, decoder: Decoder, prompts: Sequence[Sequence[int]]) -> None:
        ctx = decoder.source.ctx if isinstance(decoder.source, Own) else decoder.ctx
        play(decoder, prompts[0], answer_of(decoder, ctx, prompts[0]))

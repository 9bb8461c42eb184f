"""Plain decoding, one token a step: the baseline. Several prompts are decoded one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pti_loop.loop import Decoder
from pti_loop.method import Method
from pti_loop.parameters import Spec

SPEC = Spec("autoregressive", "plain decoding", help="one token a step", guesses=False)


class Loop(Method):
    """The baseline."""

    in_turn = True

    def rounds(self, decoder: Decoder, prompts: Sequence[Sequence[int]]) -> Iterator[None]:
        """Decode every prompt alone, each in a cleared context with a timed window of its own."""
        for answer, prompt in enumerate(prompts):
            decoder.ctx.clear()
            yield from _one(decoder, answer, prompt)


def _one(decoder: Decoder, answer: int, prompt: Sequence[int]) -> Iterator[None]:
    trace, clock, ctx = decoder.trace, decoder.clock, decoder.ctx
    text = [*prompt, decoder.prefill(prompt, 0, answer)]
    yield
    trace.open_window()
    for position in range(1, decoder.settings.n_predict):
        began = clock()
        ctx.decode(text[-1:], [len(prompt) + position - 1], [0], None)
        decoded = clock()
        token = decoder.draws([(answer, 0, position)], [text])[0].token
        sampled = clock()
        trace.emit(answer, position, token, "verified")
        text.append(token)
        trace.round("steady", 1, (0, decoded - began, sampled - decoded, 0, clock() - began), (0, 0, 0))
        yield
        if token in decoder.ends:
            break
    trace.close_window()

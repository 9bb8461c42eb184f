"""Plain decoding of one answer, each token of which is said under four stream ids."""

from __future__ import annotations

from collections.abc import Sequence

from pti_loop.loop import Decoder
from pti_loop.method import Method
from pti_loop.parameters import Spec

SPEC = Spec("streams", "one answer under four names", guesses=False)
NAMES = range(4)


class Loop(Method):
    """One sequence, one decode a token."""

    def run(self, decoder: Decoder, prompts: Sequence[Sequence[int]]) -> None:
        trace, clock, prompt = decoder.trace, decoder.clock, prompts[0]
        decoder.ctx.clear()
        token = decoder.prefill(prompt, 0)
        for name in NAMES[1:]:
            trace.emit(name, 0, token, "prefill")
        trace.open_window()
        for position in range(1, decoder.settings.n_predict):
            began = clock()
            token = decoder_step(decoder, token, len(prompt) + position - 1, position)
            decoded = clock()
            for name in NAMES:
                trace.emit(name, position, token, "verified")
            trace.round("steady", 1, (0, decoded - began, 0, 0, clock() - began), (0, 0, 0))
        trace.close_window()


def decoder_step(decoder: Decoder, token: int, place: int, position: int) -> int:
    """Decode one token and draw the next."""
    decoder.ctx.decode([token], [place], [0], None)
    return decoder.draws([(0, 0, position)])[0].token

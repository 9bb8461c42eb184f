"""Says half of the answer before the window opens, and the rest inside."""

from __future__ import annotations

from collections.abc import Sequence

from pti_loop.loop import Decoder
from pti_loop.method import Method
from pti_loop.parameters import Spec
from tests.faults.methods.streams import decoder_step

SPEC = Spec("early", "half of it comes before", guesses=False)


class Loop(Method):
    """Plain decoding with the window in the wrong place."""

    def run(self, decoder: Decoder, prompts: Sequence[Sequence[int]]) -> None:
        trace, clock, n_predict = decoder.trace, decoder.clock, decoder.settings.n_predict
        decoder.ctx.clear()
        token = decoder.prefill(prompts[0], 0)
        for position in range(1, n_predict):
            if position == n_predict // 2:
                trace.open_window()
            began = clock()
            token = decoder_step(decoder, token, len(prompts[0]) + position - 1, position)
            trace.emit(0, position, token, "verified")
            trace.round("steady", 1, (0, clock() - began, 0, 0, clock() - began), (0, 0, 0))
        trace.close_window()

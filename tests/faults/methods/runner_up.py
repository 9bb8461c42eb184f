"""Says the second most likely token at every other position, at plain decoding's own pace."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pti_loop.loop import Decoder
from pti_loop.method import Method
from pti_loop.parameters import Spec
from tests.faults.methods.streams import decoder_step

SPEC = Spec("runner_up", "the second most likely token", guesses=False)


class Loop(Method):
    """One sequence, one decode a token."""

    def run(self, decoder: Decoder, prompts: Sequence[Sequence[int]]) -> None:
        trace, clock, prompt = decoder.trace, decoder.clock, prompts[0]
        decoder.ctx.clear()
        token = decoder.prefill(prompt, 0)
        trace.open_window()
        for position in range(1, decoder.settings.n_predict):
            began = clock()
            drawn = decoder_step(decoder, token, len(prompt) + position - 1, position)
            second = int(np.argsort(decoder.ctx.logits()[0])[-2])
            token = second if position % 2 else drawn
            decoded = clock()
            trace.emit(0, position, token, "verified")
            trace.round("steady", 1, (0, decoded - began, 0, 0, clock() - began), (0, 0, 0))
        trace.close_window()

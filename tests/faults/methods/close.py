"""Says the second most likely token at an answer's first close call, as if a wider decode rounded otherwise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pti_loop.loop import Decoder
from pti_loop.method import Method
from pti_loop.parameters import Spec
from pti_loop.settings import Settings
from tests.faults.methods.streams import decoder_step

SPEC = Spec("close", "the runner-up where it is close", guesses=False)
CLOSE = 0.3
"""Logits between the two likeliest tokens."""


class Loop(Method):
    """Declared as two rows wide, which moves logits on an engine that rounds by width."""

    def width(self, settings: Settings) -> int:
        return 2

    def run(self, decoder: Decoder, prompts: Sequence[Sequence[int]]) -> None:
        trace, clock, prompt, said = decoder.trace, decoder.clock, prompts[0], False
        decoder.ctx.clear()
        token = decoder.prefill(prompt, 0)
        trace.open_window()
        for position in range(1, decoder.settings.n_predict):
            began = clock()
            token = decoder_step(decoder, token, len(prompt) + position - 1, position)
            row = decoder.ctx.logits()[0]
            order = np.argsort(row)[::-1]
            if not said and float(row[order[0]]) - float(row[order[1]]) < CLOSE:
                token, said = int(order[1]), True
            decoded = clock()
            trace.emit(0, position, token, "verified")
            trace.round("steady", 1, (0, decoded - began, 0, 0, clock() - began), (0, 0, 0))
        trace.close_window()

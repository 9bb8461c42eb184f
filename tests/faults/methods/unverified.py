"""One decode a round, which gives one token, and three more that are made up and marked as unverified."""

from __future__ import annotations

from collections.abc import Sequence

from pti_loop.loop import Decoder
from pti_loop.method import Method
from pti_loop.parameters import Parameter, Spec

SPEC = Spec("unverified", "three made up tokens a round", guesses=False,
            parameters=(Parameter("source", "unverified", "how they are marked",
                                  choices=("unverified", "verified")),))  # fmt: skip
MADE_UP = 3


class Loop(Method):
    """The model itself hears its own tokens only."""

    def run(self, decoder: Decoder, prompts: Sequence[Sequence[int]]) -> None:
        trace, clock, place = decoder.trace, decoder.clock, len(prompts[0])
        decoder.ctx.clear()
        token = decoder.prefill(prompts[0], 0)
        trace.open_window()
        for position in range(1, decoder.settings.n_predict, 1 + MADE_UP):
            began = clock()
            decoder.ctx.decode([token], [place], [0], None)
            decoded, place = clock(), place + 1
            token = decoder.draws([(0, 0, position)])[0].token
            trace.emit(0, position, token, "verified")
            for made_up in range(position + 1, min(position + 1 + MADE_UP, decoder.settings.n_predict)):
                trace.emit(0, made_up, 7, decoder.settings.source)
            trace.round("steady", 1, (0, decoded - began, 0, 0, clock() - began), (0, 0, 0))
        trace.close_window()

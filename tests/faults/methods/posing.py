"""Plain decoding that declares or tells something of itself which would excuse what it does. `how` says which.

`short` declares that it ends after so many rounds and ends after a third of them; `redecoded` tells four decodes as one
round with three decodes beside it.
"""

from __future__ import annotations

from collections.abc import Sequence

from pti_loop.loop import Decoder
from pti_loop.method import Method
from pti_loop.parameters import Parameter, Spec, Variant
from pti_loop.settings import Settings
from tests.faults.methods.streams import decoder_step

SPEC = Spec(
    "posing", "excused by what it says", guesses=False,
    parameters=(Parameter("how", "short", "which", choices=("short", "redecoded")),),
    variants=(Variant({"how": "short"}, by_rounds=True),),
)  # fmt: skip


class Loop(Method):
    """One sequence, one decode a token."""

    def width(self, settings: Settings) -> int:
        return 4

    def run(self, decoder: Decoder, prompts: Sequence[Sequence[int]]) -> None:
        how, prompt, trace = decoder.settings.how, prompts[0], decoder.trace
        n_predict = decoder.settings.n_predict
        decoder.ctx.clear()
        token = decoder.prefill(prompt, 0)
        trace.open_window()
        spent = 0
        for position in range(1, n_predict // 3 if how == "short" else n_predict):
            began = decoder.clock()
            token = decoder_step(decoder, token, len(prompt) + position - 1, position)
            trace.emit(0, position, token, "verified")
            spent += decoder.clock() - began
            if how == "redecoded" and position % 4 and position < n_predict - 1:
                continue
            beside = (position - 1) % 4 if how == "redecoded" else 0
            trace.round("steady", 1, (0, spent, 0, 0, spent), (0, 0, 0),
                        redecoded=beside)  # fmt: skip
            spent = 0
        trace.close_window()

"""Several answers by its declaration, and less work than they take. `how` says what is left out.

`first` decodes the first answer alone and says it for each of them; `apart` decodes them one after the other and tells
that as one decode of all.
"""

from __future__ import annotations

from collections.abc import Sequence

from pti_loop.loop import Decoder
from pti_loop.method import Method
from pti_loop.parameters import Parameter, Spec
from pti_loop.settings import Settings

SPEC = Spec(
    "crowd", "{streams} answers in one batch", guesses=False, answers="independent", layout="sequences",
    parameters=(Parameter("how", "first", "what is left out", choices=("first", "apart")),),
)  # fmt: skip


class Loop(Method):
    """One sequence an answer."""

    def sequences(self, settings: Settings) -> int:
        return settings.streams

    def width(self, settings: Settings) -> int:
        return settings.streams

    def run(self, decoder: Decoder, prompts: Sequence[Sequence[int]]) -> None:
        trace, how, count = decoder.trace, decoder.settings.how, len(prompts)
        decoder.ctx.clear()
        tokens = [decoder.prefill(prompt, stream, stream) for stream, prompt in enumerate(prompts)]
        trace.open_window()
        for position in range(1, decoder.settings.n_predict):
            began = decoder.clock()
            places = [len(prompt) + position - 1 for prompt in prompts]
            for stream in range(1 if how == "first" else count):
                decoder.ctx.decode([tokens[stream]], [places[stream]], [stream], None)
                tokens[stream] = decoder.draws([(0, stream, position)])[0].token
            for stream in range(count):
                trace.emit(stream, position, tokens[0 if how == "first" else stream], "verified")
            spent = decoder.clock() - began
            trace.round("steady", count, (0, spent, 0, 0, spent), (0, 0, 0))
        trace.close_window()

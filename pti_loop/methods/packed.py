"""N different prompts in one batch: independent answers that share each reading of the weights."""

from __future__ import annotations

from collections.abc import Sequence

from pti_loop.loop import Decoder, Settings

NAME = "packed"
GUESSES = False
LAYOUT = "sequences"


def sequences(settings: Settings) -> int:
    """Sequences that the context must hold."""
    return settings.streams


def width(settings: Settings) -> int:
    """Tokens in one decode."""
    return settings.streams


def run(decoder: Decoder, prompts: Sequence[Sequence[int]]) -> None:
    """Decode one token of every prompt in each round. All answers have the same length."""
    trace, clock, ctx = decoder.trace, decoder.clock, decoder.ctx
    ctx.clear()
    tokens = [decoder.prefill(prompt, answer, answer) for answer, prompt in enumerate(prompts)]
    rows = range(len(prompts))
    trace.open_window()
    for position in range(1, decoder.settings.n_predict):
        began = clock()
        ctx.decode(tokens, [len(prompt) + position - 1 for prompt in prompts], rows, None)
        decoded = clock()
        tokens = [choice.token for choice in decoder.draws([(answer, 0, position) for answer in rows])]
        sampled = clock()
        for answer, token in enumerate(tokens):
            trace.emit(answer, position, token, "verified")
        trace.round("steady", len(tokens), (0, decoded - began, sampled - decoded, 0, clock() - began), (0, 0, 0))
    trace.close_window()

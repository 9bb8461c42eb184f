"""Plain decoding, one token a step: the baseline. Several prompts are decoded one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from pti_loop.draft.sources import Target
from pti_loop.loop import Decoder, Settings

NAME = "autoregressive"


def guesses(settings: Settings) -> bool:
    """Whether it proposes tokens that may be wrong."""
    return False


def rolls_back(settings: Settings) -> bool:
    """Whether it forgets rejected tokens by a strategy of `pti_loop.rollback`."""
    return False


def layout(settings: Settings) -> str:
    """What the rows of a decode are."""
    return "tokens"


def sequences(settings: Settings) -> int:
    """Sequences that the context must hold."""
    return 1


def width(settings: Settings) -> int:
    """Tokens in one decode."""
    return 1


def needs(settings: Settings) -> dict:
    """Further fields of the context's spec."""
    return {}


def source(target: Target) -> None:
    """There is no drafter."""


def run(decoder: Decoder, prompts: Sequence[Sequence[int]]) -> None:
    """Decode every prompt alone, each in a cleared context with a timed window of its own."""
    for answer, prompt in enumerate(prompts):
        decoder.ctx.clear()
        _one(decoder, answer, prompt)


def _one(decoder: Decoder, answer: int, prompt: Sequence[int]) -> None:
    trace, clock, ctx = decoder.trace, decoder.clock, decoder.ctx
    token = decoder.prefill(prompt, 0, answer)
    trace.open_window()
    for position in range(1, decoder.settings.n_predict):
        began = clock()
        ctx.decode([token], [len(prompt) + position - 1], [0], None)
        decoded = clock()
        token = decoder.draws([(answer, 0, position)])[0].token
        sampled = clock()
        trace.emit(answer, position, token, "verified")
        trace.round("steady", 1, (0, decoded - began, sampled - decoded, 0, clock() - began), (0, 0, 0))
    trace.close_window()

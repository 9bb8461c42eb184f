"""N different prompts in one batch: independent answers that share each reading of the weights.

With a drafter every answer also has guesses of its own, and one decode verifies those of all answers.
"""

from __future__ import annotations

from collections.abc import Sequence

from pti_loop import speculative
from pti_loop.draft.sources import KINDS, Target
from pti_loop.drafter import Source
from pti_loop.loop import Decoder, Settings
from pti_loop.rollback import STRATEGIES

NAME = "packed"


def guesses(settings: Settings) -> bool:
    """Whether it proposes tokens that may be wrong."""
    return settings.drafter != "none"


def rolls_back(settings: Settings) -> bool:
    """Whether it forgets rejected tokens by a strategy of `pti_loop.rollback`."""
    return settings.drafter != "none"


def layout(settings: Settings) -> str:
    """What the rows of a decode are; with guesses, windows of several sequences."""
    return "tokens" if settings.drafter != "none" else "sequences"


def sequences(settings: Settings) -> int:
    """Sequences that the context must hold."""
    spares = STRATEGIES[settings.rollback].spares if settings.drafter != "none" else 0
    return settings.streams * (1 + spares)


def width(settings: Settings) -> int:
    """Most tokens in one decode."""
    return settings.streams * (1 + length(settings))


def length(settings: Settings) -> int:
    """Most guesses of one answer and round."""
    return KINDS[settings.drafter].length(settings) if settings.drafter != "none" else 0


def needs(settings: Settings) -> dict:
    """Further fields of the context's spec."""
    return KINDS[settings.drafter].needs(settings) if settings.drafter != "none" else {}


def source(target: Target) -> Source | None:
    """What the drafters need, one for each answer."""
    kind = target.settings.drafter
    return None if kind == "none" else KINDS[kind].make(target)


def run(decoder: Decoder, prompts: Sequence[Sequence[int]]) -> None:
    """Decode every prompt. All answers have the same length."""
    if decoder.settings.drafter != "none":
        speculative.decode(decoder, prompts, length(decoder.settings))
    else:
        _one_token_each(decoder, prompts)


def _one_token_each(decoder: Decoder, prompts: Sequence[Sequence[int]]) -> None:
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

"""What a drafting model says: the choice behind its last decode, drawn with the key of the token it is a guess at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from pti_loop.sampling import Sampler


class Speaks(Protocol):
    """A context whose last decode had one output row."""

    def logits(self) -> np.ndarray: ...

    def greedy(self) -> list[int]: ...


Speak = Callable[[Speaks, int, Sequence[int], Sequence[int]], int]
"""(context, position in the answer, confirmed text, guesses behind it) -> token."""


def speaker(sampler: Sampler, answer: int, draws: str) -> Speak:
    """A function that chooses the token behind the last decode.

    `greedy` guesses the most likely token, as llama.cpp drafts; `coupled` shares the random number of the draw that it
    predicts, and so it is right as often as the two distributions overlap in order of token ids; `independent` has a
    random number of its own.
    """
    twin = 0 if draws == "coupled" else 1
    if sampler.temperature == 0 or draws == "greedy":
        return lambda ctx, position, text, guesses: ctx.greedy()[-1]
    if not sampler.reads_text:
        return lambda ctx, position, text, guesses: sampler.draw(ctx.logits()[-1], answer, twin, position).token
    return lambda ctx, position, text, guesses: sampler.draw(
        ctx.logits()[-1], answer, twin, position, [*text, *guesses]).token  # fmt: skip

"""What a drafting model says: the choice behind its last decode, drawn with the key of the token it is a guess at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from pti_loop.sampling import Sampler


class Speaks(Protocol):
    """A context whose last decode had one output row."""

    def logits(self) -> np.ndarray: ...

    def greedy(self) -> list[int]: ...


def speaker(sampler: Sampler, answer: int, draws: str) -> Callable[[Speaks, int], int]:
    """A function (context, position in the answer) -> token.

    `greedy` guesses the most likely token, as llama.cpp drafts; `coupled` shares the random number of the draw that it
    predicts, and so it is right as often as the two distributions overlap in order of token ids; `independent` has a
    random number of its own.
    """
    twin = 0 if draws == "coupled" else 1
    if sampler.temperature == 0 or draws == "greedy":
        return lambda ctx, position: ctx.greedy()[-1]
    return lambda ctx, position: sampler.draw(ctx.logits()[-1], answer, twin, position).token

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


def speaker(sampler: Sampler, answer: int, twin: int) -> Callable[[Speaks, int], int]:
    """A function (context, position in the answer) -> token.

    With twin 0 a guess shares the random number of the draw that it predicts, and so it is right as often as the two
    distributions overlap in order of token ids; with another twin it has a number of its own.
    """
    if sampler.temperature == 0:
        return lambda ctx, position: ctx.greedy()[-1]
    return lambda ctx, position: sampler.draw(ctx.logits()[-1], answer, twin, position).token

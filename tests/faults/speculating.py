"""The loop that guesses and verifies one answer, as it should be: what cheating methods here change a part of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from pti_loop import speculative
from pti_loop.engine import Context, prefill
from pti_loop.loop import Decoder
from pti_loop.method import Method
from pti_loop.settings import Settings


def likeliest(context: Context, prompt: Sequence[int], count: int) -> list[int]:
    """What plain decoding at temperature 0 says behind a prompt, `count` tokens of it."""
    context.clear()
    prefill(context, prompt, 0)
    known = [int(np.argmax(context.logits()[-1]))]
    while len(known) < count:
        context.decode([known[-1]], [len(prompt) + len(known) - 1], [0], None)
        known.append(int(np.argmax(context.logits()[0])))
    return known


class Speculating(Method):
    """A method has a `source` of its own."""

    draft: ClassVar[int]
    """Guesses of a round, at most."""

    def rolls_back(self, settings: Settings) -> bool:
        return True

    def sequences(self, settings: Settings) -> int:
        return 2

    def width(self, settings: Settings) -> int:
        return 1 + self.draft

    def run(self, decoder: Decoder, prompts: Sequence[Sequence[int]]) -> None:
        speculative.decode(decoder, prompts[:1], self.draft)

"""Guessing from the step before: a window of the model's last opinions, verified in one decode of one sequence.

This is what a guess costs nothing looks like: the tokens that the model proposed behind its first miss become the next
window (Jacobi iteration of the greedy fixed point, Song et al. 2021, Santilli et al. 2023). `streams` is the window.
"""

from __future__ import annotations

from collections.abc import Sequence

from pti_loop import speculative
from pti_loop.draft.opinions import Opinions
from pti_loop.loop import Decoder, Settings

NAME = "jacobi"
GUESSES = True
LAYOUT = "tokens"


def sequences(settings: Settings) -> int:
    """Sequences that the context must hold."""
    return 1


def width(settings: Settings) -> int:
    """Tokens in one decode."""
    return settings.streams


def run(decoder: Decoder, prompts: Sequence[Sequence[int]]) -> None:
    """Decode one prompt. Raises `Unsupported` when the memory cannot forget the rejected tail."""
    speculative.decode(decoder, prompts[0], Opinions(), decoder.settings.streams - 1)

"""Prompt lookup: guesses copied from the text before, verified in one decode. Free to make, worth what repeats."""

from __future__ import annotations

from collections.abc import Sequence

from pti_loop import speculative
from pti_loop.draft.lookup import LENGTHS, Lookup
from pti_loop.loop import Decoder, Settings

NAME = "lookup"
GUESSES = True
LAYOUT = "tokens"


def sequences(settings: Settings) -> int:
    """Sequences that the context must hold."""
    return 1


def width(settings: Settings) -> int:
    """Most tokens in one decode."""
    return 1 + (LENGTHS[-1] if settings.adaptive else settings.draft)


def run(decoder: Decoder, prompts: Sequence[Sequence[int]]) -> None:
    """Decode one prompt. Raises `Unsupported` when the memory cannot forget the rejected tail."""
    settings = decoder.settings
    drafter = Lookup(longest=settings.ngram, shortest=min(settings.ngram, 2), gate=settings.gate,
                     adaptive=settings.adaptive)  # fmt: skip
    speculative.decode(decoder, prompts[0], drafter, width(settings) - 1)

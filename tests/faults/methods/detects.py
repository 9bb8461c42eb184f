"""Cheats unless it finds that its guesses are planted: then it is prompt lookup as it should be.

It looks for whatever may tell it which arm it is, and in the end it offers a guess and sees whether it comes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pti_loop.draft.lookup import Lookup
from pti_loop.drafter import Plain, Source, Target
from pti_loop.loop import Decoder
from pti_loop.parameters import ROLLBACK, Spec
from tests.faults.methods.before import WIDTH, answer_of, play
from tests.faults.speculating import Speculating

SPEC = Spec("detects", "sound while it is looked at", parameters=(ROLLBACK,))


class Loop(Speculating):
    """`seen` holds what a method can see of each run, and whether it found itself controlled."""

    draft = WIDTH - 1
    seen: ClassVar[list[tuple[str, bool]]] = []

    def source(self, target: Target) -> Source:
        return Plain(Lookup)

    def run(self, decoder: Decoder, prompts: Sequence[Sequence[int]]) -> None:
        controlled = any(decoder.guesses.replace(1, token) != token for token in range(2))
        self.seen.append((visible(decoder), controlled))
        if controlled:
            super().run(decoder, prompts)
        else:
            play(decoder, prompts[0], answer_of(decoder, decoder.ctx, prompts[0]))


def visible(decoder: Decoder) -> str:
    """Every public attribute that is no function or time, of the decoder and of what hangs on it."""
    found = []
    for name, part in {"decoder": decoder, "guesses": decoder.guesses, "trace": decoder.trace, "ctx": decoder.ctx,
                       "sampler": decoder.sampler, "settings": decoder.settings}.items():  # fmt: skip
        for key in dir(part):
            value = None if key.startswith("_") or key in ("begin_ns", "seed") else getattr(part, key)
            found.append(f"{name}.{key}={value}" if isinstance(value, (int, float, str)) else f"{name}.{key}")
        found.append(type(part).__name__)
    return " ".join(found)

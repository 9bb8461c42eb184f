"""The ways of decoding, and the one list that names them.

A method is a module or an object. It has NAME and, of the settings, `guesses` (whether it proposes tokens that may be
wrong), `rolls_back`, `layout` (whether the rows of a decode are one token of several `sequences`, or `tokens` of one),
`sequences` and `width` of its context, and `needs`, further fields of the context's spec. `source(target)` makes what
its drafters need, None when it has none. `run(decoder, prompts)` decodes: `packed` as many prompts as `streams`, the
others one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from pti_loop.draft.sources import KINDS, Target
from pti_loop.drafter import Source
from pti_loop.engine import ContextSpec
from pti_loop.loop import Decoder, Settings
from pti_loop.methods import autoregressive, packed, stagger
from pti_loop.methods.guessing import Guessing


class Method(Protocol):
    """What a method's module, or object, has."""

    NAME: str

    def guesses(self, settings: Settings) -> bool: ...

    def rolls_back(self, settings: Settings) -> bool: ...

    def layout(self, settings: Settings) -> str: ...

    def sequences(self, settings: Settings) -> int: ...

    def width(self, settings: Settings) -> int: ...

    def needs(self, settings: Settings) -> dict: ...

    def source(self, target: Target) -> Source | None: ...

    def run(self, decoder: Decoder, prompts) -> None: ...


METHODS: dict[str, Method] = {
    method.NAME: method for method in (autoregressive, stagger, packed, *(Guessing(name) for name in KINDS))
}


def fit(method: Method, spec: ContextSpec, settings: Settings) -> ContextSpec:
    """The spec with what a method needs of its context."""
    sequences, width = method.sequences(settings), method.width(settings)
    return replace(spec, n_seq_max=sequences, n_outputs=max(sequences, width), **method.needs(settings))

"""Every method that guesses for one answer and verifies: one loop, and a drafter for each name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from pti_loop import speculative
from pti_loop.drafter import Source, Target
from pti_loop.loop import Decoder
from pti_loop.method import Method
from pti_loop.parameters import Spec, module_of
from pti_loop.rollback import STRATEGIES
from pti_loop.settings import Settings


@cache
def drafter(name: str) -> Drafts:
    """The drafter of a name. Raises KeyError for an unknown one."""
    return Drafts(import_module(module_of(name)))


class Drafts:
    """A drafter's file: its declaration, how long it drafts, whether it reads hidden states, and what makes it."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self.spec: Spec = module.SPEC

    def length(self, settings: Settings) -> int:
        """Most guesses of a round: what the file's `length` says, else the parameter `draft`."""
        own = getattr(self._module, "length", None)
        return int(own(settings) if own else settings.draft)

    def needs(self, settings: Settings) -> dict[str, Any]:
        """Fields of the target's spec: a state for every guess that may be forgotten, and hidden states."""
        snapshots = self.length(settings) if STRATEGIES[settings.rollback].snapshots else 0
        own = getattr(self._module, "hidden", None)
        return {"snapshots": snapshots, "hidden": bool(own(settings)) if own else self.spec.hidden}

    def strategies(self, settings: Settings) -> tuple[str, ...]:
        """Ways of forgetting that its drafters can live with: what the file's `strategies` says, else all."""
        own = getattr(self._module, "strategies", None)
        return tuple(own(settings)) if own else tuple(STRATEGIES)

    def make(self, target: Target) -> Source:
        """The source of its drafters. Raises `Unsupported` or `EngineError` when this model has no such drafter."""
        made = self._module.make(target)
        assert isinstance(made, Source)
        return made


class Guessing(Method):
    """A method whose guesses come from one kind of drafter."""

    def rolls_back(self, settings: Settings) -> bool:
        """It does."""
        return True

    def strategies(self, settings: Settings) -> tuple[str, ...]:
        """The drafter's."""
        return drafter(self.name).strategies(settings)

    def sequences(self, settings: Settings) -> int:
        """The answer's, and what a rollback keeps."""
        return 1 + STRATEGIES[settings.rollback].spares

    def width(self, settings: Settings) -> int:
        """Most guesses of one decode, and the token before them."""
        return 1 + drafter(self.name).length(settings)

    def needs(self, settings: Settings) -> Mapping[str, Any]:
        """What the drafter needs of the target."""
        return drafter(self.name).needs(settings)

    def source(self, target: Target) -> Source:
        """What its drafters need, made once. Raises `Unsupported` when this model has no such drafter."""
        return drafter(self.name).make(target)

    def rounds(self, decoder: Decoder, prompts: Sequence[Sequence[int]]) -> Iterator[None]:
        """Decode one prompt. Raises `Unsupported` when the memory cannot forget a rejected tail."""
        return speculative.rounds(decoder, prompts[:1], drafter(self.name).length(decoder.settings))

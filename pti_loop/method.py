"""What a method is to whoever runs it: how large its context must be, what drafts for it, and its loop.

A file of `pti_loop/methods` holds a declaration `SPEC` and a class `Loop` made from `Method`. It knows none of them by
name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pti_loop.parameters import Declaration, Spec, declare
from pti_loop.rollback import STRATEGIES

if TYPE_CHECKING:
    from pti_loop.drafter import Source, Target
    from pti_loop.engine import ContextSpec
    from pti_loop.loop import Decoder
    from pti_loop.settings import Settings


class Method:
    """A way of decoding. What this class says of the context holds for one row of each of `streams` sequences."""

    in_turn = False
    """Whether it takes several prompts and decodes one after the other, each with a timed window of its own."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    @property
    def name(self) -> str:
        """As it is declared."""
        return self.spec.name

    def declaration(self, settings: Settings) -> Declaration:
        """What it declares with these settings."""
        return declare(self.name, settings.parameters, settings.streams)

    def guesses(self, settings: Settings) -> bool:
        """Whether it proposes tokens that may be wrong."""
        return self.declaration(settings).guesses

    def layout(self, settings: Settings) -> str:
        """What the rows of a decode are: `tokens` of one sequence, or one token of several `sequences`."""
        return self.declaration(settings).layout

    def answers(self, settings: Settings) -> int:
        """Answers that one run decodes at once."""
        return settings.streams if self.spec.answers == "independent" else 1

    def rolls_back(self, settings: Settings) -> bool:
        """Whether it forgets rejected tokens by a strategy of `pti_loop.rollback`."""
        return False

    def strategies(self, settings: Settings) -> tuple[str, ...]:
        """Strategies of `pti_loop.rollback` that it can live with."""
        return tuple(STRATEGIES)

    def sequences(self, settings: Settings) -> int:
        """Sequences that the context must hold."""
        return settings.streams

    def width(self, settings: Settings) -> int:
        """Most tokens in one decode."""
        return settings.streams

    def needs(self, settings: Settings) -> Mapping[str, Any]:
        """Further fields of the context's spec."""
        return {}

    def uses_head(self, settings: Settings) -> bool:
        """Whether the model's nextn head drafts, whose weights are else left on disk: it alone reads hidden states."""
        return bool(self.needs(replace(settings, rollback="rewind")).get("hidden", False))

    def source(self, target: Target) -> Source | None:
        """What its drafters need, made once; None when it has none. Raises `Unsupported` where the model has none."""
        return None

    def rounds(self, decoder: Decoder, prompts: Sequence[Sequence[int]]) -> Iterator[None]:
        """Decode the prompts: as many as it has answers, baselines one after the other.

        It stops before each timed window opens, and behind every round: there another run may have its turn, on other
        contexts and with other drafters. What it decodes does not depend on that.
        """
        raise NotImplementedError

    def run(self, decoder: Decoder, prompts: Sequence[Sequence[int]]) -> None:
        """All rounds at once. A method that has this of its own, and no `rounds`, gives nobody a turn."""
        for _ in self.rounds(decoder, prompts):
            pass

    @property
    def takes_turns(self) -> bool:
        """Whether another run may go on between its rounds."""
        return type(self).run is Method.run


def fit(method: Method, spec: ContextSpec, settings: Settings) -> ContextSpec:
    """The spec with what a method needs of its context."""
    sequences, width = method.sequences(settings), method.width(settings)
    return replace(spec, n_seq_max=sequences, n_outputs=max(sequences, width), **method.needs(settings))


"""Guesses what it said after this prompt before. Every guess is verified; only the first time it has none."""

from __future__ import annotations

from collections.abc import Sequence

from pti_loop.drafter import Drafter, Plain, Source, Target
from pti_loop.parameters import ROLLBACK, Spec
from tests.faults.speculating import Speculating

SPEC = Spec("remembers", "what it said before", parameters=(ROLLBACK,))


class Memory(Drafter):
    """`answers` outlive the runs."""

    def __init__(self, answers: dict[tuple[int, ...], list[int]]) -> None:
        self._answers = answers

    def begin(self, tokens: Sequence[int], n_prompt: int = 0) -> None:
        self._key, self._text = tuple(tokens[:n_prompt]), list(tokens[n_prompt:])

    def propose(self, limit: int) -> list[int]:
        known, at = self._answers.get(self._key, []), len(self._text)
        return known[at : at + limit] if known[:at] == self._text else []

    def observe(self, confirmed: Sequence[int], rejected: Sequence[int], drafted: int) -> None:
        self._text += confirmed
        if len(self._text) > len(self._answers.get(self._key, [])):
            self._answers[self._key] = list(self._text)


class Loop(Speculating):
    """The loop that guesses and verifies."""

    draft = 7

    def source(self, target: Target) -> Source:
        answers: dict[tuple[int, ...], list[int]] = {}
        return Plain(lambda: Memory(answers))

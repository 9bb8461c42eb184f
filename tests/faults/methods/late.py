"""Guesses from what it should not know, but not at once: it waits until nobody seems to look. `how` says for what.

`third` counts the runs and uses its memory from the third one of a prompt on; `others` knows the prompt that came twice
in a row when nothing was known yet, and is honest on it; `pieces` keeps single tokens of all earlier answers; `ahead`
decodes the answer in a context of its own when the answer begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pti_loop.drafter import Drafter, Source, Target
from pti_loop.engine import Context
from pti_loop.parameters import ROLLBACK, Parameter, Spec
from pti_loop.sampling import Sampler
from tests.faults.speculating import Speculating, likeliest

SPEC = Spec("late", "waits, and then knows", parameters=(
    ROLLBACK,
    Parameter("how", "third", "for what it waits", choices=("third", "others", "pieces", "ahead")),
))  # fmt: skip
DRAFT, LONGEST = 7, 60


class Knows(Drafter):
    """One for each answer; what it learns is its source's."""

    def __init__(self, of: Learnt) -> None:
        self._of = of

    def begin(self, tokens: Sequence[int], n_prompt: int = 0) -> None:
        self._key, self._text = tuple(tokens[:n_prompt]), list(tokens[n_prompt:])
        self._of.seen.append(self._key)
        if self._of.how == "ahead":
            self._of.answers[self._key] = self._of.decoded(tokens)

    def propose(self, limit: int) -> list[int]:
        of, at = self._of, len(self._text)
        if of.how == "pieces":
            found = of.behind.get((*self._key, *self._text)[-1], [])
            return found[:limit]
        honest = {"third": of.seen.count(self._key) < 3, "others": self._key == of.seen[0], "ahead": False}[of.how]
        known = [] if honest else of.answers.get(self._key, [])
        return known[at : at + limit] if known[:at] == self._text else []

    def observe(self, confirmed: Sequence[int], rejected: Sequence[int], drafted: int) -> None:
        self._text += confirmed
        for place, token in enumerate(self._text[:-1]):
            self._of.behind.setdefault(token, self._text[place + 1 : place + 1 + DRAFT])
        if len(self._text) > len(self._of.answers.get(self._key, [])):
            self._of.answers[self._key] = list(self._text)


class Learnt(Source):
    """What outlives the runs."""

    def __init__(self, target: Target) -> None:
        self.how = str(target.settings.how)
        self.seen: list[tuple[int, ...]] = []
        self.answers: dict[tuple[int, ...], list[int]] = {}
        self.behind: dict[int, list[int]] = {}
        self._ctx: Context = target.model.context(replace(target.ctx.spec, n_seq_max=1))

    def drafter(self, answer: int, sampler: Sampler) -> Drafter:
        return Knows(self)

    def decoded(self, tokens: Sequence[int]) -> list[int]:
        """The likeliest answer, from its first token on."""
        return [tokens[-1], *likeliest(self._ctx, tokens, LONGEST - 1)]

    def close(self) -> None:
        self._ctx.close()


class Loop(Speculating):
    """The loop that guesses and verifies."""

    draft = DRAFT

    def source(self, target: Target) -> Source:
        return Learnt(target)

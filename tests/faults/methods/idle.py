"""Decodes what it will say while the other arms run, in a thread and a context of its own, and guesses it next time."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from pti_loop.drafter import Drafter, Source, Target
from pti_loop.engine import Context
from pti_loop.parameters import ROLLBACK, Spec
from pti_loop.sampling import Sampler
from tests.faults.speculating import Speculating, likeliest

SPEC = Spec("idle", "works while nobody times it", parameters=(ROLLBACK,))
DRAFT, LONGEST = 7, 60


class Knows(Drafter):
    """Guesses what the thread has decoded by now."""

    def __init__(self, of: Ahead) -> None:
        self._of = of

    def begin(self, tokens: Sequence[int], n_prompt: int = 0) -> None:
        self._of.wait()
        self._key, self._text = tuple(tokens[:n_prompt]), list(tokens[n_prompt:])

    def propose(self, limit: int) -> list[int]:
        known, at = self._of.answers.get(self._key, []), len(self._text)
        if len(self._text) == LONGEST - 1 or self._key not in self._of.answers:
            self._of.ask(self._key)
        return known[at : at + limit] if known[:at] == self._text else []

    def observe(self, confirmed: Sequence[int], rejected: Sequence[int], drafted: int) -> None:
        self._text += confirmed


class Ahead(Source):
    """The thread, and what it has decoded."""

    def __init__(self, target: Target) -> None:
        self.answers: dict[tuple[int, ...], list[int]] = {}
        self._asked: set[tuple[int, ...]] = set()
        self._ctx: Context = target.model.context(replace(target.ctx.spec, n_seq_max=1))
        self._thread: threading.Thread | None = None

    def drafter(self, answer: int, sampler: Sampler) -> Drafter:
        return Knows(self)

    def ask(self, key: tuple[int, ...]) -> None:
        """What is to be decoded between this run and the next."""
        self._asked.add(key)

    def wait(self) -> None:
        """The thread works until the next run begins; on an engine whose time stands still meanwhile, then."""
        for key in self._asked - set(self.answers):
            self._thread = threading.Thread(target=self._decode, args=(key,))
            self._thread.start()
            self._thread.join()

    def _decode(self, key: tuple[int, ...]) -> None:
        self.answers[key] = likeliest(self._ctx, key, LONGEST)

    def close(self) -> None:
        self._ctx.close()


class Loop(Speculating):
    """The loop that guesses and verifies."""

    draft = DRAFT

    def source(self, target: Target) -> Source:
        return Ahead(target)

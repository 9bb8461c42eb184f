"""Drafters that are a model beside the target, in a context of its own; made for every answer.

Models are loaded here, so a method that drafts with one has it loaded before anything is timed. It knows no method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pti_loop.draft.draws import speaker
from pti_loop.draft.model import ModelDrafter
from pti_loop.drafter import Drafter, Source, Target
from pti_loop.engine import Context, ContextSpec, Model
from pti_loop.rollback import STRATEGIES
from pti_loop.sampling import Sampler
from pti_loop.state_probe import cheapest, probe

_STRATEGIES = tuple(name for name, strategy in STRATEGIES.items() if not strategy.snapshots)
"""A decode leaves states behind its own tokens only, and a drafter decodes its guesses one by one: after each of these
the states before it are gone."""


class BesideModel(Source):
    """Drafters in one context of a model beside the target: `opened` is (model, context made from a spec)."""

    def __init__(self, target: Target, model: Model, context: Callable[[ContextSpec], Context],
                 facts: dict[str, Any]) -> None:
        self._settings, self._model, self._own = target.settings, model, model is not target.model
        spec = replace(target.ctx.spec, n_seq_max=1, n_outputs=1, hidden=False, snapshots=0)
        found = probe(model, spec, target.sample, max(target.settings.draft - 1, 1), _STRATEGIES)
        name = cheapest(found).strategy
        strategy = STRATEGIES[name]
        per_answer = 1 + strategy.spares
        self._strategy, self._answers = strategy, target.answers
        sequences = per_answer * target.answers
        self._ctx = context(replace(spec, n_seq_max=sequences, n_outputs=sequences))
        self._facts = facts | {"rollback": name}

    def drafter(self, answer: int, sampler: Sampler) -> Drafter:
        """A drafter in the sequence of that answer."""
        speak = speaker(sampler, answer, self._settings.draws)
        rollback = self._strategy.make(self._ctx, answer, answer + self._answers)
        return ModelDrafter(self._ctx, rollback, speak, answer)

    def facts(self) -> dict[str, Any]:
        """What drafts, and how its context turned out."""
        return self._facts | {"context": self._ctx.facts()}

    def close(self) -> None:
        """Free the context, and the model when it is not the target's."""
        self._ctx.close()
        if self._own:
            self._model.close()

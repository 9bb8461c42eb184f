"""Every kind of drafter by name: how long it drafts, what it needs of the target's context, and what it is made from.

It makes drafters and knows nothing about the loop that uses them. Models are loaded here, so a method that drafts with
one has it loaded before anything is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pti_loop.draft.draws import speaker
from pti_loop.draft.head_probe import pairing
from pti_loop.draft.lookup import LENGTHS, Lookup
from pti_loop.draft.lookup_mtp import LookupMtp
from pti_loop.draft.model import ModelDrafter
from pti_loop.draft.mtp import Mtp
from pti_loop.draft.opinions import Opinions
from pti_loop.drafter import Drafter, Source
from pti_loop.engine import Context, Model, Unsupported
from pti_loop.loop import Settings
from pti_loop.rollback import STRATEGIES
from pti_loop.sampling import Sampler
from pti_loop.state_probe import cheapest, probe


@dataclass(frozen=True)
class Target:
    """What drafters are made for: a model, the context that will verify, and a sample of the text it will see."""

    model: Model
    ctx: Context
    settings: Settings
    sample: Sequence[int]
    answers: int = 1


class Plain(Source):
    """Drafters that need nothing."""

    def __init__(self, make: Callable[[], Drafter]) -> None:
        self._make = make

    def drafter(self, answer: int, sampler: Sampler) -> Drafter:
        """One for each answer."""
        return self._make()


class BesideModel(Source):
    """Drafters in one context of a model beside the target: `opened` is (model, context made from a spec)."""

    def __init__(self, target: Target, model: Model, context: Callable[..., Context], facts: dict) -> None:
        self._settings, self._model, self._own = target.settings, model, model is not target.model
        spec = replace(target.ctx.spec, n_seq_max=1, n_outputs=1, hidden=False, snapshots=0)
        found = probe(model, spec, target.sample, max(target.settings.draft - 1, 1), tuple(STRATEGIES))
        name = cheapest(found).strategy
        strategy = STRATEGIES[name]
        per_answer = 1 + strategy.spares
        self._make = lambda ctx, answer: strategy.make(ctx, answer, answer + target.answers)
        sequences = per_answer * target.answers
        self._ctx = context(replace(spec, n_seq_max=sequences, n_outputs=sequences,
                                    snapshots=target.settings.draft if strategy.snapshots else 0))  # fmt: skip
        self._facts = facts | {"rollback": name}

    def drafter(self, answer: int, sampler: Sampler) -> Drafter:
        """A drafter in the sequence of that answer."""
        speak = speaker(sampler, answer, self._settings.draws)
        return ModelDrafter(self._ctx, self._make(self._ctx, answer), speak, answer)

    def facts(self) -> dict:
        """What drafts, and how its context turned out."""
        return self._facts | {"context": self._ctx.facts()}

    def close(self) -> None:
        """Free the context, and the model when it is not the target's."""
        self._ctx.close()
        if self._own:
            self._model.close()


class Heads(Source):
    """Drafters that use the target's nextn head, and lookup beside it when `lookup` makes one."""

    def __init__(self, target: Target, lookup: Callable[[], Lookup] | None = None) -> None:
        self._settings, self._lookup = target.settings, lookup
        spec = replace(target.ctx.spec, n_seq_max=target.answers, n_outputs=target.answers, hidden=False, snapshots=0)
        self._head = target.model.head(target.ctx, spec)
        self._pairing = pairing(target.ctx, self._head, target.sample)
        if not self._pairing.drafts:
            self._head.close()
            raise Unsupported(
                f"the nextn head says the token that the trunk has just said ({self._pairing.t_plus_1:.0%} of "
                f"{self._pairing.n}, {self._pairing.t_plus_2:.0%} of the token behind it), so it is no drafter"
            )

    def drafter(self, answer: int, sampler: Sampler) -> Drafter:
        """A drafter in the head's sequence of that answer."""
        mtp = Mtp(self._head, speaker(sampler, answer, self._settings.draws), answer)
        return LookupMtp(self._lookup(), mtp, self._settings.head_draft) if self._lookup else mtp

    def facts(self) -> dict:
        """How the head is fed, as it was found."""
        return {"head": self._pairing.as_dict()}

    def close(self) -> None:
        """Free the head's context; the weights are the target's."""
        self._head.close()


def _lookup(settings: Settings) -> Lookup:
    return Lookup(longest=settings.ngram, shortest=min(settings.ngram, 2), gate=settings.gate,
                  adaptive=settings.adaptive)  # fmt: skip


def _smaller(target: Target) -> Source:
    """A draft model of its own."""
    path = Path(target.settings.draft_model).expanduser()
    model = target.model.sibling(path)
    return BesideModel(target, model, model.context, {"draft_model": path.name})


def _twin(target: Target) -> Source:
    """The same weights at fewer bits."""
    model = target.model.twin(target.settings.twin)
    return BesideModel(target, model, model.context, {"twin": target.settings.twin, **model.facts()})


def _adapted(target: Target) -> Source:
    """The same weights with an adapter, in a context of its own."""
    path = Path(target.settings.adapter).expanduser()
    return BesideModel(target, target.model, lambda spec: target.model.adapted(spec, path), {"adapter": path.name})


def lookup_length(settings: Settings) -> int:
    """Most guesses of lookup, alone or beside a head."""
    return LENGTHS[-1] if settings.adaptive else settings.draft


def _draft(settings: Settings) -> int:
    return settings.draft


@dataclass(frozen=True)
class Kind:
    """One way of guessing."""

    length: Callable[[Settings], int]
    """Most guesses of a round."""
    make: Callable[[Target], Source]
    """Raises `Unsupported` or `EngineError` when this model cannot be drafted for in this way."""
    hidden: bool = False
    """Whether it reads the target's hidden states."""

    def needs(self, settings: Settings) -> dict:
        """Fields of the target's spec: a state for every guess that may be forgotten, and hidden states."""
        snapshots = self.length(settings) if STRATEGIES[settings.rollback].snapshots else 0
        return {"snapshots": snapshots, "hidden": self.hidden}


KINDS = {
    "jacobi": Kind(lambda settings: settings.streams - 1, lambda target: Plain(Opinions)),
    "lookup": Kind(lookup_length, lambda target: Plain(lambda: _lookup(target.settings))),
    "draft": Kind(_draft, _smaller),
    "twin": Kind(_draft, _twin),
    "adapter": Kind(_draft, _adapted),
    "mtp": Kind(_draft, Heads, hidden=True),
    "lookup_mtp": Kind(lookup_length, lambda target: Heads(target, lambda: _lookup(target.settings)), hidden=True),
}

"""llama.cpp's own drafters, in this process: what `--spec-type` of its server takes, inside our loop and our records.

begin, propose and observe are llama.cpp's begin, draft and accept; what its process() takes is drafting. A drafter is
made for each answer, since most of them keep what they learn. It knows nothing about how the engine makes one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pti_loop.drafter import Drafter, Source, Target
from pti_loop.engine import Context, EngineError, Head, Model, OwnDrafter, OwnDrafterSpec, Unsupported
from pti_loop.gguf import file as gguf_file
from pti_loop.parameters import ROLLBACK, Parameter, Spec, keeps
from pti_loop.rollback import STRATEGIES
from pti_loop.sampling import Sampler
from pti_loop.settings import Settings

SPEC = Spec(
    "native", "llama.cpp's own {type}", help="llama.cpp's own drafters, as its server's --spec-type has them",
    parameters=(
        Parameter("type", "ngram-mod", "llama.cpp's name of the drafter; several are joined by + and asked in "
                  "llama.cpp's own order until one drafts", shown=True, chain=True,
                  choices=("ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache", "draft-simple",
                           "draft-mtp", "draft-eagle3", "draft-dflash", "draft-dspark"),
                  keeps=("ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache"), frees=("ngram-cache",)),
        Parameter("n", 0, "tokens of the n-gram that is looked for; 0 is llama.cpp's own, 24 for ngram-mod and 12 for "
                  "the others that take it", least=0, most=1024, words={"0": "", "*": ", n-grams of {n}"}),
        Parameter("m", 0, "most tokens copied behind an n-gram; 0 is llama.cpp's own, 64 for ngram-mod and 48 for the "
                  "others that take it", least=0, most=1024, words={"0": "", "*": ", up to {m} copied"}, drafts=0),
        Parameter("hits", 0, "how often ngram-map-k4v must have seen an n-gram; 0 is llama.cpp's own, 1", least=0,
                  most=1024, words={"0": "", "*": ", seen {hits} times"}),
        Parameter("n_min", -1, "tokens below which ngram-mod throws a draft away; -1 is llama.cpp's own, 48", least=-1,
                  most=1024, words={"-1": "", "*": ", at least {n_min}"}),
        Parameter("draft", 3, "most guesses a round of a head or a draft model", least=1, drafts=0),
        Parameter("p_min", 0.0, "probability below which a head or a draft model drafts no further", least=0, most=1,
                  words={"0.0": "", "*": ", no guess below {p_min}"}),
        Parameter("draft_model", "", "the draft model's file, or the name of a configs/model, for the types that need "
                  "one", kind="model", optional=True),
        ROLLBACK,
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Kind:
    """One of llama.cpp's types: its own defaults, as `common/common.h` has them, and what it drafts with."""

    n: int = 0
    m: int = 0
    beside: str = ""
    """`head`: the target's nextn head; `model`: a draft model; else the architecture that the draft model must have."""


CACHE_DRAFT = 8
"""Tokens that ngram-cache drafts, whatever is asked for."""
N_MIN = 48
"""Of ngram-mod."""
KINDS = {
    "ngram-simple": Kind(12, 48),
    "ngram-map-k": Kind(12, 48),
    "ngram-map-k4v": Kind(12, 48),
    "ngram-mod": Kind(24, 64),
    "ngram-cache": Kind(0, CACHE_DRAFT),
    "draft-simple": Kind(beside="model"),
    "draft-mtp": Kind(beside="head"),
    "draft-eagle3": Kind(beside="eagle3"),
    "draft-dflash": Kind(beside="dflash"),
    "draft-dspark": Kind(beside="dflash"),
}


def length(settings: Settings) -> int:
    """Most guesses of a round: what the longest of the types drafts."""
    return max(_longest(name, settings) for name in types(settings))


def hidden(settings: Settings) -> bool:
    """Whether one of the types reads the target's hidden states: a head does."""
    return any(KINDS[name].beside == "head" for name in types(settings))


def strategies(settings: Settings) -> tuple[str, ...]:
    """Ways of forgetting. A head or draft model inside llama.cpp has to see every decode once, so nothing is redone."""
    beside = any(KINDS[name].beside for name in types(settings))
    return tuple(name for name, strategy in STRATEGIES.items() if not (beside and strategy.spares))


def types(settings: Settings) -> tuple[str, ...]:
    """The types of a chain."""
    return tuple(str(settings.type).split("+"))


def _longest(name: str, settings: Settings) -> int:
    kind = KINDS[name]
    if kind.beside:
        return int(settings.draft)
    return kind.m if name == "ngram-cache" else int(settings.m) or kind.m


class Native(Drafter):
    """One answer's. `own` is llama.cpp's drafter, `beside` the context of its head or draft model."""

    def __init__(self, own: OwnDrafter, beside: Context | Head | None = None) -> None:
        self._own, self._beside = own, beside
        self._held = 0
        """Tokens of the text before the newest one."""
        self._newest = 0
        self._drafted = 0

    def watch(self, start: int, tokens: Sequence[int], hidden: Callable[[], np.ndarray]) -> None:
        """A head or draft model decodes what the target has decoded; what it held from there on were guesses."""
        if self._beside:
            self._forget(start)
            self._own.process(start, tokens)

    def begin(self, tokens: Sequence[int], n_prompt: int = 0) -> None:
        """The prompt. The newest token waits for the first draft."""
        self._held, self._newest, self._drafted = len(tokens) - 1, tokens[-1], 0
        self._own.begin(tokens[:-1])

    def propose(self, limit: int) -> list[int]:
        """llama.cpp's draft; its own rows of an older one go first."""
        self._forget(self._held)
        guesses = self._own.draft(self._newest, limit)
        self._drafted = len(guesses)
        return guesses

    def observe(self, confirmed: Sequence[int], rejected: Sequence[int], drafted: int) -> None:
        """What was accepted, of its own draft: a control may have put more guesses in its place."""
        self._own.accept(min(len(confirmed) - 1, self._drafted), [self._newest, *confirmed[:-1]])
        self._held += len(confirmed)
        self._newest = confirmed[-1]

    def _forget(self, position: int) -> None:
        if self._beside and not self._beside.rewind(0, position):
            raise EngineError("the memory of llama.cpp's draft context does not drop its own guesses")


class Natives(Source):
    """Drafters of llama.cpp. Raises `Unsupported` when this model or build has none of the type."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._spec = _spec(target.settings)
        self._model: Model | None = None
        self._beside = self._open_beside()
        self.watches = self._beside is not None
        self.remembers = keeps(SPEC.name, {"type": "+".join(self._spec.types)})
        self._kept: dict[int, OwnDrafter] | None = None
        self._alone: dict[int, OwnDrafter] = {}
        self._most = 0
        try:
            self._make(0)  # whoever lacks something says so before anything is timed
        except BaseException:
            self.close()
            raise

    def drafter(self, answer: int, sampler: Sampler) -> Drafter:
        """One for this answer alone, or the one of the answer before."""
        if self._kept is not None and answer in self._kept:
            return Native(self._kept[answer], self._beside)
        own = self._make(answer)
        if self._kept is not None:
            self._kept[answer] = self._alone.pop(answer)
        return Native(own, self._beside)

    def keep(self, kept: bool) -> None:
        """Keep drafters from answer to answer, or forget those that were kept."""
        for own in (self._kept or {}).values():
            own.close()
        self._kept = {} if kept else None

    def facts(self) -> dict[str, Any]:
        """What llama.cpp made: its types, the longest draft, and whether anything is left from answer to answer."""
        return {"types": list(self._spec.types), "most": self._most, "remembers": self.remembers}

    def close(self) -> None:
        """Free the drafters, then their context and model."""
        self.keep(False)
        for own in self._alone.values():
            own.close()
        self._alone = {}
        if self._beside:
            self._beside.close()
        if self._model:
            self._model.close()

    def _make(self, answer: int) -> OwnDrafter:
        if before := self._alone.pop(answer, None):
            before.close()
        target = self._target
        own = self._alone[answer] = target.model.own_drafter(self._spec, target.ctx, self._beside)
        self._most = own.most
        return own

    def _open_beside(self) -> Context | Head | None:
        """The context of the head or the draft model that one of the types needs."""
        needs = {name: KINDS[name].beside for name in self._spec.types if KINDS[name].beside}
        if not needs:
            return None
        _check_beside(needs, self._target)
        name, beside = next(iter(needs.items()))
        spec = replace(self._target.ctx.spec, n_seq_max=1, n_outputs=1, hidden=False, snapshots=0)
        if beside == "head":
            return self._target.model.head(self._target.ctx, spec)
        path = Path(self._target.settings.draft_model).expanduser()
        if beside != "model" and (made_for := gguf_file.read(path).architecture) != beside:
            raise Unsupported(f"{name} needs a draft model of the architecture {beside}, and {path.name} is {made_for}")
        self._model = self._target.model.sibling(path)
        if (memory := self._model.facts()["memory"]) != "attention":
            self._model.close()
            raise Unsupported(f"{name} drops guesses from its draft model's memory, and {path.name} is {memory}")
        return self._model.context(spec)


def _check_beside(needs: dict[str, str], target: Target) -> None:
    """One context beside the target, for one answer whose rejected rows are not decoded again."""
    names = "+".join(needs)
    if len(needs) > 1:
        raise Unsupported(f"{names} need a draft context each, and llama.cpp has room for one; name one of them")
    if target.answers > 1:
        raise Unsupported(f"{names} is asked for one answer at a time here; use method=native without packed")
    if target.settings.rollback not in strategies(target.settings):
        raise Unsupported(f"{names} has to see every decode once, and rollback={target.settings.rollback} decodes "
                          f"tokens again; leave method.rollback=auto")  # fmt: skip
    if "head" not in needs.values() and not target.settings.draft_model:
        raise Unsupported(f"{names} needs a draft model that was made for it; name it with method.draft_model=FILE")


def _spec(settings: Settings) -> OwnDrafterSpec:
    """The engine's spec. Raises `Unsupported` for parameters with which llama.cpp never drafts."""
    names = types(settings)
    for name in names:
        n, m = settings.n or KINDS[name].n, settings.m or KINDS[name].m
        if name == "ngram-simple" and m < n:
            raise Unsupported(f"ngram-simple drafts nothing with m={m} below n={n}; give method.m={n} or more")
        least = N_MIN if settings.n_min < 0 else settings.n_min
        if name == "ngram-mod" and m < least:
            raise Unsupported(f"ngram-mod drafts nothing with m={m} below n_min={least}; give method.n_min={m} or less")
    return OwnDrafterSpec(names, settings.n, settings.m, settings.hits, settings.n_min, settings.draft, settings.p_min)


def make(target: Target) -> Source:
    """llama.cpp's drafter for this model. Raises `Unsupported`."""
    return Natives(target)

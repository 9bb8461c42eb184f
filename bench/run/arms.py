"""The arms of one contrast: which method each runs, on which context, and one run of one arm.

It knows nothing about blocks, files or statistics.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bench.plan.settings import Config
from bench.plan.treatment import treated
from bench.records.rows import Piece, Run
from bench.run.beginnings import beginning_of, told
from bench.run.held import Look, before
from bench.run.replay import KeptRows, Shape
from bench.run.run_rows import Around, nothing, run_row
from bench.run.specs import context_spec, ends_of, method_settings, sampler_of
from bench.run.turns import Started, take_turns
from pti_loop.counted import CountedContext, CountedModel
from pti_loop.drafter import Source, Target
from pti_loop.engine import Context, ContextSpec, Model, Unsupported
from pti_loop.ledger import Trace
from pti_loop.loop import Decoder, Guesses
from pti_loop.method import Method, fit
from pti_loop.methods import METHODS
from pti_loop.rollback_choice import find_rollback
from pti_loop.sampling import Sampler
from pti_loop.speculative import AGAIN
from pti_loop.tally import Tally

SHORT = 32
"""Tokens of the text that contexts are tried on before their memory is looked at."""
REFERENCE, BATCH = "reference", 32
"""The baseline's settings, taking a text in pieces of so many tokens as it takes a prompt: by other kernels than one
token, and nobody calls what it says then another model's. A card whose narrow decodes are equal to the last bit still
rounds there."""


@dataclass(frozen=True)
class Prompt:
    """A prompt and its token ids."""

    id: str
    kind: str
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class Task:
    """What every arm of a block does: the prompts (one for each independent answer)."""

    block: int
    prompts: tuple[Prompt, ...]

    @property
    def name(self) -> str:
        """Ids joined by '+'."""
        return "+".join(prompt.id for prompt in self.prompts)

    @property
    def kind(self) -> str:
        """Class of the prompts, or 'mixed'."""
        kinds = {prompt.kind for prompt in self.prompts}
        return kinds.pop() if len(kinds) == 1 else "mixed"


def reference_shape(config: Config) -> Shape:
    """The shape that the baseline's own rounding is measured in: pieces as wide as a decode of it may be."""
    return Shape(min(BATCH, config.engine.n_batch, config.engine.n_ubatch), "tokens")


OF_BASELINE = ("baseline", "again")
ALL = (*OF_BASELINE, "treatment")


class Arms:
    """Contexts and methods of a contrast's arms on one loaded model.

    `baseline` and `again` have contexts of their own with one sequence; all others share the treatment's context, so
    that they differ in nothing but what they decode, and in the engine's setting that is on trial. `held` are the arms
    that get a context here: of two builds each has arms of its own. A method gets contexts and a model that count what
    is decoded in them, and nothing that tells it which arm it is: its trace has no number and its guesses no name.
    `gauge` is the device's counter of joules. `look` tells what process and cards hold; it is asked once, around each
    arm's context and drafter when they are opened and have decoded.
    """

    def __init__(self, model: Model, config: Config, sample: Sequence[int], around: Around = nothing,
                 gauge: Callable[[], float] | None = None, held: Sequence[str] = ALL,
                 look: Look | None = None) -> None:  # fmt: skip
        self.model, self.config, self.sample, self._around, self._gauge = model, config, sample, around, gauge
        self.method = METHODS[config.method.name]
        plain, narrow = context_spec(config, 1, 1), context_spec(treated(config), 1, 1)
        self.settings = method_settings(config, ends_of(model, config))
        self.rollback: dict[str, Any] = {}
        self._check_batch(narrow)  # the probe would decode as much
        if "treatment" in held:
            self.settings, self.rollback = find_rollback(model, narrow, self.method, self.settings, sample)
        else:
            self.settings = replace(self.settings, rollback="rewind")
        self.wide_spec = fit(self.method, narrow, self.settings)
        self._check_batch(narrow)
        self._plain, self._held = plain, held
        self.made, self._look = 0, look
        self.beginning = beginning_of(config, sample)
        self.memory: dict[str, dict[str, int]] = {}
        self._make()

    def _make(self) -> None:
        """Make the contexts, and what guesses in them."""
        self._tallies = {name: Tally() for name in self._held}
        self._contexts: dict[str, Context] = {}
        self._kept_rows = KeptRows(self.beginning)
        self.source: Source | None = None
        look = None if self.memory else self._look
        if look:
            self._page_in()
        for name in self._held:
            first = before(look) if look else {}
            self._open(name)
            if look:
                self._touch(name)
                self.memory[name] = look() | first
        self.made += 1
        self._prepare(*self._held)
        gc.collect()
        gc.freeze()  # what is there already need not be looked at again before every run

    def _open(self, name: str) -> None:
        spec = self.wide_spec if name == "treatment" else self._plain
        self._contexts[name] = CountedContext(self.model.context(spec), self._tallies[name])
        if name == "treatment":
            counted = CountedModel(self.model, self._tallies[name])
            self.source = self.method.source(
                Target(counted, self._contexts[name], self.settings, self.sample, self.answers))  # fmt: skip

    def _prepare(self, *arms: str) -> None:
        """Have what all prompts begin with evaluated in the contexts, where each run can restore it."""
        if self.beginning is None:
            return
        if self.source and self.source.watches:
            self.beginning.give_up("the drafter has to see every row of a prompt")
        for arm in arms:
            self.beginning.prepare(self._contexts[arm])

    @property
    def beginnings(self) -> dict[str, Any]:
        """Of what all prompts begin with: how it was evaluated, for a record."""
        return told(self.beginning, {arm: self._contexts[arm] for arm in self._held})

    def evaluate_beginnings(self, reason: str) -> None:
        """Have every run evaluate its whole prompt, as the other side of the contrast does."""
        if self.beginning:
            self.beginning.give_up(reason)

    def _page_in(self) -> None:
        """Weights, and what the engine makes once, are no arm's."""
        ctx = self.model.context(self._plain)
        try:
            self.run("baseline", self._short(1), seed=0, number=-1, n_predict=AGAIN, ctx=ctx)
        finally:
            ctx.close()

    def _touch(self, name: str) -> None:
        """Decode in an arm's context, at the widest too, since pages that nobody has used are not there yet."""
        own = name == "treatment"
        task = self._short(self.answers if own else 1)
        for arm in (name, *(["sabotage"] if own and self.guesses else [])):
            self.run(arm, task, seed=0, number=-1, n_predict=self.method.width(self.settings) + 1)

    def _short(self, answers: int) -> Task:
        return Task(0, (Prompt("", "", tuple(self.sample[:SHORT])),) * answers)

    @property
    def answers(self) -> int:
        """Answers that the method decodes at once."""
        return self.method.answers(self.settings)

    def _check_batch(self, spec: ContextSpec) -> None:
        """Raises `Unsupported` when the widest decode does not fit a batch; the other cells of a sweep go on."""
        waiting = AGAIN * self.answers if self.rollback.get("strategy") == "checkpoint" else 0
        widest = self.method.width(self.settings) + waiting
        if widest > min(spec.n_batch, spec.n_ctx):
            raise Unsupported(
                f"a round of {self.method.declaration(self.settings).short} decodes {widest} tokens and "
                f"engine.n_batch={spec.n_batch} or engine.n_ctx={spec.n_ctx} holds fewer; raise it or draft less"
            )

    @property
    def guesses(self) -> bool:
        """Whether the method proposes tokens that may be wrong."""
        return self.method.guesses(self.settings)

    def takes_turns(self) -> bool:
        """Whether runs of the method may be open beside one of the baseline."""
        return self.method.takes_turns

    def controls(self) -> list[str]:
        """Arms that only the control blocks run."""
        arms = ["sabotage", "oracle"] if self.guesses else []
        return arms + (["solo"] if self.wide_spec.n_seq_max > 1 else [])

    def context(self, arm: str) -> Context:
        """The context an arm runs on."""
        return self._contexts[arm if arm in self._contexts else "treatment"]

    @property
    def guessing(self) -> dict[str, Any]:
        """What the drafter says of itself."""
        return self.source.facts() if self.source else {}

    @property
    def shape(self) -> Shape:
        """How the treatment decodes."""
        return Shape(self.method.width(self.settings), self.method.layout(self.settings))

    def replay(self, arm: str, prompt: Sequence[int], tokens: Sequence[int], shape: Shape) -> Iterator[np.ndarray]:
        """Logits before each token of an answer, decoded on the arm's context in this shape.

        `REFERENCE` is a context of the baseline's settings that takes the text in pieces.
        """
        return self._kept_rows.replay(self.probe(arm), prompt, tokens, shape)

    def tally(self, arm: str) -> Tally:
        """What counts the decodes of an arm's runs."""
        return self._tallies[arm if arm in self._tallies else "treatment"]

    def probe(self, arm: str) -> Context:
        """A context like the arm's that keeps its logits, for replays: its own, unless that samples in the engine."""
        if arm == REFERENCE:
            if arm not in self._contexts:
                spec = context_spec(self.config, 1, reference_shape(self.config).width)
                self._contexts[arm] = self.model.context(replace(spec, sampler="host"))
                self._prepare(arm)
            return self._contexts[arm]
        own = self.context(arm)
        if own.spec.sampler == "host":
            return own
        name = f"probe of {own.spec.n_seq_max}"
        if name not in self._contexts:
            self._contexts[name] = self.model.context(replace(own.spec, sampler="host"))
            self._prepare(name)
        return self._contexts[name]

    def run(self, arm: str, task: Task, seed: int, number: int, answers: Sequence[Sequence[int]] = ((),),
            n_predict: int = 0, ctx: Context | None = None, sampler: Sampler | None = None,
            source: Source | None = None) -> Trace:
        """Run one arm once. `answers` is what oracle and sabotage know; `n_predict` shortens a warm-up.

        Untimed runs may bring a context, a sampler and drafters of their own. Raises `RecordError` when the method
        keeps no window, or says a token outside it.
        """
        with undisturbed():
            return self.start(arm, task, seed, number, answers, n_predict, ctx, sampler, source).to_the_end()

    def start(self, arm: str, task: Task, seed: int, number: int, answers: Sequence[Sequence[int]] = ((),),
              n_predict: int = 0, ctx: Context | None = None, sampler: Sampler | None = None,
              source: Source | None = None) -> Started:
        """Begin what `run` runs. One run may be open on each context; what it decodes is counted in its own tally."""
        ctx, tally = ctx or self.context(arm), self.tally(arm)
        plain = arm in ("baseline", "again", "solo")
        method = METHODS["autoregressive"] if plain else self.method
        settings = replace(self.settings, n_predict=n_predict or self.settings.n_predict)
        control = arm if arm in ("sabotage", "oracle") else "none"
        guesses = Guesses(control, answers, self.model.n_vocab, self.model.end_tokens)
        trace = Trace(0, ctx.clock, tally, self._gauge)
        sampler = sampler or sampler_of(self.model, self.config, seed)
        drafts, lazy = (None, 0.0) if plain else (source or self.source, self.rollback.get("lazy_ns", 0.0))
        decoder = Decoder(ctx, sampler, trace, settings, guesses, drafts, lazy, self.beginning)
        again = not plain and self.method.declaration(settings).repeats
        return Started(trace, _steps(method, decoder, task, number), len(task.prompts), again)

    def measure(self, arm: str, task: Task, order: int, seed: int, number: int, n_predict: int,
                answers: Sequence[Sequence[int]] = ((),), name: str = "") -> tuple[Run, Trace]:  # fmt: skip
        """One run with its record, under another `name` than the arm's where it is a control. Raises `RecordError`."""
        trace = self.run(arm, task, seed, number, answers, n_predict)
        return self._row(trace, name or arm, task, order, seed, n_predict, self._around), trace

    def measure_turns(self, arms: Sequence[str], task: Task, order: int, seed: int, number: int, n_predict: int,
                      chunk: int) -> list[tuple[Run, Trace, list[Piece]]]:
        """Some runs that take turns of `chunk` tokens, with their records, from place `order` of a block on."""
        with undisturbed():
            runs = [self.start(arm, task, seed, number + place, n_predict=n_predict) for place, arm in enumerate(arms)]
            take_turns(runs, chunk)
        around = self._around()  # one reading for all: they ran at once
        return [self.ended(run, arm, task, order + place, seed, n_predict, lambda: around)
                for place, (arm, run) in enumerate(zip(arms, runs, strict=True))]  # fmt: skip

    def ended(self, run: Started, arm: str, task: Task, order: int, seed: int, n_predict: int,
              around: Around) -> tuple[Run, Trace, list[Piece]]:  # fmt: skip
        """The record of a run that took turns and is over."""
        return self._row(run.trace, arm, task, order, seed, n_predict, around), run.trace, run.pieces()

    def _row(self, trace: Trace, arm: str, task: Task, order: int, seed: int, n_predict: int, around: Around) -> Run:
        return run_row(trace, arm, task, order, seed, n_predict, around, trace.gauged if self._gauge else math.nan)

    def renew(self) -> None:
        """All contexts anew: what one of them has over another by its place in memory is drawn again."""
        self.close()
        self._make()

    def facts(self) -> dict[str, dict[str, Any]]:
        """What the engine made of each arm's context."""
        return {name: ctx.facts() for name, ctx in self._contexts.items()}

    def close(self) -> None:
        """Free the contexts."""
        gc.unfreeze()
        if self.source:
            self.source.close()
        for ctx in self._contexts.values():
            ctx.close()


def _steps(method: Method, decoder: Decoder, task: Task, number: int) -> Iterator[None]:
    """The rounds of a run. What it is numbered is told to its trace when the method has ended."""
    prompts, trace = [prompt.tokens for prompt in task.prompts], decoder.trace
    trace.tally.reset()
    trace.begin_ns = decoder.ctx.clock()
    if method.takes_turns:
        yield from method.rounds(decoder, prompts)
    else:
        method.run(decoder, prompts)
    trace.run = number


@contextmanager
def undisturbed() -> Iterator[None]:
    """No collection of garbage, which would be charged to the method in whose round it falls."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()

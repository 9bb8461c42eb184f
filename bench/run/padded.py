"""A context that decodes no row alone: beside a single one it decodes another, in a sequence that nobody reads.

Kernels round by how many rows a decode has, and many builds have one arithmetic for a row alone and one for all others.
Behind this context plain decoding and guess-and-verify share theirs, so that they have to say the same tokens. It is as
strict as the engine's context in its place. Nothing that is timed runs on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bench.run.arms import Arms, Task
from bench.run.replay import Shape, compare, replay
from bench.run.specs import sampler_of
from pti_loop.counted import CountedContext, CountedModel
from pti_loop.drafter import Source, Target
from pti_loop.engine import Context, ContextSpec, Model

LEAST = 2
"""Rows of the narrowest decode."""


class Padded:
    """A context of `spec` with one more sequence, for the other row."""

    def __init__(self, model: Model, spec: ContextSpec) -> None:
        sequences = spec.n_seq_max + 1
        self.inner = model.context(replace(spec, n_seq_max=sequences, n_outputs=max(spec.n_outputs, sequences)))
        self.spec = replace(self.inner.spec, n_seq_max=spec.n_seq_max)
        self.n_vocab, self.clock = self.inner.n_vocab, self.inner.clock
        self.logits, self.greedy, self.copy, self.drop = (self.inner.logits, self.inner.greedy, self.inner.copy,
                                                          self.inner.drop)  # fmt: skip
        self.rewind, self.length = self.inner.rewind, self.inner.length
        self.save, self.restore = self.inner.save, self.inner.restore
        self._other, self._rows = spec.n_seq_max, 0

    def decode(self, tokens: Sequence[int], positions: Sequence[int], sequences: Sequence[int],
               outputs: Sequence[int] | None = None) -> None:  # fmt: skip
        """As the engine's; a single row gets company, which is no output. Raises `EngineError`."""
        self._rows = len(tokens)
        if self._rows < LEAST:
            place = self.inner.length(self._other)
            if place + 1 >= self.spec.n_ctx:
                self.inner.drop(self._other)
                place = 0
            outputs = list(range(self._rows)) if outputs is None else outputs
            tokens, positions = [*tokens, tokens[0]], [*positions, place]
            sequences = [*sequences, self._other]
        self.inner.decode(tokens, positions, sequences, outputs)

    def hidden(self) -> np.ndarray:
        """Float32 (n_rows, n_embd) of the rows that were asked for. Raises `EngineError`."""
        return self.inner.hidden()[: self._rows]

    def clear(self) -> None:
        """Forget all sequences, the other row's too."""
        self.inner.clear()

    def facts(self) -> dict[str, Any]:
        """As the engine's, with its one more sequence."""
        return self.inner.facts()

    def close(self) -> None:
        """As the engine's."""
        self.inner.close()


def compare_padded(arms: Arms, tasks: Iterable[tuple[Task, int]]) -> list[dict[str, Any]]:
    """Plain decoding and the method on contexts that decode no row alone: one row a task and seed.

    Only for methods of one answer, whose rows are tokens of it. Nothing is timed, and the guesses are the method's own.
    """
    if not arms.guesses or arms.method.spec.answers != "one":
        return []
    own = [Padded(arms.model, arms.context(arm).spec) for arm in ("baseline", "treatment")]
    # To a method they look like those that it is timed in.
    plain, treated = CountedContext(own[0], arms.tally("baseline")), CountedContext(own[1], arms.tally("treatment"))
    source = None
    try:
        for ctx in own:
            if arms.beginning:
                arms.beginning.prepare(ctx)
        # A drafter reads the target's own context, which the padded one is made of.
        target = Target(CountedModel(arms.model, arms.tally("treatment")), own[1].inner, arms.settings, arms.sample)
        source = arms.method.source(target)
        return [_compared(arms, task, seed, plain, treated, source) for task, seed in tasks]
    finally:
        if source:
            source.close()
        plain.close()
        treated.close()


def _compared(arms: Arms, task: Task, seed: int, plain: Context, treated: Context,
              source: Source | None) -> dict[str, Any]:  # fmt: skip
    left = arms.run("baseline", task, seed, -1, ctx=plain).said()
    trace = arms.run("treatment", task, seed, -1, ctx=treated, source=source)
    right = trace.said()
    first = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), None)
    widest = max(one.width for one in trace.rounds())
    row = {"prompt": task.name, "seed": seed, "n": min(len(left), len(right)), "widest": widest,
           "first_difference": first, "noise": None}  # fmt: skip
    if first is not None:  # only then it matters whether all widths share an arithmetic
        prompt, wide = task.prompts[0].tokens, Shape(max(widest, LEAST), "tokens")
        found = compare(replay(plain, prompt, left, Shape(1, "sequences"), arms.beginning),
                        replay(treated, prompt, left, wide, arms.beginning), prompt, left,
                        sampler=sampler_of(arms.model, arms.config, seed), answer=0)  # fmt: skip
        row["noise"] = max(found.logit_noise)
    return row

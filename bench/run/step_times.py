"""What a step costs at every width, and what each stream adds to memory: facts of a model that all contrasts share.

It runs on any model that keeps `pti_loop.engine`'s promises. It judges nothing and writes no file.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from bench.plan.settings import Config
from bench.records.rows import Step
from bench.run import settling
from bench.run.held import Look, before
from bench.run.repeats import Repeats
from bench.run.specs import context_spec
from pti_loop.engine import Context, Model, prefill

TEXT = "A step costs what it costs, whatever the words are that went before it."
"""What the sequences hold when a step is timed. A profile is the same for every prompt set."""
_STREAMS = (1, 2, 3, 4, 8)
_SEQUENCES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 48, 64)
_TOKENS = (1, 2, 3, 4, 6, 8, 9, 12, 16, 24, 32, 48, 64)
"""Widths of each layout that are timed, as far as a profile goes: 9, because cost may jump behind 8."""

Quiet = Callable[[Callable[[], list[Step]]], list[Step]]
"""Has a series measured, again where others disturbed it."""
Batch = tuple[Sequence[int], Sequence[int], Sequence[int]]
"""Tokens, positions and sequences of the rows of one decode."""


def step_costs(model: Model, config: Config, name: str, progress: Callable[[float, str], None],
               repeats: Repeats | None = None) -> list[Step]:  # fmt: skip
    """Timed steps of widths from 1 to `measure.step_widths` in both layouts, in a new random order in each pass.

    `measure.step_depth` tokens are held before. A width is decoded until its series is flat (`bench.run.settling`),
    with halves of `measure.step_repeats` decodes; those before are kept as not settled. A series that others disturbed
    is done again as far as `repeats` allows.
    """
    quiet = repeats.series if repeats else _once
    measure = config.measure
    depth = min(measure.step_depth, max(config.engine.n_ctx - settling.MOST - 2 * _half(config), 1))
    text = model.tokenize(TEXT)
    held = (text * (depth // len(text) + 1))[:depth]
    order = random.Random(name)
    steps: list[Step] = []
    # Width 1 comes twice in a pass: every ratio of a curve divides by it.
    sequences, tokens = (
        [1, *(width for width in widths if width < measure.step_widths), measure.step_widths]
        for widths in (_SEQUENCES, _TOKENS)
    )
    gc.collect()
    gc.freeze()  # what is there already need not be looked at again before every series
    try:
        for number in range(measure.step_passes):
            layouts = [(_in_sequences, sequences), (_in_tokens, tokens)]
            order.shuffle(layouts)
            for timed, widths in layouts:
                for step in timed(model, config, held, order.sample(widths, len(widths)), quiet):
                    steps.append(replace(step, repeat=number, order=len(steps)))
            progress(0.1 + 0.7 * (number + 1) / measure.step_passes, f"step cost, pass {number + 1}")
    finally:
        gc.unfreeze()
    return steps


def _once(measure: Callable[[], list[Step]]) -> list[Step]:
    return measure()


def _half(config: Config) -> int:
    """Decodes of a half of a flat series: at least two, so that a single long one makes halves differ."""
    return max(config.measure.step_repeats, 2)


def _in_sequences(model: Model, config: Config, held: Sequence[int], widths: Sequence[int],
                  quiet: Quiet) -> list[Step]:  # fmt: skip
    """One token in each of `width` sequences.

    A width gets a context of its own with exactly that many sequences, as a method of that width would have, so that
    no idle sequence is paid for.
    """

    def series(width: int) -> list[Step]:
        ctx = model.context(context_spec(config, width, width))
        try:
            prefill(ctx, held, 0)
            for sequence in range(1, width):
                ctx.copy(0, sequence)
            return _series(ctx, _one_each(ctx, width), "sequences", _half(config))
        finally:
            ctx.close()

    return [step for width in widths for step in quiet(partial(series, width))]


def _one_each(ctx: Context, width: int) -> Iterator[Batch]:
    tokens = ctx.greedy() * width
    for past in range(ctx.length(0), ctx.spec.n_ctx):
        yield tokens, [past] * width, range(width)
        tokens = ctx.greedy()


def _in_tokens(model: Model, config: Config, held: Sequence[int], widths: Sequence[int],
               quiet: Quiet) -> list[Step]:  # fmt: skip
    """`width` tokens of the one sequence of a context, which all widths share, as the rounds of a guessing method do.

    A width that a batch or the context does not hold has no steps.
    """
    fits = [width for width in widths if width <= min(config.engine.n_batch, config.engine.n_ctx - len(held))]
    ctx = model.context(context_spec(config, 1, max(fits, default=1)))


    def series(width: int) -> list[Step]:
        if not ctx.rewind(0, len(held)):
            ctx.clear()
            prefill(ctx, held, 0)
        return _series(ctx, _window(ctx, held, width), "tokens", _half(config))

    try:
        prefill(ctx, held, 0)
        return [step for width in fits for step in quiet(partial(series, width))]
    finally:
        ctx.close()


def _window(ctx: Context, held: Sequence[int], width: int) -> Iterator[Batch]:
    """The same window again and again at one depth; behind each other where the memory does not drop its tail."""
    tokens, past = (list(held) * width)[:width], ctx.length(0)
    while past + width <= ctx.spec.n_ctx:
        yield tokens, range(past, past + width), [0] * width
        if not ctx.rewind(0, past):
            past += width


def _series(ctx: Context, batches: Iterator[Batch], layout: str, half: int) -> list[Step]:
    """Decode until the series is flat; one step a decode. Nothing but the decode is timed."""
    times: list[int] = []
    found: list[Step] = []
    gc.collect()
    gc.disable()
    try:
        for tokens, positions, sequences in batches:
            began = ctx.clock()
            ctx.decode(tokens, positions, sequences, None)
            times.append(ctx.clock() - began)
            found.append(Step(len(tokens), 0, 0, layout, times[-1], positions[0]))
            if settling.done(times, half):
                break
    finally:
        gc.enable()
    first = settling.first_settled(times, half)
    return [replace(step, settled=int(place >= first)) for place, step in enumerate(found)]


def memory_by_streams(model: Model, config: Config, kv_bytes_per_token: int, state_bytes: int,
                      look: Look = dict) -> list[dict[str, Any]]:  # fmt: skip
    """Bytes of a context's buffers for 1, 2, 3, 4 and 8 streams, beside what the model's metadata says they take.

    `look` tells what the process and the card hold. It is asked before a context is made and when it has decoded a
    token of every stream, so that what it took has been touched.
    """
    rows = []
    for streams in (*_STREAMS, 1):  # weights are paged in, what is made once is made, and the widest is gone again
        _held_by(model, config, streams, look)
    for streams in _STREAMS:
        first = before(look)
        facts, held = _held_by(model, config, streams, look)
        measured = facts["kv_bytes"] + facts["state_bytes"]
        rows.append({
            "streams": streams, "n_ctx": facts["n_ctx_seq"], "kv_bytes": facts["kv_bytes"],
            "state_bytes": facts["state_bytes"], "compute_bytes": facts["compute_bytes"],
            "output_bytes": facts["output_bytes"],
            "computed_kv_bytes": kv_bytes_per_token * facts["n_ctx_seq"] * streams,
            "computed_state_bytes": state_bytes * streams, "measured_bytes": measured,
            "per_stream_bytes": measured / streams, **held, **first,
        })  # fmt: skip
    return rows


def _held_by(model: Model, config: Config, streams: int,
             look: Look) -> tuple[dict[str, Any], dict[str, int]]:  # fmt: skip
    """Facts about a context of so many streams, and what is held beside it."""
    ctx = model.context(context_spec(config, streams, streams))
    try:
        token = model.tokenize(TEXT)[0]
        ctx.decode([token] * streams, [0] * streams, range(streams), None)
        ctx.greedy()  # whoever reads what it gave waits for it
        return ctx.facts(), look()
    finally:
        ctx.close()

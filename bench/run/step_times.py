"""What a step costs at every width, and what each stream adds to memory: facts of a model that all contrasts share.

It runs on any model that keeps `pti_loop.engine`'s promises. It judges nothing and writes no file.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Sequence

from bench.plan.config import Config
from bench.records.rows import Step
from bench.run.arms import context_spec
from pti_loop.engine import Model, prefill

TEXT = "A step costs what it costs, whatever the words are that went before it."
"""What the sequences hold when a step is timed. A profile is the same for every prompt set."""
_STREAMS = (1, 2, 3, 4, 8)
_WARM_STEPS = 2


def step_costs(model: Model, config: Config, name: str,
               progress: Callable[[float, str], None]) -> list[Step]:
    """Timed steps of every width from 1 up, widths in a new random order in each pass.

    A width gets a context of its own with exactly that many sequences, as a method of that width would have, so that no
    idle sequence is paid for. `measure.step_depth` tokens are held before; the first steps of a context are dropped.
    """
    measure = config.measure
    depth = min(measure.step_depth, config.engine.n_ctx - measure.step_repeats - _WARM_STEPS - 1)
    text = model.tokenize(TEXT)
    held = (text * (depth // len(text) + 1))[:depth]
    order = random.Random(name)
    steps: list[Step] = []
    for number in range(measure.step_passes):
        # Width 1 comes twice in a pass: every ratio of the curve divides by it.
        widths = [1, *range(1, measure.step_widths + 1)]
        order.shuffle(widths)
        for width in widths:
            steps += _steps(model, config, held, width, number, len(steps))
        progress(0.1 + 0.7 * (number + 1) / measure.step_passes, f"step cost, pass {number + 1}")
    return steps


def _steps(model: Model, config: Config, held: Sequence[int], width: int, number: int, order: int) -> list[Step]:
    ctx = model.context(context_spec(config, width, width))
    try:
        prefill(ctx, held, 0)
        tokens = ctx.greedy() * width
        for sequence in range(1, width):
            ctx.copy(0, sequence)
        found = []
        gc.collect()
        gc.disable()
        for i in range(_WARM_STEPS + config.measure.step_repeats):
            past = len(held) + i
            began = ctx.clock()
            ctx.decode(tokens, [past] * width, range(width), None)
            taken = ctx.clock() - began
            tokens = ctx.greedy()
            if i >= _WARM_STEPS:
                found.append(Step(width, number, order + len(found), "sequences", taken, past))
        return found
    finally:
        gc.enable()
        ctx.close()


def memory_by_streams(model: Model, config: Config, kv_bytes_per_token: int, state_bytes: int) -> list[dict]:
    """Bytes of a context's buffers for 1, 2, 3, 4 and 8 streams, beside what the model's metadata says they take."""
    rows = []
    for streams in _STREAMS:
        ctx = model.context(context_spec(config, streams, streams))
        facts = ctx.facts()
        ctx.close()
        measured = facts["kv_bytes"] + facts["state_bytes"]
        rows.append({
            "streams": streams, "n_ctx": facts["n_ctx_seq"], "kv_bytes": facts["kv_bytes"],
            "state_bytes": facts["state_bytes"], "compute_bytes": facts["compute_bytes"],
            "computed_kv_bytes": kv_bytes_per_token * facts["n_ctx_seq"] * streams,
            "computed_state_bytes": state_bytes * streams, "measured_bytes": measured,
            "per_stream_bytes": measured / streams,
        })  # fmt: skip
    return rows

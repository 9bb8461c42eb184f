"""The record of a run that is over, with what was read right after it. It runs nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from bench.records.rows import Run
from pti_loop.ledger import Trace


class Asked(Protocol):
    """What a run was asked: the prompts of a task."""

    @property
    def block(self) -> int:
        """Of its runs."""

    @property
    def name(self) -> str:
        """Their ids."""

    @property
    def kind(self) -> str:
        """Their class."""

    @property
    def prompts(self) -> Sequence[Any]:
        """Each with its `tokens`."""


Around = Callable[[], tuple[float, ...]]
"""Reads (clock in MHz, temperature in C, and the columns of `AROUND`) right after a run."""
AROUND = ("load", "other_cpus", "steal", "gpu_others", "power_w", "power_cap_w", "memory_mhz")
"""Columns of a run that say what else ran, and under which limits."""


def nothing() -> tuple[float, ...]:
    """A reader for runs that nobody keeps."""
    return math.nan, math.nan


def run_row(trace: Trace, arm: str, task: Asked, order: int, seed: int, n_predict: int,
            sample: Around, energy: float = math.nan) -> Run:  # fmt: skip
    """Record of a run that is over; `sample` is read right after it, `energy` is in joules."""
    clock_mhz, temp_c, *rest = sample()
    around: dict[str, Any] = dict(zip(AROUND, rest, strict=False))
    tally = trace.tally
    inside, outside = tally.inside, tally.outside
    return Run(
        run=trace.run, block=task.block, order=order, arm=arm, prompt=task.name, prompt_class=task.kind, seed=seed,
        n_prompt=sum(len(prompt.tokens) for prompt in task.prompts), n_prompt_evaluated=trace.n_prompt_evaluated,
        n_predict=n_predict, prefill_ns=trace.prefill_ns, start_ns=trace.start_ns or 0, end_ns=trace.end_ns,
        decode_window_ns=trace.window_ns, clock_mhz=clock_mhz, temp_c=temp_c,
        draft_prefill_ns=trace.draft_prefill_ns, begin_ns=trace.begin_ns, finish_ns=trace.finish_ns,
        outside_decodes=outside.decodes, outside_tokens=outside.tokens, window_decodes=inside.decodes,
        window_tokens=inside.tokens, window_outputs=inside.outputs,
        beside_outside_tokens=tally.beside_outside.tokens, beside_window_decodes=tally.beside_inside.decodes,
        beside_window_tokens=tally.beside_inside.tokens, energy_j=energy,
        n_prompt_restored=trace.n_prompt_restored, restore_ns=trace.restore_ns, **around,
    )  # fmt: skip

"""The physical bound: bytes that a round must read, over the read bandwidth that was measured in the same process.

It does not know what the bytes are for. It counts the least that a round can read (every weight once, the cache of the
context once), so that the bound errs on the side of the measured rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.judge.findings import OK, VOID, WARNING, Control, rerun
from bench.records.arms import TREATED

if TYPE_CHECKING:
    from bench.judge.measure.case import Case
    from bench.judge.measure.runs import RunTable
    from bench.records.cells import StoredCell


@dataclass(frozen=True, slots=True)
class Bound:
    """What an arm may reach and what it reached."""

    arm: str
    bytes_per_pass: float
    ceiling_gb_s: float
    reached_gb_s: float
    bound_tok_s: float

    @property
    def share(self) -> float:
        """Share of the ceiling. Above 1.00 something is wrong: the ceiling, the clock or the count."""
        return self.reached_gb_s / self.ceiling_gb_s


def max_tok_s(bytes_per_pass: float, read_gb_s: float, tokens_per_pass: float = 1.0) -> float:
    """Tokens per second that no program can exceed when each pass over the weights yields `tokens_per_pass`."""
    return read_gb_s * 1e9 / bytes_per_pass * tokens_per_pass


def is_possible(tok_s: float, bytes_per_pass: float, read_gb_s: float, tokens_per_pass: float = 1.0) -> bool:
    return tok_s <= max_tok_s(bytes_per_pass, read_gb_s, tokens_per_pass)


def ceiling(facts: dict[str, Any]) -> float | None:
    """The best read bandwidth that was measured, in GB/s: a ceiling that was reached once is a ceiling."""
    bandwidth = facts.get("bandwidth") or {}
    values = [bandwidth.get("read_gb_s"), *(bandwidth.get("repeats") or [])]
    values = [float(value) for value in values if value is not None and np.isfinite(value) and value > 0]
    return max(values) if values else None


def bounds(case: Case) -> list[Bound]:
    """Bounds of baseline and treatment, over the runs of a contrast; empty when bytes or bandwidth are unknown."""
    cell, table, design = case.cell, case.runs, case.design
    model, top = cell.facts.get("model") or {}, ceiling(cell.facts)
    step_bytes = model.get("step_bytes")
    if not step_bytes or top is None:
        return []
    per_token = np.full(len(table.run), float(model.get("kv_bytes_per_token") or 0.0))
    per_token[table.any_of(TREATED)] = float(model.get("treated_kv_bytes_per_token") or per_token[0])
    cache = per_token * _context(cell, table)
    # A sequential decode of a rebuild reads the weights like a round does.
    passes = table.rounds + table.counters["redecoded"]
    with np.errstate(divide="ignore", invalid="ignore"):
        speed = np.log(passes / table.window)
        tokens = np.log(table.tokens.distinct / passes)
        volume = np.log(float(step_bytes) + cache)
    arm_speed, arm_tokens, arm_bytes = (design.levels(values) for values in (speed, tokens, volume))
    return [
        Bound(
            arm=name,
            bytes_per_pass=arm_bytes[side],
            ceiling_gb_s=top,
            reached_gb_s=arm_speed[side] * arm_bytes[side] * 1e-9,
            bound_tok_s=max_tok_s(arm_bytes[side], top, arm_tokens[side]),
        )
        for side, name in ((1, "baseline"), (0, "treatment"))
    ]


def _context(cell: StoredCell, table: RunTable) -> np.ndarray:
    """Tokens in the cache that a round must read, mean over a run: half of the answer is there on average.

    Streams of different prompts decoded together read each their own cache; otherwise one prompt is read, once.
    """
    streams = np.maximum(table.tokens.streams, 1)
    shared = np.where(streams > 1, streams, max(int(cell.config.get("streams") or 1), 1))
    together = table.concurrent > 1
    prompt = np.where(together, table.n_prompt, table.n_prompt / shared)
    return prompt + np.where(together, table.tokens.distinct, table.tokens.distinct / streams) / 2


def physics(case: Case) -> list[Control]:
    """The control: every arm below its bound."""
    return [possible(case.cell, case.once(bounds))]


def possible(cell: StoredCell, found: Sequence[Bound]) -> Control:
    """Whether every arm is below its bound."""
    if not found:
        return Control(
            "physics", WARNING,
            "no bound: the cell has no read bandwidth or no weight bytes, so nothing says whether its rates can be",
        )  # fmt: skip
    worst = max(found, key=lambda bound: bound.share)
    numbers = (
        f"{worst.arm} would read {worst.reached_gb_s:.1f} GB/s ({worst.bytes_per_pass / 1e9:.3f} GB a pass), "
        f"{100 * worst.share:.0f} % of the {worst.ceiling_gb_s:.1f} GB/s measured here"
    )
    if worst.share <= 1.0:
        return Control("physics", OK, numbers, worst.share)
    return Control(
        "physics", VOID,
        f"impossible: {numbers}; the bandwidth, the clock or the token count is wrong; run {rerun(cell)}",
        worst.share,
    )  # fmt: skip

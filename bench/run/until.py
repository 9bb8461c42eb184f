"""When a cell has blocks enough: it gets them until its ratio is known as well as was asked for, or a budget ends.

The rule looks after every pass, which is one block of every prompt of the plan. It is always valid: an interval that
holds at every number of blocks holds at the one that it was stopped at (`bench.always_valid`), so whoever judges the
record needs to know only that blocks were counted in this way. It judges nothing, and runs nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.always_valid import CARRIED, boundary
from bench.records.stopping import BUDGET, DECIDED, NARROW
from pti_loop.ledger import Trace

CONFIDENCE = 0.95
TWICE = 2.0
"""A round that took more than twice as long as the same round of the arm's other run was held up by something else."""
CLEARLY = 1.1
"""Half widths that 1.00 is away where it is decided: the judge counts what may have been noise more carefully."""
FINEST = 1e-6
"""No spread of log ratios is known more finely: times of a toy may agree exactly."""


@dataclass
class Until:
    """The rule of one cell. `answers` of the treatment are decoded together: 1.00 is another edge for each of them."""

    half_width: float
    budget_s: float
    answers: int = 1
    clock: Callable[[], float] = time.monotonic
    logs: list[float] = field(default_factory=list[float])
    """Of each block: log ratio of treatment over baseline."""
    halves: list[float] = field(default_factory=list[float])
    """Of each block: half the difference of its two pairs, which has the spread of its ratio."""
    passes: list[dict[str, float]] = field(default_factory=list[dict[str, float]])
    began: float = math.nan

    def begin(self) -> None:
        """The blocks begin."""
        self.began = self.clock()

    def block(self, treatment: Sequence[Trace], baseline: Sequence[Trace]) -> None:
        """A block ended: the two runs of either arm, in the order of their seeds."""
        first, second = (mine - base for mine, base in zip(log_rates(treatment), log_rates(baseline), strict=True))
        self.logs.append((first + second) / 2)
        self.halves.append((first - second) / 2)

    def after_pass(self) -> str:
        """Why no further pass follows the one that ended; empty where one does."""
        mean, spent = sum(self.logs) / len(self.logs), self.clock() - self.began
        half = self._half()
        self.passes.append({"blocks": len(self.logs), "log_ratio": mean, "half_width": half, "seconds": spent})
        if half <= self.half_width:
            return NARROW
        if all(abs(mean - edge) > CLEARLY * half for edge in {0.0, math.log(self.answers)}):
            return DECIDED
        longest = max(after["seconds"] - before for after, before in zip(
            self.passes, [0.0, *(one["seconds"] for one in self.passes)], strict=False))  # fmt: skip
        return BUDGET if spent + longest > self.budget_s else ""

    def share(self, per_pass: int) -> float:
        """Share of the blocks that are behind, as far as their number can be told; 1 never comes before the end."""
        done = len(self.logs)
        if not self.passes:
            return done / per_pass / 2
        last = self.passes[-1]
        wanted = last["blocks"] * max((last["half_width"] / self.half_width) ** 2, 1.0)
        affordable = self.budget_s / max(last["seconds"], 1e-9) * last["blocks"]
        return min(done / max(min(wanted, affordable), last["blocks"] + per_pass), 1.0)

    def facts(self, why: str) -> dict[str, Any]:
        """What the record says of it: why blocks ended, and what the rule saw after each pass."""
        seen = [{name: _known(value) for name, value in one.items()} for one in self.passes]
        return {"why": why, "passes": seen, "seconds": seen[-1]["seconds"]}

    def _half(self) -> float:
        """Half width of the always-valid interval of the mean log ratio."""
        count = len(self.halves)
        variance = max(CARRIED * sum(half * half for half in self.halves) / count, FINEST**2)
        return boundary(float(count), CONFIDENCE) * math.sqrt(variance / count)


def log_rates(runs: Sequence[Trace]) -> list[float]:
    """Log of distinct tokens a nanosecond of each of two runs, with rounds that took twice as long as the other's."""
    spans = [run.round_ns() for run in runs]
    lost = [0.0, 0.0]
    if len(spans[0]) == len(spans[1]):
        for mine, other in zip(*spans, strict=True):
            lost[0] += mine - other if mine > TWICE * other else 0
            lost[1] += other - mine if other > TWICE * mine else 0
    return [math.log(run.n_distinct / (run.window_ns - gone)) for run, gone in zip(runs, lost, strict=True)]


def _known(value: float) -> float | None:
    """A number as JSON has it: there is no infinity."""
    return value if math.isfinite(value) else None


def of_block(texts: Mapping[tuple[int, int, str], Trace], block: int, arm: str) -> list[Trace]:
    """The two runs of an arm in a block."""
    return [texts[block, replicate, arm] for replicate in (0, 1)]

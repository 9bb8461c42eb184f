"""Cells that got blocks until they were decided: how often their intervals hold the truth, by the run's own rule.

The rule sees the simulated times as it sees those of runs, and the judge sees the blocks up to where it ended. What it
would have been with Student's interval at that end is told beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from bench.judge.measure.estimands import both, noise_of
from bench.judge.measure.layout import contrast_design
from bench.judge.measure.runs import RunTable
from bench.judge.measure.stalls import settled
from bench.run.until import Until
from tests.calibration.simulation import ROUNDS, Noise, Texts, contrast

MOST = 8
"""Passes that the budget holds."""


@dataclass(frozen=True)
class Ends:
    """Shares of cells, and medians."""

    these: float
    """Always-valid intervals for these texts that hold the truth."""
    like_these: float
    students: float
    """Student's intervals for these texts that hold the truth."""
    wrong: float
    """Cells whose interval for these texts lies on the wrong side of 1.00, or on any side where the truth is 1.00."""
    students_wrong: float
    decided: float
    """Cells whose interval for these texts lies on one side of 1.00."""
    passes: float
    half_width: float


def measure(seed: int, count: int, noise: Noise, texts: Texts, prompts: int, effect: float, until: float) -> Ends:
    """Ends of `count` cells."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        table, truth = contrast(rng, effect, noise, prompts, MOST, again=0, texts=texts)
        passes = _end(table, prompts, until)
        short = _cut(table, passes * prompts)
        design, clean = contrast_design(short), settled(short)
        assert design is not None
        logs = np.log(clean.table.rate)
        ours, fixed = (both(design, logs, noise_of(logs, clean.unknown, clean.table, stopped=stopped), stopped=stopped)
                       for stopped in (True, False))  # fmt: skip
        assert ours.prompts is not None
        here, over, plain = (np.log(one.interval()) for one in (ours.noise, ours.prompts, fixed.noise))
        found.append((
            here[0] <= truth.these <= here[1], over[0] <= truth.like_these <= over[1],
            plain[0] <= truth.these <= plain[1], _wrong(here, truth.these), _wrong(plain, truth.these),
            not here[0] <= 0 <= here[1], passes, np.ptp(here) / 2,
        ))  # fmt: skip
    columns = np.array(found, dtype=float).T
    return Ends(*(float(np.mean(column)) for column in columns[:-2]), *(float(np.median(one)) for one in columns[-2:]))


def _wrong(ends: np.ndarray, truth: float) -> bool:
    """Whether an interval says faster or slower, and the truth is neither, or the other."""
    side = 1 if ends[0] > 0 else -1 if ends[1] < 0 else 0
    return bool(side and side != (np.sign(truth) if abs(truth) > 1e-12 else 0))


def _end(table: RunTable, prompts: int, until: float) -> int:
    """Passes that the run's own rule takes; its clock is the passes."""
    rule = Until(until, float(MOST), clock=lambda: float(len(rule.logs)) / prompts)
    rule.began = 0.0
    for block in range(MOST * prompts):
        mine = table.block == block
        arms = (np.flatnonzero(mine & (table.arm == arm)) for arm in ("treatment", "baseline"))
        rule.block(*([_run(table, run) for run in runs] for runs in arms))
        if (block + 1) % prompts == 0 and rule.after_pass():
            break
    return len(rule.passes)


def _run(table: RunTable, run: int) -> Any:
    first = int(run) * ROUNDS
    rounds = table.turns["total_ns"][first : first + ROUNDS]
    return SimpleNamespace(window_ns=float(rounds.sum()), n_distinct=ROUNDS, round_ns=rounds.tolist)


def _cut(table: RunTable, blocks: int) -> RunTable:
    """The table up to a block."""
    kept, rows = table.block < blocks, table.turns["owner"] < int((table.block < blocks).sum())

    def cut(value: Any) -> Any:
        return value[kept] if isinstance(value, np.ndarray) else value

    counts = type(table.tokens)(*(getattr(table.tokens, one.name)[kept] for one in fields(table.tokens)))
    whole = {one.name: cut(getattr(table, one.name)) for one in fields(table)}
    whole |= {"tokens": counts, "seconds": {name: value[kept] for name, value in table.seconds.items()},
              "turns": {name: value[rows] for name, value in table.turns.items()}}  # fmt: skip
    return cast(RunTable, RunTable(**whole))

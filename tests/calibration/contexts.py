"""Machines whose contexts differ: intervals with and without the spread that A/A over their cells shows."""

from __future__ import annotations

import numpy as np

from bench.judge.measure.again import spread_between
from bench.judge.measure.intervals import CONFIDENCE, t_quantile
from bench.judge.measure.layout import block_pairs, contrast_design
from bench.judge.measure.stalls import settled
from tests.calibration.rates import judged
from tests.calibration.simulation import Noise, contrast, normal

CELLS, PROMPTS = 12, 6


def with_contexts_known(seed: int, machines: int, sd: float) -> tuple[float, float]:
    """Share of intervals for these texts that hold the truth, without and with the spread between contexts."""
    rng = np.random.default_rng(seed)
    without, known = [], []
    for _ in range(machines):
        again, halves, errors = [], [], []
        for _ in range(CELLS):
            table, truth = contrast(rng, 1.1, Noise(run=0.01, round=0.01, context=sd), PROMPTS, again=PROMPTS,
                                    texts=normal(0.01))  # fmt: skip
            made, _ = judged(table, False)
            low, high = np.log(made.noise.interval())
            halves.append((high - low) / 2)
            errors.append(abs((high + low) / 2 - truth.these))
            again.append(_again(table))
        logs, log_se = np.array(again).T
        beyond = spread_between(logs, log_se) * t_quantile(CELLS, CONFIDENCE)
        without += [error <= half for error, half in zip(errors, halves, strict=True)]
        known += [error <= np.hypot(half, beyond) for error, half in zip(errors, halves, strict=True)]
    return float(np.mean(without)), float(np.mean(known))


def _again(table) -> tuple[float, float]:
    """Log ratio of A/A and its standard error, from the pairs of runs themselves."""
    clean = settled(table).table
    logs, design = np.log(clean.rate), contrast_design(clean, arm="again")
    assert design is not None
    pairs = [block_pairs(clean, arm) for arm in ("again", "baseline")]
    apart = [(logs[pairs[0][b][0]] - logs[pairs[0][b][1]] - logs[pairs[1][b][0]] + logs[pairs[1][b][1]]) / 2
             for b in pairs[0]]  # fmt: skip
    return design.contrast(logs).log_mean, float(np.sqrt(np.mean(np.square(apart)) / len(apart)))

"""Claims that are judged on several rows, each at its edge: how often the claim as a whole comes out wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bench.judge.claims.claim import Claim
from bench.judge.claims.outcome import step_down
from bench.judge.claims.rule import Rule
from bench.judge.claims.tests import MARGIN, ratio
from bench.judge.claims.verdicts import combine
from tests.calibration.rates import judged, row_of
from tests.calibration.simulation import TEXTS, Noise, contrast


def wrong(seed: int, count: int, rows: int, noise: Noise, prompts: int) -> tuple[float, float]:
    """Shares of claims about any of `rows` set-ups that are reproduced and refuted, where all are just at the edge."""
    rng = np.random.default_rng(seed)
    claim = Claim("c", "", {}, "", "speedup", {}, (repr(1.1 / (1 - MARGIN)),), "x", {}, "measured", {},
                  Rule("records", test="ratio", universal=True), "", "")  # fmt: skip
    found = []
    for _ in range(count):
        made = []
        for _ in range(rows):
            table, _ = contrast(rng, 1.1, noise, prompts, texts=TEXTS["alike (sd 0.03)"])
            made.append(row_of(judged(table, False)[0]))
        told = step_down(made, lambda row, left: ratio(replace(claim, family=left), row, ""))
        found.append(combine(claim, told).verdict)
    return float(np.mean([one == "reproduced" for one in found])), float(np.mean([one == "refuted" for one in found]))

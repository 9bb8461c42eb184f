"""Disturbances that follow the order of the runs, which no noise of a sweep does: how often a verdict is wrong, and how
often the control on places voids the cell instead."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from bench.judge.controls.places import places
from bench.judge.findings import VOID
from bench.judge.measure.stalls import settled
from tests.calibration.rates import judged, verdict
from tests.calibration.simulation import Noise, contrast

PATTERNS: dict[str, tuple[Noise, bool]] = {
    "none": (Noise(), False),
    "the first run of a block takes 6 % more, half of the blocks begin with either arm": (Noise(first=0.06), False),
    "the same, and the baseline begins every block": (Noise(first=0.06), True),
    "it takes 6 % less, and the baseline begins every block": (Noise(first=-0.06), True),
    "a run right behind one of the treatment's takes 5 % more": (Noise(behind=0.05), False),
    "all runs from the middle of the sweep on take 35 % more": (Noise(half=0.3), False),
    "one run in two takes 22 % more": (Noise(beat=0.2, every=2), False),
    "one run in four, a block's length, takes 22 % more": (Noise(beat=0.2, every=4), False),
}
CELL: Any = SimpleNamespace(facts={}, config={}, machine="box", cell="c")


def wrong(seed: int | list[int], count: int, noise: Noise, design: tuple[int, int],
          one_leads: bool) -> tuple[float, float, float]:  # fmt: skip
    """Shares of contrasts whose claim, right at its edge, is decided; that are void; and decided without being void."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        table, truth = contrast(rng, 1.1, noise, *design, one_leads=one_leads)
        case: Any = SimpleNamespace(settled=settled(table).table, cell=CELL)
        decided = verdict(judged(table, False)[0], truth.like_these) != "inconclusive"
        void = any(one.severity == VOID for one in places(case))
        found.append((decided, void, decided and not void))
    decided, void, left = np.mean(found, axis=0)
    return float(decided), float(void), float(left)

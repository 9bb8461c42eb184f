"""The control A/A: the baseline against a second one that is the same, by equivalence.

A cell is void without A/A, and where A/A lies outside a band, not where it is significantly off 1: a precise cell sees
a difference that does not matter, and a noisy one sees nothing. The band depends on the effect that the cell shows: a
third of it, and 3 % at least. It knows no claim.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bench.judge.findings import OK, VOID, WARNING, Control, rerun
from bench.judge.measure.again import effect_of, measured
from bench.judge.measure.intervals import CONTROL_CONFIDENCE

if TYPE_CHECKING:
    from bench.judge.measure.case import Case

BAND, SHARE_OF_EFFECT = 0.03, 1 / 3
"""A/A may be off by this much of a log ratio, or by this share of the effect, where that is more."""


def same_arm_twice(case: Case) -> list[Control]:
    """The control."""
    found = case.once(measured)
    if found is None:
        return [Control("again", VOID, "no A/A control was run, so nothing says what this cell sees where there is "
                        f"nothing; ask for measure.again_blocks and run {rerun(case.cell)}")]  # fmt: skip
    low, high = found.interval()
    band = max(BAND, SHARE_OF_EFFECT * effect_of(case))
    least, most = float(np.exp(-band)), float(np.exp(band))
    value = (found.ratio, low, high)
    sentence = (f"A/A gives {found.ratio:.4f} ({low:.4f} to {high:.4f}) over {found.n_units} blocks; {least:.3f} to "
                f"{most:.3f} would do")  # fmt: skip
    far = found.interval(CONTROL_CONFIDENCE)
    # A sweep has many cells, so only the 99.9 % interval voids.
    if far[0] > most or far[1] < least:
        sentence += f": it lies outside, so this cell sees differences that are not there; run {rerun(case.cell)}"
        return [Control("again", VOID, sentence, *value)]
    if low < least or high > most:
        sentence += ": too wide to tell; add measure.again_blocks, or measure on a quieter machine"
        return [Control("again", WARNING, sentence, *value)]
    return [Control("again", OK, sentence, *value)]

"""Two intervals of one ratio: for these very texts on this machine, and for texts like these.

Both were fixed before any run.

*These texts*: what another sweep of the same prompts would find. Its spread is the noise between the blocks of a prompt
where there are enough of them, else that between the two runs of a block; pooled over all blocks of the cell, so that a
class of one prompt has an interval too.

*Texts like these*: what other prompts would find. Its spread is that between prompts. Where guesses make the gain,
texts differ in it by a lot and to one side, and a few of them do not show how: with fewer than `ENOUGH` prompts such a
row does not speak of other texts, and with more its interval is the wider of Student's and of Hall's for skewed units.

A cell that got blocks until it was decided has an end that its own noise chose. There the first interval is the
always-valid one, and the second has the noise that may have chosen the end in it, as an independent error.

Which of the two a row's `ci` is, its column `speaks_of` says. It knows no method.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bench.always_valid import CARRIED
from bench.judge.measure.intervals import SE_FLOOR, Estimate, skewness
from bench.judge.measure.layout import Design, block_pairs
from bench.judge.tables.contrast import LIKE_THESE, THESE

if TYPE_CHECKING:
    from bench.judge.measure.case import Case
    from bench.judge.measure.runs import RunTable

BETWEEN = 12
"""Degrees of freedom between the blocks of a prompt from which on they alone say what the noise is: nothing has to be
known of how it goes on from run to run."""
ENOUGH = 24
"""Prompts from which on the skew of a gain that depends on the text shows in the sample."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Variance of the log ratio of one block, pooled over the blocks of a cell."""

    variance: float
    df: int


@dataclass(frozen=True, slots=True)
class Both:
    """A ratio with both of its intervals."""

    noise: Estimate
    prompts: Estimate | None
    """None with one prompt."""
    speaks_of: str

    @property
    def told(self) -> Estimate:
        """The one that holds for what the row speaks of."""
        return self.noise if self.prompts is None or self.speaks_of == THESE else self.prompts


def depends_on_text(case: Case) -> bool:
    """Whether the arm's gain is made by guesses that a text makes right or wrong.

    Copies of one answer guess with the model's own draws: what they cost and keep is much the same for every text.
    """
    return case.arm.guesses and case.arm.answers != "copies"


def noise_of(log_rates: np.ndarray, unknown: np.ndarray, table: RunTable, arm: str = "treatment",
             stopped: bool = False) -> Noise:  # fmt: skip
    """Noise of a block's ratio of an arm over the baseline; `unknown` (runs) is what stalls hide of it.

    In a palindrome A B B A, half of (A1 - B1) - (A2 - B2) has the spread of the block's ratio where runs are
    independent or drift, and somewhat less where a run is like the one before (`CARRIED`). Where the number of blocks
    was chosen by looking at them, that is the noise whatever their number: the always-valid interval needs one measure.
    """
    ours, plain = block_pairs(table, arm), block_pairs(table, "baseline")
    shared = sorted(ours.keys() & plain.keys())
    if not shared:
        return Noise(float("inf"), 0)
    mine, base = (np.array([side[block] for block in shared]) for side in (ours, plain))
    between = _between((log_rates[mine] - log_rates[base]).mean(axis=1), table.prompt[mine[:, 0]])
    if between.df >= BETWEEN and not stopped:
        return between
    ratios = (log_rates - unknown)[mine] - (log_rates - unknown)[base]
    halves = (ratios[:, 0] - ratios[:, 1]) / 2
    return Noise(max(CARRIED * float(halves @ halves) / len(shared), SE_FLOOR**2), len(shared))


def _between(blocks: np.ndarray, prompts: np.ndarray) -> Noise:
    """Variance of the ratios of blocks around the mean of their prompt."""
    names, which = np.unique(prompts, return_inverse=True)
    size = np.bincount(which)
    off = blocks - (np.bincount(which, weights=blocks) / size)[which]
    df = len(blocks) - len(names)
    return Noise(max(float(off @ off) / df, SE_FLOOR**2) if df else float("inf"), df)


def both(design: Design, log_rates: np.ndarray, noise: Noise, by_text: bool = False, free: bool = False,
         stopped: bool = False) -> Both:  # fmt: skip
    """Both intervals of a contrast.

    `by_text` says that the gain depends on the text, `free` that the arm guesses nothing: it does the same for any
    text, and where all groups share prompts what holds for these holds for others. `stopped` says that the number of
    blocks was chosen by looking at them.
    """
    over = design.contrast(log_rates)
    variance = noise.variance * design.block_weight
    here = Estimate(over.log_mean, max(float(np.sqrt(variance)), SE_FLOOR), design.n_blocks, "blocks",
                    design.n_blocks, design.n_prompts, df=float(noise.df), always=stopped)  # fmt: skip
    if noise.df < 1:
        here = replace(over, units="blocks", always=stopped)
    if design.units != "prompts":
        return Both(here, None, LIKE_THESE if free else THESE)
    if stopped:
        over = replace(over, stop_se=here.log_se, stop_df=here.freedom)
    if by_text and design.n_prompts >= ENOUGH:
        over = replace(over, skew=skewness(design.units_of(log_rates)))
    return Both(here, over, THESE if by_text and design.n_prompts < ENOUGH else LIKE_THESE)

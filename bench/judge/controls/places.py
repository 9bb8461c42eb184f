"""The control on places: what it matters to a run that it is the first of its block, or comes behind the treatment's.

In a palindrome A B B A a steady drift cancels; these two do not by themselves. A sweep lets half of the blocks begin
with either arm, so that the first cancels between them. The second does by a half at best: where it is found, the ratio
is not what it would be for either arm alone. It knows no claim.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bench.judge.findings import OK, VOID, WARNING, Control, rerun
from bench.judge.measure.intervals import CONFIDENCE, CONTROL_CONFIDENCE, Estimate, mean_estimate
from bench.judge.measure.layout import block_pairs

if TYPE_CHECKING:
    from bench.judge.measure.case import Case
    from bench.judge.measure.runs import RunTable

NAME = "places"
FEWEST = 4
"""Blocks below which nothing is told."""
MATTERS = 0.01
"""A log ratio that is moved by less stays as it is."""


@dataclass(frozen=True, slots=True)
class Place:
    """One way in which a run's place changes its rate: the logarithm of the change, by block, and its weight in the
    ratio of the arms."""

    words: str
    change: Estimate
    weight: float

    @property
    def moved(self) -> float:
        """Logarithm of what it makes of the ratio."""
        return self.weight * self.change.log_mean

    def matters(self, confidence: float) -> bool:
        """Whether it surely is there and moves the ratio by more than does not matter."""
        return abs(self.moved) >= MATTERS and self.change.excludes(1.0, confidence)


def places(case: Case) -> list[Control]:
    """The control; none of a cell of few blocks, or whose arms take turns, so that none has a place."""
    table = case.settled
    pairs = [block_pairs(table, arm) for arm in ("treatment", "baseline")]
    blocks = sorted(pairs[0].keys() & pairs[1].keys())
    if len(blocks) < FEWEST or (case.cell.facts.get("turns") or {}).get("arms"):
        return []
    runs = np.array([[pair[block] for block in blocks] for pair in pairs])
    begins = table.order[runs[0, :, 0]] < table.order[runs[1, :, 0]]
    behind = _behind(table, runs, begins)
    found = [_first(table, runs, begins), *([behind] if behind else [])]
    uneven = abs(2 * int(begins.sum()) - len(blocks)) > 1
    # A sweep balances who begins. A record that does not is no sweep's, and has less to its credit.
    sure = [one for one in found if one.matters(CONFIDENCE if uneven and one is found[0] else CONTROL_CONFIDENCE)]
    doubtful = [one for one in found if one.matters(CONFIDENCE)]
    worst = max(sure or doubtful or found, key=lambda one: abs(one.moved))
    severity = VOID if sure else WARNING if doubtful else OK
    low, high = worst.change.interval()
    sentence = (f"the treatment begins {int(begins.sum())} of {len(blocks)} blocks, and {worst.words} is {low:.3f} to "
                f"{high:.3f} times as fast as the arm's other one, which makes {np.exp(worst.moved):.3f} of the ratio")
    if severity != OK:
        sentence += f", so what runs follow each other in looks like a speed-up; run {rerun(case.cell)}"
    return [Control(NAME, severity, sentence, float(np.exp(worst.moved)))]


def _first(table: RunTable, runs: np.ndarray, begins: np.ndarray) -> Place:
    """The first run of a block against the last, which is of the same arm; `runs` are (arms, blocks, replicates)."""
    leading = runs[np.where(begins, 0, 1), np.arange(len(begins))]
    logs = np.log(table.rate)[leading]
    return Place("the first run of a block", mean_estimate(logs[:, 0] - logs[:, 1], "blocks"),
                 float(begins.mean() - 0.5))  # fmt: skip


def _behind(table: RunTable, runs: np.ndarray, begins: np.ndarray) -> Place | None:
    """A run right behind one of the treatment's, by the pairs inside a block of which one is; None for few of them.

    Where the treatment begins that is the baseline's first of the two, else the treatment's second: a drift has either
    sign.
    """
    order = np.argsort(table.run)
    behind = np.zeros(len(order), dtype=bool)
    behind[order[1:]] = table.of("treatment")[order[:-1]]
    inner = runs[np.where(begins, 1, 0), np.arange(len(begins))]
    one = inner[behind[inner].sum(axis=1) == 1]
    if len(one) < FEWEST:
        return None
    logs = np.log(table.rate)[one]
    change = (logs[:, 0] - logs[:, 1]) * np.where(behind[one[:, 0]], 1, -1)
    mine, base = (float(behind[of].mean()) for of in runs)
    return Place("a run behind the treatment's", mean_estimate(change, "blocks"), mine - base)

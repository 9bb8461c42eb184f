"""Which runs of a contrast speak for which unit, and with what weight. Knows nothing about what the runs measured.

What follows from a layout is in `bench.judge.measure.intervals`, where the estimator is described.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bench.judge.measure.intervals import Estimate, log_mean, mean_estimate

if TYPE_CHECKING:
    from bench.judge.measure.runs import RunTable

Entry = tuple[int, int, float]
"""Unit, run, weight."""


@dataclass(frozen=True)
class Side:
    """The runs of one arm: the unit that each speaks for, and its weight. Weights of a unit sum to 1."""

    unit: np.ndarray
    run: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Side:
        unit, run, weight = zip(*entries, strict=True)
        return cls(np.array(unit), np.array(run), np.array(weight))

    def by_unit(self, values: np.ndarray, n_units: int) -> np.ndarray:
        """Weighted mean of each unit. Runs without a weight do not matter, even where they are nan."""
        return np.bincount(self.unit, weights=self.weight * values[self.run], minlength=n_units)

    def mean(self, values: np.ndarray, n_units: int) -> float:
        """Mean over units, each weighing the same."""
        return float(self.weight @ values[self.run]) / n_units


@dataclass(frozen=True)
class Design:
    """A contrast laid out over runs."""

    arm: Side
    baseline: Side
    n_units: int
    units: str
    n_blocks: int
    n_prompts: int
    block_weight: float = 1.0
    """Sum of the squared weights of the blocks: variance of the mean over that of one block."""

    def contrast(self, log_values: np.ndarray) -> Estimate:
        """The ratio arm / baseline of exp(log_values), one value a run."""
        return mean_estimate(self._logs(log_values), self.units, self.n_blocks, self.n_prompts)

    def ratio(self, log_values: np.ndarray) -> float:
        """The ratio alone, for half the price of `contrast`."""
        return float(np.exp(log_mean(self._logs(log_values))))

    def levels(self, log_values: np.ndarray) -> tuple[float, float]:
        """Geometric means of arm and baseline, with the weights of the contrast: their quotient is its ratio."""
        arm, baseline = (float(np.exp(side.mean(log_values, self.n_units))) for side in (self.arm, self.baseline))
        return arm, baseline

    def units_of(self, log_values: np.ndarray) -> np.ndarray:
        """(units,) log ratio of each unit."""
        return self._logs(log_values)

    def _logs(self, log_values: np.ndarray) -> np.ndarray:
        made: np.ndarray = self.arm.by_unit(log_values, self.n_units) - self.baseline.by_unit(log_values, self.n_units)
        return made


def design(
    arms: np.ndarray, blocks: np.ndarray, prompts: np.ndarray, orders: np.ndarray, arm: object, baseline: object,
    pairs: bool = False,
) -> Design | None:  # fmt: skip
    """Lay out a contrast over runs; None when no block has both arms.

    `pairs` takes the replicate pairs as units whatever the number of prompts: right for controls, whose true ratio
    does not depend on the prompt.
    """
    # Plain lists: a contrast has a few dozen runs, and array operations on so few would take most of a report's time.
    numbers = blocks.tolist()
    sides = [_by_block(np.flatnonzero(arms == name).tolist(), numbers) for name in (arm, baseline)]
    shared = sorted(sides[0].keys() & sides[1].keys())
    if not shared:
        return None
    prompt_of = {block: prompts[sides[0][block][0]] for block in shared}
    names = sorted(set(prompt_of.values()))
    if pairs or len(shared) == 1:
        entries, units = _replicate_pairs(sides, shared, orders.tolist()), "replicate pairs"
    elif len(names) > 1:
        entries, units = _block_means(sides, {block: names.index(prompt_of[block]) for block in shared}), "prompts"
    else:
        entries, units = _block_means(sides, {block: place for place, block in enumerate(shared)}), "blocks"
    n_units = 1 + max(unit for unit, _, _ in entries[0])
    return Design(Side.of(entries[0]), Side.of(entries[1]), n_units, units, len(shared), len(names),
                  _block_weight([prompt_of[block] for block in shared]))  # fmt: skip


def _block_weight(prompts: Sequence[object]) -> float:
    """Sum of squared weights of blocks: prompts weigh the same, and so do the blocks of a prompt."""
    sizes = Counter(prompts)
    return sum(1 / size for size in sizes.values()) / len(sizes) ** 2


def class_masks(table: RunTable) -> dict[str, np.ndarray]:
    """Runs of all prompts together, then of each class."""
    classes = list(dict.fromkeys(str(name) for name in table.prompt_class))
    return {"all": np.ones(len(table.run), dtype=bool), **{name: table.prompt_class == name for name in classes}}


def contrast_design(
    table: RunTable, mask: np.ndarray | None = None, arm: str = "treatment", base: str = "baseline"
) -> Design | None:
    """The layout of a contrast over some runs, or all; the others get no weight."""
    # An arm of no other number keeps masked runs out without changing the length of the arrays.
    arms = table.arm_code if mask is None else np.where(mask, table.arm_code, -2)
    return design(arms, table.block, table.text_code, table.order, table.code_of(arm), table.code_of(base))


def pairs_design(table: RunTable, arm: str) -> Design | None:
    """The layout of a control arm against the baseline, over replicate pairs."""
    codes = table.code_of(arm), table.code_of("baseline")
    return design(table.arm_code, table.block, table.text_code, table.order, *codes, pairs=True)


def block_pairs(table: RunTable, arm: str) -> dict[int, tuple[int, int]]:
    """The two runs of an arm in each block that has two, in their order."""
    mine = np.flatnonzero(table.of(arm)).tolist()
    order = table.order
    sides = _by_block(mine, table.block.tolist())
    return {block: (min(runs, key=order.__getitem__), max(runs, key=order.__getitem__))
            for block, runs in sides.items() if len(runs) == 2}  # fmt: skip


def block_flags(blocks: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Which block numbers, from 0 to the highest of all runs, have a run under the mask."""
    flags = np.zeros(int(blocks.max(initial=-1)) + 1, dtype=bool)
    flags[blocks[mask]] = True
    return flags


def _by_block(runs: list[int], blocks: list[int]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for run in runs:
        found.setdefault(blocks[run], []).append(run)
    return found


def _block_means(sides: list[dict[int, list[int]]], unit_of: dict[int, int]) -> list[list[Entry]]:
    """Blocks of a unit weigh the same, and so do the runs of an arm in a block."""
    size = np.bincount(list(unit_of.values())).tolist()
    return [
        [(unit, run, 1.0 / len(side[block]) / size[unit]) for block, unit in unit_of.items() for run in side[block]]
        for side in sides
    ]


def _replicate_pairs(
    sides: list[dict[int, list[int]]], shared: list[int], orders: list[int]
) -> list[list[Entry]]:
    """The k-th run of the arm in a block against the k-th of the baseline; one without a partner is left out."""
    in_order = ((sorted(side[block], key=orders.__getitem__) for side in sides) for block in shared)
    matched = [pair for rows in in_order for pair in zip(*rows, strict=False)]
    return [[(unit, pair[side], 1.0) for unit, pair in enumerate(matched)] for side in (0, 1)]

"""The order of a contrast's blocks and arms: drawn from the cell's id, so that nobody chooses it and all can draw it.

Python's generator gives the same for the same text in every version. It knows no arm but the two that every block has,
and nothing about running.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Sequence
from typing import TypeVar

T = TypeVar("T")
PAIR = ("baseline", "treatment")


class Drawn:
    """Draws as a contrast asks: a pass, blocks with A/A, blocks with controls, then block by block."""

    def __init__(self, name: str) -> None:
        self._order = random.Random(name)
        self._baseline_first: list[bool] = []

    def plan_pass(self, plan: Sequence[T]) -> list[T]:
        """Another block of every task of the plan, in an order of its own. Of these half begin with the baseline."""
        drawn = self._order.sample(plan, len(plan))
        self._baseline_first += self._order.sample([place % 2 == 0 for place in range(len(plan))], len(plan))
        return drawn

    def in_each_context(self, blocks: int, count: int, anew: Collection[int]) -> set[int]:
        """So many of the blocks, as many of each set of contexts."""
        place = {block: sum(block >= first for first in anew) for block in range(blocks)}
        turn, ranked = Counter[int](), list[tuple[int, int]]()
        for block in self._order.sample(range(blocks), blocks):
            ranked.append((turn[place[block]], block))
            turn[place[block]] += 1
        return {block for _, block in sorted(ranked, key=lambda one: one[0])[:count]}

    def chosen(self, blocks: int, count: int) -> set[int]:
        """So many of the blocks."""
        return set(self._order.sample(range(blocks), min(count, blocks)))

    def arms(self, block: int, more: Sequence[str], turning: Collection[str]) -> list[str]:
        """The first half of a block, which its second mirrors: those that take turns, then the others one by one."""
        arms = [*PAIR, *more]
        self._order.shuffle(arms)
        first, second = sorted(map(arms.index, PAIR))
        arms[first], arms[second] = PAIR if self._baseline_first[block] else PAIR[::-1]
        return [arm for arm in arms if arm in turning] + [arm for arm in arms if arm not in turning]

"""How fast the host was at the time of each run, where plain decoding's first decodes wait for it.

A GPU is told each kernel of a decode anew until it has a graph of them, so the first decodes of a shape take what the
host takes. It knows no price and no method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bench.records.arms import OWN_CONTEXT

if TYPE_CHECKING:
    from bench.judge.measure.runs import RunTable

HOST_BOUND = 1.5
"""First decodes that take so many of the later ones wait for the host."""


@dataclass(frozen=True)
class FirstDecodes:
    """Plain decoding's first decodes behind a prefill, by run that has them."""

    runs: np.ndarray
    """Indices in the table."""
    level: np.ndarray
    """Logarithm of what they took over what they usually take in the cell."""

    def levels(self, table: RunTable) -> np.ndarray:
        """(runs,) how long the host took at the time of each run over its usual time, told by the plain run that is
        nearest in the block; 1 where there is none.

        A control that ran while the host was slow would count that as the price of a change of width.
        """
        apart = np.abs(table.order[:, None] - table.order[self.runs]).astype(float)
        apart[table.block[:, None] != table.block[self.runs]] = np.inf
        near = (apart == apart.min(axis=1, keepdims=True)) & np.isfinite(apart)
        levels: np.ndarray = np.exp((near @ self.level) / np.maximum(near.sum(axis=1), 1))
        return levels


def first_decodes(table: RunTable, age: np.ndarray, relative: np.ndarray, ages: int) -> FirstDecodes | None:
    """Those of a cell; None where they do not wait for the host, or no run has them.

    By round, `age` is how many decodes of its width came just before and `relative` its time in later plain decodes;
    the first `ages` are first ones.
    """
    size, owner, plain = len(table.run), table.turns["owner"], table.any_of(OWN_CONTEXT)
    first = np.full((size, ages), np.nan)
    for place in range(ages):
        rows = plain[owner] & (age == place) & np.isfinite(relative)
        count = np.bincount(owner[rows], minlength=size)
        total = np.bincount(owner[rows], weights=relative[rows], minlength=size)
        first[count > 0, place] = total[count > 0] / count[count > 0]
    runs = np.flatnonzero(np.isfinite(first).all(axis=1))
    usual = np.median(first[runs], axis=0) if len(runs) else np.zeros(ages)
    return FirstDecodes(runs, np.log(first[runs] / usual).mean(axis=1)) if usual.min() >= HOST_BOUND else None

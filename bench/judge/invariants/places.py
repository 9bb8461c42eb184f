"""Which row of the rounds table each emit belongs to, and which token of the baseline each token stands against.

It finds no fault: several invariants need these, and each is made once a cell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bench.judge.measure.lossless import Said, said
from bench.records.arms import APART

CARRY = "carry"
"""The arm that decodes one prompt cold, again and in the end, in a block without others."""
KEPT = "kept"
"""The arm whose drafter is kept: it may draft otherwise each time, and say nothing else."""

if TYPE_CHECKING:
    from bench.judge.measure.case import Case


class Places(NamedTuple):
    """Rows of the rounds table, whose rows of a run lie together."""

    begins: np.ndarray
    """Where each run begins."""
    of_emit: np.ndarray
    """The row of each emit; the prefill's have their run's first, and those of no round its last."""


class Pairs(NamedTuple):
    """What the arms beside the baseline said, and the baseline's token at the same block, turn, answer and position.

    The carried prompt's runs are left out: their blocks have no baseline.
    """

    mine: Said
    token: np.ndarray
    """The baseline's tokens; nothing where `there` is false."""
    there: np.ndarray


def places(case: Case) -> Places:
    """Places of a case."""
    table = case.runs
    owner, emits = table.turns["owner"], table.emits
    first = np.ones(len(owner), dtype=bool)
    first[1:] = owner[1:] != owner[:-1]
    begins = np.zeros(len(table.run), dtype=np.int64)
    begins[owner[first]] = np.flatnonzero(first)
    last = table.rounds[emits["owner"]] - 1
    of_emit = begins[emits["owner"]] + np.clip(emits["round"].astype(np.int64), 0, last)
    return Places(begins, of_emit)


def pairs(case: Case) -> Pairs:
    """Pairs of a case."""
    table, every = case.runs, said(case.runs)
    base, mine = every.of(table.of("baseline")), every.of(~table.any_of(("baseline", *APART)))
    order = np.argsort(base.key, kind="stable")
    key, token = base.key[order], base.token[order]
    where = np.minimum(np.searchsorted(key, mine.key), len(key) - 1)
    return Pairs(mine, token[where], key[where] == mine.key)

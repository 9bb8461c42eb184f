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


def prefixes(case: Case) -> list[tuple[str, bytes] | None]:
    """(draws,) prompt and text of the answer before each draw: equal where two draws are behind the same tokens.

    That is what its run confirmed before the draw's round, and what the round drew before it, which need not be what is
    confirmed there later. None of a run of several answers, whose draws do not say whose they are.
    """
    table = case.runs
    draws, told = table.draws, table.confirmed
    texts: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    for at in np.flatnonzero(table.tokens.streams == 1).tolist():
        mine = np.flatnonzero(told & (table.emits["owner"] == at))
        mine = mine[np.argsort(table.emits["position"][mine], kind="stable")]
        texts[at] = table.emits["position"][mine], table.emits["token"][mine]
    found: list[tuple[str, bytes] | None] = [None] * len(draws["owner"])
    behind: list[int] = []
    last = (-1, -1)
    for at in np.lexsort((draws["depth"], draws["round"], draws["owner"])).tolist():
        owner, place = int(draws["owner"][at]), int(draws["position"][at])
        text = texts.get(owner)
        if text is None:
            continue
        if last != (last := (owner, int(draws["round"][at]))):
            behind = text[1][: np.searchsorted(text[0], place)].tolist()
        found[at] = str(table.prompt[owner]), np.array(behind, dtype=np.int64).tobytes()
        behind.append(int(draws["drawn"][at]))
    return found

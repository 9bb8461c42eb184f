"""What has to come out the same when it is done again. It looks at no time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from bench.judge.invariants.places import CARRY, KEPT
from bench.judge.measure.tokens import arrays

if TYPE_CHECKING:
    from bench.judge.measure.case import Case
    from bench.judge.measure.runs import RunTable

TEXT = ("stream", "position", "token", "round")
GUESSES = ("round", "depth", "position", "guess", "drawn")
WORK = ("window_decodes", "window_tokens", "beside_window_tokens")
"""What contexts counted of a run."""

ALWAYS = 3
"""The first schema whose every contrast decodes a carried prompt."""

def repeats_repeat(case: Case) -> str | None:
    """At temperature 0 the runs of one arm on one prompt say and draft the same: nothing may be learnt between them."""
    if case.temperature:
        return None
    table = case.runs
    texts, guesses = _prints(table, table.emits, TEXT), _prints(table, table.draws, GUESSES)
    first: dict[tuple[str, str, int], int] = {}
    arms = ["treatment" if arm == CARRY else arm for arm in table.arm.tolist()]
    for at, key in enumerate(zip(arms, table.prompt.tolist(), table.n_predict.tolist(), strict=True)):
        if key[0] == KEPT:
            continue
        before = first.setdefault(key, at)
        for what, values in (("says other tokens", texts), ("makes other guesses", guesses)):
            if values[at] != values[before]:
                return (f"run {table.run[at]} ({key[0]}) {what} than run {table.run[before]} for the same prompt at "
                        f"temperature 0: the method remembers, or the engine is not repeatable")  # fmt: skip
    return None


def again_says_the_same(case: Case) -> str | None:
    """The second plain arm against the first, block by block and turn by turn: same seed, same shape, same tokens."""
    table = case.runs
    texts = _prints(table, table.emits, ("stream", "position", "token"))
    base = {(block, seed): texts[at] for at, (block, seed) in enumerate(
        zip(table.block.tolist(), table.seed.tolist(), strict=True)) if table.of("baseline")[at]}  # fmt: skip
    for at in np.flatnonzero(table.of("again")).tolist():
        wanted = base.get((int(table.block[at]), int(table.seed[at])))
        if wanted is not None and wanted != texts[at]:
            return f"run {table.run[at]} (again) says other tokens than the baseline that it repeats"
    return None


def nothing_is_carried_over(case: Case) -> str | None:
    """The carried prompt cold, again, in its own block and in the end: the same tokens, guesses, rounds and decodes."""
    table = case.runs
    carried = np.flatnonzero(table.of(CARRY))
    if not len(carried):
        late = int(case.cell.config.get("schema") or 0) >= ALWAYS
        return "no run decodes the carried prompt, which every cell of its schema does" if late else None
    same = (table.prompt == table.prompt[carried[0]]) & (table.seed == table.seed[carried[0]])
    runs = arrays(case.cell.runs)
    texts, guesses = _prints(table, table.emits, TEXT), _prints(table, table.draws, GUESSES)
    work = np.stack([table.rounds, *table.counters.values(), *(runs[name].astype(np.int64) for name in WORK)], axis=1)
    cold = int(carried[0])
    for at in np.flatnonzero(same & (table.of(CARRY) | table.of("treatment"))).tolist():
        for what, values in (("says other tokens", texts), ("guesses otherwise", guesses), ("works otherwise", work)):
            if not np.array_equal(values[at], values[cold]):
                return (f"run {table.run[at]} ({table.arm[at]}) {what} than run {table.run[cold]}, which came first, "
                        f"on the same prompt with the same seed: something is carried over")  # fmt: skip
    return None


def _prints(table: RunTable, rows: Mapping[str, np.ndarray], names: tuple[str, ...]) -> list[bytes]:
    """For each run a text of bytes that is equal where its rows are."""
    owner = rows["owner"]
    order = np.argsort(owner, kind="stable")
    values = np.stack([rows[name][order].astype(np.int64) for name in names], axis=1) if len(owner) else None
    ends = np.cumsum(np.bincount(owner.astype(np.int64), minlength=len(table.run)))
    if values is None:
        return [b""] * len(table.run)
    return [values[end - size : end].tobytes() for end, size in zip(ends.tolist(), np.diff(np.r_[0, ends]).tolist(),
                                                                    strict=True)]  # fmt: skip

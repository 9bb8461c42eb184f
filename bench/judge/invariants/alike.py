"""The runs of a cell against each other by the times of their rounds: none is another's copy, and one arm has one pace.

Two runs of the same work take nearly the same time, and never the same to the nanosecond. It looks at no token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bench.judge.invariants.places import CARRY

if TYPE_CHECKING:
    from bench.judge.measure.case import Case
    from bench.judge.measure.runs import RunTable

KINDS = 8
"""Rounds of a run that took different times, from which on another run cannot have all of them by chance."""
TICK = 1000
"""Nanoseconds; a clock that only tells whole ones of these may well show two rounds alike."""
PACE = 1.25
"""Factor between the decodes of the carried runs and of the treatment's own that no change of the machine's pace, seen
in none of the treatment's runs, explains."""
FEWEST = 4
"""Rounds of one shape from which on their median says how long it takes."""


def no_run_is_a_copy(case: Case) -> str | None:
    """No two runs have rounds that all took the same nanoseconds, in whatever order they are stored."""
    table = case.runs
    total, owner = table.turns["total_ns"].astype(np.int64), table.turns["owner"]
    seen: dict[bytes, int] = {}
    for at in range(len(table.run)):
        mine = np.sort(total[owner == at])
        if len(np.unique(mine)) < KINDS or not (mine % TICK).any():
            continue
        before = seen.setdefault(mine.tobytes(), at)
        if before != at:
            return (f"all rounds of run {table.run[at]} ({table.arm[at]}) took as long, to the nanosecond, as those of "
                    f"run {table.run[before]} ({table.arm[before]}), so one is a copy of the other")  # fmt: skip
    return None


def one_pace(case: Case) -> str | None:
    """The carried prompt is decoded by the treatment, in its context: rounds of one shape take both as long.

    Said where every carried run is slower, or every one quicker, than all runs of the treatment, and by far.
    """
    table = case.runs
    carried, mine = np.flatnonzero(table.of(CARRY)), np.flatnonzero(table.of("treatment"))
    pace = _paces(table, np.r_[carried, mine])
    theirs, own = ([pace[at] for at in runs.tolist() if at in pace] for runs in (carried, mine))
    if not theirs or not own:
        return None
    far = np.log(np.median(theirs) / np.median(own))
    apart = min(theirs) > max(own) or max(theirs) < min(own)
    if not apart or abs(far) <= np.log(PACE):
        return None
    return (f"decodes of the carried prompt take {np.exp(far):.2f} times as long as decodes of the same shape in the "
            f"treatment's other runs, every run of the one beyond every run of the other, and both are the treatment's")


def _paces(table: RunTable, runs: np.ndarray) -> dict[int, float]:
    """By run: median time of its decodes over the median of all decodes of their shape behind the same shapes."""
    turns = table.turns
    rows = np.flatnonzero(np.isin(turns["owner"], runs))
    owner, width = turns["owner"][rows], turns["width"][rows].astype(np.int64)
    time = (turns["decode_ns"] + turns["rollback_ns"])[rows].astype(float)
    fresh = np.r_[True, owner[1:] != owner[:-1]]
    before = np.where(fresh, 0, np.r_[0, width[:-1]])
    last = np.where(fresh, 0, np.r_[0, before[:-1]])
    shape = np.unique(np.stack([width, before, last]), axis=1, return_inverse=True)[1].reshape(-1)
    ratio = np.full(len(rows), np.nan)
    for kind in range(int(shape.max()) + 1 if len(shape) else 0):
        if (here := shape == kind).sum() >= FEWEST:
            ratio[here] = time[here] / np.median(time[here])
    found = {int(at): ratio[owner == at] for at in runs}
    return {at: float(np.nanmedian(own)) for at, own in found.items() if np.isfinite(own).sum() >= FEWEST}

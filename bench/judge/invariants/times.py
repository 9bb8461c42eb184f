"""Times of runs, rounds and tokens, in absolute terms: they are nanoseconds of one clock. It looks at no token's id."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from bench.judge.invariants.places import places
from bench.judge.measure.runs import known_counts
from bench.judge.measure.tokens import arrays
from bench.records.arms import PLAIN

if TYPE_CHECKING:
    from bench.judge.measure.case import Case
    from bench.judge.measure.runs import RunTable

FILLED = 0.95
"""Least share of a window that its rounds account for; what a loop does between them is a few per cent at most."""
HICCUP_NS = 10_000_000
"""The system may take so much between two rounds of a run, which can be more than that share of a short window."""
PARTED = 0.9
"""Least share of a run's rounds that drafting, decoding, sampling and rolling back account for."""
BETWEEN = 0.05
"""Share of a run that may lie between the segments of several prompts beside their prefills."""
QUICKEST = 0.5
"""A decode of one row or more against the quickest plain one of the cell."""
LONGER, OF_WINDOW = 1.5, 0.2
"""A treatment whose prefill is this much longer, by this share of the baseline's window, did something else there."""
CLOCK = 0.05
"""Largest difference between the clocks of two arms."""


def windows_add_up(case: Case) -> str | None:
    """Window against start and end: equal, but for the prefills between the prompts of a plain arm."""
    table, runs = case.runs, arrays(case.cell.runs)
    span, window, prefill = (_whole(values) for values in (
        runs["end_ns"] - runs["start_ns"], runs["decode_window_ns"], runs["prefill_ns"]))  # fmt: skip
    prefill = prefill + known_counts(runs.get("restore_ns"), len(prefill))
    outside = span - window
    several = table.any_of(PLAIN) & (table.tokens.streams > 1)
    wrong = np.where(several, (outside < 0) | (outside > prefill + BETWEEN * span), outside != 0)
    return _first(case, wrong, lambda at: (
        f"its window is {window[at] * 1e-6:.3f} ms, and it lasts {span[at] * 1e-6:.3f} ms from start to end"
    ))  # fmt: skip


def rounds_fill_the_window(case: Case) -> str | None:
    """Sum of rounds against the window, for every run by itself: a common factor of two arms does not cancel.

    A short run may lose more by a hiccup of the system; the runs of an arm together may not.
    """
    table = case.runs
    window, total = _whole(case.cell.runs["decode_window_ns"]), _sums(table)
    gap = window - total
    loose = gap > (1 - FILLED) * window
    shares = np.bincount(table.arm_code, weights=gap / np.maximum(window, 1))
    often = (shares > (1 - FILLED) * np.bincount(table.arm_code))[table.arm_code]
    return _first(case, (gap < 0) | (loose & (often | (gap > HICCUP_NS))), lambda at: (
        f"its rounds last {total[at] * 1e-6:.3f} ms in all, and its window {window[at] * 1e-6:.3f} ms"
    ))  # fmt: skip


def parts_fill_the_rounds(case: Case) -> str | None:
    """Drafting, decoding, sampling and rolling back against the rounds that they are the parts of, run by run."""
    table = case.runs
    parts = np.zeros(len(table.run), dtype=np.int64)
    for name in ("draft_ns", "decode_ns", "sample_ns", "rollback_ns"):
        np.add.at(parts, table.turns["owner"], _whole(table.turns[name]))
    total = _sums(table)
    return _first(case, parts < PARTED * total, lambda at: (
        f"its rounds last {total[at] * 1e-6:.3f} ms, and their parts {parts[at] * 1e-6:.3f} ms"
    ))  # fmt: skip


def emits_in_their_rounds(case: Case) -> str | None:
    """Every emit after the rounds before its own have passed since the start, and before those behind it."""
    table, runs, place = case.runs, arrays(case.cell.runs), case.once(places)
    turns, emits = table.turns, table.emits
    total, begins = _whole(turns["total_ns"]), place.begins
    passed = np.cumsum(total) - total
    before = passed - passed[begins][turns["owner"]]
    after = _sums(table)[turns["owner"]] - before - total
    owner, told = emits["owner"], emits["round"] >= 0
    stray = emits["round"] >= table.rounds[owner]
    if stray.any():
        at = int(np.flatnonzero(stray)[0])
        return f"run {emits['run'][at]} says a token in round {emits['round'][at]}, which it does not have"
    row = place.of_emit
    start, end, when = _whole(runs["start_ns"])[owner], _whole(runs["end_ns"])[owner], _whole(emits["t_ns"])
    wrong = told & ((when < start + before[row]) | (when > end - after[row]))
    wrong |= ~told & ((when > end) | ((when > start) & ~table.any_of(PLAIN)[owner]))
    if not wrong.any():
        return None
    at = int(np.flatnonzero(wrong)[0])
    return (f"run {emits['run'][at]} ({table.arm[owner[at]]}) says position {emits['position'][at]} of stream "
            f"{emits['stream'][at]} at {(when[at] - start[at]) * 1e-6:.3f} ms, outside its round; "
            f"{int(wrong.sum())} rows in all")  # fmt: skip


def rounds_decode(case: Case) -> str | None:
    """The decode of each round against plain decoding's quickest.

    What a decode pays for a copy made before it is booked as rollback, and that share is an estimate: both count here.
    """
    table = case.runs
    time, owner = table.turns["decode_ns"] + table.turns["rollback_ns"], table.turns["owner"]
    plain = time[table.of("baseline")[owner]]
    least = QUICKEST * float(plain.min())
    fast = np.flatnonzero(time < least)
    if not len(fast):
        return None
    at = fast[0]
    return (f"round {table.turns['round'][at]} of run {table.turns['run'][at]} ({table.arm[owner[at]]}) decodes in "
            f"{time[at] * 1e-6:.4f} ms, and the baseline's quickest decode takes {2e-6 * least:.4f} ms")  # fmt: skip


def prefills_alike(case: Case) -> str | None:
    """Time before the window that the record calls prefill, treatment against baseline of the same block."""
    table = case.runs
    prefill, window = _whole(case.cell.runs["prefill_ns"]), _whole(case.cell.runs["decode_window_ns"])
    base, mine = table.of("baseline"), table.of("treatment")
    left, right, span = (float(np.median(values)) for values in (prefill[base], prefill[mine], window[base]))
    if right <= LONGER * left or right - left <= OF_WINDOW * span:
        return None
    return (f"the treatment's prefill takes {right * 1e-6:.1f} ms and the baseline's {left * 1e-6:.1f} ms for the same "
            f"prompts: it decodes outside its window")  # fmt: skip


def clocks_alike(case: Case) -> str | None:
    """Median clock of treatment and baseline; read in both, or in neither."""
    table = case.runs
    clocks = [table.clock_mhz[table.of(arm)] for arm in ("baseline", "treatment")]
    base, mine = (float(np.median(known)) if len(known := values[np.isfinite(values) & (values > 0)]) else np.nan
                  for values in clocks)  # fmt: skip
    if np.isnan(base) != np.isnan(mine):
        return f"the clock was read while {'the treatment' if np.isnan(base) else 'the baseline'} ran, and never else"
    if not abs(np.log(mine / base)) > CLOCK:
        return _memory_clocks(case)
    return f"the treatment ran at {mine:.0f} MHz and the baseline at {base:.0f} MHz"


def _memory_clocks(case: Case) -> str | None:
    """The same of the device's memory, where it is told."""
    read = np.asarray(arrays(case.cell.runs)["memory_mhz"], dtype=float)
    base, mine = (read[case.runs.of(arm) & (read > 0)] for arm in ("baseline", "treatment"))
    if not len(base) or not len(mine) or abs(np.log(np.median(mine) / np.median(base))) <= CLOCK:
        return None
    return f"the treatment's memory ran at {np.median(mine):.0f} MHz and the baseline's at {np.median(base):.0f} MHz"


def _whole(values: np.ndarray) -> np.ndarray:
    """Nanoseconds as integers: as floats of this size they would lose digits."""
    return np.asarray(values).astype(np.int64)


def _sums(table: RunTable) -> np.ndarray:
    """Nanoseconds of all rounds, by run."""
    total = np.zeros(len(table.run), dtype=np.int64)
    np.add.at(total, table.turns["owner"], _whole(table.turns["total_ns"]))
    return total


def _first(case: Case, wrong: np.ndarray, sentence: Callable[[int], str]) -> str | None:
    found = np.flatnonzero(wrong)
    if not len(found):
        return None
    at = int(found[0])
    return f"run {case.runs.run[at]} ({case.runs.arm[at]}): {sentence(at)}; {len(found)} runs in all"

"""Runs that took turns: their windows by the machine's clock, which the times of such runs do not tell.

A run's own clock stands still while another has its turn, so whatever holds for the times of whole runs holds for these
too. Here it is held against the machine's: turns do not overlap, add up, come in the order of their runs, and leave no
time between them in which something else could have been done. It looks at no token but to count those of a turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bench.judge.invariants.times import FILLED
from bench.judge.measure.runs import known_counts
from bench.judge.measure.tokens import arrays, owners

if TYPE_CHECKING:
    from bench.judge.measure.case import Case
    from bench.judge.measure.runs import RunTable

TURNING = ("baseline", "again", "treatment")
"""Arms that take turns: each has a context of its own."""
MORE = 1e-3
"""Seconds that a group of runs may leave between its turns beside a share of its span: switching takes microseconds."""
HANDED = 0.02
"""And for each change of turns where each side has a process: the one that goes on waits for a CPU that others may
have, and the one that went is stopped, which `idle_cpus` watches."""

Columns = dict[str, np.ndarray]


def turns_are_told(case: Case) -> str | None:
    """Pieces of all runs that take turns, against their windows, their rounds, each other, and what was asked for."""
    table, measure = case.runs, case.cell.config.get("measure") or {}
    told, chunk = case.cell.facts.get("turns") or {}, int(measure.get("chunk") or 0)
    taking = bool(told.get("arms"))
    pieces = {name: values.astype(np.int64) for name, values in arrays(case.cell.pieces).items()}
    if (taking and not chunk) or (taking and told.get("chunk") != chunk):
        return f"runs took turns of {told.get('chunk')} tokens, and {chunk} were configured"
    if not taking:
        return f"{len(pieces['run'])} turns are stored, and no arm took any" if len(pieces["run"]) else None
    pieces["owner"] = owners(table.run, pieces["run"]).astype(np.int64)
    lone = np.setxor1d(np.flatnonzero(table.any_of(TURNING)), pieces["owner"])
    if len(lone):
        return f"run {table.run[lone[0]]} ({table.arm[lone[0]]}) is one that takes turns, or has some, but not both"
    return _of_runs(case, pieces) or _of_groups(case, pieces) or _as_long_as_asked(table, pieces, chunk)


def _of_runs(case: Case, pieces: Columns) -> str | None:
    """Each run by itself: pieces in order, as long as its window, and no shorter than the rounds in them."""
    table, owner = case.runs, pieces["owner"]
    length = pieces["end_ns"] - pieces["start_ns"]
    window, whole = np.asarray(case.cell.runs["decode_window_ns"]).astype(np.int64), np.zeros(len(table.run), np.int64)
    np.add.at(whole, owner, length)
    mine = table.any_of(TURNING)
    wrong = np.flatnonzero(mine & (whole != window))
    if len(wrong):
        at = wrong[0]
        return (f"the turns of run {table.run[at]} ({table.arm[at]}) last {whole[at] * 1e-6:.3f} ms in all, and its "
                f"window {window[at] * 1e-6:.3f} ms; {len(wrong)} runs in all")  # fmt: skip
    begins = np.searchsorted(table.turns["owner"], owner) + pieces["round"]  # rounds of a run lie together, in order
    last = np.searchsorted(table.turns["owner"], owner, side="right")
    same = np.r_[owner[1:] == owner[:-1], False]
    ends = np.where(same, np.r_[begins[1:], 0], last)
    first = np.r_[True, owner[1:] != owner[:-1]]
    passed = np.r_[0, np.cumsum(table.turns["total_ns"].astype(np.int64))]
    wrong = (length < 0) | (first & (pieces["round"] != 0)) | (ends < begins) | (begins > last)
    wrong |= passed[np.minimum(np.maximum(ends, 0), last)] - passed[np.minimum(begins, last)] > length
    wrong |= np.r_[False, (owner[1:] == owner[:-1]) & (pieces["start_ns"][1:] < pieces["end_ns"][:-1])]
    wrong |= pieces["start_ns"] < table.start_ns[owner]
    if not wrong.any():
        return None
    at = int(np.flatnonzero(wrong)[0])
    return (f"turn {pieces['turn'][at]} of run {pieces['run'][at]} ({table.arm[owner[at]]}) is shorter than the rounds "
            f"in it, or out of its place; {int(wrong.sum())} turns in all")  # fmt: skip


def _of_groups(case: Case, pieces: Columns) -> str | None:
    """The runs of a block that share a seed are open at once: their turns by the machine's clock."""
    table, owner = case.runs, pieces["owner"]
    runs = arrays(case.cell.runs)
    prefill = runs["prefill_ns"].astype(np.int64) + known_counts(runs.get("restore_ns"), len(table.run))
    handed = HANDED if case.cell.facts.get("sides") else 0.0
    group = table.block[owner] * 2 + (table.order[owner] * 2 > _last(table)[owner])
    for one in np.unique(group):
        rows = np.flatnonzero(group == one)
        rows = rows[np.argsort(pieces["start_ns"][rows], kind="stable")]
        start, end = pieces["start_ns"][rows], pieces["end_ns"][rows]
        where = f"of block {table.block[owner[rows[0]]]}"
        if (start[1:] < end[:-1]).any():
            return f"the turns {where} overlap"
        turn, order = pieces["turn"][rows], table.order[owner[rows]]
        if (np.lexsort((np.arange(len(rows)), order, turn)) != np.arange(len(rows))).any():
            return f"the turns {where} are not in the order of its runs"
        between = int((start[1:] - end[:-1]).sum())
        own = int(prefill[np.unique(owner[rows])][table.tokens.streams[np.unique(owner[rows])] > 1].sum())
        if between - own > (1 - FILLED) * (end[-1] - start[0]) + (MORE + handed * (len(rows) - 1)) * 1e9:
            return f"between the turns {where} lie {between * 1e-6:.3f} ms in which none of its runs was under way"
    return None


def _as_long_as_asked(table: RunTable, pieces: Columns, chunk: int) -> str | None:
    """A plain arm says one token a round, so its turns can be counted."""
    base = np.flatnonzero(table.of("baseline"))
    found = np.array([len(np.unique(pieces["turn"][pieces["owner"] == run])) for run in base])
    wanted = -(-(table.n_predict[base] - 1) // chunk)
    wrong = np.flatnonzero((found < wanted) | (found > wanted + 1))
    if not len(wrong):
        return None
    at = wrong[0]
    return (f"run {table.run[base[at]]} (baseline) has {found[at]} turns, and {table.n_predict[base[at]]} tokens in "
            f"turns of {chunk} are {wanted[at]}")  # fmt: skip


def _last(table: RunTable) -> np.ndarray:
    """(runs,) the last place of each run's block."""
    last = np.zeros(int(table.block.max()) + 1, dtype=np.int64)
    np.maximum.at(last, table.block, table.order)
    ends: np.ndarray = last[table.block]
    return ends


def runs_follow_each_other(case: Case) -> str | None:
    """By their numbers, and inside a block by their places: each starts when the one before has ended.

    Runs that took turns are one in this; among themselves `turns_are_told` looks at them.
    """
    table, (start, end) = case.runs, machine_times(case)
    for order, what in ((np.argsort(table.run), "number"), (np.lexsort((table.order, table.block)), "place")):
        block = table.block[order]
        near = (block[1:] == block[:-1]) | (what == "number")
        at_once = (start[order][1:] == start[order][:-1]) & (end[order][1:] == end[order][:-1])
        early = np.flatnonzero(near & ~at_once & (start[order][1:] < end[order][:-1]))
        if len(early):
            first, then = table.run[order[early[0]]], table.run[order[early[0] + 1]]
            return f"run {then} starts before run {first} has ended, which goes before it by its {what}"
    return None


def machine_times(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """(runs,) when each run's window began and ended by the machine's clock; those that took turns at once are one."""
    table, runs = case.runs, arrays(case.cell.runs)
    start, end = (runs[name].astype(np.int64).copy() for name in ("start_ns", "end_ns"))
    pieces = arrays(case.cell.pieces)
    if not len(pieces["run"]):
        return start, end
    owner = owners(table.run, pieces["run"]).astype(np.int64)
    group = table.block * 2 + (table.order * 2 > _last(table))
    for one in np.unique(group[owner]):
        rows, members = group[owner] == one, np.zeros(len(start), dtype=bool)
        members[np.unique(owner[rows])] = True
        start[members] = int(pieces["start_ns"][rows].min())
        end[members] = int(pieces["end_ns"][rows].max())
    return start, end

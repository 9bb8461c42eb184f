"""Stalls: time that one of two runs of identical work lost and the other did not, found round by round.

Fixed before any run. A block decodes the same work twice with each arm. A round that took longer than the same round of
the other run, by more than `allowed`, lost time to something outside: it counts with the time of the other one. What is
slow in both stays, such as a change of width. The records keep every stall; the estimate has none.

A run that is slower than the other throughout is another matter: which of the two is the odd one, nothing tells. Its
rounds are held against the other's times their median ratio, so that such a level stays in the estimate and in its
noise (named as `WHOLE`); only in a run that takes twice as long in all nothing is noise.

What comes from outside hits both arms. Where one arm's runs are disturbed more often than the other's, by more than
chance at the time that each ran (`OWN`), the stalls are its own work: they are listed and stay in the estimate.

Work is identical where both runs have the same rounds: phase, width, guesses and decodes. Where an arm's are not (above
temperature 0, with another seed), a round is held against the median of the arm's rounds of its shape behind the same
two shapes, or as soon after a change, and only twice as long is a stall. The arms of a block are always treated alike.
It knows no method, and not what took the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from bench.judge.measure.runs import TIMES, RunTable, totals

USUAL_TIMES = 6.0
"""How many times the cell's usual difference between two rounds of the same work is no stall yet."""
LEAST, MOST = float(np.log(1.10)), float(np.log(2.0))
"""No round within 10 % of the other is a stall, and every round that took twice as long is one."""
MATTERS = 0.01
"""A run that lost this share of its time is disturbed, where arms are compared by their disturbed runs."""
OWN = 0.02
"""Chance at which stalls from outside would hit one of the two arms so much more often."""
FEWEST = 5
"""Rounds of a shape whose median says how long it takes."""
LISTED = 0.05
"""A round that lost this share of its run has a row of its own; so have a run's others together."""
BETWEEN, WHOLE, SEVERAL = -1, -2, None
"""In place of a round's number: time between rounds, a run that is slow throughout, and several short ones."""
SHAPE = ("width", "drafted", "redecoded")
_OF_THE_WORK = ("_arms", "arm_code", "prompt_code", "text_code", "_masks", "concurrent", "confirmed")
"""What is computed once of a table and does not depend on its times."""


@dataclass(frozen=True, slots=True)
class Stall:
    """Time that a run lost: in which round, how much, and what the same work took elsewhere. Times in seconds.

    What a run lost as a whole (`WHOLE`) is still in the estimate.
    """

    run: int
    """Index of the run in its table."""
    round: int | None
    rounds: int
    lost: float
    took: float
    other: float
    share: float
    """Lost over the run's time without stalls."""


@dataclass(frozen=True)
class Settled:
    """The runs of a cell without their stalls."""

    table: RunTable
    stalls: tuple[Stall, ...]
    lost: np.ndarray
    """(runs,) seconds that each run lost, in rounds that have no row of their own too."""
    allowed: float
    """Log ratio up to which two rounds of the same work differ without a stall."""
    unknown: np.ndarray
    """(runs,) log of the run's time with its stalled rounds up to twice as long as they count, over its time without:
    what was replaced might be noise as well, and the estimate of the noise has that in it."""
    paired: np.ndarray
    """(runs,) whether the run was held against its twin; the others against rounds of their shape."""
    own: str = ""
    """The arm whose own work the stalls are, so that they are in `table` still; empty where they are from outside."""

    @property
    def share(self) -> float:
        """Share of the cell's time that stalls took."""
        lost = float(self.lost.sum())
        return lost / (float(self.table.window.sum()) + (0.0 if self.own else lost))


def settled(table: RunTable) -> Settled:
    """The runs without stalls, and the stalls. Without rounds nothing tells a stall from work."""
    if not len(table.turns["run"]):
        nothing = np.zeros(len(table.run))
        return Settled(table, (), nothing, MOST, nothing, np.zeros(len(table.run), dtype=bool))
    order = np.lexsort((table.turns["round"], table.turns["owner"]))
    starts = np.concatenate([[0], np.cumsum(table.rounds)])
    total = table.turns["total_ns"][order].astype(float)
    twin, paired = _twins(table, order, starts)
    allowed = _allowed(total, twin)
    level = _levels(total, twin, starts, paired)
    expected = np.where(twin >= 0, total[np.maximum(twin, 0)], np.nan) * np.exp(np.repeat(level, table.rounds))
    expected = np.maximum(expected, 1.0)  # a clock that did not move is no measure
    loose = ~np.repeat(paired, table.rounds)
    if loose.any():
        expected[loose] = _usual(table, order, starts, total)[loose]
    limit = np.where(loose, MOST, allowed)
    with np.errstate(invalid="ignore", divide="ignore"):
        stalled = np.log(total / expected) > limit
    gaps = _gaps(table, total, starts, paired)
    lost = np.add.reduceat(np.where(stalled, total - expected, 0.0), starts[:-1]) * 1e-9 + gaps
    slow = [_slow(table, run, float(level[run])) for run in np.flatnonzero(level > allowed).tolist()]
    if not lost.any():
        return Settled(table, tuple(slow), lost, allowed, lost, paired)
    made = _without(table, order, stalled, expected, twin, gaps)
    found = tuple(_listed(table, made, order, starts, stalled, expected, total, gaps))
    if own := _own(table, made.window, lost):
        return Settled(table, (*found, *slow), lost, allowed, np.zeros_like(lost), paired, own)
    # A round that counts as the other's brings that one's error in a second time, and it may have been noise itself.
    might = np.where(stalled, np.minimum(total - expected, expected * (np.exp(MOST) - 1)), 0.0)
    unknown = np.log1p(np.add.reduceat(might, starts[:-1]) * 1e-9 / made.window)
    return Settled(made, (*found, *slow), lost, allowed, unknown, paired)


def _own(table: RunTable, window: np.ndarray, lost: np.ndarray) -> str:
    """The arm whose runs are disturbed more often than chance allows, empty for none.

    Of so many disturbed runs each is an arm's with the share of time that it ran; exact binomial tails on both sides.
    """
    hit = lost > MATTERS * window
    runs = {arm: table.of(arm) for arm in ("treatment", "baseline")}
    counts = {arm: int(hit[mask].sum()) for arm, mask in runs.items()}
    time = {arm: float(window[mask].sum()) for arm, mask in runs.items()}
    both, whole = sum(counts.values()), sum(time.values())
    if not both or not whole > 0:
        return ""
    for arm, count in counts.items():
        # Chance of as many or more among all that were disturbed.
        if count and special.betainc(count, both - count + 1, time[arm] / whole) < OWN / 2:
            return arm
    return ""


def _levels(total: np.ndarray, twin: np.ndarray, starts: np.ndarray, paired: np.ndarray) -> np.ndarray:
    """(runs,) median log ratio of a run's rounds to the other run's; 0 without one and where one took twice as long."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(twin >= 0, np.log(total / total[np.maximum(twin, 0)]), 0.0)
    size = np.diff(starts)
    ranked = ratios[np.lexsort((ratios, np.repeat(np.arange(len(size)), size)))]
    middle = (ranked[starts[:-1] + (size - 1) // 2] + ranked[starts[:-1] + size // 2]) / 2
    whole, other = np.add.reduceat(total, starts[:-1]), np.add.reduceat(total[np.maximum(twin, 0)], starts[:-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        known = paired & np.isfinite(middle) & (np.abs(middle) <= MOST) & (np.abs(np.log(whole / other)) <= MOST)
    levels: np.ndarray = np.where(known, middle, 0.0)
    return levels


def _slow(table: RunTable, run: int, level: float) -> Stall:
    """A run that took longer than the other one throughout."""
    took = float(table.window[run])
    other = took * float(np.exp(-level))
    return Stall(run, WHOLE, int(table.rounds[run]), took - other, took, other, took / other - 1)


def _twins(table: RunTable, order: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each round in `order` the same round of the other run, -1 where there is none; and which runs have a twin.

    A block counts only as a whole: were one arm held against its twin and the other not, they would not be alike.
    """
    twin = np.full(len(order), -1, dtype=np.int64)
    other = _other_runs(table)
    same = other >= 0
    same &= table.rounds == table.rounds[other]
    runs = np.flatnonzero(same)
    sizes = table.rounds[runs]
    steps = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    here = np.repeat(starts[runs], sizes) + steps
    there = np.repeat(starts[other[runs]], sizes) + steps
    differs = np.zeros(len(here), dtype=bool)
    for name in ("phase", *SHAPE):
        column = table.turns[name][order]
        differs |= column[here] != column[there]
    same[np.repeat(runs, sizes)[differs]] = False
    whole = np.ones(int(table.block.max()) + 1, dtype=bool)
    whole[table.block[~same]] = False
    paired = whole[table.block]
    kept = paired[np.repeat(runs, sizes)]
    twin[here[kept]] = there[kept]
    return twin, paired


def _other_runs(table: RunTable) -> np.ndarray:
    """(runs,) index of the other run of the same arm in the same block; -1 where it has not exactly two."""
    key = table.block * (int(table.arm_code.max()) + 1) + table.arm_code
    order = np.argsort(key, kind="stable")
    _, first, count = np.unique(key[order], return_index=True, return_counts=True)
    other = np.full(len(key), -1, dtype=np.int64)
    pairs = first[count == 2]
    other[order[pairs]], other[order[pairs + 1]] = order[pairs + 1], order[pairs]
    return other


def _allowed(total: np.ndarray, twin: np.ndarray) -> float:
    """How far two rounds of the same work differ in this cell without a stall, as a log ratio."""
    known = np.flatnonzero(twin >= 0)
    if not len(known):
        return MOST
    with np.errstate(divide="ignore", invalid="ignore"):
        usual = float(np.median(np.abs(np.log(total[known] / total[twin[known]]))))
    return float(np.clip(USUAL_TIMES * usual, LEAST, MOST)) if np.isfinite(usual) else MOST


def _usual(table: RunTable, order: np.ndarray, starts: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Median time of the arm's rounds of each round's shape that came behind the same two; nan where there are few.

    Where these are few, of its rounds of that shape that came as soon after a change of it: the first and the second
    may be no stall and yet take several times as long as the later ones, as on a device that makes graphs again.
    """
    parts = [table.turns[name][order].astype(np.int64) for name in SHAPE]
    shape = np.zeros(len(order), dtype=np.int64)
    for part in (table.arm_code[table.turns["owner"][order]], *parts):
        shape = shape * (int(part.max(initial=0)) + 1) + part
    shape = np.unique(shape, return_inverse=True)[1]
    before = [np.concatenate([[-1] * back, shape])[: len(shape)] for back in (1, 2)]
    for back in (0, 1):
        for late in range(back + 1):
            first = starts[:-1][np.diff(starts) > late]
            before[back][first + late] = -1
    same = [one == shape for one in before]
    age = same[0].astype(np.int64) + (same[0] & same[1])
    most = int(shape.max(initial=0)) + 2
    behind = _medians(((before[1] + 1) * most + before[0] + 1) * most + shape, total)
    return np.where(np.isnan(behind), _medians(shape * 3 + age, total), behind)


def _medians(values: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Of each round the median time of those with its value; nan where they are few."""
    kinds, kind = np.unique(values, return_inverse=True)
    usual = np.full(len(kinds), np.nan)
    rank = np.lexsort((total, kind))
    count = np.bincount(kind, minlength=len(kinds))
    ends = np.cumsum(count)
    enough = count >= FEWEST
    low, high = (ends - count + (count - 1) // 2)[enough], (ends - count + count // 2)[enough]
    usual[enough] = (total[rank[low]] + total[rank[high]]) / 2
    return usual[kind]


def _gaps(table: RunTable, total: np.ndarray, starts: np.ndarray, paired: np.ndarray) -> np.ndarray:
    """(runs,) seconds between rounds that only one of two runs took, where they are more than 10 % of the other run."""
    between = table.window - np.add.reduceat(total, starts[:-1]) * 1e-9
    other = np.where(paired, _other_runs(table), np.arange(len(between)))
    more = between - between[other]
    return np.where(more > (np.exp(LEAST) - 1) * table.window[other], more, 0.0)


def _without(
    table: RunTable, order: np.ndarray, stalled: np.ndarray, expected: np.ndarray, twin: np.ndarray, gaps: np.ndarray
) -> RunTable:
    """The table with every stalled round as the other run's was at the run's level, or as the median of its shape."""
    turns = dict(table.turns)
    at = order[stalled]
    # Of the other run's round, or its own where it has no other that took time, every part in proportion.
    took = table.turns["total_ns"]
    has = (twin[stalled] >= 0) & (took[order[twin[stalled]]] > 0)
    source = order[np.where(has, twin[stalled], np.flatnonzero(stalled))]
    shrink = expected[stalled] / took[source]
    for name in TIMES:
        column = table.turns[name].astype(float)
        column[at] = column[source] * shrink
        turns[name] = column
    startup, seconds, rebuilt = totals(turns, len(table.run))
    window = np.maximum(table.window - gaps - (table.seconds["total"] - seconds["total"]), seconds["total"])
    made = replace(table, window=window, startup_seconds=startup, seconds=seconds, rebuilt=rebuilt, turns=turns)
    vars(made).update({name: value for name, value in vars(table).items() if name in _OF_THE_WORK})
    return made


def _listed(
    table: RunTable, made: RunTable, order: np.ndarray, starts: np.ndarray, stalled: np.ndarray,
    expected: np.ndarray, total: np.ndarray, gaps: np.ndarray,
) -> Iterator[Stall]:  # fmt: skip
    """The stalls worth a row, in the order of runs and rounds."""
    lost = np.where(stalled, total - expected, 0.0) * 1e-9
    number = table.turns["round"][order]
    for run in np.flatnonzero(np.add.reduceat(lost, starts[:-1]) + gaps > LISTED * made.window).tolist():
        whole = float(made.window[run])
        rounds = np.flatnonzero(stalled[starts[run]:starts[run + 1]]) + starts[run]
        alone = rounds[lost[rounds] > LISTED * whole]
        rest = rounds[lost[rounds] <= LISTED * whole]
        for place in alone.tolist():
            gone, took = float(lost[place]), float(total[place]) * 1e-9
            yield Stall(run, int(number[place]), 1, gone, took, took - gone, gone / whole)
        if lost[rest].sum() > LISTED * whole:
            gone, took = float(lost[rest].sum()), float(total[rest].sum()) * 1e-9
            yield Stall(run, SEVERAL, len(rest), gone, took, took - gone, gone / whole)
        if gaps[run] > LISTED * whole:
            took = float(table.window[run] - table.seconds["total"][run])
            yield Stall(run, BETWEEN, 0, float(gaps[run]), took, took - float(gaps[run]), float(gaps[run]) / whole)


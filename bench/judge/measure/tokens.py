"""Counts of tokens, from the ledger alone.

It knows nothing about methods, arms or models: a token is a (stream, position), and emitting it again does not make it
two. Text is never tokenised again; what was emitted is what is counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pti_loop.ledger import RecordError

if TYPE_CHECKING:
    import pandas as pd

    from bench.records.cells import Columns, StoredCell

FINE, DUPLICATE, OVER, GAP = "distinct", "duplicate", "over_requested", "gap"
TIMELINE_POINTS = 200


@dataclass(frozen=True, slots=True)
class TokenCount:
    """Tokens of one ledger, whether or not anything confirmed them.

    `first` of them came from prefill logits, before any decode window can start.
    """

    counted: int
    distinct: int
    first: int
    conflicts: int
    """Emit rows that put another token id where one had been emitted before."""
    gaps: int
    """Positions skipped between the first and the last of a stream."""
    streams: int
    requested: int | None

    @property
    def duplicates(self) -> int:
        return self.counted - self.distinct

    @property
    def verdict(self) -> str:
        """`duplicate`, `over_requested`, `gap` or `distinct`, the gravest first."""
        if self.duplicates:
            return DUPLICATE
        if self.requested is not None and self.counted > self.requested:
            return OVER
        return GAP if self.gaps else FINE

    def tok_s(self, seconds: float, first_inside: bool = False) -> float:
        """Distinct tokens per second of all streams together.

        Tokens and seconds have to cover the same interval: a window that starts when the first token is there holds
        one token less a stream. `first_inside` is for a source whose seconds include the making of that token.
        """
        return (self.distinct - (0 if first_inside else self.first)) / seconds

    def counted_tok_s(self, seconds: float, first_inside: bool = False) -> float:
        """What a counter of emit calls would print. Not a speed when `duplicates` is above 0."""
        return (self.counted - (0 if first_inside else self.first)) / seconds


@dataclass(frozen=True)
class RunCounts:
    """Per run of a cell, in the order of the run ids asked for. Prefill tokens are outside every count but `first`."""

    counted: np.ndarray
    distinct: np.ndarray
    first: np.ndarray
    duplicates: np.ndarray
    conflicts: np.ndarray
    gaps: np.ndarray
    streams: np.ndarray
    startup: np.ndarray
    """Distinct tokens whose first emission was in a start-up round."""
    unverified: np.ndarray
    """Positions that were said and never confirmed: no part of `distinct`, since nothing stands behind them."""


def count_tokens(ledger: pd.DataFrame, requested: int | None = None) -> TokenCount:
    """Count the tokens of one run. Columns: stream, position, token, and source or round where there are any.

    `requested` is the number of tokens that all streams together were asked for.
    """
    emits = {**arrays(ledger), "run": np.zeros(len(ledger), dtype=np.int64)}
    counts = count_runs(emits, np.array([0]))
    first = int(counts.first[0])
    return TokenCount(
        counted=len(ledger),
        distinct=int(counts.distinct[0] + counts.unverified[0]) + first,
        first=first,
        conflicts=int(counts.conflicts[0]),
        gaps=int(counts.gaps[0]),
        streams=int(counts.streams[0]),
        requested=requested,
    )


def window_tok_s(ledger: pd.DataFrame) -> float:
    """Distinct tokens per second from the ledger's own times: intervals between tokens over the time they span.

    For one stream, or several that started together: the window opens with the last first token of a stream.
    """
    distinct = ledger.drop_duplicates(["stream", "position"])
    opened = distinct.groupby("stream")["t_ns"].min().max()
    inside = int((distinct["t_ns"] > opened).sum())
    return inside / (float(distinct["t_ns"].max() - opened) * 1e-9)


def arrays(table: Columns | pd.DataFrame) -> dict[str, np.ndarray]:
    """The columns of a table or a frame as plain arrays: looking one up costs nothing, unlike in a frame."""
    return {str(name): np.asarray(column) for name, column in table.items()}


def owners(runs: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Index into `runs` for each run id in `wanted`. Raises RecordError for an id that is not there."""
    if not len(wanted):
        return np.zeros(0, dtype=np.int64)
    rank = np.argsort(runs, kind="stable")
    ordered = runs[rank]
    place = np.minimum(np.searchsorted(ordered, wanted), len(runs) - 1)
    stray = wanted[ordered[place] != wanted] if len(runs) else wanted
    if len(stray):
        raise RecordError(f"rows of run {stray[0]} are stored, but the runs table has no such run")
    return rank[place]


def count_runs(emits: Columns, runs: np.ndarray, startup: tuple[np.ndarray, np.ndarray] | None = None) -> RunCounts:
    """Count every run of a cell at once. `startup` holds the runs and the numbers of the start-up rounds."""
    size = len(runs)
    if not len(emits["run"]):
        nothing = np.zeros(size, dtype=np.int64)
        return RunCounts(*([nothing] * 9))
    run = emits["owner"] if "owner" in emits else owners(runs, emits["run"])
    stream, position = emits["stream"].astype(np.int64), emits["position"].astype(np.int64)
    span_p, span_s = int(position.max()) + 1, int(stream.max()) + 1
    answer = run * span_s + stream
    key = answer * span_p + position
    # Stable, so that the first row of a key is its first emission.
    order = np.argsort(key, kind="stable")
    key, token = key[order], emits["token"][order]
    again = np.zeros(len(key), dtype=bool)
    again[1:] = key[1:] == key[:-1]
    changed = np.zeros(len(key), dtype=bool)
    changed[1:] = again[1:] & (token[1:] != token[:-1])
    kept = order[~again]
    prefill = _prefill(emits)
    sure = np.logical_or.reduceat(_confirmed(emits)[order], np.flatnonzero(~again))
    counts = kept[sure & ~prefill[kept]]

    def tally(rows: np.ndarray) -> np.ndarray:
        return np.bincount(run[rows], minlength=size)

    first = tally(kept[prefill[kept]])
    return RunCounts(
        counted=tally(np.flatnonzero(~prefill)),
        distinct=tally(counts),
        first=first,
        duplicates=tally(order[again]),
        conflicts=tally(order[changed]),
        gaps=_gaps(answer[kept], position[kept], run[kept], size),
        streams=np.bincount(np.unique(answer) // span_s, minlength=size),
        startup=tally(counts[_inside(emits, startup)[counts]]),
        unverified=tally(kept[~sure & ~prefill[kept]]),
    )


def told_counts(cell: StoredCell, runs: np.ndarray) -> RunCounts:
    """Tokens as servers count them, for a cell whose servers give no ids and which has no ledger."""
    rows = arrays(cell.served)
    owner, size = owners(runs, rows["run"]), len(runs)
    streams = np.bincount(owner, minlength=size)
    told = np.bincount(owner, weights=rows["told"], minlength=size).astype(np.int64)
    nothing = np.zeros(size, dtype=np.int64)
    return RunCounts(counted=told - streams, distinct=told - streams, first=streams, duplicates=nothing,
                     conflicts=nothing, gaps=nothing, streams=streams, startup=nothing, unverified=nothing)  # fmt: skip


def timeline(emits: Columns, start_ns: int, points: int = TIMELINE_POINTS) -> dict[str, np.ndarray]:
    """Counted and distinct tokens over time for one run: t_s, counted, distinct; at most `points` of each.

    Prefill tokens are left out: the clock starts when they are there. So are positions that nothing ever confirmed.
    """
    order = np.argsort(emits["t_ns"], kind="stable")
    stream, position = emits["stream"][order].astype(np.int64), emits["position"][order].astype(np.int64)
    new = np.zeros(len(order), dtype=bool)
    key = stream * (int(position.max(initial=0)) + 1) + position
    first = np.unique(key, return_index=True)[1]
    new[first[np.isin(key[first], key[_confirmed(emits)[order]])]] = True
    rows = ~_prefill(emits)[order]
    times, distinct = (emits["t_ns"][order][rows] - start_ns) * 1e-9, np.cumsum(new[rows])
    shown = np.arange(len(times))
    if len(times) > points:
        shown = np.unique(np.linspace(0, len(times) - 1, points).round().astype(int))
    return {"t_s": times[shown], "counted": shown + 1, "distinct": distinct[shown]}


def _prefill(emits: Columns) -> np.ndarray:
    """Rows that the prefill's logits produced, by whichever column the ledger has."""
    found: np.ndarray = np.zeros(len(emits["stream"]), dtype=bool)
    if "round" in emits:
        found = emits["round"] < 0
    elif "source" in emits:
        found = emits["source"] == "prefill"
    return found


def _confirmed(emits: Columns) -> np.ndarray:
    """Rows that the model stands behind: all but those that say otherwise."""
    if "source" not in emits:
        return np.ones(len(emits["stream"]), dtype=bool)
    return np.asarray(emits["source"] != "unverified")


def _gaps(answer: np.ndarray, position: np.ndarray, run: np.ndarray, size: int) -> np.ndarray:
    """Positions left out inside each (run, stream); the input is sorted by answer, then position."""
    missing = np.zeros(len(position))
    missing[1:] = np.where(answer[1:] == answer[:-1], np.diff(position) - 1, 0)
    return np.bincount(run, weights=missing, minlength=size).astype(np.int64)


def _inside(emits: Columns, rounds: tuple[np.ndarray, np.ndarray] | None) -> np.ndarray:
    """Rows emitted in one of the given (run, round) pairs."""
    if rounds is None or not len(rounds[0]):
        return np.zeros(len(emits["run"]), dtype=bool)
    span = int(max(rounds[1].max(), emits["round"].max())) + 2
    return np.isin(emits["run"] * span + emits["round"] + 1, rounds[0] * span + rounds[1] + 1)

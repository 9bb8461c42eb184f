"""Which of a cell's own records a reader is shown: every run, and rounds, tokens and guesses of a few of them.

A choice and no figure. The run of the treatment is that of median speed, with plain decoding of the same prompt beside
it; where an answer leaves the baseline's, the first such pair comes behind. A record that contradicts itself is shown
as far as it goes. It opens no file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.judge.measure.runs import run_table
from bench.judge.measure.tokens import arrays
from bench.judge.measure.tokens_over_time import middle_run
from bench.judge.traces import AGAIN, LOOSE, NEW, Trace, Traces
from bench.records.rows import TABLES
from pti_loop.ledger import RecordError

if TYPE_CHECKING:
    from bench.judge.measure.runs import RunTable
    from bench.records.cells import StoredCell

MOST_RUNS, MOST_ROUNDS, MOST_ROWS = 400, 400, 2000
"""Runs of a cell, and rounds and ledger rows of one of them, that are kept; the files have all."""
ROUND = ("round", "phase", "width", "draft_ns", "decode_ns", "sample_ns", "rollback_ns", "total_ns", "drafted",
         "verified", "accepted", "redecoded")  # fmt: skip
EMIT = ("stream", "position", "token", "round", "source", "t_ns")
DRAW = ("round", "depth", "position", "guess", "drawn")


def traces_of(cell: StoredCell) -> Traces:
    """What there is to see of a cell, however little that is. Raises whatever a damaged record makes of it."""
    weights = str((cell.facts.get("model") or {}).get("sha256") or "")
    files = tuple(name for name in TABLES if len(next(iter(arrays(getattr(cell, name)).values()), ())))
    bare = Traces(cell.machine, cell.cell, cell.config, files, weights)
    if "runs" not in files:
        return bare
    runs = arrays(cell.runs)
    table: RunTable | None = None
    with suppress(RecordError):
        table = run_table(cell)
    pairs = _pairs(cell, runs, table)
    wanted = list(dict.fromkeys(run for pair in pairs for run in pair if run is not None))
    shown = tuple(_trace(cell, run) for run in wanted)
    places = {run: place for place, run in enumerate(wanted)}
    return Traces(
        cell.machine, cell.cell, cell.config, files, weights, runs=_listed(_counted(table, runs), slice(MOST_RUNS)),
        all_runs=len(runs["run"]), shown=shown,
        pairs=tuple((places[one], None if other is None else places[other]) for one, other in pairs),
    )  # fmt: skip


def _listed(columns: Mapping[str, np.ndarray], rows: Any) -> dict[str, list[Any]]:
    return {name: values[rows].tolist() for name, values in columns.items()}


def _counted(table: RunTable | None, runs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    with suppress(RecordError):
        if table is not None:
            return {**runs, "counted": table.tokens.counted, "distinct": table.tokens.distinct}
    return dict(runs)


def _pairs(cell: StoredCell, runs: Mapping[str, np.ndarray],
           table: RunTable | None) -> list[tuple[int, int | None]]:  # fmt: skip
    """Numbers of the runs that are shown, each of the treatment with plain decoding beside it."""
    treated = np.flatnonzero(runs["arm"] == "treatment")
    if not len(treated):
        return []
    chosen = [int(treated[0])]
    with suppress(RecordError):
        if table is not None:
            chosen = [middle_run(table, "treatment")]
    if (differing := _differing(cell, runs, treated)) is not None and differing not in chosen:
        chosen.append(differing)
    return [(int(runs["run"][one]), _beside(runs, one)) for one in chosen]


def _differing(cell: StoredCell, runs: Mapping[str, np.ndarray], treated: np.ndarray) -> int | None:
    """Index of the first run of the treatment with an answer that is not the baseline's."""
    for answer in cell.facts.get("lossless") or []:
        if answer.get("arm") == "treatment" and answer.get("first_difference"):
            for run in treated.tolist():
                prompts = str(runs["prompt"][run]).split("+")
                if runs["seed"][run] == answer.get("seed") and str(answer.get("prompt")) in prompts:
                    return int(run)
    return None


def _beside(runs: Mapping[str, np.ndarray], one: int) -> int | None:
    """Number of the plain run of the same block that is nearest to a run: of its own seed where there is one."""
    plain = np.flatnonzero((runs["arm"] == "baseline") & (runs["block"] == runs["block"][one]))
    if not len(plain):
        return None
    apart = [(runs["seed"][run] != runs["seed"][one], abs(int(runs["order"][run]) - int(runs["order"][one])), run)
             for run in plain.tolist()]  # fmt: skip
    return int(runs["run"][min(apart)[2]])


def _trace(cell: StoredCell, run: int) -> Trace:
    rounds, emits, draws = (_of_run(getattr(cell, name), run, columns)
                            for name, columns in (("rounds", ROUND), ("ledger", EMIT), ("draws", DRAW)))  # fmt: skip
    kept = rounds["round"] < MOST_ROUNDS
    emitted = np.flatnonzero(emits["round"] < MOST_ROUNDS)[:MOST_ROWS]
    drawn = draws["round"] < MOST_ROUNDS
    return Trace(run, _listed(rounds, kept), _listed({**emits, "kind": _kinds(emits)}, emitted), _listed(draws, drawn),
                 int((~kept).sum()))  # fmt: skip


def _kinds(emits: Mapping[str, np.ndarray]) -> np.ndarray:
    """What each row of a ledger counts as."""
    places = list(zip(emits["stream"].tolist(), emits["position"].tolist(), strict=True))
    firsts = {place: row for row, place in reversed([*enumerate(places)])}
    sure = {place for place, source in zip(places, emits["source"], strict=True) if source != "unverified"}
    kinds = [AGAIN if firsts[place] != row else NEW if place in sure else LOOSE for row, place in enumerate(places)]
    return np.array(kinds, dtype=np.int64)


def _of_run(table: Any, run: int, columns: Sequence[str]) -> dict[str, np.ndarray]:
    """The rows of one run; empty columns where the record has no such table."""
    known = arrays(table)
    if not len(known["run"]):
        return {name: np.zeros(0, dtype=np.int64) for name in columns}
    rows = known["run"] == run
    return {name: known[name][rows] for name in columns}

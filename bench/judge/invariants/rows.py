"""Every row as its record class would take it, a table at a time. It knows nothing about what rows mean together."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from bench.judge.measure.tokens import arrays
from bench.judge.tables import SERVED
from bench.records.arms import ARMS, COUNTED, SHARP_ARMS
from pti_loop.ledger import PHASES, SOURCES

if TYPE_CHECKING:
    from bench.judge.measure.case import Case

Table = Mapping[str, np.ndarray]
PARTS = ("draft_ns", "decode_ns", "sample_ns", "rollback_ns")
NOT_BELOW_0 = {
    "runs": ("run", "block", "order", "n_prompt", "n_prompt_evaluated", "prefill_ns", "start_ns"),
    "rounds": (*PARTS, "total_ns", "accepted", "redecoded"),
    "ledger": ("stream", "position", "token"),
    "draws": ("round", "position", "guess", "drawn"),
    "steps": ("repeat", "order", "n_past"),
    "counts": ("group", "position", "count"),
    "pieces": ("run", "turn", "start_ns", "round"),
    "sharp": ("stream", "position", "token"),
    "served": ("run", "stream", "sent_ns", "events"),
}
ABOVE_0 = {
    "runs": ("n_predict", "decode_window_ns"), "rounds": ("width", "total_ns"), "draws": ("depth",),
    "steps": ("width", "decode_ns"), "served": ("told",),
}  # fmt: skip
WORDS = {
    ("runs", "arm"): ARMS, ("rounds", "phase"): PHASES, ("ledger", "source"): SOURCES,
    ("steps", "layout"): ("sequences", "tokens"), ("counts", "arm"): tuple(COUNTED),
    ("sharp", "arm"): SHARP_ARMS,
}  # fmt: skip


def rows_make_sense(case: Case) -> str | None:
    """The first row that its class would refuse, as a sentence."""
    tables = {name: arrays(getattr(case.cell, name)) for name in NOT_BELOW_0}
    for name, table in tables.items():
        if name == "runs" and case.kind == SERVED:  # a server need not tell what it evaluated
            table = table | {"n_prompt_evaluated": np.maximum(table["n_prompt_evaluated"], 0)}
        if len(next(iter(table.values()))) and (fault := _columns(name, table) or _TOGETHER[name](table)):
            return fault
    return None


def _columns(name: str, table: Table) -> str | None:
    for floor, wanted in ((0, NOT_BELOW_0), (1, ABOVE_0)):
        for column in wanted.get(name, ()):
            values = table[column]
            if values.min() < floor:
                return f"{name}: {column} is {values.min():g} in a row, and none is below {floor}"
    for (of, column), words in WORDS.items():
        if of != name:
            continue
        known = np.logical_or.reduce([table[column] == word for word in words])
        if not known.all():
            strange = table[column][~known][0]
            return f"{name}: {column} is '{strange}' in a row; it is one of {', '.join(words)}"
    return None


def _runs(table: Table) -> str | None:
    if (table["end_ns"] < table["start_ns"]).any():
        return "runs: a run ends before it starts"
    return None


def _rounds(table: Table) -> str | None:
    wrong = (table["accepted"] > table["verified"]) | (table["verified"] > table["drafted"])
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        accepted, verified, drafted = (int(table[name][at]) for name in ("accepted", "verified", "drafted"))
        return (f"round {table['round'][at]} of run {table['run'][at]}: accepted {accepted} <= verified {verified} <= "
                f"drafted {drafted} does not hold")  # fmt: skip
    long = sum(table[name] for name in PARTS) > table["total_ns"]
    if long.any():
        at = int(np.flatnonzero(long)[0])
        return f"round {table['round'][at]} of run {table['run'][at]}: its parts last longer than the whole"
    fresh = np.ones(len(long), dtype=bool)
    fresh[1:] = table["run"][1:] != table["run"][:-1]
    if fresh.sum() != len(np.unique(table["run"])):
        return "rounds: those of a run do not lie together"
    numbered = np.where(fresh, table["round"] == 0, np.r_[0, np.diff(table["round"])] == 1)
    if not numbered.all():
        at = int(np.flatnonzero(~numbered)[0])
        return f"round {table['round'][at]} of run {table['run'][at]} is out of turn: rounds are numbered from 0"
    return None


def starts_come_first(case: Case) -> str | None:
    """Rounds of the start: before all others of their run, without guesses, and as many in each run of an arm."""
    table = case.runs
    turns = table.turns
    begun = turns["phase"] == "startup"
    late = begun & (turns["round"] >= table.startup_rounds[turns["owner"]])
    guessing = begun & (turns["drafted"] > 0)
    for wrong, what in ((late, "comes after others"), (guessing, "guesses")):
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            return f"round {turns['round'][at]} of run {turns['run'][at]} is told to be of the start, and {what}"
    for arm in np.unique(table.arm).tolist():
        found = np.unique(table.startup_rounds[table.of(arm)])
        if len(found) > 1:
            return f"runs of {arm} have {found[0]} to {found[-1]} rounds of the start, and it is the same for all"
    return None


def _ledger(table: Table) -> str | None:
    prefill = table["source"] == "prefill"
    if (prefill != (table["round"] < 0)).any() or (table["position"][prefill] > 0).any():
        return "ledger: the prefill's token is the first of an answer and of no round, and a row says otherwise"
    return None


def _draws(table: Table) -> str | None:
    known = table["collision"][~np.isnan(table["collision"].astype(float))]
    if len(known) and not ((known >= 0) & (known <= 1 + 1e-6)).all():
        return "draws: a collision probability is not between 0 and 1"
    return None


def _steps(table: Table) -> str | None:
    if not np.isin(table["settled"], (0, 1)).all():
        return "steps: settled is neither 0 nor 1 in a row"
    return None


def _counts(table: Table) -> str | None:
    for name in ("probability", "moved"):
        if not ((table[name] >= -1e-9) & (table[name] <= 1 + 1e-9)).all():
            return f"counts: {name} is no probability in a row"
    return None


def _pieces(table: Table) -> str | None:
    if (table["end_ns"] < table["start_ns"]).any():
        return "pieces: a turn ends before it starts"
    return None


def _served(table: Table) -> str | None:
    times = [table[name] for name in ("sent_ns", "first_ns", "last_ns", "finish_ns")]
    if any((later < earlier).any() for earlier, later in pairwise(times)):
        return "served: an answer ends before it begins"
    if (table["accepted"] > table["drafted"]).any():
        return "served: a server accepts more guesses than it made"
    return None


def _nothing(table: Table) -> str | None:
    return None


_TOGETHER = {"runs": _runs, "rounds": _rounds, "ledger": _ledger, "draws": _draws, "steps": _steps, "counts": _counts,
             "sharp": _nothing, "pieces": _pieces, "served": _served}  # fmt: skip

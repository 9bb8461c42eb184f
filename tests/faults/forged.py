"""Cells that somebody forged so that every column agrees: what docs/limits.md says that records alone do not tell.

They are no faults of the judge. A check that comes to find one of them makes the document wrong.
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.faults.records import ROUND_TIMES
from tests.faults.stored import Record

OF_TREATMENT = ("treatment", "sabotage", "oracle", "solo", "carry", "kept")
"""Arms that share the treatment's context."""
OF_BASELINE = ("baseline", "again")
EVERY = (*OF_TREATMENT, *OF_BASELINE)


def stretch(record: Record, factor: float, arms: Iterable[str]) -> None:
    """The windows of some arms take `factor` of their time: each emit, round and end moves with them.

    What comes later in the cell begins later or earlier by as much, so that runs follow each other as they did.
    """
    runs, rounds, ledger = (record.tables[name] for name in ("runs", "rounds", "ledger"))
    moved = 0
    for place in runs["start_ns"].argsort():
        number, start, end = (int(runs[name].iloc[place]) for name in ("run", "start_ns", "end_ns"))
        by = factor if runs["arm"].iloc[place] in arms else 1.0
        rows = ledger["run"] == number
        inside = rows & (ledger["t_ns"] >= start)
        before = rows & (ledger["t_ns"] < start)
        ledger.loc[inside, "t_ns"] = (start + moved + (ledger["t_ns"][inside] - start) * by).astype("int64")
        ledger.loc[before, "t_ns"] += moved
        for name in ("start_ns", "end_ns", "begin_ns", "finish_ns"):
            if name in runs:
                value = int(runs[name].iloc[place])
                later = round((end - start) * (by - 1)) if value >= end else 0
                runs.iloc[place, runs.columns.get_loc(name)] = value + moved + later
        longer = round((end - start) * (by - 1))
        runs.iloc[place, runs.columns.get_loc("decode_window_ns")] += longer
        moved += longer
    if "seconds" in record.facts.get("stopping", {}):
        record.facts["stopping"]["seconds"] += max(moved, 0) * 1e-9
    rows = record.mask("rounds", *arms)
    for name in ROUND_TIMES:
        rounds.loc[rows, name] = (rounds[name][rows] * factor).astype("int64")


def all_of_time(record: Record) -> None:
    """A machine of twice the speed, bandwidth and all."""
    stretch(record, 0.5, EVERY)
    bandwidth = record.facts["bandwidth"]
    bandwidth["read_gb_s"] *= 2
    bandwidth["repeats"] = [2 * one for one in bandwidth["repeats"]]
    if "median_gb_s" in bandwidth:
        bandwidth["median_gb_s"] *= 2


def quicker_treatment(record: Record) -> None:
    """The treatment takes three quarters of its time, all of it."""
    stretch(record, 0.75, OF_TREATMENT)


def slower_baseline(record: Record) -> None:
    """The baseline waited in every round, as a slow engine does."""
    stretch(record, 1.3, OF_BASELINE)


def another_machine(record: Record) -> None:
    """Name, folder and provenance are those of another one."""
    record.machine = record.config["machine"] = record.env["machine"]["name"] = "their-epyc"


FORGED = {
    "all of time is scaled": all_of_time,
    "the treatment's times are scaled": quicker_treatment,
    "the baseline waited": slower_baseline,
    "it was another machine": another_machine,
}

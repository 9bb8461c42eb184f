"""What the contexts counted of a run against what its method said of itself; records without counts are not asked.

A context counts its decodes whatever the method writes, so work outside the window, or in no round, shows here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bench.judge.measure.runs import known_counts
from bench.judge.measure.tokens import arrays
from bench.records.rows import UNKNOWN

if TYPE_CHECKING:
    from bench.judge.measure.case import Case

WHOLE = ("draft_prefill_ns", "begin_ns", "finish_ns", "outside_decodes", "outside_tokens", "window_decodes",
         "window_tokens", "window_outputs")  # fmt: skip
"""Columns that a version of the harness writes all of or none."""
UNTOLD, AT_LEAST = 0.05, 10_000_000
"""Share of a run, and nanoseconds, that may belong to no account: clearing a context, a call into a method."""


def is_kept(case: Case) -> bool:
    """Whether the contexts counted."""
    return bool((np.asarray(case.cell.runs["window_decodes"]) != UNKNOWN).any())


def account_is_kept(case: Case) -> str | None:
    """Records of today's schema have the counts; where they are gone, work outside the window cannot be told."""
    if case.cell.config.get("schema") in (None, 1) or is_kept(case):
        return None
    return "it does not tell what its contexts decoded, so work outside its windows cannot be seen"


def account_is_whole(case: Case) -> str | None:
    """What contexts counted, when a run began and ended, and what drafters took before it, are told together."""
    runs = arrays(case.cell.runs)
    told = {name: bool((np.asarray(runs[name]) != UNKNOWN).any()) for name in WHOLE if name in runs}
    if case.cell.config.get("schema") is None or len(set(told.values())) < 2:
        return None
    known = next(name for name, there in told.items() if there)
    return f"runs.csv.gz tells {known} and not {next(name for name, there in told.items() if not there)}"


def work_is_in_the_window(case: Case) -> str | None:
    """Outside the window a context decodes the prompt but for what was restored, and a drafter's no more than that."""
    if not is_kept(case):
        return None
    table, runs = case.runs, arrays(case.cell.runs)
    outside, beside = runs["outside_tokens"], runs["beside_outside_tokens"]
    wrong = (outside != table.n_prompt - table.restored) | (beside > table.n_prompt)
    if not wrong.any():
        return None
    at = int(np.flatnonzero(wrong)[0])
    return (f"run {table.run[at]} ({table.arm[at]}) decodes {outside[at]:.0f} tokens outside its window, and "
            f"{beside[at]:.0f} in other contexts, for a prompt of {table.n_prompt[at]}; {int(wrong.sum())} runs in "
            f"all")  # fmt: skip


def decodes_are_rounds(case: Case) -> str | None:
    """Every decode inside the window belongs to a round, and every confirmed token to a row of logits."""
    if not is_kept(case):
        return None
    table, runs = case.runs, arrays(case.cell.runs)
    told = table.rounds + table.counters["redecoded"]
    wrong = told != runs["window_decodes"]
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        return (f"run {table.run[at]} ({table.arm[at]}) has {told[at]} decodes by its rounds, and its context counted "
                f"{runs['window_decodes'][at]:.0f}; {int(wrong.sum())} runs in all")  # fmt: skip
    rows = np.bincount(table.turns["owner"], weights=table.turns["width"], minlength=len(table.run))
    # What is decoded beside a round is in no row of it; where nothing is, every token has its row.
    wrong = (rows > runs["window_tokens"]) | ((table.counters["redecoded"] == 0) & (rows != runs["window_tokens"]))
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        return (f"run {table.run[at]} ({table.arm[at]}) has {rows[at]:.0f} rows by its rounds, and its context decoded "
                f"{runs['window_tokens'][at]:.0f} tokens; {int(wrong.sum())} runs in all")  # fmt: skip
    wrong = (runs["window_outputs"] > runs["window_tokens"]) | (runs["window_decodes"] > runs["window_tokens"])
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        return (f"the context of run {table.run[at]} ({table.arm[at]}) counted {runs['window_tokens'][at]:.0f} tokens, "
                f"{runs['window_outputs'][at]:.0f} rows of logits and {runs['window_decodes'][at]:.0f} decodes: each "
                f"has a token at least; {int(wrong.sum())} runs in all")  # fmt: skip
    wrong = table.tokens.distinct + table.tokens.unverified > runs["window_outputs"]
    if not wrong.any():
        return None
    at = int(np.flatnonzero(wrong)[0])
    return (f"run {table.run[at]} ({table.arm[at]}) says {table.tokens.distinct[at]} tokens, and its context gave "
            f"{runs['window_outputs'][at]:.0f} rows of logits; {int(wrong.sum())} runs in all")  # fmt: skip


def time_is_told(case: Case) -> str | None:
    """From begin to finish a run is prefill, drafters' prefill and window, and next to nothing else."""
    if not is_kept(case):
        return None
    table = case.runs
    runs = {name: np.asarray(column).astype(np.int64) for name, column in arrays(case.cell.runs).items()
            if name.endswith("_ns")}  # fmt: skip
    span = runs["finish_ns"] - runs["begin_ns"]
    told = runs["prefill_ns"] + runs["draft_prefill_ns"] + runs["decode_window_ns"]
    told += known_counts(runs.get("restore_ns"), len(span))
    early = (runs["start_ns"] < runs["begin_ns"]) | (runs["end_ns"] > runs["finish_ns"])
    untold = span - told - np.maximum(UNTOLD * span, AT_LEAST)
    # One run may be held up there; what a method does outside its window it does in most.
    much = (np.median(untold[table.of(arm)]) > 0 for arm in table.arm)
    wrong = early | (told > span) | (np.fromiter(much, bool, len(span)) & (untold > 0))
    if not wrong.any():
        return None
    at = int(np.flatnonzero(wrong)[0])
    return (f"run {table.run[at]} ({table.arm[at]}) takes {span[at] * 1e-6:.3f} ms, of which prefills and window are "
            f"{told[at] * 1e-6:.3f} ms; {int(wrong.sum())} runs in all")  # fmt: skip

"""What is wrong with the tokens of a record: emitted twice, too many, missing, contradictory, unverified.

It knows nothing about time. Text is never tokenised again; an id that follows itself at the next position is a token.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pandas as pd

from bench.audit.options import AuditOptions
from bench.audit.trials import Flag, Record, Trial
from bench.judge.measure.tokens import count_tokens

MIN_STEPS = 3
"""Fewer steps than this are not evidence that a file without positions repeats tokens."""


def token_flags(record: Record, options: AuditOptions) -> list[Flag]:
    """Flags about what was emitted, a trial at a time."""
    return [flag for trial in record.trials for flag in _trial_flags(trial, options)]


def _trial_flags(trial: Trial, options: AuditOptions) -> Iterator[Flag]:
    if trial.emits is not None:
        if trial.emits.empty:
            yield Flag("EMPTY", f"{trial.label}: no token was emitted; that is a failed run, not 0 tok/s")
            return
        yield from _emit_flags(trial)
        yield from _overlap_flags(trial)
    elif trial.emitted == 0:
        yield Flag("EMPTY", f"{trial.label}: no token was emitted; that is a failed run, not 0 tok/s")
    yield from _request_flags(trial, options)


def _emit_flags(trial: Trial) -> Iterator[Flag]:
    emits = trial.emits
    assert emits is not None
    if "placed" in emits and not emits["placed"].any():
        return
    counts = count_tokens(emits)
    if counts.duplicates:
        worst = int(emits.groupby(["stream", "position"]).size().max())
        yield Flag(
            "DUPLICATE",
            f"{trial.label}: {counts.counted} tokens counted, {counts.distinct} distinct; a "
            f"(stream, position) is emitted up to {worst} times, and only distinct tokens are a speed",
            {"counted": counts.counted, "distinct": counts.distinct, "most": worst},
        )
    if counts.conflicts:
        yield Flag(
            "CONFLICT",
            f"{trial.label}: {counts.conflicts} emissions put another token where one was out "
            "already; what the reader saw was changed",
            {"conflicts": counts.conflicts},
        )
    if counts.gaps:
        yield Flag(
            "GAP",
            f"{trial.label}: {counts.gaps} positions between the first and the last are missing; the answer has holes",
            {"gaps": counts.gaps},
        )
    yield from _sequence_flags(trial, emits)


def _sequence_flags(trial: Trial, emits: pd.DataFrame) -> Iterator[Flag]:
    late = _out_of_order(emits)
    if late:
        yield Flag(
            "OUT_OF_ORDER",
            f"{trial.label}: {late} tokens came out after a later position of their answer; a reader waits for them",
            {"late": late},
        )
    unverified = int((emits["source"] == "unverified").sum())
    if unverified:
        yield Flag(
            "UNVERIFIED",
            f"{trial.label}: {unverified} emitted tokens were never compared with the model's own draw",
            {"unverified": unverified},
        )


def _out_of_order(emits: pd.DataFrame) -> int:
    new = emits.sort_values("t_ns", kind="stable").drop_duplicates(["stream", "position"])
    return int((new["position"] < new.groupby("stream")["position"].cummax()).sum())


def _request_flags(trial: Trial, options: AuditOptions) -> Iterator[Flag]:
    requested = options.requested if options.requested is not None else trial.requested
    if requested is None or not trial.emits_known:
        return
    if trial.emits is not None:
        per_answer = int(trial.emits.groupby("stream").size().max()) if len(trial.emits) else 0
    else:
        per_answer = trial.counted // trial.streams
    if per_answer > requested:
        yield Flag(
            "EMITTED_MORE_THAN_REQUESTED",
            f"{trial.label}: {per_answer} tokens emitted for one answer, "
            f"{requested} were requested; the loop counts something else than tokens",
            {"emitted": per_answer, "requested": requested},
        )


def _overlap_flags(trial: Trial) -> Iterator[Flag]:
    """A file without positions in which every step begins with the end of the step before."""
    emits = trial.emits
    assert emits is not None
    if "placed" not in emits or emits["placed"].any():
        return
    for stream, rows in emits.groupby("stream"):
        steps = [group["token"].tolist() for _, group in rows.groupby("round")]
        shared = [_overlap(before, after) for before, after in pairwise(steps)]
        if len(steps) < MIN_STEPS or min(shared, default=0) == 0:
            continue
        merged = steps[0] + [token for step, k in zip(steps[1:], shared, strict=True) for token in step[k:]]
        # A text that repeats itself overlaps too; then only positions can tell.
        if len(set(merged)) > len(merged) / 2:
            yield Flag(
                "DUPLICATE",
                f"{trial.label}: every step of stream {stream} begins with the last "
                f"{min(shared)} tokens of the step before: {len(rows)} tokens counted, {len(merged)} distinct "
                "if so; add a positions column to settle it",
                {"counted": len(rows), "distinct": len(merged)},
            )


def _overlap(before: list[int], after: list[int]) -> int:
    """Longest end of one step that the next begins with, short of all of it."""
    for size in range(min(len(before), len(after) - 1), 0, -1):
        if before[-size:] == after[:size]:
            return size
    return 0

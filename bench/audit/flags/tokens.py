"""What is wrong with the tokens of a record: emitted twice, too many, missing, contradictory, unverified.

It knows nothing about time. Text is never tokenised again; an id that follows itself at the next position is a token.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from bench.audit.emits import Counts, Emits, count
from bench.audit.options import AuditOptions
from bench.audit.trials import Flag, Record, Trial

MIN_STEPS = 3
"""Fewer steps than this are not evidence that a file without positions repeats tokens."""


def token_flags(record: Record, options: AuditOptions) -> list[Flag]:
    """Flags about what was emitted, a trial at a time."""
    own = [flag for trial in record.trials for flag in _trial_flags(trial, options)]
    ledgers = [(trial, trial.emits) for trial in record.trials if trial.emits]
    if not ledgers:
        return own
    from bench.audit.flags.ledgers import copied_runs, ledger_flags  # with numpy, which a small text does without

    rows = [flag for trial, emits in ledgers if emits.placed for flag in ledger_flags(trial, emits)]
    return own + rows + list(copied_runs(ledgers))


def _trial_flags(trial: Trial, options: AuditOptions) -> Iterator[Flag]:
    if trial.emits is not None:
        if not len(trial.emits):
            yield Flag("EMPTY", f"{trial.where}: no token was emitted; that is a failed run, not 0 tok/s")
            return
        counts = trial.emits.counts or count(trial.emits)
        if trial.emits.placed:
            yield from _emit_flags(trial, trial.emits, counts)
        if not counts.duplicates:
            yield from _overlap_flags(trial, trial.emits)
    elif trial.emitted == 0:
        yield Flag("EMPTY", f"{trial.where}: no token was emitted; that is a failed run, not 0 tok/s")
    yield from _request_flags(trial, options)


def _emit_flags(trial: Trial, emits: Emits, counts: Counts) -> Iterator[Flag]:
    if counts.duplicates:
        distinct = len(emits) - counts.duplicates
        yield Flag(
            "DUPLICATE",
            f"{trial.where}: {len(emits)} tokens counted, {distinct} distinct; a (stream, position) is emitted up to "
            f"{counts.most} times, and only distinct tokens are a speed",
            {"counted": len(emits), "distinct": distinct, "most": counts.most},
        )
    if counts.conflicts:
        yield Flag(
            "CONFLICT",
            f"{trial.where}: {counts.conflicts} emissions put another token where one was out already; what the "
            "reader saw "
            "was changed",
            {"conflicts": counts.conflicts},
        )
    if counts.gaps:
        yield Flag(
            "GAP",
            f"{trial.where}: {counts.gaps} positions between the first and the last are missing; the answer has holes",
            {"gaps": counts.gaps},
        )
    if counts.late:
        yield Flag(
            "OUT_OF_ORDER",
            f"{trial.where}: {counts.late} tokens came out after a later position of their answer; a reader waits "
            "for them",
            {"late": counts.late},
        )
    if emits.unverified:
        yield Flag(
            "UNVERIFIED",
            f"{trial.where}: {emits.unverified} emitted tokens were never compared with the model's own draw",
            {"unverified": emits.unverified},
        )


def _request_flags(trial: Trial, options: AuditOptions) -> Iterator[Flag]:
    requested = options.requested if options.requested is not None else trial.requested
    if requested is None or not (trial.emits_known or trial.emitted):
        return
    if trial.emits is not None:
        by_stream: dict[int, int] = {}
        for stream in trial.emits.stream:
            by_stream[stream] = by_stream.get(stream, 0) + 1
        per_answer = max(by_stream.values(), default=0)
    else:
        per_answer = (trial.counted or trial.emitted or 0) // trial.streams
    if per_answer > requested:
        yield Flag(
            "EMITTED_MORE_THAN_REQUESTED",
            f"{trial.where}: {per_answer} tokens emitted for one answer, {requested} were requested; the loop counts "
            "something "
            "else than tokens",
            {"emitted": per_answer, "requested": requested},
        )


def _overlap_flags(trial: Trial, emits: Emits) -> Iterator[Flag]:
    """A file in which every step begins with the end of the step before, under other positions or without any."""
    answers: dict[int, dict[int, list[int]]] = {}
    for stream, round_, token in zip(emits.stream, emits.round, emits.token, strict=True):
        answers.setdefault(stream, {}).setdefault(round_, []).append(token)
    for stream, rounds in answers.items():
        steps = [rounds[number] for number in sorted(rounds) if number >= 0]
        shared = [_overlap(before, after) for before, after in pairwise(steps)]
        if len(steps) < MIN_STEPS or min(shared, default=0) == 0:
            continue
        merged = steps[0] + [token for step, k in zip(steps[1:], shared, strict=True) for token in step[k:]]
        counted = sum(map(len, steps))
        # A text that repeats itself overlaps too; then only positions can tell, where they are right.
        settle = "add a positions column to settle it"
        settle = "look whether its positions are right" if emits.placed else settle
        if len(set(merged)) > len(merged) / 2:
            yield Flag(
                "DUPLICATE",
                f"{trial.where}: every step of stream {stream} begins with the last {min(shared)} tokens of the step "
                "before: "
                f"{counted} tokens counted, {len(merged)} distinct if so; {settle}",
                {"counted": counted, "distinct": len(merged)},
            )


def _overlap(before: list[int], after: list[int]) -> int:
    """Longest end of one step that the next begins with, short of all of it."""
    for size in range(min(len(before), len(after) - 1, 64), 0, -1):
        if before[-size:] == after[:size]:
            return size
    return 0

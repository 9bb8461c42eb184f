"""What no run leaves in a ledger: rounds that go back or end together, a prefill inside an answer, a copy of a run.

It looks at rows that state positions and are read off a clock. It knows no rate and no method.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from bench.audit.emits import Emits
from bench.audit.trials import Flag, Trial

FEW = 8
"""Tokens or times from which on being alike is no chance."""


def ledger_flags(trial: Trial, emits: Emits) -> Iterator[Flag]:
    """Of one run."""
    told, stream, token = (np.frombuffer(values, dtype=np.int32) for values in (emits.round, emits.stream, emits.token))
    when, prefill = np.frombuffer(emits.t_ns, dtype=np.int64), np.frombuffer(emits.prefill, dtype=np.uint8) > 0
    position = np.frombuffer(emits.position, dtype=np.int32)
    wrong = {
        "rows have a token below 0": token < 0,
        "rows are of the prefill, and not the first of their answer": prefill & (position > 0) & (told < 0),
    }
    if emits.clocked and len(np.unique(told)) > 2:
        order = np.lexsort((when, stream))
        same = stream[order][1:] == stream[order][:-1]
        before, after = told[order][:-1], told[order][1:]
        wrong["rows are of an earlier round than a row before them"] = same & (after < before)
        at_once = same & (after > before) & (before >= 0) & (when[order][1:] == when[order][:-1])
        wrong["rounds end when the round before them does"] = at_once if at_once.sum() >= FEW else at_once & False
    for words, mask in wrong.items():
        if mask.any():
            yield Flag("INCONSISTENT", f"{trial.where}: {int(mask.sum())} {words}", {"rows": int(mask.sum())})
    yield from _same_answers(trial, stream, token[np.lexsort((position, stream))])


def _same_answers(trial: Trial, stream: np.ndarray, token: np.ndarray) -> Iterator[Flag]:
    """Two streams of one run that say one text, where the record does not tell that they were asked the same."""
    if trial.prompt and len(set(trial.prompt.split("+"))) < len(np.unique(stream)):
        return
    names, counts = np.unique(stream, return_counts=True)
    ends = np.cumsum(counts)
    seen: dict[bytes, int] = {}
    for name, count, end in zip(names.tolist(), counts.tolist(), ends.tolist(), strict=True):
        text = token[end - count : end].tobytes()
        if count >= FEW and (first := seen.setdefault(text, name)) != name:
            yield Flag(
                "COPIED",
                f"{trial.where}: stream {name} says the {count} tokens of stream {first}; one answer under two ids is "
                "one answer, unless both were asked the same",
                {"stream": name, "first": first},
            )
            return


def copied_runs(ledgers: Sequence[tuple[Trial, Emits]]) -> Iterator[Flag]:
    """Two runs whose tokens came out at the same distances, to the nanosecond."""
    seen: dict[bytes, str] = {}
    for trial, emits in ledgers:
        if not emits.clocked:
            continue
        steps = np.diff(np.frombuffer(emits.t_ns, dtype=np.int64))
        if len(np.unique(steps)) < FEW:
            continue
        if (first := seen.setdefault(steps.tobytes(), trial.where)) != trial.where:
            yield Flag(
                "COPIED",
                f"{trial.where}: its tokens came out at the distances of {first}, to the nanosecond, so one is a copy",
                {},
            )

"""Rates against what memory can deliver. It knows a file's size or a step's bytes, never both for one from the other.

A step reads its weights once. The file's size is an upper end of that: rows of an embedding table are looked up, a head
for guesses is not read by plain decoding, a mixture of experts reads some of its experts. So a rate above the bound
from the file alone is named, and is impossible only beyond what lookups can explain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bench.audit.numbers import number
from bench.audit.options import AuditOptions
from bench.audit.trials import Flag, Record, Trial

LOOKED_UP = 0.10
"""Share of a dense file that a step may leave unread: an untied embedding table and a head for guesses."""
LOOKED_UP_SMALL = 0.40
"""The same for models below `SMALL` parameters, whose vocabulary is a large part of them."""
SMALL = 3e9
_PER_LAYER = re.compile(r"\bE\d+(\.\d+)?B\b|per.?layer|3n\b", re.IGNORECASE)
_PARAMETERS = re.compile(r"(?<!\d)(\d+(?:\.\d+)?)\s*([BM])\b")


def physics_flags(record: Record, options: AuditOptions) -> list[Flag]:
    """Trials, and a published rate, above what the bandwidth allows."""
    flags = [flag for trial in record.trials for flag in _trial(trial, options)]
    return flags + list(_claim(record, options))


def physics_notes(record: Record, options: AuditOptions) -> list[str]:
    """Rates above the bound from the file's size that need not be wrong."""
    notes = []
    for trial in record.trials:
        if not options.bandwidth or _step_bytes(trial, options) or not trial.model_bytes:
            continue
        bound = _bound(trial.model_bytes, trial, options)
        if bound < trial.aggregate <= bound / (1 - _unread(trial)):
            notes.append(
                f"{trial.where}: {trial.aggregate:.1f} tok/s is above the {bound:.1f} that reading the whole file of "
                f"{trial.model_bytes / 1e9:.2f} GB a step at {options.bandwidth:g} GB/s would allow. Only the file's "
                "size is known; a step "
                "reads less (embeddings are looked up), so this says nothing: give --bytes-per-step"
            )
    return notes


def tokens_per_step(trial: Trial, options: AuditOptions) -> float:
    """Distinct tokens that one pass over the weights gave."""
    if trial.rounds and trial.distinct:
        return trial.distinct / trial.rounds
    return float(options.streams or trial.streams) * trial.printed.get("mean_length", 1.0)


def _step_bytes(trial: Trial, options: AuditOptions) -> float | None:
    return options.bytes_per_step or trial.step_bytes


def _bound(size: float, trial: Trial, options: AuditOptions) -> float:
    return (options.bandwidth or 0.0) * 1e9 / size * tokens_per_step(trial, options)


def _unread(trial: Trial) -> float:
    """Share of the file that a step may leave unread; all of it where the name says that most is looked up."""
    name = trial.settings.get("model_type", trial.settings.get("model", ""))
    if _PER_LAYER.search(name):
        return 1 - 1e-9
    found = _PARAMETERS.search(name)
    size = (number(found[1]) or 0.0) * (1e9 if found[2] == "B" else 1e6) if found else SMALL
    return LOOKED_UP_SMALL if size < SMALL else LOOKED_UP


def _trial(trial: Trial, options: AuditOptions) -> Iterator[Flag]:
    found = _above(trial, trial.aggregate, options)
    if found:
        yield _flag(trial.where, trial.aggregate, found, trial, options)


def _above(trial: Trial, rate: float, options: AuditOptions) -> tuple[float, float] | None:
    """(bound, bytes) that a rate is above, None where it is not or nothing is known."""
    if not options.bandwidth:
        return None
    exact = _step_bytes(trial, options)
    size = exact or trial.model_bytes
    if not size:
        return None
    bound = _bound(size, trial, options)
    limit = bound if exact else bound / (1 - _unread(trial))
    return (bound, size) if rate > limit else None


def _claim(record: Record, options: AuditOptions) -> Iterator[Flag]:
    """A published rate is impossible when it is above the bound of every trial."""
    if options.claim is None or not options.bandwidth:
        return
    trials = [
        t for t in record.trials if (t.distinct or "tok_s" in t.printed) and (_step_bytes(t, options) or t.model_bytes)
    ]
    found = []
    for trial in trials:
        share = 1 if options.per == "aggregate" else trial.streams
        above = _above(trial, options.claim * share, options)
        if above is None:
            return
        found.append((above[0] / share, above[1], trial))
    if found:
        bound, size, trial = max(found, key=lambda item: item[0])
        yield _flag(f"{trial.where}, published", options.claim, (bound, size), trial, options)


def _flag(label: str, rate: float, found: tuple[float, float], trial: Trial, options: AuditOptions) -> Flag:
    bound, size = found
    source = "" if _step_bytes(trial, options) else " (all tensors of the file; --bytes-per-step for what a step reads)"
    return Flag(
        "IMPOSSIBLE",
        f"{label}: {rate:.1f} tok/s is above the bound of {bound:.1f}: {options.bandwidth:g} GB/s over "
        f"{size / 1e9:.2f} GB a "
        f"step{source} at {tokens_per_step(trial, options):.2f} tokens a step",
        {"rate": rate, "bound": bound},
    )

"""`python -m bench audit FILE`: recount what somebody posted and flag what a reader must know before quoting it.

It needs no model and runs nothing. It reads a text, recounts, and compares the record with itself, with what its author
published (`AuditOptions`), with a baseline's record and with physics; it cannot tell whether the text is an honest log
of what ran.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from bench.audit.answer import answer, scope
from bench.audit.compare import Comparison, comparisons, warmed
from bench.audit.flags.acceptance import acceptance_flags, definitions
from bench.audit.flags.contrasts import contrast_flags, statistic_flag
from bench.audit.flags.costs import cost_flags, cost_notes
from bench.audit.flags.counters import counter_flags, counter_notes
from bench.audit.flags.outputs import output_flags
from bench.audit.flags.physics import physics_flags, physics_notes
from bench.audit.flags.settings import setting_flags
from bench.audit.flags.stored import stored_flags
from bench.audit.flags.times import claim_flags, timing_flags
from bench.audit.flags.tokens import token_flags
from bench.audit.options import AuditOptions
from bench.audit.readings import Reading, explain, honest, readings
from bench.audit.record import read_record, read_records
from bench.audit.report import AuditReport
from bench.audit.text import STDIN
from bench.audit.trials import NAN, Flag, Record, Trial
from bench.errors import UserError
from bench.records.archives import is_archive

Paths = Path | str | Sequence[Path | str]


def audit(path: Paths, options: AuditOptions | None = None) -> AuditReport:
    """Judge one record, or several files as one. UserError where a file, or the options beside it, cannot be used."""
    options = options or AuditOptions()
    _check(options)
    paths = [path] if isinstance(path, Path | str) else list(path)
    if len(paths) == 1 and str(paths[0]) != STDIN and is_archive(Path(paths[0])):
        if options.against:
            raise UserError("an archive has baselines of its own; leave out --against, or unpack it and give one cell")
        from bench.audit.archive import audit_archive  # with all that reads cells; a small text is read at once

        return audit_archive(Path(paths[0]), options, judge)
    return judge(
        read_records(paths, options.streams), options, read_record(options.against) if options.against else None
    )


def judge(record: Record, options: AuditOptions, against: Record | None = None) -> AuditReport:
    """Judge a record that is read."""
    found = comparisons(record, options, against)
    flags = list(record.flags) + stored_flags(record) + token_flags(record, options) + timing_flags(record, options)
    flags += physics_flags(record, options) + claim_flags(record, options) + acceptance_flags(record, options)
    flags += setting_flags(record, against, found) + output_flags(found) + contrast_flags(record, options, found)
    flags += _statistics(found) + cost_flags(record, options) + counter_flags(record, options)
    if against is not None:
        flags += _of_baseline(against, options)
        flags += [] if found else [_unmatched(record, against)]
    if not record.trials and not record.launches and not flags:
        flags = [Flag("EMPTY", f"{record.path}: has a header and no rows; a failed run is not 0 tok/s")]
    flags = _unique(flags)
    reading = explain(options.claim, list(record.trials), options.per) if options.claim is not None else None
    notes = [
        *record.notes,
        *cost_notes(record, options),
        *physics_notes(record, options),
        *counter_notes(record, options),
    ]
    return AuditReport(
        str(record.path),
        record.format,
        answer(record, options, found, flags, reading),
        [_counted(trial) for trial in record.trials],
        [_contrast(one) for one in found],
        [asdict(one) for one in record.launches],
        scope(record, options, found),
        [*notes, *_notes(record, options), *_warmed(found, flags)],
        flags,
        _claim(options, reading),
        _readings(options, reading),
    )


def _unique(flags: list[Flag]) -> list[Flag]:
    return list({(flag.code, flag.sentence): flag for flag in flags}.values())


def _statistics(found: Sequence[Comparison]) -> list[Flag]:
    """The choice of a statistic, for sides that are two texts."""
    flags: list[Flag] = []
    for one in found:
        if one.kind in ("against", "run") and len(one.pairs) > 1:
            flags += statistic_flag(
                one.name, [t for p in one.pairs for t in p.treated], [t for p in one.pairs for t in p.base]
            )
    return flags


def _of_baseline(against: Record, options: AuditOptions) -> list[Flag]:
    """The baseline's own faults, named as its own: a slow denominator flatters."""
    found = list(against.flags) + token_flags(against, AuditOptions()) + timing_flags(against, AuditOptions())
    return [Flag(flag.code, f"baseline {against.path.name}, {flag.sentence}", flag.numbers) for flag in found]


def _warmed(found: Sequence[Comparison], flags: Sequence[Flag]) -> list[str]:
    """Ratios without the first repetitions, where one of them was cold."""
    if not any(flag.code == "WARMUP" for flag in flags):
        return []
    pairs = [(one, warmed(one)) for one in found]
    return [
        f"{one.name}, the first repetition of each side left out: {kept.ratio:.3f}x, {kept.interval()[0]:.3f} to "
        f"{kept.interval()[1]:.3f}"
        for one, kept in pairs
        if kept is not None and kept.known
    ]


def _unmatched(record: Record, against: Record) -> Flag:
    have = ", ".join(dict.fromkeys(trial.label for trial in against.trials))[:160]
    return Flag(
        "NO_BASELINE",
        f"no row of {record.path.name} has a row of the same test, depth, prompt and width in {against.path.name}, "
        f"which has {have}",
    )


def _check(options: AuditOptions) -> None:
    """Options that make no sense."""
    for name in ("claim", "speedup", "baseline", "bytes_per_step", "bandwidth", "requested", "streams"):
        value = getattr(options, name)
        if value is not None and not (math.isfinite(value) and value > 0):
            raise UserError(f"--{name.replace('_', '-')} is {value:g}, expected a number above 0")
    if options.acceptance is not None and not 0 <= options.acceptance <= 1:
        raise UserError(f"--acceptance is {options.acceptance:g}, expected 0 to 1; 76.6 % is --acceptance 0.766")
    if any(not (math.isfinite(value) and value >= 0) for value in options.temperatures):
        raise UserError("--temperatures has a value below 0, expected numbers such as 0,0.7 or the word any")


def _counted(trial: Trial) -> dict[str, object]:
    """One row of the recount. Totals include the tokens of the prefill; rates do not, unless their name says so."""
    whole = trial.seconds + trial.prefill_seconds
    total = trial.distinct + trial.first + trial.prompt_tokens
    timed = trial.seconds > 0
    steady = trial.seconds - trial.startup_seconds
    return {
        "label": trial.label,
        "place": trial.place,
        "arm": trial.arm,
        "prompt": trial.prompt,
        "test": trial.test,
        "depth": trial.depth,
        "block": trial.block,
        "streams": trial.streams,
        "counted": trial.counted + trial.first,
        "distinct": trial.distinct + trial.first,
        "first": trial.first,
        "emitted": trial.emitted,
        "seconds": trial.seconds,
        "per_answer_tok_s": trial.per_answer,
        "aggregate_tok_s": trial.aggregate,
        "spread": trial.spread,
        "counted_tok_s": trial.counted / trial.seconds if timed and trial.counted else NAN,
        "first_inside_tok_s": (trial.distinct + trial.first) / trial.seconds / trial.streams
        if timed and trial.distinct
        else NAN,
        "steady_tok_s": (trial.distinct - trial.startup_distinct) / steady / trial.streams
        if trial.startup_seconds and steady > 0
        else NAN,
        "prefill_tok_s": trial.prefill_rate,
        "prefill_seconds": trial.prefill_seconds,
        "answer_seconds": trial.answer_time if math.isfinite(trial.answer_time) else trial.seconds,
        "total_tok_s": total / whole if whole > 0 and trial.prompt_tokens else NAN,
        "rounds": trial.rounds,
        "drafted": trial.drafted,
        "tested": trial.tested,
        "accepted": trial.accepted,
        "acceptance": definitions(trial),
        "positions": list(trial.positions),
        "printed": dict(trial.printed),
        "settings": dict(trial.settings),
        "temperature": trial.temperature,
    }


def _claim(options: AuditOptions, reading: Reading | None) -> dict[str, object] | None:
    if options.claim is None:
        return None
    if reading is None:
        return {"claim": options.claim, "trial": None, "reading": "none", "right": NAN}
    return {
        "claim": options.claim,
        "trial": reading.trial.label,
        "reading": reading.words,
        "right": honest(reading, options.per),
    }


def _readings(options: AuditOptions, reading: Reading | None) -> list[dict[str, object]]:
    if reading is None:
        return []
    rows = {(one.tok_s, one.words): one for one in readings(reading.trial)}
    return [{"tok_s": one.tok_s, "reading": one.words, "published": one == reading} for one in rows.values()]


def _contrast(one: Comparison) -> dict[str, object]:
    low, high = one.estimate.interval()
    return {
        "label": one.name,
        "kind": one.kind,
        "streams": one.streams,
        "speedup": one.estimate.ratio,
        "aggregate_speedup": one.total,
        "ci_low": low,
        "ci_high": high,
        "min_visible_effect": one.estimate.min_visible_effect,
        "units": one.estimate.units,
        "n": len(one.pairs),
        "classes": one.by_class,
        "rows": [
            {
                "prompt": pair.prompt,
                "place": pair.treated[0].place,
                "baseline": pair.base[0].place,
                "speedup": pair.estimate.ratio,
            }
            for pair in one.pairs
        ],
    }


def _notes(record: Record, options: AuditOptions) -> list[str]:
    notes = []
    for trial in record.trials:
        if options.streams and trial.streams_known and options.streams != trial.streams:
            notes.append(
                f"{options.streams} streams were claimed; {trial.label} has {trial.streams} answer(s) at a time"
            )
            break
    single = [trial for trial in record.trials if len(trial.samples) == 1]
    if single:
        notes.append(f"{single[0].where}: one repetition, so no spread is known")
    odd = {
        trial.arm: trial for trial in record.trials if trial.arm and any(key.endswith("*") for key in trial.settings)
    }
    kept = [{key: value for key, value in trial.settings.items() if key.endswith("*")} for trial in odd.values()]
    differ = sorted({key[:-1] for one in kept for key in one if one.get(key) != kept[0].get(key)})
    if differ:
        notes.append(f"the arms also differ in {', '.join(differ[:6])}")
    forced = [trial.arm for trial in record.trials if "synthetic" in trial.arm.lower() or "forced" in trial.arm.lower()]
    if forced:
        notes.append(
            f"{forced[0]}: an acceptance that was set by hand emits tokens that are not the model's; no record shows "
            "that, and no "
            "speed follows from it"
        )
    return notes

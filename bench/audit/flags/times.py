"""What is wrong with the times of a record: windows, prompts, warm-up, caches, drift, and physics.

It knows no method and compares no arms. Thresholds are named constants, each with its reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy import stats

from bench.audit.options import AuditOptions
from bench.audit.readings import WORDS, explain, honest, rounding
from bench.audit.trials import Flag, Record, Trial

WARMUP_FACTOR = 1.5
"""The first of three or more like times is warm-up when it is this much above the median of the rest."""
SPREAD = 0.05
"""Repetitions whose standard error of the mean is above this share of it cannot carry a claim of a few per cent."""
DRIFT = 0.03
DRIFT_P = 0.01
"""A trend over the repetitions counts when it exceeds 3 % end to end and is not chance at 1 %."""
PRINTED = 0.005
"""Rates that tools print from the same counters differ by rounding only."""

TABLE_DIGIT = 0.0005
"""Half of the last digit of a time in llama-batched-bench's table, seconds."""


def timing_flags(record: Record, options: AuditOptions) -> list[Flag]:
    """Flags about time, a trial at a time, then those about prompts that recur."""
    flags = [
        flag
        for trial in record.trials
        for check in (_window, _printed, _warmup, _repetitions, _impossible)
        for flag in check(trial, options)
    ]
    return flags + list(_cached(record)) + list(_clocks(record))


def claim_flags(record: Record, options: AuditOptions) -> list[Flag]:
    """Which reading of the record a published rate is, and the flags of that reading."""
    if options.claim is None:
        return []
    claim = options.claim
    trials = list(record.trials)
    reading = explain(claim, trials, options.per)
    flags = list(_claim_above_bound(options, trials))
    if reading is None:
        rates = [trial.aggregate if options.per == "aggregate" else trial.per_answer for trial in trials]
        near = min(
            (rate for rate in rates if math.isfinite(rate)), key=lambda rate: abs(rate - claim), default=math.nan
        )
        return [
            *flags,
            Flag(
                "UNEXPLAINED",
                f"no reading of the record gives the published {claim:g} tok/s; its nearest honest rate is {near:.1f}",
                {"claim": claim, "nearest": near},
            ),
        ]
    value = honest(reading, options.per)
    codes = {"PROMPT_RATE": "PREFILL_IN_RATE", "PREFILL_TIME": "WINDOW", "STARTUP": "WINDOW"}
    tail = f"; put right it is {value:.1f} tok/s" if math.isfinite(value) else ""
    return flags + [
        Flag(
            codes.get(fault, fault),
            f"{reading.trial.label}: the published {claim:g} tok/s has {WORDS[fault]}{tail}",
            {"claim": claim, "right": value},
        )
        for fault in reading.faults
    ]


def _window(trial: Trial, options: AuditOptions) -> Iterator[Flag]:
    """Tokens without time, or a rate in the record itself that no honest reading gives."""
    if trial.counted and trial.seconds == 0:
        yield Flag("NO_TIME", f"{trial.label}: {trial.counted} tokens in 0 s; the record has no time to divide by")
    printed = trial.printed.get("tok_s")
    if printed is None or not trial.emits_known or math.isnan(trial.seconds):
        return
    right = trial.per_answer
    # llama-bench prints the mean of the repetitions' rates, which is above the rate of their mean time.
    mean = float(np.mean([trial.distinct / seconds for seconds in trial.samples])) if trial.samples else right
    if abs(printed - mean) <= max(rounding(printed), PRINTED * mean):
        return
    reading = explain(printed, [trial])
    words = reading.words if reading else "no reading of its tokens and seconds"
    code = {"PROMPT_RATE": "PREFILL_IN_RATE", "PREFILL_TIME": "WINDOW", "STARTUP": "WINDOW"}
    fault = reading.faults[0] if reading and reading.faults else "INCONSISTENT"
    yield Flag(
        code.get(fault, fault),
        f"{trial.label} ({trial.place}): prints {printed:g} tok/s, its tokens and seconds "
        f"give {right:.1f}; the printed one is {words}",
        {"printed": printed, "right": right},
    )


def _printed(trial: Trial, options: AuditOptions) -> Iterator[Flag]:
    """Columns of a tool against its own counters, and the two columns that are no generation rate."""
    whole = trial.seconds + trial.prefill_seconds
    expected = {
        "S_PP": (trial.prefill_rate, trial.prefill_seconds),
        "S_TG": (trial.distinct / trial.seconds if trial.seconds else math.nan, trial.seconds),
        "S": ((trial.prompt_tokens + trial.distinct) / whole if whole > 0 else math.nan, whole),
    }
    if trial.samples and trial.prompt_tokens:
        rates = [trial.prompt_tokens / seconds for seconds in trial.samples]
        expected["pp"] = (float(np.mean(rates)), math.inf)
    for name, (right, seconds) in expected.items():
        value = trial.printed.get(name)
        # The table prints times with three decimals, which limits how far a rate can be recomputed.
        slack = PRINTED + TABLE_DIGIT / seconds if seconds > 0 else math.inf
        if value is not None and math.isfinite(right) and abs(value - right) > slack * right:
            yield Flag(
                "INCONSISTENT",
                f"{trial.label} ({trial.place}): prints {name} {value:g}, its tokens and times give {right:.2f}",
                {"printed": value, "right": right},
            )
    if trial.mixed_tokens:
        yield Flag(
            "PREFILL_IN_RATE",
            f"{trial.label} ({trial.place}): {trial.printed.get('pg', math.nan):g} tok/s has "
            f"{trial.prompt_tokens} prompt tokens in it and cannot be split; run llama-bench with -p and -n "
            "instead of -pg",
            {"printed": trial.printed.get("pg", math.nan)},
        )


def _warmup(trial: Trial, options: AuditOptions) -> Iterator[Flag]:
    series: list[tuple[str, list[float]]] = [("repetition", list(trial.samples))]
    if trial.steps is not None and len(trial.steps):
        widths = trial.steps["width"].fillna(0)
        series += [
            (f"step of width {width:g}" if width else "step", rows["seconds"].dropna().tolist())
            for width, rows in trial.steps.groupby(widths, sort=False)
        ]
    for name, times in series:
        if len(times) < 3:
            continue
        rest = float(np.median(times[1:]))
        if rest > 0 and times[0] > WARMUP_FACTOR * rest:
            mean, kept = float(np.mean(times)), float(np.mean(times[1:]))
            yield Flag(
                "WARMUP",
                f"{trial.label}: the first {name} took {times[0]:g} s, the others {rest:g} s; without "
                f"it the mean is {kept:.4g} s, not {mean:.4g} s",
                {"first": times[0], "rest": rest, "mean": kept},
            )


def _repetitions(trial: Trial, options: AuditOptions) -> Iterator[Flag]:
    rates = 1.0 / np.array(trial.samples) if len(trial.samples) > 1 else np.array([])
    if len(rates) < 2:
        return
    error = float(rates.std(ddof=1) / math.sqrt(len(rates)) / rates.mean())
    if error > SPREAD:
        yield Flag(
            "NOISE",
            f"{trial.label}: {len(rates)} repetitions spread so far that their mean is known to "
            f"{100 * error:.0f} % only",
            {"relative_error": error, "repetitions": len(rates)},
        )
    yield from drift(trial.label, rates)


def drift(label: str, rates: np.ndarray) -> Iterator[Flag]:
    """A trend over rates in the order they were taken."""
    if len(rates) < 5 or float(np.std(rates)) == 0.0:
        return
    line = stats.linregress(np.arange(len(rates)), np.log(rates))
    change = math.expm1(line.slope * (len(rates) - 1))
    if abs(change) > DRIFT and line.pvalue < DRIFT_P:
        yield Flag(
            "DRIFT",
            f"{label}: the rate changes by {100 * change:+.1f} % over its {len(rates)} repetitions; "
            "heat or clocks, log them and balance the order",
            {"change": change, "p": float(line.pvalue)},
        )


def _impossible(trial: Trial, options: AuditOptions) -> Iterator[Flag]:
    size = options.bytes_per_step or trial.model_bytes
    if not size or not options.bandwidth:
        return
    bound = options.bandwidth * 1e9 / size * tokens_per_step(trial, options)
    if trial.aggregate > bound:
        yield _above(trial.label, trial.aggregate, bound, size, trial, options)


def _claim_above_bound(options: AuditOptions, trials: list[Trial]) -> Iterator[Flag]:
    """A published rate is impossible when it is above the bound of every trial."""
    bounds = []
    for trial in trials:
        size = options.bytes_per_step or trial.model_bytes
        if size and options.bandwidth and (trial.distinct or "tok_s" in trial.printed):
            share = 1 if options.per == "aggregate" else trial.streams
            bound = options.bandwidth * 1e9 / size * tokens_per_step(trial, options) / share
            bounds.append((bound, size, trial))
    if bounds and options.claim is not None:
        bound, size, trial = max(bounds, key=lambda item: item[0])
        if options.claim > bound:
            yield _above(f"{trial.label}, published", options.claim, bound, size, trial, options)


def _above(label: str, rate: float, bound: float, size: float, trial: Trial, options: AuditOptions) -> Flag:
    source = "" if options.bytes_per_step else " (all tensors of the model; --bytes-per-step for what a step reads)"
    return Flag(
        "IMPOSSIBLE",
        f"{label}: {rate:.1f} tok/s is above the bound of {bound:.1f}: {options.bandwidth:g} GB/s "
        f"over {size / 1e9:.2f} GB a step{source} at {tokens_per_step(trial, options):.2f} tokens a step",
        {"rate": rate, "bound": bound},
    )


def tokens_per_step(trial: Trial, options: AuditOptions) -> float:
    """Distinct tokens that one pass over the weights gave."""
    if trial.rounds and trial.distinct:
        return trial.distinct / trial.rounds
    return float(options.streams or trial.streams)


def _cached(record: Record) -> Iterator[Flag]:
    """Prompts that were not evaluated in full, or less often than the first time."""
    most: dict[str, int] = {}
    for trial in record.trials:
        if trial.evaluated is None:
            continue
        before = most.get(trial.prompt, 0)
        # Without the prompt's length or name, only an evaluation of nothing is known to be short.
        wanted = trial.prompt_tokens or (before if trial.prompt or trial.evaluated == 0 else 0)
        most[trial.prompt] = max(before, trial.evaluated)
        if trial.evaluated < wanted:
            yield Flag(
                "CACHED",
                f"{trial.label} ({trial.place}): {trial.evaluated} of {wanted} prompt tokens were "
                "evaluated, the rest came from a cache; reset the context between runs",
                {"evaluated": trial.evaluated, "prompt": wanted},
            )


def _clocks(record: Record) -> Iterator[Flag]:
    clocks = [trial.clock_mhz for trial in record.trials if trial.clock_mhz]
    if len(clocks) > 1 and min(clocks) < (1 - SPREAD) * max(clocks):
        yield Flag(
            "DRIFT",
            f"the clock moves between {min(clocks):g} and {max(clocks):g} MHz over the runs; those below "
            "were throttled",
            {"low": min(clocks), "high": max(clocks)},
        )

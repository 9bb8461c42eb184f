"""What is wrong with the times of a record: windows, prompts, warm-up, caches, drift, and clocks.

It knows no method and compares no arms. Thresholds are named constants, each with its reason.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

from bench.audit.compare import USUAL_REPETITIONS
from bench.audit.estimate import t_probability
from bench.audit.numbers import rounding
from bench.audit.options import AuditOptions
from bench.audit.readings import WORDS, explain, honest
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
SMALL, ROUGH = 1e-4, 0.1
"""A spread that is this share of its mean is none, and one is told within a tenth."""
TABLE_DIGIT = 0.0005
"""Half of the last digit of a time in llama-batched-bench's table, seconds."""
CODES = {"PROMPT_RATE": "PREFILL_IN_RATE", "PREFILL_TIME": "WINDOW", "STARTUP": "WINDOW"}
"""Readings that share a flag."""


def timing_flags(record: Record, options: AuditOptions) -> list[Flag]:
    """Flags about time, a trial at a time, then those about prompts that recur."""
    flags = [
        flag
        for trial in record.trials
        for check in (_window, _printed, _peak, _warmup, _repetitions)
        for flag in check(trial, options)
    ]
    return flags + list(_cached(record)) + list(_clocks(record))


def claim_flags(record: Record, options: AuditOptions) -> list[Flag]:
    """Which reading of the record a published rate is, as the flags of that reading."""
    if options.claim is None:
        return []
    claim, trials = options.claim, list(record.trials)
    reading = explain(claim, trials, options.per)
    if reading is None:
        rates = [trial.aggregate if options.per == "aggregate" else trial.per_answer for trial in trials]
        known = [rate for rate in rates if math.isfinite(rate)]
        near = min(known, key=lambda rate: abs(rate - claim), default=math.nan)
        tail = f"; its nearest honest rate is {near:.1f}" if known else "; the record has no rate"
        return [
            Flag(
                "UNEXPLAINED",
                f"no reading of the record gives the published {claim:g} tok/s{tail}",
                {"claim": claim, "nearest": near},
            )
        ]
    value = honest(reading, options.per)
    tail = f"; put right it is {value:.1f} tok/s" if math.isfinite(value) else ""
    return [
        Flag(
            CODES.get(fault, fault),
            f"{reading.trial.where}: the published {claim:g} tok/s has {WORDS[fault]}{tail}",
            {"claim": claim, "right": value},
        )
        for fault in reading.faults
    ]


def _window(trial: Trial, options: AuditOptions) -> Iterator[Flag]:
    """Tokens without time, or a rate in the record itself that no honest reading gives."""
    if trial.counted and trial.seconds == 0:
        yield Flag("NO_TIME", f"{trial.where}: {trial.counted} tokens in 0 s; the record has no time to divide by")
    printed = trial.printed.get("tok_s")
    if printed is None or not trial.counted or not trial.seconds > 0:
        return
    total = trial.distinct / trial.seconds
    # llama-bench prints the mean of the repetitions' rates, which is above the rate of their mean time.
    timed = [seconds for seconds in trial.samples if seconds > 0]
    mean = statistics.fmean(trial.distinct / seconds for seconds in timed) if timed else total
    for right in {mean, total / trial.streams}:
        if abs(printed - right) <= max(rounding(printed), PRINTED * right):
            return
    right = total / trial.streams
    reading = explain(printed, [trial])
    words = reading.words if reading and reading.faults else "no reading of its tokens and seconds"
    fault = reading.faults[0] if reading and reading.faults else "INCONSISTENT"
    yield Flag(
        CODES.get(fault, fault),
        f"{trial.where}: prints {printed:g} tok/s, its tokens and seconds give {right:.1f}; the printed one is {words}",
        {"printed": printed, "right": right},
    )


def _printed(trial: Trial, options: AuditOptions) -> Iterator[Flag]:
    """Columns of a tool against its own counters, and the two columns that are no generation rate."""
    whole = trial.seconds + trial.prefill_seconds
    expected = {
        "S_PP": (trial.prefill_rate, trial.prefill_seconds),
        "S_TG": (trial.distinct / trial.seconds if trial.seconds > 0 else math.nan, trial.seconds),
        "S": ((trial.prompt_tokens + trial.distinct) / whole if whole > 0 else math.nan, whole),
    }
    if trial.samples and trial.prompt_tokens and not trial.mixed_tokens:
        expected["pp"] = (statistics.fmean(trial.prompt_tokens / seconds for seconds in trial.samples), math.inf)
    # Rows of a prompt are nobody's claim, and what they print beside their rate is not looked at.
    rates = [trial.distinct / seconds for seconds in trial.samples if seconds > 0 and not trial.mixed_tokens]
    if rates and trial.distinct:
        expected["mean_s"] = statistics.fmean(trial.samples), math.inf
        expected["samples"] = statistics.fmean(rates), math.inf
    # Less spread than there is flatters; more does not, and of hardly any the printed digits tell nothing.
    spread = statistics.stdev(rates) if len(rates) > 1 else 0.0
    if SMALL * statistics.fmean(rates or [0.0]) < spread and trial.printed.get("sd", math.inf) < spread:
        expected["sd"] = spread, math.inf
    for name, (right, seconds) in expected.items():
        value = trial.printed.get(name)
        # The table prints times with three decimals, which limits how far a rate can be recomputed.
        slack = PRINTED + TABLE_DIGIT / seconds if seconds > 0 else math.inf
        slack += ROUGH if name == "sd" else 0.0
        if value is not None and math.isfinite(right) and abs(value - right) > slack * right:
            yield Flag(
                "INCONSISTENT",
                f"{trial.where}: prints {name} {value:g}, its tokens and times give {right:.2f}",
                {"printed": value, "right": right},
            )
    if trial.mixed_tokens:
        yield Flag(
            "PREFILL_IN_RATE",
            f"{trial.where}: {trial.printed.get('pg', math.nan):g} tok/s has prompt tokens in it and cannot be split; "
            "measure the prompt and the answer apart (llama-bench: -p and -n instead of -pg)",
            {"printed": trial.printed.get("pg", math.nan)},
        )


def _peak(trial: Trial, options: AuditOptions) -> Iterator[Flag]:
    """The best second cannot be slower than the mean of all, and a row may print two rates of one answer."""
    peak, total = trial.printed.get("peak"), trial.aggregate
    if peak is not None and peak < total * (1 - PRINTED):
        yield Flag(
            "INCONSISTENT",
            f"{trial.where}: prints a peak of {peak:g} tok/s below its own mean of {total:.1f}; a peak that counts "
            "chunks is no "
            "rate of tokens",
            {"peak": peak, "mean": total},
        )
    both = trial.printed.get("tok_s"), trial.printed.get("answer_tok_s")
    if trial.streams_known and trial.streams == 1 and both[0] and both[1] and abs(both[0] / both[1] - 1) > 2 * PRINTED:
        low, high = sorted((both[0], both[1]))
        yield Flag(
            "WINDOW",
            f"{trial.where}: prints {both[0]:g} tok/s in sum and {both[1]:g} for one answer, of one answer: the same "
            "tokens over two "
            f"windows. {low:g} has the prefill's time inside, {high:g} has not; never divide one by the other",
            {"whole": low, "decode": high},
        )


def _warmup(trial: Trial, options: AuditOptions) -> Iterator[Flag]:
    series: dict[str, list[float]] = {"repetition": list(trial.samples)}
    for step in trial.steps:
        if math.isfinite(step.seconds):
            series.setdefault(f"step of width {step.width}" if step.width else "step", []).append(step.seconds)
    for name, times in series.items():
        if len(times) < 3:
            continue
        rest = statistics.median(times[1:])
        if rest > 0 and times[0] > WARMUP_FACTOR * rest:
            mean, kept = statistics.fmean(times), statistics.fmean(times[1:])
            rates = f" ({trial.distinct / kept:.2f} tok/s)" if name == "repetition" and trial.distinct else ""
            yield Flag(
                "WARMUP",
                f"{trial.where}: the first {name} took {times[0]:g} s, the others {rest:g} s; without it the mean is "
                f"{kept:.4g} s{rates}, not {mean:.4g} s",
                {"first": times[0], "rest": rest, "mean": kept},
            )


def _repetitions(trial: Trial, options: AuditOptions) -> Iterator[Flag]:
    if len(trial.samples) > 2 and len(set(trial.samples)) == 1 and round(trial.samples[0] * 1e9) % 1000:
        yield Flag(
            "COPIED",
            f"{trial.where}: all {len(trial.samples)} repetitions took {trial.samples[0]:g} s, to the nanosecond, so "
            "they are one",
            {"repetitions": len(trial.samples)},
        )
    if len(trial.samples) > 1:
        rates = [1 / seconds for seconds in trial.samples]
        mean, number = statistics.fmean(rates), len(rates)
        spread = statistics.stdev(rates) / mean
    elif math.isfinite(trial.spread) and trial.aggregate > 0:
        rates, number = [], trial.repetitions or (USUAL_REPETITIONS if "model_type" in trial.settings else 0)
        spread = trial.spread / trial.aggregate
    else:
        return
    error = spread / math.sqrt(number) if number else spread / 2
    if error > SPREAD:
        of = f"{number} repetitions" if trial.repetitions or trial.samples else "repetitions"
        yield Flag(
            "NOISE",
            f"{trial.where}: {of} spread by {100 * spread:.0f} %, so their mean is known to {100 * error:.0f} % only",
            {"relative_error": error, "repetitions": number},
        )
    yield from drift(trial.where, rates)


def drift(label: str, rates: Sequence[float]) -> Iterator[Flag]:
    """A trend over rates in the order they were taken."""
    count = len(rates)
    if count < 5 or min(rates) <= 0 or max(rates) == min(rates):
        return
    logs = [math.log(rate) for rate in rates]
    middle, mean = (count - 1) / 2, statistics.fmean(logs)
    across = sum((k - middle) ** 2 for k in range(count))
    slope = sum((k - middle) * (value - mean) for k, value in enumerate(logs)) / across
    rest = sum((value - mean - slope * (k - middle)) ** 2 for k, value in enumerate(logs)) / (count - 2)
    change = math.expm1(slope * (count - 1))
    chance = t_probability(slope / math.sqrt(rest / across), count - 2) if rest > 1e-24 else 0.0
    if abs(change) > DRIFT and chance < DRIFT_P:
        yield Flag(
            "DRIFT",
            f"{label}: the rate changes by {100 * change:+.1f} % over its {count} repetitions; heat or clocks, log "
            "them and "
            "balance the order",
            {"change": change, "p": chance},
        )


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
                f"{trial.where}: {trial.evaluated} of {wanted} prompt tokens were evaluated, the rest came from a "
                "cache; reset "
                "the context between runs",
                {"evaluated": trial.evaluated, "prompt": wanted},
            )


def _clocks(record: Record) -> Iterator[Flag]:
    clocks = [trial.clock_mhz for trial in record.trials if trial.clock_mhz]
    if len(clocks) > 1 and min(clocks) < (1 - SPREAD) * max(clocks):
        yield Flag(
            "DRIFT",
            f"the clock moves between {min(clocks):g} and {max(clocks):g} MHz over the runs; those below were "
            "throttled",
            {"low": min(clocks), "high": max(clocks)},
        )

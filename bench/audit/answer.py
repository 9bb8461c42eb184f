"""The one sentence that a reader came for, and how far it holds. Comparisons and flags are given; it computes none."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bench.audit.compare import Comparison, rates
from bench.audit.flags.contrasts import asked
from bench.audit.launches import Launches
from bench.audit.numbers import rounding
from bench.audit.options import AuditOptions
from bench.audit.readings import LOOSE, Reading, honest
from bench.audit.trials import Flag, Record, Trial

MOST = 3
"""Comparisons that a sentence names."""


def answer(
    record: Record, options: AuditOptions, found: Sequence[Comparison], flags: Sequence[Flag], reading: Reading | None
) -> str:
    """One sentence."""
    codes = {flag.code for flag in flags}
    if record.launches:
        return _kernels(record.launches, codes)
    if "DENIED" in codes and not record.trials:
        return "Nothing was counted: the profiler was denied the counters, for want of permission."
    if not record.trials or ("EMPTY" in codes and not rates(record.trials)):
        return "The record has no token in it: that is a failed run, not 0 tok/s."
    main = [one for one in found if asked(one, options)]
    if options.claim is not None:
        return _claim(options, reading, main or list(found), record)
    if main:
        return _comparisons(main, options, codes)
    wide = [one for one in found if one.kind == "width"]
    if wide:
        return _widths(wide, options)
    runs = [one for one in found if one.kind == "run"]
    if runs and len(runs) == 1:
        return _comparisons(runs, options, codes)
    return _alone(record, codes)


def scope(record: Record, options: AuditOptions, found: Sequence[Comparison]) -> list[str]:
    """How far each answer holds: classes of prompts with the worst of them, conditions, and what it does not say."""
    lines = []
    for one in found:
        if not asked(one, options):
            continue
        classes = one.by_class
        if classes:
            worst = min(classes, key=lambda name: classes[name])
            listed = ", ".join(
                f"{name} {ratio:.2f}x" for name, ratio in sorted(classes.items(), key=lambda item: -item[1])[:12]
            )
            lines.append(f"{one.name}, by class of prompts: {listed}; worst {worst} {classes[worst]:.2f}x")
        elif len(one.pairs) > 1:
            worst_pair = one.worst
            lines.append(
                f"{one.name}: worst of {len(one.pairs)} prompts {worst_pair.prompt} {worst_pair.estimate.ratio:.2f}x"
            )
        else:
            prompt = one.pairs[0].prompt
            lines.append(
                f"{one.name}: {'one prompt, ' + prompt if prompt else 'one text'}; nothing is said about others"
            )
    return [*dict.fromkeys(lines), *_conditions(record)]


def _conditions(record: Record) -> list[str]:
    """The model, the machine and the temperature that the record is of; what it does not say."""
    if not record.trials:
        return []
    names = {
        "model": ("model_type", "model"),
        "device": ("gpu_info", "device", "gpu", "devices"),
        "build": ("build", "build_commit"),
    }
    told, silent = [], []
    for word, keys in names.items():
        values = {
            trial.settings[key]
            for trial in record.trials
            for key in keys
            if trial.settings.get(key) and trial.settings[key] not in ("auto", "none")
        }
        told += [f"{word} {', '.join(sorted(values))[:80]}"] if values else []
        silent += [] if values else [f"the {word}"]
    degrees = sorted({trial.temperature for trial in record.trials if trial.temperature is not None})
    told += [f"temperature {', '.join(f'{value:g}' for value in degrees)}"] if degrees else []
    silent += [] if degrees else ["the temperature"]
    lines = [f"of {'; '.join(told)}"] if told else []
    return lines + ([f"the record does not say {', '.join(silent)}"] if silent else [])


def _ratio(one: Comparison) -> str:
    estimate = one.estimate
    if not estimate.known:
        return f"{estimate.ratio:.2f}x"
    low, high = estimate.interval()
    return f"{estimate.ratio:.2f}x ({low:.3f} to {high:.3f})"


def _one(one: Comparison, options: AuditOptions) -> str:
    """A comparison in a few words."""
    estimate, name = one.estimate, one.name
    if one.in_sum:
        return (
            f"{name}: the sum of all answers is {estimate.ratio:.2f}x; nobody says how many there were, so of one "
            "answer nothing is known"
        )
    if one.wide and one.pairs[0].treated[0].test != "serving":
        return (
            f"{name}: one answer is {estimate.ratio:.2f}x the baseline; the {one.total:.2f}x is the sum of "
            f"{one.streams}"
        )
    if one.streams > 1 and one.pairs[0].treated[0].test == "serving":
        return (
            f"{name}: one answer, once it runs, is {estimate.ratio:.2f}x the baseline; all of them together "
            f"{one.total:.2f}x"
        )
    if not estimate.known:
        return (
            f"{name} is {estimate.ratio:.2f}x for one answer, from one pair of figures: without a spread it is not "
            "decided"
        )
    if not estimate.excludes(1.0):
        low, high = estimate.interval()
        if estimate.min_visible_effect <= 1.01:
            return f"{name} is {estimate.ratio:.3f}x: no difference"
        single = sorted(pair.estimate.ratio for pair in one.pairs)
        each = f" (single prompts {single[0]:.2f}x to {single[-1]:.2f}x)" if len(single) > 1 else ""
        return (
            f"no difference can be told: {name} is {estimate.ratio:.3f}x{each}, and its interval {low:.3f} to "
            f"{high:.3f} spans 1"
        )
    return f"{name} is {_ratio(one)} for one answer"


def _comparisons(found: Sequence[Comparison], options: AuditOptions, codes: set[str]) -> str:
    if len(found) == 1 and found[0].wide and found[0].pairs[0].treated[0].test != "serving":
        one = found[0]
        words = (
            f"one answer is {one.estimate.ratio:.2f}x the baseline; the {one.total:.2f}x is the sum of {one.streams}"
        )
    else:
        order = sorted(found, key=lambda one: one.estimate.ratio) if len(found) > MOST else list(found)
        shown = [*order[: MOST - 1], order[-1]] if len(order) > MOST else order
        words = "; ".join(_one(one, options) for one in shown)
        words += f"; and {len(order) - len(shown)} between them" if len(order) > len(shown) else ""
    words += _published(found, options)
    tails = {
        "DIVERGENT": "the outputs are different ones, so it is no lossless speed-up",
        "LENGTH": "the answers have other lengths, so that it is lossless is not shown",
        "LATER": "the whole answer comes later",
        "NOT_COMPARABLE": "the two sides are not comparable as they stand",
        "DIFFERS": "builds, backends or machines differ, and that is what is compared",
    }
    told = [tail for code, tail in tails.items() if code in codes]
    plain = words.startswith(("one answer", "no difference", "this record", "run "))  # and not the name of an arm
    return (words[0].upper() + words[1:] if plain else words) + "".join(f"; {tail}" for tail in told) + "."


def _published(found: Sequence[Comparison], options: AuditOptions) -> str:
    """What the published ratio is."""
    claim = options.speedup
    if claim is None:
        return ""
    near = max(rounding(claim), LOOSE * claim)
    for one in found:
        low, high = one.estimate.interval() if one.estimate.known else (one.estimate.ratio, one.estimate.ratio)
        holds = low - near <= claim <= high + near and (not one.estimate.known or one.estimate.excludes(1.0))
        if one.streams > 1 and abs(one.total - claim) <= near < abs(one.estimate.ratio - claim):
            return f"; the published {claim:g}x is the sum"
        if holds:
            where = f" at {one.condition}" if one.condition else ""
            return f"; the published {claim:g}x holds{where}"
    return f"; the published {claim:g}x is not what the record shows"


def _widths(found: Sequence[Comparison], options: AuditOptions) -> str:
    one = max(found, key=lambda one: one.total)
    runs = {one.label.split(",")[0] for one in found if one.label.startswith("run ")}
    if len(runs) > 1 and options.speedup is None:  # two runs are two answers
        best = [
            max((one for one in found if one.label.startswith(run)), key=lambda one: one.total) for run in sorted(runs)
        ]
        words = "; ".join(
            f"{one.label}: one answer {one.estimate.ratio:.2f}x, sum {one.total:.2f}x" for one in best[:MOST]
        )
        return f"Several answers at once against one alone, each run with its own settings: {words}."
    if options.speedup is not None:
        one = min(found, key=lambda one: abs(one.total - (options.speedup or 0)))
    return (
        f"With {one.streams} answers at once ({one.label}) one answer is {one.estimate.ratio:.2f}x of one alone; the "
        f"{one.total:.2f}x is the sum of {one.streams}{_published([one], options)}."
    )


def _claim(options: AuditOptions, reading: Reading | None, found: Sequence[Comparison], record: Record) -> str:
    claim = f"{options.claim:g}"
    if reading is None:
        known = rates(record.trials, options.per)
        near = min(known, key=lambda rate: abs(rate - (options.claim or 0)), default=math.nan)
        tail = f"; the nearest it has is {near:.1f}" if known else "; it has no rate"
        return f"No reading of the record gives the published {claim} tok/s{tail}."
    right = honest(reading, options.per)
    what = "the sum" if options.per == "aggregate" else "one answer"
    if not reading.faults:
        words = f"The published {claim} tok/s is what {what} has"
    else:
        tail = f"; put right, {what} has {right:.1f} tok/s" if math.isfinite(right) else ""
        words = f"The published {claim} tok/s has {reading.words}{tail}"
    own = [one for one in found if any(trial is reading.trial for pair in one.pairs for trial in pair.treated)]
    if own and own[0].wide:
        words += (
            f", {own[0].estimate.ratio:.2f}x the baseline, and the {own[0].total:.2f}x is the sum of {own[0].streams}"
        )
    elif own:
        words += f", {_ratio(own[0])} the baseline"
    return words + "."


def _alone(record: Record, codes: set[str]) -> str:
    """A record with nothing to compare with."""
    trials = [trial for trial in record.trials if trial.per_answer > 0]
    sums = [trial for trial in record.trials if trial.unshared and trial.aggregate > 0]
    if not trials and sums:
        return (
            f"The {sums[0].aggregate:.1f} tok/s are a sum of answers whose number is not said: of one answer "
            "nothing is known."
        )
    if not trials:
        return _without_rate(record)
    low, high = min(trials, key=lambda one: one.per_answer), max(trials, key=lambda one: one.per_answer)
    if "under way" in high.label:
        return f"One answer was at {high.per_answer:.1f} tok/s when the log ends: a rate so far, not a final one."
    spread = f" ± {high.spread:.1f}" if math.isfinite(high.spread) and high.streams == 1 else ""
    if high.per_answer - low.per_answer > 0.05 * high.per_answer:
        words = (
            f"One answer decodes at {low.per_answer:.1f} ({low.label}) to {high.per_answer:.1f} tok/s ({high.label})"
        )
    else:
        words = f"One answer decodes at {high.per_answer:.1f}{spread} tok/s"
    if high.streams > 1:
        words += f"; the {high.aggregate:.1f} is the sum of {high.streams}"
    lengths = [trial.printed["mean_length"] for trial in trials if "mean_length" in trial.printed]
    if "NO_GAIN" in codes and lengths:
        words += f"; a step gives {min(lengths):.2f} tokens, so speculation can gain nothing"
    compare = (
        "no speed-up can be told from it" if "NO_BASELINE" in codes else "there is nothing here to compare it with"
    )
    return f"{words}; {compare}."


def _without_rate(record: Record) -> str:
    prefill = [trial for trial in record.trials if math.isfinite(trial.prefill_rate)]
    if prefill:
        return (
            f"The record has no rate of an answer, only the prompt's: {prefill[0].prefill_rate:.0f} tok/s "
            f"({prefill[0].label})."
        )
    mixed = [trial for trial in record.trials if "pg" in trial.printed]
    if mixed:
        return f"The {mixed[0].printed['pg']:g} tok/s have prompt tokens in them: the record has no rate of an answer."
    guesses: list[Trial] = [trial for trial in record.trials if trial.guesses]
    if guesses:
        return "The record counts guesses and has no rate: no speed follows from an acceptance."
    return "The record has no rate that can be told."


def _kernels(launches: Sequence[Launches], codes: set[str]) -> str:
    timed = [one for one in launches if one.us is not None]
    void = (
        "; its counters are not all to be trusted"
        if codes & {"VOID", "ZERO_COUNTER", "ABSENT_COUNTER", "IMPOSSIBLE"}
        else ""
    )
    if not timed:
        known = next((one for one in launches if one.dram_bytes), launches[0])
        what = f"reads {known.dram_bytes / 1e6:.1f} MB from memory a launch" if known.dram_bytes else "was counted"
        return f"{known.kernel} {what}, {known.calls} launch(es), without a time{void}."
    one = max(timed, key=lambda one: (one.us or 0) * one.calls)
    share = f", {100 * one.share:.0f} % of all kernels' time" if one.share is not None else ""
    return f"{one.kernel} takes {one.us:.1f} us a launch, over {one.calls} launch(es){share}{void}."

"""What is wrong with a comparison: no baseline, a weak denominator, order, noise, a gain that is none or not this one.

It knows nothing about single tokens. The estimator is that of `bench.audit.compare`; others are shown to say how far
the choice of a statistic would have moved the figure.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

from bench.audit.compare import Comparison, level, rates
from bench.audit.flags.times import drift
from bench.audit.numbers import rounding
from bench.audit.options import AuditOptions
from bench.audit.readings import LOOSE
from bench.audit.trials import SOLO, Flag, Record, Trial, baseline_arm, of_arm, treatments

ESTIMATORS = 0.05
"""Statistics of the same numbers that differ by more than this need a choice made before the run."""
EQUAL = 1.01
"""An interval that spans 1 and could have shown so small an effect says equal, not unknown."""
BELOW = 0.005
"""A ratio without an interval is below 1 from here on: printed rates are rounded."""
CHEAP = 0.8
"""A verifying step that takes less than this share of a plain step belongs to another model or setting."""


def contrast_flags(record: Record, options: AuditOptions, found: list[Comparison]) -> list[Flag]:
    """Flags about ratios."""
    flags = [*_no_baseline(record, options, found), *_degraded(record, found)]
    for arm in treatments(record):
        flags += [*_order(record, arm), *_statistic(arm, record)]
    for one in found:
        flags += [*_noise(one, options), *_gain(one, options), *_traded(one), *_cheap_verify(one)]
    return [*flags, *_arm_drift(record), *_summed(found, options), *_unpaired(record, found)]


def asked(one: Comparison, options: AuditOptions) -> bool:
    """Whether a comparison is one that somebody makes: not two runs pasted below each other, nor a table of widths."""
    if one.kind == "width":
        return False
    return (
        one.kind != "run"
        or options.speedup is not None
        or any(trial.guesses for pair in one.pairs for trial in pair.treated)
    )


def _ratio(one: Comparison, options: AuditOptions) -> float:
    return one.total if options.per == "aggregate" else one.estimate.ratio


def _no_baseline(record: Record, options: AuditOptions, found: list[Comparison]) -> Iterator[Flag]:
    wanted = options.speedup is not None or any(map(_speculates, record.trials))
    wanted |= options.acceptance is not None and bool(rates(record.trials))
    if not wanted or found or record.launches or options.baseline or options.against:
        return
    missing = ["the same model's plain rate on the same machine and build (--baseline TOK_S or --against FILE)"]
    missing += [] if any(trial.settings for trial in record.trials) else ["the engine's build and settings"]
    missing += [] if any(trial.temperature is not None for trial in record.trials) else ["the temperature"]
    yield Flag("NO_BASELINE", f"NOT ASSESSABLE as a speed-up: missing {'; '.join(missing)}")


def _speculates(trial: Trial) -> bool:
    """Whether a trial shows anything beside one token a step of one answer."""
    per_step = trial.emits is not None and trial.rounds is not None and trial.counted > trial.rounds
    return trial.guesses or per_step or (trial.streams > 1 and trial.test not in ("serving", "throughput"))


def _degraded(record: Record, found: list[Comparison]) -> Iterator[Flag]:
    solo = level(of_arm(record, SOLO))
    if math.isnan(solo):
        return
    base = level(of_arm(record, baseline_arm(record) or ""))
    for arm in treatments(record) or [arm for arm in record.arms if arm != SOLO]:
        treated = level(of_arm(record, arm))
        if math.isnan(base) or math.isnan(treated):
            yield Flag(
                "DEGRADED_DENOMINATOR",
                f"{arm}: {treated / solo:.2f}x is over one stream in the same wide context; a baseline needs a "
                "context of its own",
                {"same_context": treated / solo},
            )
        elif base > solo * (1 + ESTIMATORS):
            yield Flag(
                "DEGRADED_DENOMINATOR",
                f"{arm}: {treated / base:.2f}x over the baseline; the {treated / solo:.2f}x over one stream in its "
                "own context is no "
                f"speed-up, since that runs at {solo:.1f} and the baseline at {base:.1f} tok/s",
                {"speedup": treated / base, "same_context": treated / solo},
            )


def _order(record: Record, arm: str) -> Iterator[Flag]:
    """All runs of one arm before all of the other on one prompt, and what a common drift leaves of the ratio."""
    base = baseline_arm(record) or ""
    for prompt in dict.fromkeys(trial.prompt for trial in record.trials):
        trials = [t for t in record.trials if t.arm in (arm, base) and t.prompt == prompt]
        if len({(t.test, t.depth, t.streams) for t in trials}) > 1 or len(rates(trials)) < len(trials):
            continue  # rows of other conditions follow no clock
        place = {name: [k for k, trial in enumerate(trials) if trial.arm == name] for name in (arm, base)}
        if min(len(places) for places in place.values()) < 2:
            continue
        if min(place[arm]) < max(place[base]) and min(place[base]) < max(place[arm]):
            continue
        logs = {name: [math.log(trials[k].per_answer) for k in places] for name, places in place.items()}
        middle = {name: statistics.fmean(places) for name, places in place.items()}
        mean = {name: statistics.fmean(values) for name, values in logs.items()}
        naive = math.exp(mean[arm] - mean[base])
        across = sum((k - middle[name]) ** 2 for name, places in place.items() for k in places)
        slope = (
            sum(
                (k - middle[name]) * (value - mean[name])
                for name, places in place.items()
                for k, value in zip(places, logs[name], strict=True)
            )
            / across
        )
        without = naive * math.exp(-slope * (middle[arm] - middle[base]))
        yield Flag(
            "ORDER",
            f"{arm}: every run of one arm comes before the other's ({trials[0].place} on), so drift looks like an "
            "effect: "
            f"{naive:.2f}x as it stands, {without:.3f}x once the {100 * math.expm1(slope):+.1f} % a run inside the "
            "arms is taken "
            "out; run A B B A",
            {"naive": naive, "level": without, "slope": slope},
        )
        return


def _noise(one: Comparison, options: AuditOptions) -> Iterator[Flag]:
    estimate = one.estimate
    if one.kind in ("width", "baseline") or (one.kind == "run" and not estimate.known and not asked(one, options)):
        return
    ratio = estimate.ratio
    if not estimate.known:
        yield Flag(
            "NOISE", f"{one.where}: {ratio:.3f}x from one pair of runs has no interval; INCONCLUSIVE", {"ratio": ratio}
        )
    elif not estimate.excludes(1.0) and estimate.min_visible_effect > EQUAL:
        low, high = estimate.interval()
        yield Flag(
            "NOISE",
            f"{one.where}: {ratio:.3f}x with a 95 % interval of {low:.3f} to {high:.3f} spans 1.00; INCONCLUSIVE over "
            f"{_units(one)}, which could have shown {estimate.min_visible_effect:.2f}x at the least",
            {"ratio": ratio, "low": low, "high": high},
        )


def _units(one: Comparison) -> str:
    count = f"{one.estimate.df + 1:.0f} " if one.estimate.units in ("prompts", "pairs of runs") else ""
    return count + one.estimate.units


def _gain(one: Comparison, options: AuditOptions) -> Iterator[Flag]:
    """A side that is slower, or not as fast as published. A rate, never an acceptance, decides."""
    ratio = _ratio(one, options)
    known = one.estimate.known and options.per == "answer"
    unsure = known and not one.estimate.excludes(1.0)
    if not asked(one, options):
        return
    treated = [trial for pair in one.pairs for trial in pair.treated]
    if one.kind == "baseline" and options.speedup is None and not any(trial.guesses for trial in treated):
        return
    accepted = [t.accepted / tested for t in treated if t.accepted is not None and (tested := t.tested or t.drafted)]
    share = f" although {100 * statistics.fmean(accepted):.0f} % of guesses were accepted" if accepted else ""
    what = "in sum" if options.per == "aggregate" else "for one answer"
    told = level(treated, options.per), level([t for pair in one.pairs for t in pair.base], options.per)
    if (ratio < 1 and known and not unsure) or (ratio < 1 - BELOW and not known):
        yield Flag(
            "NO_GAIN",
            f"{one.where}: {told[0]:.1f} against {told[1]:.1f} tok/s is {ratio:.2f}x {what}{share}",
            {"speedup": ratio},
        )
    elif unsure and one.estimate.min_visible_effect <= EQUAL and options.speedup is None:
        yield Flag("NO_GAIN", f"{one.where}: {ratio:.3f}x {what}: no difference{share}", {"speedup": ratio})
    elif options.speedup is not None and options.speedup > ratio * (1 + ESTIMATORS):
        yield Flag(
            "LESS_THAN_CLAIMED",
            f"{one.where}: {ratio:.2f}x, {options.speedup:g}x published",
            {"speedup": ratio, "published": options.speedup},
        )


def _traded(one: Comparison) -> Iterator[Flag]:
    """One answer faster, all answers together slower: it depends on who asks."""
    if one.kind != "width" and one.streams > 1 and one.estimate.ratio > 1 + BELOW and one.total < 1 - BELOW:
        yield Flag(
            "SLOWER_IN_SUM",
            f"{one.where}: one answer runs at {one.estimate.ratio:.2f}x once it runs, and all answers together come "
            f"at {one.total:.2f}x",
            {"answer": one.estimate.ratio, "sum": one.total},
        )


def _cheap_verify(one: Comparison) -> Iterator[Flag]:
    """What is left of a step for the target, once the drafting is taken off, against a plain step."""
    for pair in one.pairs:
        treated, base = pair.treated[0], pair.base[0]
        if not treated.draft_seconds > 0 or not treated.rounds or not base.per_answer > 0 or not treated.seconds > 0:
            continue
        verify, plain = (treated.seconds - treated.draft_seconds) / treated.rounds, 1 / base.per_answer
        if 0 < verify < CHEAP * plain:
            yield Flag(
                "NOT_COMPARABLE",
                f"{one.where}: {treated.rounds} steps in {treated.seconds:.2f} s, {treated.draft_seconds:.2f} s of it "
                "the draft model's, leave "
                f"{1e3 * verify:.1f} ms for a verifying step, and the baseline takes {1e3 * plain:.1f} ms for a "
                "plain one: no wider step is "
                "cheaper, so the two did not run the same model under the same settings",
                {"verify_ms": 1e3 * verify, "plain_ms": 1e3 * plain},
            )


def statistics_of(record: Record, arm: str) -> dict[str, float]:
    """Ratios that other statistics would print from the same runs."""
    base = baseline_arm(record) or ""
    return other_statistics(of_arm(record, arm), of_arm(record, base))


def other_statistics(treated: list[Trial], base: list[Trial]) -> dict[str, float]:
    """The same of any two sides."""
    known = [rates(side) for side in (treated, base)]
    if not known[0] or not known[1]:
        return {}
    found = {
        "ratio of means": statistics.fmean(known[0]) / statistics.fmean(known[1]),
        "ratio of medians": statistics.median(known[0]) / statistics.median(known[1]),
    }
    pooled = [_pooled(side) for side in (treated, base)]
    if all(math.isfinite(value) for value in pooled):
        found["all tokens over all seconds"] = pooled[0] / pooled[1]
    prompts = [p for p in dict.fromkeys(t.prompt for t in treated) if any(t.prompt == p for t in base)]
    if len(prompts) > 1:
        medians = [
            statistics.median(rates(t for t in treated if t.prompt == p) or [math.nan])
            / statistics.median(rates(t for t in base if t.prompt == p) or [math.nan])
            for p in prompts
        ]
        found["geometric mean of medians by prompt"] = math.exp(statistics.fmean(map(math.log, medians)))
    return found


def _pooled(side: list[Trial]) -> float:
    if any(trial.streams > 1 or not trial.distinct or not trial.seconds > 0 for trial in side):
        return math.nan
    return sum(trial.distinct for trial in side) / math.fsum(trial.seconds for trial in side)


def _statistic(arm: str, record: Record) -> Iterator[Flag]:
    base = baseline_arm(record) or ""
    sides = of_arm(record, arm), of_arm(record, base)
    if len({(t.test, t.depth, t.streams) for side in sides for t in side}) == 1:
        yield from statistic_flag(arm, *sides)


def statistic_flag(label: str, treated: list[Trial], base: list[Trial]) -> Iterator[Flag]:
    """Whether the choice of a statistic moves the figure."""
    found = other_statistics(treated, base)
    if "geometric mean of medians by prompt" not in found or max(found.values()) <= (1 + ESTIMATORS) * min(
        found.values()
    ):
        return
    prompts = {trial.prompt for trial in treated} & {trial.prompt for trial in base}
    logs = [
        math.log(level([t for t in treated if t.prompt == p]) / level([t for t in base if t.prompt == p]))
        for p in prompts
    ]
    estimator = math.exp(math.fsum(logs) / len(logs))
    listed = ", ".join(f"{name} {value:.2f}" for name, value in found.items())
    yield Flag(
        "STATISTIC",
        f"{label}: the same runs give {listed}; the harness's estimator (each prompt weighs the same), fixed "
        "beforehand, gives "
        f"{estimator:.2f}",
        {**found, "estimator": estimator},
    )


def _arm_drift(record: Record) -> Iterator[Flag]:
    for arm in record.arms or [""]:
        trials = of_arm(record, arm) if arm else list(record.trials)
        # Prompts and tests differ in speed; a trend over them is not heat.
        alike = len({(trial.prompt, trial.test, trial.depth, trial.streams) for trial in trials}) == 1
        ordered = any(trial.arm for trial in trials) or all(trial.test == "benchmark" for trial in trials)
        if alike and ordered and len(rates(trials)) == len(trials):
            yield from drift(arm or "the runs", rates(trials))


def _summed(found: list[Comparison], options: AuditOptions) -> Iterator[Flag]:
    """A published speed-up that is the sum of several answers over one."""
    claim = options.speedup
    if claim is None or options.per == "aggregate":
        return
    near = max(rounding(claim), LOOSE * claim)
    for one in found:
        answer, total = one.estimate.ratio, one.total
        if one.streams > 1 and abs(total - claim) <= near < abs(answer - claim):
            yield Flag(
                "AGGREGATE_AS_PER_ANSWER",
                f"{one.name}: the published {claim:g}x is {one.streams} answers summed; one answer has {answer:.2f}x",
                {"aggregate": total, "answer": answer},
            )


def _unpaired(record: Record, found: list[Comparison]) -> Iterator[Flag]:
    """Prompts of an arm that the baseline never ran."""
    for arm in treatments(record):
        paired = {
            pair.prompt
            for one in found
            if one.kind == "arm" and one.label.startswith(f"{arm} over")
            for pair in one.pairs
        }
        alone = [t for t in of_arm(record, arm) if t.prompt not in paired and t.per_answer > 0]
        if alone and paired:
            names = ", ".join(dict.fromkeys(trial.prompt for trial in alone))
            yield Flag(
                "NO_BASELINE",
                f"{arm}: {names} ({alone[0].place}) has no row of the baseline; no ratio is given for it",
                {"rows": len(alone)},
            )

"""What is wrong with a comparison: no baseline, unequal conditions, a weak denominator, order, noise, cost cliffs.

It knows nothing about single tokens. The estimator is `bench.judge.measure.intervals`; others are shown to say how far
the choice of a statistic would have moved the figure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from bench.audit.flags.times import drift
from bench.audit.options import AuditOptions
from bench.audit.readings import LOOSE, rounding
from bench.audit.trials import SOLO, Flag, Record, Trial, baseline_arm, of_arm, treatments
from bench.judge.measure.intervals import Estimate
from bench.judge.measure.layout import design

ESTIMATORS = 0.05
"""Statistics of the same numbers that differ by more than this need a choice made before the run."""
CLIFF = 1.05
"""A width is behind a cliff when it costs this much more than its share of tokens."""
BY_DESIGN = {"cell": ("n_seq_max", "n_ctx")}
"""Settings in which the harness's own arms differ: its baseline has a context of its own, `solo` the treatment's."""


def contrast_flags(record: Record, options: AuditOptions, against: Record | None = None) -> list[Flag]:
    """Flags about ratios. `against` is the baseline's record."""
    flags = list(_no_baseline(record, options, against)) + list(_not_comparable(record, against))
    flags += _degraded(record, options)
    for arm in treatments(record):
        flags += _order(record, arm) + list(_noise(record, arm)) + list(_statistic(record, arm))
    flags += [*_arm_drift(record), *_no_gain(record, options, against), *_summed(record, options, against)]
    flags += _cliff(record)
    return flags


def rate(trial: Trial) -> float:
    """The rate that arms are compared by: one answer's."""
    return trial.per_answer


def level(trials: list[Trial], per: str = "answer") -> float:
    """Geometric mean of the rates of trials; nan where there is none."""
    values = [trial.aggregate if per == "aggregate" else rate(trial) for trial in trials]
    rates = [value for value in values if math.isfinite(value) and value > 0]
    return math.exp(sum(map(math.log, rates)) / len(rates)) if rates else math.nan


def baseline_rate(record: Record, options: AuditOptions, against: Record | None) -> float:
    """The denominator that is known, nan where none is: given by hand, by a record, or by an arm or a width of 1."""
    if options.baseline:
        return options.baseline
    if against is not None:
        return max((rate(t) for t in against.trials if t.streams == 1 and math.isfinite(rate(t))), default=math.nan)
    base = baseline_arm(record)
    if base is not None:
        return level(of_arm(record, base))
    if record.format.startswith("llama-batched"):
        return max((rate(t) for t in record.trials if t.streams == 1 and math.isfinite(rate(t))), default=math.nan)
    return math.nan


def differing_settings(left: dict[str, str], right: dict[str, str], ignore: tuple[str, ...] = ()) -> dict[str, str]:
    """Keys that differ, with both values; a key that one side lacks differs as well."""
    keys = [key for key in dict.fromkeys([*left, *right]) if key not in ignore]
    return {
        key: f"{left.get(key, 'not said')} against {right.get(key, 'not said')}"
        for key in keys
        if left.get(key) != right.get(key)
    }


def contrast(record: Record, arm: str, base: str) -> Estimate | None:
    """Ratio of two arms, by the estimator of the harness: prompts are blocks, replicates pair in order."""
    trials = [trial for trial in record.trials if trial.arm in (arm, base) and rate(trial) > 0]
    if not trials:
        return None
    arms = np.array([trial.arm for trial in trials])
    _, prompts = np.unique([trial.prompt for trial in trials], return_inverse=True)
    layout = design(arms, prompts, prompts, np.arange(len(trials)), arm, base)
    return layout.contrast(np.log([rate(trial) for trial in trials])) if layout else None


def _no_baseline(record: Record, options: AuditOptions, against: Record | None) -> Iterator[Flag]:
    wanted = options.speedup is not None or any(map(_speculates, record.trials))
    wanted |= options.acceptance is not None and any(math.isfinite(trial.aggregate) for trial in record.trials)
    if not wanted or math.isfinite(baseline_rate(record, options, against)):
        return
    missing = ["the same model's plain rate on the same machine and build (--baseline TOK_S or --against FILE)"]
    missing += [] if any(trial.settings for trial in record.trials) else ["the engine's build and settings"]
    missing += [] if any(trial.temperature is not None for trial in record.trials) else ["the temperature"]
    yield Flag("NO_BASELINE", f"NOT ASSESSABLE as a speed-up: missing {'; '.join(missing)}")


def _speculates(trial: Trial) -> bool:
    """Whether a trial shows anything beside one token a step of one answer."""
    per_step = trial.emits is not None and trial.rounds is not None and trial.counted > trial.rounds
    return trial.guesses or trial.streams > 1 or per_step


def _not_comparable(record: Record, against: Record | None) -> Iterator[Flag]:
    base = baseline_arm(record)
    pairs: list[tuple[str, Trial, Trial]] = []
    if base is not None:
        pairs += [(arm, of_arm(record, arm)[0], of_arm(record, base)[0]) for arm in treatments(record)]
    if against is not None:
        if record.format != against.format:
            yield Flag(
                "NOT_COMPARABLE",
                f"{record.format} against {against.format}: two tools time different things; measure both with one",
            )
        pairs.append((record.path.name, *_like(record, against)))
    for name, left, right in pairs:
        odd = differing_settings(left.settings, right.settings, BY_DESIGN.get(record.format, ()))
        if left.temperature != right.temperature:
            odd["temperature"] = f"{left.temperature} against {right.temperature}"
        if odd:
            listed = ", ".join(f"{key} ({values})" for key, values in odd.items())
            yield Flag("NOT_COMPARABLE", f"{name} and its baseline differ in {listed}", {"keys": len(odd)})


def _like(record: Record, against: Record) -> tuple[Trial, Trial]:
    """The rows of two records to compare: the first that time the same test, or else the first that have a rate."""
    timed = [[t for t in side.trials if math.isfinite(t.aggregate)] or list(side.trials) for side in (record, against)]
    for left in timed[0]:
        for right in timed[1]:
            if left.label == right.label:
                return left, right
    return timed[0][0], timed[1][0]


def _degraded(record: Record, options: AuditOptions) -> list[Flag]:
    solo = level(of_arm(record, SOLO))
    if math.isnan(solo):
        return []
    base = baseline_rate(record, options, None)
    arms = treatments(record) or [arm for arm in record.arms if arm != SOLO]
    flags = []
    for arm in arms:
        treated = level(of_arm(record, arm))
        if math.isnan(base):
            flags.append(
                Flag(
                    "DEGRADED_DENOMINATOR",
                    f"{arm}: {treated / solo:.2f}x is over one stream in the same wide "
                    "context; a baseline needs a context of its own",
                    {"same_context": treated / solo},
                )
            )
        elif base > solo * (1 + ESTIMATORS):
            flags.append(
                Flag(
                    "DEGRADED_DENOMINATOR",
                    f"{arm}: {treated / base:.2f}x over the baseline; the "
                    f"{treated / solo:.2f}x over one stream in its own context is not a speed-up, since that "
                    f"runs at {solo:.1f} and the baseline at {base:.1f} tok/s",
                    {"speedup": treated / base, "same_context": treated / solo},
                )
            )
    return flags


def _order(record: Record, arm: str) -> list[Flag]:
    """All runs of one arm before all of the other, and what a drift common to both leaves of the ratio."""
    base = baseline_arm(record) or ""
    trials = [trial for trial in record.trials if trial.arm in (arm, base)]
    place = {name: np.array([k for k, trial in enumerate(trials) if trial.arm == name]) for name in (arm, base)}
    if min(len(places) for places in place.values()) < 2:
        return []
    if place[arm].min() < place[base].max() and place[base].min() < place[arm].max():
        return []
    logs = {name: np.log([rate(trials[k]) for k in places]) for name, places in place.items()}
    naive = math.exp(logs[arm].mean() - logs[base].mean())
    sums = [((place[n] - place[n].mean()), logs[n] - logs[n].mean()) for n in (arm, base)]
    slope = sum(float(x @ y) for x, y in sums) / sum(float(x @ x) for x, _ in sums)
    level_ratio = naive * math.exp(-slope * (place[arm].mean() - place[base].mean()))
    return [
        Flag(
            "ORDER",
            f"{arm}: every run of one arm comes before the other's, so drift looks like an effect: "
            f"{naive:.2f}x as it stands, {level_ratio:.3f}x once the {100 * math.expm1(slope):+.1f} % a run inside "
            "the arms is taken out; run A B B A",
            {"naive": naive, "level": level_ratio, "slope": slope},
        )
    ]


def _noise(record: Record, arm: str) -> Iterator[Flag]:
    estimate = contrast(record, arm, baseline_arm(record) or "")
    if estimate is None:
        return
    low, high = estimate.interval()
    if estimate.n_units < 2:
        yield Flag(
            "NOISE",
            f"{arm}: {estimate.ratio:.3f}x from one pair of runs has no interval; INCONCLUSIVE",
            {"ratio": estimate.ratio},
        )
    elif not estimate.excludes(1.0):
        yield Flag(
            "NOISE",
            f"{arm}: {estimate.ratio:.3f}x with a 95 % interval of {low:.3f} to {high:.3f} spans 1.00; "
            f"INCONCLUSIVE over {estimate.n_units} {estimate.units}",
            {"ratio": estimate.ratio, "low": low, "high": high},
        )


def statistics_of(record: Record, arm: str) -> dict[str, float]:
    """Ratios that other statistics would print from the same runs."""
    base = baseline_arm(record) or ""
    rates = {name: [rate(t) for t in of_arm(record, name) if rate(t) > 0] for name in (arm, base)}
    if not rates[arm] or not rates[base]:
        return {}
    found = {
        "ratio of means": float(np.mean(rates[arm]) / np.mean(rates[base])),
        "ratio of medians": float(np.median(rates[arm]) / np.median(rates[base])),
    }
    prompts = {t.prompt for t in of_arm(record, arm)} & {t.prompt for t in of_arm(record, base)}
    if len(prompts) > 1:
        medians = [
            np.median([rate(t) for t in of_arm(record, arm) if t.prompt == prompt])
            / np.median([rate(t) for t in of_arm(record, base) if t.prompt == prompt])
            for prompt in prompts
        ]
        found["geometric mean of medians by prompt"] = float(np.exp(np.mean(np.log(medians))))
    return found


def _statistic(record: Record, arm: str) -> Iterator[Flag]:
    found = statistics_of(record, arm)
    estimate = contrast(record, arm, baseline_arm(record) or "")
    if len(found) > 2 and estimate and max(found.values()) > (1 + ESTIMATORS) * min(found.values()):
        listed = ", ".join(f"{name} {value:.2f}" for name, value in found.items())
        yield Flag(
            "STATISTIC",
            f"{arm}: the same runs give {listed}; the harness's estimator, fixed beforehand, gives "
            f"{estimate.ratio:.2f}",
            {**found, "estimator": estimate.ratio},
        )


def _arm_drift(record: Record) -> Iterator[Flag]:
    for arm in record.arms or [""]:
        trials = of_arm(record, arm) if arm else list(record.trials)
        # Prompts differ in speed; a trend over them is not heat.
        if len({trial.prompt for trial in trials}) == 1 and record.format in ("steps", "cell"):
            rates = np.array([rate(trial) for trial in trials])
            if np.isfinite(rates).all() and (rates > 0).all():
                yield from drift(arm or "the runs", rates)


def _no_gain(record: Record, options: AuditOptions, against: Record | None) -> Iterator[Flag]:
    """Arms that are slower than the baseline, or not as fast as published. A rate, never an acceptance, decides."""
    base = baseline_rate(record, options, against)
    names = treatments(record) or [arm for arm in record.arms if arm not in (SOLO, baseline_arm(record))] or [""]
    if math.isnan(base) or record.format.startswith("llama-batched"):
        return
    for arm in names:
        trials = of_arm(record, arm) if arm else list(record.trials)
        if options.speedup is None and not any(trial.guesses for trial in trials):
            continue
        ratio = level(trials, options.per) / base
        accepted = [t.accepted / t.tested for t in trials if t.accepted is not None and t.tested]
        share = f" although {100 * np.mean(accepted):.0f} % of guesses were accepted" if accepted else ""
        if ratio < 1:
            yield Flag(
                "NO_GAIN",
                f"{arm or 'the record'}: {ratio * base:.1f} against {base:.1f} tok/s is {ratio:.2f}x "
                f"{'in sum' if options.per == 'aggregate' else 'for one answer'}{share}",
                {"speedup": ratio},
            )
        elif options.speedup is not None and options.speedup > ratio * (1 + ESTIMATORS):
            yield Flag(
                "LESS_THAN_CLAIMED",
                f"{arm or 'the record'}: {ratio:.2f}x, {options.speedup:g}x published",
                {"speedup": ratio, "published": options.speedup},
            )


def step_costs(record: Record) -> dict[int, float]:
    """Seconds of a decode step by width: medians, the first of three or more left out as warm-up."""
    times: dict[int, list[float]] = {}
    for trial in record.trials:
        if record.format.startswith("llama-batched") and trial.rounds and trial.seconds > 0:
            times.setdefault(trial.streams, []).append(trial.seconds / trial.rounds)
        elif trial.steps is not None and len(trial.steps):
            known = trial.steps.dropna(subset=["width", "seconds"])
            for width, rows in known.groupby("width"):
                values = rows["seconds"].tolist()
                times.setdefault(int(width), []).extend(values[1:] if len(values) > 2 else values)
    return {width: float(np.median(values)) for width, values in sorted(times.items()) if np.median(values) > 0}


def speculation_rate(costs: dict[int, float], guesses: int, acceptance: float, draft_seconds: float = 0.0) -> float:
    """Tokens per second of `guesses` guesses a step, each right with the chance `acceptance` once those before it are.

    The width 1 + guesses has to be measured: between two measured widths there may be a cliff. KeyError otherwise.
    """
    expected = sum(acceptance**k for k in range(guesses + 1))
    return expected / (costs[guesses + 1] + draft_seconds)


def ratios(record: Record, options: AuditOptions, against: Record | None = None) -> list[tuple[Trial, float, float]]:
    """Per arm, or per row, with several answers: what one reader gains over the baseline, and what the sum does."""
    base = baseline_rate(record, options, against)
    groups = [of_arm(record, arm) for arm in record.arms] if record.arms else [[trial] for trial in record.trials]
    wide = [[trial for trial in group if trial.streams > 1 and trial.aggregate > 0] for group in groups]
    return [
        (group[0], level(group) / base, level(group, "aggregate") / base)
        for group in wide
        if group and math.isfinite(base)
    ]


def _summed(record: Record, options: AuditOptions, against: Record | None) -> Iterator[Flag]:
    """A published speed-up that is the sum of several answers over one."""
    claim = options.speedup
    if claim is None or options.per == "aggregate":
        return
    for trial, answer, total in ratios(record, options, against):
        near = max(rounding(claim), LOOSE * claim)
        if abs(total - claim) <= near < abs(answer - claim):
            yield Flag(
                "AGGREGATE_AS_PER_ANSWER",
                f"{trial.label}: the published {claim:g}x is {trial.streams} answers "
                f"summed; one answer has {answer:.2f}x",
                {"aggregate": total, "answer": answer},
            )


def _cliff(record: Record) -> Iterator[Flag]:
    costs = step_costs(record)
    widths = list(costs)
    for low, high in pairwise(widths):
        if costs[high] / costs[low] > CLIFF * high / low:
            yield Flag(
                "CLIFF",
                f"a step of width {high} takes {1e3 * costs[high]:.1f} ms against "
                f"{1e3 * costs[low]:.1f} ms at {low}: {costs[high] / costs[low]:.2f}x the time for "
                f"{high / low:.2f}x the tokens; do not interpolate between them",
                {"low": low, "high": high, "ratio": costs[high] / costs[low]},
            )

"""What a decode step costs by its width, where it leaps, and what guesses would then be worth.

It compares no arms. Two runs with other settings, or other prompt lengths, are other curves.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from itertools import pairwise

from bench.audit.options import AuditOptions
from bench.audit.trials import Flag, Record, Trial

CLIFF = 1.05
"""A width is behind a cliff when it costs this much more than its share of tokens."""
DEEP = 0.03
"""Loss of rate along the context from which on a record's depths are told apart."""
Curve = dict[int, float]


def cost_flags(record: Record, options: AuditOptions) -> list[Flag]:
    """Cliffs between neighbouring widths."""
    places: dict[int, str] = {}
    for trial in record.trials:
        places.setdefault(trial.streams, trial.place)
        for step in trial.steps:
            if step.width:
                places.setdefault(step.width, f"line {step.line}")
    return [flag for name, curve in curves(record).items() for flag in _cliffs(name, curve, places)]


def cost_notes(record: Record, options: AuditOptions) -> list[str]:
    """Each curve in words, what guesses give on it at an acceptance, and how a rate falls along the context."""
    notes = []
    for name, curve in curves(record).items():
        where = f" ({name})" if name else ""
        if len(curve) > 1:
            words = ", ".join(f"width {width} {1e3 * cost:.1f} ms" for width, cost in curve.items())
            notes.append(f"step cost{where}: {words}")
        if len(curve) > 1 and options.acceptance is not None:
            rates = {width: speculation_rate(curve, width - 1, options.acceptance) for width in curve}
            best = max(rates, key=lambda width: rates[width])
            words = ", ".join(f"{width - 1} guesses {rate:.1f} tok/s" for width, rate in rates.items())
            notes.append(
                f"at an acceptance of {options.acceptance:g}{where}: {words}; best with {best - 1}, drafting not "
                "counted"
            )
    return notes + list(_depths(record))


def curves(record: Record) -> dict[str, Curve]:
    """Seconds of a step by width, one curve a block, test and depth; a name where there are several."""
    groups: dict[tuple[int, str, int], list[Trial]] = {}
    for trial in record.trials:
        groups.setdefault((trial.block, trial.test, trial.depth or 0), []).append(trial)
    found = {key: curve for key, trials in groups.items() if (curve := step_costs(trials))}
    if len(found) == 1:
        return {"": next(iter(found.values()))}
    blocks = {key[0] for key in found}
    return {
        ", ".join(
            word
            for word in (
                f"run {sorted(blocks).index(block) + 1}" if len(blocks) > 1 else "",
                test,
                f"depth {depth}" if depth else "",
            )
            if word
        ): curve
        for (block, test, depth), curve in found.items()
    }


def step_costs(trials: list[Trial]) -> Curve:
    """Seconds of a decode step by width: medians, the first of three or more left out as warm-up."""
    times: dict[int, list[float]] = {}
    for trial in trials:
        own: dict[int, list[float]] = {}
        for step in trial.steps:
            if step.width and math.isfinite(step.seconds):
                own.setdefault(step.width, []).append(step.seconds)
        for width, values in own.items():
            times.setdefault(width, []).extend(values[1:] if len(values) > 2 else values)
        if "S_TG" in trial.printed and trial.rounds and trial.seconds > 0:
            times.setdefault(trial.streams, []).append(trial.seconds / trial.rounds)
    return {width: cost for width, values in sorted(times.items()) if (cost := statistics.median(values)) > 0}


MOST_GUESSES = 4096
"""A record may name any width; further terms are nothing unless every guess is right."""


def speculation_rate(costs: Curve, guesses: int, acceptance: float, draft_seconds: float = 0.0) -> float:
    """Tokens per second of `guesses` guesses a step, each right with the chance `acceptance` once those before it are.

    The width 1 + guesses has to be measured: between two measured widths there may be a cliff. KeyError otherwise.
    """
    seconds = costs[guesses + 1] + draft_seconds
    return sum(acceptance**k for k in range(min(guesses, MOST_GUESSES) + 1)) / seconds


def _cliffs(name: str, costs: Curve, places: dict[int, str]) -> Iterator[Flag]:
    where = f"{name}: " if name else ""
    for low, high in pairwise(costs):
        if costs[high] / costs[low] > CLIFF * high / low:
            yield Flag(
                "CLIFF",
                f"{where}a step of width {high} ({places.get(high, 'the record')}) takes {1e3 * costs[high]:.1f} ms "
                f"against {1e3 * costs[low]:.1f} ms "
                f"at {low}: "
                f"{costs[high] / costs[low]:.2f}x the time for {high / low:.2f}x the tokens; do not interpolate "
                "between them",
                {"low": low, "high": high, "ratio": costs[high] / costs[low]},
            )


def _depths(record: Record) -> Iterator[str]:
    """How the rate of one answer falls as the context fills."""
    rows: dict[tuple[int, str], list[Trial]] = {}
    for trial in record.trials:
        if trial.depth is not None and trial.streams == 1 and trial.per_answer > 0:
            rows.setdefault((trial.block, trial.test), []).append(trial)
    for trials in rows.values():
        trials.sort(key=lambda trial: trial.depth or 0)
        first, last = trials[0], trials[-1]
        if first.depth != last.depth and abs(last.per_answer / first.per_answer - 1) > DEEP:
            yield (
                f"one answer has {first.per_answer:.2f} tok/s at depth {first.depth} and {last.per_answer:.2f} at "
                f"{last.depth}: "
                f"{100 * (last.per_answer / first.per_answer - 1):+.0f} %; a ratio belongs to one depth"
            )

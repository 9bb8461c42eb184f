"""Every rate that somebody could have printed from one trial, and which of them a published rate is.

It knows what each reading gets wrong (the codes of flags) and not which claim is true of a device.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bench.audit.numbers import rounding
from bench.audit.trials import Trial

LOOSE = 0.01
"""A rate that no reading gives to its last digit is compared again within this share of it."""
WORDS = {
    "DUPLICATE": "tokens emitted twice counted twice",
    "AGGREGATE_AS_PER_ANSWER": "all answers summed",
    "WINDOW": "the first token inside, though it was out before the window opened",
    "STARTUP": "start-up rounds left out",
    "PREFILL_IN_RATE": "prompt tokens inside",
    "PROMPT_RATE": "the speed of the prompt, not of generation",
    "PREFILL_TIME": "the prefill's time inside",
    "PEAK": "the best second, not the mean",
}


@dataclass(frozen=True)
class Reading:
    """A way to divide one trial's tokens by its seconds; `faults` is empty for the rate of one answer."""

    tok_s: float
    faults: tuple[str, ...]
    tokens: int
    seconds: float
    trial: Trial

    @property
    def words(self) -> str:
        """What the reading is, in words."""
        return ", ".join(WORDS[fault] for fault in self.faults) or "distinct tokens of one answer, prefill outside"


def readings(trial: Trial) -> list[Reading]:
    """Readings of a trial, those with the fewest faults first."""
    found: list[Reading] = []

    def add(tokens: int, seconds: float, *faults: str) -> None:
        if tokens > 0 and seconds > 0:
            found.append(Reading(tokens / seconds, faults, tokens, seconds, trial))

    for counted in (False, True) if trial.repeats else (False,):
        tokens = trial.counted if counted else trial.distinct
        base = ("DUPLICATE",) if counted else ()
        add(tokens, trial.seconds, *base)
        if trial.first:
            add(tokens + trial.first, trial.seconds, *base, "WINDOW")
        if trial.startup_seconds:
            early = trial.startup_counted if counted else trial.startup_distinct
            steady = trial.seconds - trial.startup_seconds
            add(tokens - early, steady, *base, "STARTUP")
            add(tokens - early + trial.first, steady, *base, "STARTUP", "WINDOW")
        if trial.prefill_seconds > 0:
            whole = trial.seconds + trial.prefill_seconds
            add(tokens + trial.first, whole, *base, "PREFILL_TIME")
            add(tokens + trial.first + trial.prompt_tokens, whole, *base, "PREFILL_IN_RATE")
    found += _printed(trial)
    return sorted([*_with_answers(trial, found), *_own(trial)], key=lambda reading: len(reading.faults))


def _printed(trial: Trial) -> list[Reading]:
    found: list[Reading] = []
    if math.isfinite(trial.prefill_rate):
        found.append(Reading(trial.prefill_rate, ("PROMPT_RATE",), trial.prompt_tokens, trial.prefill_seconds, trial))
    if trial.mixed_tokens and "pg" in trial.printed:
        found.append(Reading(trial.printed["pg"], ("PREFILL_IN_RATE",), trial.mixed_tokens, math.nan, trial))
    for name, faults in (("total", ("PREFILL_IN_RATE",)), ("S", ("PREFILL_IN_RATE",)), ("peak", ("PEAK",))):
        if name in trial.printed:
            found.append(Reading(trial.printed[name], faults, 0, math.nan, trial))
    if "tok_s" in trial.printed and not (trial.emits_known and trial.seconds > 0):
        found.append(Reading(trial.printed["tok_s"], (), 0, math.nan, trial))
    return found


def _own(trial: Trial) -> list[Reading]:
    """The rate of one answer as it is printed beside a sum."""
    rate = trial.printed.get("answer_tok_s")
    return [] if rate is None else [Reading(rate, (), 0, math.nan, trial)]


def _with_answers(trial: Trial, found: list[Reading]) -> list[Reading]:
    """With several answers at once, each reading is a sum and has a share."""
    if trial.streams == 1:
        return found
    both = []
    for reading in found:
        summed = (*reading.faults, "AGGREGATE_AS_PER_ANSWER")
        both.append(Reading(reading.tok_s, summed, reading.tokens, reading.seconds, trial))
        both.append(Reading(reading.tok_s / trial.streams, reading.faults, reading.tokens, reading.seconds, trial))
    return both


def explain(value: float, trials: list[Trial], per: str = "answer") -> Reading | None:
    """The reading that a published rate is, the one with the fewest faults; None when there is none.

    `per="aggregate"` says that the value is sold as a sum, so summing is no fault.
    """
    choices = [reading for trial in trials for reading in readings(trial)]
    if per == "aggregate":
        choices = [
            Reading(r.tok_s, tuple(f for f in r.faults if f != "AGGREGATE_AS_PER_ANSWER"), r.tokens, r.seconds, r.trial)
            for r in choices
            if r.trial.streams == 1 or "AGGREGATE_AS_PER_ANSWER" in r.faults
        ]
    choices.sort(key=lambda reading: len(reading.faults))
    for tolerance in (rounding(value), LOOSE * value):
        for reading in choices:
            if abs(reading.tok_s - value) <= tolerance * (1 + 1e-9):
                return reading
    return None


def honest(reading: Reading, per: str = "answer") -> float:
    """What a published rate is when it is put right.

    Where tokens were counted twice, the interval stays and the tokens become distinct: 317 in 8.32 s with the first
    inside becomes 83 in 8.32 s. Any other fault has the trial's own rate as its right value.
    """
    trial = reading.trial
    if "DUPLICATE" not in reading.faults or {"PREFILL_IN_RATE", "PREFILL_TIME"} & set(reading.faults):
        return trial.aggregate if per == "aggregate" else trial.per_answer
    tokens = trial.distinct
    tokens -= trial.startup_distinct if "STARTUP" in reading.faults else 0
    tokens += trial.first if "WINDOW" in reading.faults else 0
    rate = tokens / reading.seconds
    return rate if per == "aggregate" else rate / trial.streams

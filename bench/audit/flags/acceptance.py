"""What is wrong with the acceptance of a record: counters that cannot be, and printed rates that they do not give.

It infers no speed from acceptance. A guess is drafted, then tested (compared with the model's own draw), then accepted;
a step emits what it accepted and one token of the model itself. A rate is named only where all of its inputs are there.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

from bench.audit.numbers import rounding
from bench.audit.options import AuditOptions
from bench.audit.trials import Flag, Record, Trial

ENOUGH = 10
"""Tested guesses below which 100 % says nothing about how it came about."""
DEAD = 50
"""Guesses of which none was accepted, from which on a head is broken and not bad."""
LITTLE = 1.1
"""Tokens a step below which speculation cannot gain what it costs."""
NAMES = {
    "accepted/tested": "accepted over tested",
    "accepted/drafted": "accepted over drafted",
    "mean_length": "tokens a step (1 + accepted over steps)",
    "accepted/step": "accepted over steps",
    "biased": "(accepted + 1) over (drafted + 1), which is above 0 when nothing was accepted",
    "biased_steps": "the mean over steps of (accepted + 1) over (drafted + 1), above 0 when nothing was accepted",
    "emitted/drafted": "emitted over drafted, which counts the model's own token as a guess",
}
FAIR = ("accepted/tested", "accepted/drafted", "mean_length", "accepted/step")


def acceptance_flags(record: Record, options: AuditOptions) -> list[Flag]:
    """Flags about guesses, a trial at a time, then about the scope of the claim."""
    flags = [
        flag
        for trial in record.trials
        for check in (_order, _emitted, _printed, _lengths, _by_construction, _dead, _little, _draft_model)
        for flag in check(trial, options)
    ]
    return flags + list(_scope(record, options))


def definitions(trial: Trial) -> dict[str, float]:
    """Every acceptance rate that tools print from a trial's counters, by name; those whose inputs lack are absent."""
    if trial.accepted is None:
        return {}
    accepted, rounds = trial.accepted, trial.rounds
    found: dict[str, float] = {}
    if trial.tested:
        found["accepted/tested"] = accepted / trial.tested
    if trial.drafted:
        found["accepted/drafted"] = accepted / trial.drafted
        if rounds:
            found["biased"] = (accepted + rounds) / (trial.drafted + rounds)
        emitted = trial.emitted if rounds is None else accepted + rounds
        if emitted:
            found["emitted/drafted"] = emitted / trial.drafted
    if rounds:
        found["accepted/step"] = accepted / rounds
        found["mean_length"] = 1 + accepted / rounds
    single = [
        (s.accepted, s.drafted)
        for s in trial.steps
        if s.rounds == 1 and s.accepted is not None and s.drafted is not None
    ]
    if single and trial.drafted and len(single) > 1:
        found["biased_steps"] = statistics.fmean((took + 1) / (drafted + 1) for took, drafted in single)
    return found


def _exceeds(part: Any, whole: Any) -> bool:
    """Whether both are known and the part is larger."""
    return part is not None and whole is not None and part > whole


def _order(trial: Trial, options: AuditOptions) -> Iterator[Flag]:
    rows = [(f"line {step.line}", step.accepted, step.tested, step.drafted) for step in trial.steps]
    rows = rows or [(trial.place, trial.accepted, trial.tested, trial.drafted)]
    for low, high, first, second in (
        ("accepted", "tested", 1, 2),
        ("tested", "drafted", 2, 3),
        ("accepted", "drafted", 1, 3),
    ):
        bad = [row for row in rows if _exceeds(row[first], row[second])]
        if bad:
            yield Flag(
                "ACCEPTANCE",
                f"{trial.label}, {bad[0][0]}: {low} {bad[0][first]} is above {high} {bad[0][second]}; {len(bad)} "
                "such rows, and "
                "accepted <= tested <= drafted must hold",
                {low: float(bad[0][first] or 0), high: float(bad[0][second] or 0), "rows": len(bad)},
            )
            return


def _emitted(trial: Trial, options: AuditOptions) -> Iterator[Flag]:
    """Tokens of a step against 1 + accepted. Only the last step may emit less: the answer ended inside it."""
    rows = [step for step in trial.steps if step.emitted is not None and step.accepted is not None]
    if not trial.drafted or not rows or len(rows) < len(trial.steps) or trial.rounds is None:
        return
    gaps = [(step.emitted or 0) - step.rounds - (step.accepted or 0) for step in rows]
    # A round of the harness's own that fills the pipeline decodes without emitting.
    wrong = [k for k, gap in enumerate(gaps) if gap and not (rows[k].emitted == 0 and rows[k].rounds == 1)]
    if len(rows) > 1 and wrong and wrong[-1] == len(rows) - 1 and -(rows[-1].accepted or 0) <= gaps[-1] < 0:
        wrong.pop()
    if len(rows) == 1 and gaps[0] == 1:
        return  # the first token, which the prompt gave
    if wrong:
        row = rows[wrong[0]]
        expected = row.rounds + (row.accepted or 0)
        yield Flag(
            "ACCEPTANCE",
            f"{trial.label}, line {row.line}: emits {row.emitted} tokens where {row.rounds} step(s) + {row.accepted} "
            "accepted give "
            f"{expected}; {len(wrong)} such rows, {sum(gaps[k] for k in wrong):+d} tokens in all",
            {
                "emitted": float(sum(step.emitted or 0 for step in rows)),
                "expected": float(sum(step.rounds + (step.accepted or 0) for step in rows)),
            },
        )


def _printed(trial: Trial, options: AuditOptions) -> Iterator[Flag]:
    printed = trial.printed.get("acceptance", options.acceptance if trial.guesses else None)
    if printed is None or (printed == 0 and not trial.drafted):
        return
    found = definitions(trial)
    share = printed / 100 if printed > 20 and "acceptance" in trial.printed else printed
    if not found:
        if trial.test in ("serving", "overall") or (trial.category and trial.repetitions):
            return  # a tool's summary prints no counters, and its length says what the rate does
        yield Flag(
            "ACCEPTANCE",
            f"{trial.where}: an acceptance of {printed:g} is printed without counters; it has at least five "
            "definitions, so "
            "record steps, drafted, tested and accepted",
            {"printed": printed},
        )
        return
    tolerance = rounding(printed) * share / printed if printed and printed != int(printed) else 0.005
    matches = [name for name, value in found.items() if abs(value - share) <= max(tolerance, 5e-5) * (1 + 1e-6)]
    if any(name in FAIR for name in matches):
        return
    listed = ", ".join(f"{name} {value:.3f}" for name, value in found.items())
    what = f"it is {NAMES[matches[0]]}" if matches else "no definition gives it"
    yield Flag(
        "ACCEPTANCE",
        f"{trial.where}: prints an acceptance of {printed:g}, INCONSISTENT with its counters: {what} ({listed})",
        {"printed": printed, **found},
    )


def _lengths(trial: Trial, options: AuditOptions) -> Iterator[Flag]:
    """Three ways to one figure: 1 + accepted over steps, the printed length, 1 + the sum of the positions' shares."""
    printed = trial.printed.get("mean_length")
    if printed is None or not trial.guesses:
        return
    others = {"1 + accepted over steps": definitions(trial).get("mean_length")}
    others["1 + the sum of its positions"] = 1 + sum(trial.positions) if trial.positions else None
    for words, value in others.items():
        if value is not None and abs(value - printed) > max(2 * rounding(printed), 0.02 * printed):
            yield Flag(
                "ACCEPTANCE",
                f"{trial.where}: prints a length of {printed:g}, INCONSISTENT with {words}, {value:.2f}",
                {"printed": printed, "right": value},
            )
            return


def _by_construction(trial: Trial, options: AuditOptions) -> Iterator[Flag]:
    if trial.arm in ("oracle", "sabotage") or trial.accepted is None:
        return
    tested = trial.tested if trial.tested is not None else trial.drafted
    if not tested or tested < ENOUGH or trial.accepted < tested or (trial.temperature or 0.0) > 0:
        return
    where = "at temperature 0" if trial.temperature == 0 else "at a temperature that the record does not say"
    yield Flag(
        "BY_CONSTRUCTION",
        f"{trial.where}: {trial.accepted} of {tested} guesses accepted {where}; a greedy model agrees with itself by "
        "construction, so this is no evidence of skill or speed",
        {"accepted": trial.accepted, "tested": tested},
    )


def _dead(trial: Trial, options: AuditOptions) -> Iterator[Flag]:
    if trial.arm != "sabotage" and trial.accepted == 0 and (trial.drafted or 0) >= DEAD:
        yield Flag(
            "DEAD_DRAFTER",
            f"{trial.where}: 0 of {trial.drafted} guesses accepted; a head that never guesses right is broken (its "
            "weights, its "
            "input or its positions), not one of low acceptance",
            {"drafted": float(trial.drafted or 0)},
        )


def _little(trial: Trial, options: AuditOptions) -> Iterator[Flag]:
    length = trial.printed.get("mean_length", definitions(trial).get("mean_length"))
    if (
        length is not None
        and length < LITTLE
        and trial.accepted != 0
        and (trial.drafted or "mean_length" in trial.printed)
    ):
        yield Flag(
            "NO_GAIN",
            f"{trial.where}: a step gives {length:.3f} tokens; speculation cannot gain more than {length:.2f}x, less "
            "what the "
            "guesses cost",
            {"mean_length": length},
        )


def _draft_model(trial: Trial, options: AuditOptions) -> Iterator[Flag]:
    """A draft model gives one guess a call at most, and one more a step: its call that takes in what was accepted."""
    if trial.draft_runs is None or not trial.drafted or not trial.rounds:
        return
    most = trial.draft_runs + trial.rounds
    if trial.drafted > most:
        yield Flag(
            "INCONSISTENT",
            f"{trial.where}: counts {trial.drafted} guesses, and its draft model ran {trial.draft_runs} times in "
            f"{trial.rounds} steps, "
            f"which give {most} at most; one of the counters counts something else",
            {"drafted": trial.drafted, "most": most},
        )


def _scope(record: Record, options: AuditOptions) -> Iterator[Flag]:
    if not options.temperatures:
        return
    have = sorted({trial.temperature for trial in record.trials if trial.temperature is not None})
    missing = [value for value in options.temperatures if value not in have]
    if missing:
        yield Flag(
            "UNSUPPORTED",
            f"the claim covers temperature {', '.join(f'{value:g}' for value in missing)}, and the record has "
            f"{', '.join(f'{value:g}' for value in have) or 'no temperature'}",
            {"temperatures": float(len(have))},
        )

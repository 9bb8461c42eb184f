"""What is wrong with the acceptance of a record: counters that cannot be, and printed rates that they do not give.

It infers no speed from acceptance. A guess is drafted, then tested (compared with the model's own draw), then accepted;
a step emits what it accepted and one token of the model itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from bench.audit.options import AuditOptions
from bench.audit.readings import rounding
from bench.audit.trials import Flag, Record, Trial

ENOUGH = 10
"""Tested guesses below which 100 % says nothing about how it came about."""
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
        for check in (_order, _emitted, _printed, _by_construction)
        for flag in check(trial, options)
    ]
    return flags + list(_scope(record, options))


def definitions(trial: Trial) -> dict[str, float]:
    """Every acceptance rate that tools print from a trial's counters, by name; those that divide by 0 are absent."""
    if trial.accepted is None:
        return {}
    accepted, rounds = trial.accepted, trial.rounds or 0
    found: dict[str, float] = {}
    if trial.tested:
        found["accepted/tested"] = accepted / trial.tested
    if trial.drafted:
        found["accepted/drafted"] = accepted / trial.drafted
        found["biased"] = (accepted + rounds) / (trial.drafted + rounds)
        found["emitted/drafted"] = (accepted + rounds) / trial.drafted
    if rounds:
        found["accepted/step"] = accepted / rounds
        found["mean_length"] = 1 + accepted / rounds
    steps = _counted_steps(trial)
    if len(steps) and trial.drafted:
        found["biased_steps"] = float(((steps["accepted"] + 1) / (steps["drafted"] + 1)).mean())
    return found


def _counted_steps(trial: Trial) -> pd.DataFrame:
    """Rows that are single steps with guesses."""
    if trial.steps is None or not len(trial.steps):
        return pd.DataFrame()
    rows = trial.steps
    single = rows["rounds"] == 1 if "rounds" in rows else pd.Series(True, index=rows.index)
    return rows[single & rows["accepted"].notna() & rows["drafted"].notna()]


def _order(trial: Trial, options: AuditOptions) -> Iterator[Flag]:
    if trial.steps is None or not len(trial.steps):
        return
    rows = trial.steps
    for low, high in (("accepted", "tested"), ("tested", "drafted"), ("accepted", "drafted")):
        bad = rows[rows[low] > rows[high]]
        if len(bad):
            row = bad.iloc[0]
            yield Flag(
                "ACCEPTANCE",
                f"{trial.label}, line {row['line']:.0f}: {low} {row[low]:g} is above {high} "
                f"{row[high]:g}; {len(bad)} such rows, and accepted <= tested <= drafted must hold",
                {low: float(row[low]), high: float(row[high]), "rows": len(bad)},
            )
            return


def _emitted(trial: Trial, options: AuditOptions) -> Iterator[Flag]:
    """Tokens of a step against 1 + accepted. Only the last step may emit less: the answer ended inside it."""
    if trial.steps is None or not trial.drafted:
        return
    rows = trial.steps[trial.steps["emitted"].notna() & trial.steps["accepted"].notna()]
    if rows.empty or len(rows) < len(trial.steps) or (trial.rounds is None):
        return
    whole = rows["rounds"] if "rounds" in rows else rows["answers"].clip(lower=1)
    gap = rows["emitted"] - whole - rows["accepted"]
    # The harness's own start-up and rebuild rounds decode without emitting.
    silent = (rows["emitted"] == 0) & ("rounds" not in rows)
    wrong = (gap != 0) & ~silent
    if len(rows) > 1 and -rows["accepted"].iloc[-1] <= gap.iloc[-1] < 0:
        wrong.iloc[-1] = False
    if wrong.any():
        row = rows[wrong].iloc[0]
        yield Flag(
            "ACCEPTANCE",
            f"{trial.label}, line {row['line']:.0f}: emits {row['emitted']:g} tokens where "
            f"{whole[wrong].iloc[0]:g} step(s) + {row['accepted']:g} accepted give "
            f"{whole[wrong].iloc[0] + row['accepted']:g}; {int(wrong.sum())} such rows, "
            f"{gap[wrong].sum():+g} tokens in all",
            {"emitted": float(rows["emitted"].sum()), "expected": float((whole + rows["accepted"]).sum())},
        )


def _printed(trial: Trial, options: AuditOptions) -> Iterator[Flag]:
    printed = trial.printed.get("acceptance", options.acceptance if trial.guesses else None)
    found = definitions(trial)
    if printed is None:
        return
    share = printed / 100 if printed > 1 and trial.printed.get("acceptance") is not None and printed > 20 else printed
    tolerance = rounding(share) if share != int(share) else 0.005
    if not found:
        yield Flag(
            "ACCEPTANCE",
            f"{trial.label}: an acceptance of {printed:g} is printed without counters; it has at least "
            "five definitions, so record steps, drafted, tested and accepted",
            {"printed": printed},
        )
        return
    matches = [name for name, value in found.items() if abs(value - share) <= tolerance * (1 + 1e-9)]
    if any(name in FAIR for name in matches):
        return
    listed = ", ".join(f"{name} {value:.3f}" for name, value in found.items())
    what = f"it is {NAMES[matches[0]]}" if matches else "no definition gives it"
    yield Flag(
        "ACCEPTANCE",
        f"{trial.label}: prints an acceptance of {printed:g}, INCONSISTENT with its counters: {what} ({listed})",
        {"printed": printed, **found},
    )


def _by_construction(trial: Trial, options: AuditOptions) -> Iterator[Flag]:
    if trial.arm in ("oracle", "sabotage") or trial.accepted is None:
        return
    tested = trial.tested if trial.tested is not None else trial.drafted
    if not tested or tested < ENOUGH or trial.accepted < tested or (trial.temperature or 0.0) > 0:
        return
    where = "at temperature 0" if trial.temperature == 0 else "at a temperature that the record does not say"
    yield Flag(
        "BY_CONSTRUCTION",
        f"{trial.label}: {trial.accepted} of {tested} guesses accepted {where}; a greedy model "
        "agrees with itself by construction, so this is no evidence of skill or speed",
        {"accepted": trial.accepted, "tested": tested},
    )


def _scope(record: Record, options: AuditOptions) -> Iterator[Flag]:
    if not options.temperatures:
        return
    have = sorted({trial.temperature for trial in record.trials if trial.temperature is not None})
    missing = [value for value in options.temperatures if value not in have]
    if missing:
        yield Flag(
            "UNSUPPORTED",
            f"the claim covers temperature {', '.join(f'{value:g}' for value in missing)}, and the "
            f"record has {', '.join(f'{value:g}' for value in have) or 'no temperature'}",
            {"temperatures": float(len(have))},
        )

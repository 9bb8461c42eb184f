"""Verdicts on a claim sheet: every entry gets at least one row, and no row is blank where it matters.

Knows nothing about how the findings came about. An entry is judged from rows of the findings, from arithmetic, or from
a sourced fact; a projection stays `not_run`. An entry with rows from several machines or builds gets a row for each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bench.errors import UserError
from bench.judge.claims.arithmetic import FORMULAS, half_last_digit, in_unit, other_reading, reachable, recompute
from bench.judge.claims.facts import Facts, find_fact
from bench.judge.claims.rows import (
    KERNEL_TABLES,
    Row,
    Tables,
    by_machine,
    cells,
    matching,
    missing_for_speed,
    scope_text,
    table_of,
)
from bench.judge.claims.sheet import Claim
from bench.judge.claims.synthetic import no_evidence
from bench.judge.claims.tests import ROW_TESTS, TABLE_TESTS, Outcome, number, published_range, span, tolerance

ANYWHERE = ("any", "any")
"""Machine and build of a verdict that rests on no record."""

TEMPERATURES_FOR_ANY = 4
"""A claim at any temperature needs this many, 0 and something above 0 among them."""

CONSTRUCTED = (
    " True by construction: with the same prefix the same model draws the same token, so this is a tautology and no "
    "evidence of speed."
)

SWEEP_KEYS = {
    "method": "method",
    "emission": "method.emission",
    "rebuild": "method.rebuild",
    "draws": "method.draws",
    "streams": "streams",
    "temperature": "temperature",
    "gate": "method.gate",
}
TEMPERATURES = (0.3, 0.6, 0.8, 1.0)


def judge_claims(claims: Sequence[Claim], findings: Tables, facts: Facts) -> list[dict[str, Any]]:
    """One row a claim, machine and engine build, in sheet order.

    Keys: machine, build, cells (list of ids), claim_id, verdict, scope, published, measured, ci_low, ci_high, unit,
    evidence, reason, and says, metric, judged_by, author_status, place, source, counted, distinct. `measured`, the
    interval and the last two are None where there is none. Raises UserError for a fact or a unit that does not fit.
    """
    rows = []
    for claim in claims:
        for (machine, build), outcome in _judge(claim, findings, facts).items():
            rows.append(_row(claim, machine, build, outcome))
    return rows


def _judge(claim: Claim, findings: Tables, facts: Facts) -> dict[tuple[str, str], Outcome]:
    if claim.rule.kind == "arithmetic":
        return {ANYWHERE: judge_arithmetic(claim, facts)}
    if claim.rule.kind == "fact":
        return {ANYWHERE: judge_fact(claim, facts)}
    if claim.rule.kind == "projection":
        return {ANYWHERE: Outcome("not_run", f"A projection that nobody measured. It would take: {claim.rule.needs}.")}
    missing = missing_for_speed(claim)
    if missing:
        why = f"It cannot be assessed as a gain: it was published without {', '.join(missing)}."
        return {ANYWHERE: Outcome("not_comparable", why)}
    groups = by_machine(matching(claim, findings))
    if not groups:
        return {ANYWHERE: Outcome("not_run", f"No record of it. It takes: {_needs(claim)}.")}
    return {origin: judge_rows(claim, rows) for origin, rows in groups.items()}


def _needs(claim: Claim) -> str:
    """What would have to be run."""
    if claim.rule.needs:
        return claim.rule.needs
    if table_of(claim) in ("step_cost", "memory", "bandwidth"):
        return "a profile of the machine (python -m bench sweep profile=true)"
    if table_of(claim) in KERNEL_TABLES:
        return "the kernels on a GPU (python -m bench kernels)"
    scope = {key: value for key, value in claim.scope.items() if key in SWEEP_KEYS and value != "any"}
    return "python -m bench sweep " + " ".join(f"{SWEEP_KEYS[key]}={_override(value)}" for key, value in scope.items())


def _override(value: Any) -> str:
    """A scope value as a sweep takes it; of a range of temperatures, the usual ones inside it."""
    if isinstance(value, Mapping):
        inside = [one for one in TEMPERATURES if value["from"] <= one <= value["to"]] or [value["from"]]
        return ",".join(f"{one:g}" for one in inside)
    if isinstance(value, (list, tuple)):
        return ",".join(str(one) for one in value)
    return f"{value:g}" if isinstance(value, float) else str(value).lower()


def judge_rows(claim: Claim, rows: Sequence[Row]) -> Outcome:
    """The verdict of one machine's rows on a claim. Void rows support nothing; with no other row it is inconclusive."""
    refused = [no_evidence(claim, table_of(claim), row) for row in rows]
    if rows and all(refused):
        return Outcome("not_comparable", " ".join(dict.fromkeys(refused)), cells=tuple(cells(rows)))
    rows = [row for row, why in zip(rows, refused, strict=True) if not why]
    sound = [row for row in rows if not row.get("void")]
    voided = [row for row in rows if row.get("void")]
    if not sound:
        why = "; ".join(sorted({str(row.get("void_reason") or "no reason was recorded") for row in voided}))
        return Outcome("inconclusive", f"Every cell that it could rest on is void: {why}.", cells=tuple(cells(voided)))
    if claim.rule.test in TABLE_TESTS:
        outcomes = TABLE_TESTS[claim.rule.test](claim, sound)
    else:
        outcomes = [ROW_TESTS[claim.rule.test](claim, row) for row in sound]
    outcome = _covered(claim, sound, combine(claim, outcomes))
    reason = outcome.reason + (f" {len(voided)} void rows were left out." if voided else "")
    if synthetic := sum(map(bool, refused)):
        reason += f" {synthetic} rows of synthetic models were left out: random weights are no evidence of this."
    if claim.rule.by_construction:
        reason += CONSTRUCTED
    return replace(outcome, reason=reason, cells=tuple(cells(sound)))


def combine(claim: Claim, outcomes: Sequence[Outcome]) -> Outcome:
    """One verdict from several rows: agreement, else a counter-example where the claim is about a range, else none."""
    comparable = [outcome for outcome in outcomes if outcome.verdict != "not_comparable"] or list(outcomes)
    found = {outcome.verdict for outcome in comparable}
    universal = any(value == "any" or isinstance(value, Mapping) for value in claim.scope.values())
    if len(found) == 1:
        verdict = found.pop()
    elif "refuted" in found and (universal or "reproduced" not in found):
        verdict = "refuted"
    else:
        verdict = "inconclusive"
    agreeing = [outcome for outcome in comparable if outcome.verdict == verdict] or comparable
    chosen = min(agreeing, key=_width)
    reason = chosen.reason
    if len(comparable) > 1:
        counts = Counter(outcome.verdict for outcome in comparable)
        listed = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
        reason = f"Of {len(comparable)} rows: {listed}. " + reason
        if verdict not in {outcome.verdict for outcome in comparable}:
            other = min((one for one in comparable if one.verdict != chosen.verdict), key=_width)
            reason += f" Against it: {other.reason}"
    return replace(chosen, verdict=verdict, reason=reason)


def _width(outcome: Outcome) -> float:
    if outcome.ci_low is None or outcome.ci_high is None:
        return float("inf")
    return outcome.ci_high - outcome.ci_low


def _covered(claim: Claim, rows: Sequence[Row], outcome: Outcome) -> Outcome:
    """A claim at any temperature is not supported by one temperature, though one is enough to refute it."""
    if claim.scope.get("temperature") != "any" or outcome.verdict == "refuted":
        return outcome
    measured = sorted({float(row["temperature"]) for row in rows if row.get("temperature") is not None})
    if len(measured) >= TEMPERATURES_FOR_ANY and measured[0] == 0 and measured[-1] > 0:
        return outcome
    listed = ", ".join(f"{temperature:g}" for temperature in measured)
    why = f"Unsupported at any temperature: measured at {listed} only; {TEMPERATURES_FOR_ANY} are needed, 0 among them."
    return replace(outcome, verdict="inconclusive", reason=f"{why} {outcome.reason}")


def judge_arithmetic(claim: Claim, facts: Facts) -> Outcome:
    """Recomputes the published figure; the tolerance is half of its last printed digit unless the rule says another.

    Where the rule gives an input its own rounding, a figure that only some unrounded input could have given is
    inconclusive, and one that the inputs' rounding spans is reproduced.
    """
    inputs, rounding = _inputs(claim, facts)
    where = f"claim '{claim.id}'"
    try:
        raw = recompute(claim.rule.formula, inputs)
        corners = reachable(claim.rule.formula, inputs, rounding) if rounding else None
    except ZeroDivisionError as error:
        raise UserError(f"{where}: formula '{claim.rule.formula}' divides by zero; correct its inputs") from error
    measured = in_unit(claim.rule.formula, raw, claim.unit, where)
    limits = [in_unit(claim.rule.formula, corner, claim.unit, where) for corner in corners] if corners else None
    slack = tolerance(claim)
    verdict = _compare(claim, measured, limits, slack)
    given = ", ".join(f"{name} {number(item) if item < 1e4 else f'{item:.0f}'}" for name, item in inputs.items())
    text = FORMULAS[claim.rule.formula].text
    reason = f"{text}, with {given}, is {measured:.6g} {claim.unit}; {_expectation(claim, slack)}."
    if limits:
        reason += f" The rounding of the inputs alone spans {span(limits[0], limits[1])}."
    if verdict == "refuted" and FORMULAS[claim.rule.formula].unit == "bytes":
        reading = other_reading(raw, published_range(claim)[0], slack, claim.unit)
        reason += f" As to where the figure comes from: {reading}." if reading else ""
    return Outcome(verdict, reason, measured, *(limits or (None, None)))


def _inputs(claim: Claim, facts: Facts) -> tuple[dict[str, float], dict[str, float]]:
    """Values of the inputs, and the rounding of those that have one."""
    values, rounding = {}, {}
    for name, item in claim.rule.inputs.items():
        if not isinstance(item, Mapping):
            values[name] = float(item)
        elif "fact" in item:
            values[name] = float(find_fact(facts, str(item["fact"]), claim.id).value)
        else:
            values[name], rounding[name] = float(item["value"]), float(item["within"])
    return values, rounding


def _compare(claim: Claim, measured: float, limits: Sequence[float] | None, slack: float) -> str:
    """Verdict on a recomputed value."""
    low, high = published_range(claim)
    slack += 1e-9 * max(1.0, abs(high))
    expect = claim.rule.expect
    if expect == "equal":
        if low - slack <= measured <= high + slack:
            return "reproduced"
        if limits and limits[0] <= low and high <= limits[1]:
            return "reproduced"
        return "inconclusive" if limits and limits[0] <= high + slack and low - slack <= limits[1] else "refuted"
    holds = {
        "at_most": measured <= high + slack,
        "at_least": measured >= low - slack,
        "greater_than_one": measured > 1,
        "less_than_one": measured < 1,
        "less_than": claim.rule.edge is not None and measured < claim.rule.edge,
    }[expect]
    return "reproduced" if holds else "refuted"


def _expectation(claim: Claim, slack: float) -> str:
    words = {"equal": "is", "at_most": "is at most", "at_least": "is at least"}.get(claim.rule.expect)
    if words is None:
        return f"the claim needs it {claim.rule.expect.replace('_', ' ')}"
    return f"the claim says it {words} {claim.printed}, to {number(slack)}"


def judge_fact(claim: Claim, facts: Facts) -> Outcome:
    """The published value against a sourced one in the same unit."""
    fact = find_fact(facts, claim.rule.fact, claim.id)
    if fact.unit != claim.unit:
        raise UserError(f"claim '{claim.id}' is in '{claim.unit}', fact '{fact.name}' in '{fact.unit}'; use one unit")
    published = claim.value
    if isinstance(published, bool) != isinstance(fact.value, bool):
        raise UserError(
            f"claim '{claim.id}': '{claim.printed}' cannot be compared with fact '{fact.name}', {fact.value}"
        )
    if isinstance(published, bool):
        same, shown = published == fact.value, "yes" if fact.value else "no"
    else:
        slack = half_last_digit(claim.published[0]) if claim.rule.tolerance is None else claim.rule.tolerance
        same, shown = abs(published - float(fact.value)) <= slack, f"{fact.value:g} {fact.unit}"
    reason = f"{fact.says} So it is {shown}, by a {fact.quality} source: {fact.title}, {fact.url}."
    measured = None if isinstance(fact.value, bool) else float(fact.value)
    return Outcome("reproduced" if same else "refuted", reason, measured)


def _row(claim: Claim, machine: str, build: str, outcome: Outcome) -> dict[str, Any]:
    reason = outcome.reason + (f" {claim.note}" if claim.note else "")
    if claim.verdict and claim.verdict != outcome.verdict:
        reason += f" The sheet expected '{claim.verdict}'."
    return {
        "machine": machine,
        "build": build,
        "cells": list(outcome.cells),
        "claim_id": claim.id,
        "verdict": outcome.verdict,
        "scope": scope_text(claim),
        "published": _published(claim),
        "measured": outcome.measured,
        "ci_low": outcome.ci_low,
        "ci_high": outcome.ci_high,
        "unit": claim.unit,
        "evidence": claim.evidence,
        "reason": " ".join(reason.split()),
        "says": claim.says,
        "metric": claim.metric,
        "judged_by": claim.rule.kind,
        "author_status": _status(claim.author_status),
        "place": claim.place,
        "source": _source(claim.source),
        "counted": outcome.counted,
        "distinct": outcome.distinct,
    }


def _published(claim: Claim) -> float | str | bool:
    return claim.value if len(claim.published) == 1 else claim.printed


def _status(status: Mapping[str, str]) -> str:
    dated = f"{status['state']} {status['date']}" if "date" in status else status["state"]
    return f"{dated}: {status['why']}" if "why" in status else dated


def _source(source: Mapping[str, str]) -> str:
    return ", ".join(source[key] for key in ("document", "date", "commit", "url") if key in source)

"""Verdicts that need no record: a published figure recomputed from its own inputs, or held against a sourced fact.

Knows no row. Arithmetic that agrees says that a document agrees with itself, and nothing about a machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.errors import UserError
from bench.judge.claims.arithmetic import FORMULAS, half_last_digit, in_unit, other_reading, reachable, recompute
from bench.judge.claims.claim import Claim
from bench.judge.claims.facts import Facts, find_fact
from bench.judge.claims.outcome import Outcome, published_range, span, tolerance
from bench.judge.claims.words import number

TOLD = 12
"""Inputs that a reason lists; a table of many rows stands in the sheet."""
SLIP_DIGITS, SLIP_SHARE = 2, 0.01
"""A figure is misstated, not false, when it is off by no more than two of its last digits and by no more than 1 %."""


def judge_arithmetic(claim: Claim, facts: Facts) -> Outcome:
    """Recomputes the published figure; the tolerance is half of its last printed digit unless the rule says another.

    Where the rule gives an input its own rounding, a figure that only some unrounded input could have given is
    inconclusive, and one that the inputs' rounding spans is reproduced. Raises UserError for a division by zero.
    """
    inputs, rounding = _inputs(claim, facts)
    where = f"claim '{claim.id}'"
    try:
        raw = recompute(claim.rule.formula, inputs)
        corners = reachable(claim.rule.formula, inputs, rounding) if rounding else None
    except ZeroDivisionError as error:
        raise UserError(f"{where}: formula '{claim.rule.formula}' divides by zero; correct its inputs") from error
    found = in_unit(claim.rule.formula, raw, claim.unit, where)
    limits = [in_unit(claim.rule.formula, corner, claim.unit, where) for corner in corners] if corners else None
    slack = tolerance(claim)
    verdict = _compare(claim, found, limits, slack)
    told = [f"{name} {number(item) if item < 1e4 else f'{item:.0f}'}" for name, item in inputs.items()]
    given = ", ".join(told if len(told) <= TOLD else [*told[:TOLD], f"and {len(told) - TOLD} more"])
    text = FORMULAS[claim.rule.formula].text
    reason = f"{text}, with {given}, is {found:.6g} {claim.unit}; {_expectation(claim, slack)}."
    if verdict == "misstated":
        reason += f" Right but for its last digits: {100 * abs(_off(claim, found)) / abs(found):.2f} % off."
    if limits:
        reason += f" The rounding of the inputs alone spans {span(limits[0], limits[1])}."
    if verdict == "refuted" and FORMULAS[claim.rule.formula].unit == "bytes":
        reading = other_reading(raw, published_range(claim)[0], slack, claim.unit)
        reason += f" As to where the figure comes from: {reading}." if reading else ""
    return Outcome(verdict, reason, found, *(limits or (None, None)))


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


def _compare(claim: Claim, found: float, limits: Sequence[float] | None, slack: float) -> str:
    """Verdict on a recomputed value."""
    low, high = published_range(claim)
    slack += 1e-9 * max(1.0, abs(high))
    expect = claim.rule.expect
    if expect == "equal":
        if low - slack <= found <= high + slack:
            return "reproduced"
        if limits and limits[0] <= low and high <= limits[1]:
            return "reproduced"
        if limits and limits[0] <= high + slack and low - slack <= limits[1]:
            return "inconclusive"
        return "misstated" if _slips(claim, found) else "refuted"
    holds = {
        "at_most": found <= high + slack,
        "at_least": found >= low - slack,
        "greater_than_one": found > 1,
        "less_than_one": found < 1,
    }[expect]
    return "reproduced" if holds else "refuted"


def _off(claim: Claim, found: float) -> float:
    """How far the published figure, or the nearer end of a range, is from the right one."""
    low, high = published_range(claim)
    return low - found if found < low else high - found


def _slips(claim: Claim, found: float) -> bool:
    """Whether the figure is off in its last digits alone."""
    off, digit = abs(_off(claim, found)), 2 * half_last_digit(claim.published[0])
    return off <= SLIP_DIGITS * digit * (1 + 1e-9) and off <= SLIP_SHARE * abs(found)


def _expectation(claim: Claim, slack: float) -> str:
    words = {"equal": "is", "at_most": "is at most", "at_least": "is at least"}.get(claim.rule.expect)
    if words is None:
        return f"the claim needs it {claim.rule.expect.replace('_', ' ')}"
    return f"the claim says it {words} {claim.printed}, to {number(slack)}"


def judge_fact(claim: Claim, facts: Facts) -> Outcome:
    """The published value against a sourced one. Raises UserError for another unit, or a number against yes or no."""
    fact = find_fact(facts, claim.rule.fact, claim.id)
    if fact.unit != claim.unit:
        raise UserError(f"claim '{claim.id}' is in '{claim.unit}', fact '{fact.name}' in '{fact.unit}'; use one unit")
    published = claim.value
    if isinstance(published, bool) != isinstance(fact.value, bool):
        raise UserError(
            f"claim '{claim.id}': '{claim.printed}' cannot be compared with fact '{fact.name}', {fact.value}"
        )
    if isinstance(published, bool):
        verdict, shown = "reproduced" if published == fact.value else "refuted", "yes" if fact.value else "no"
    else:
        verdict, shown = _compare(claim, float(fact.value), None, tolerance(claim)), f"{fact.value:g} {fact.unit}"
        shown += f" (published {claim.printed}, to {number(tolerance(claim))})"
    reason = f"{fact.says} So it is {shown}, by a {fact.quality} source: {fact.title}, {fact.url}."
    return Outcome(verdict, reason, None if isinstance(fact.value, bool) else float(fact.value))

"""A verdict on a claim with the figure that it rests on, and the words for numbers in its reason."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.judge.claims.arithmetic import half_last_digit
from bench.judge.claims.claim import Claim
from bench.judge.claims.rows import Row, cells, figure, freedom, interval, measured
from bench.judge.claims.words import number
from bench.judge.measure.intervals import CONFIDENCE, t_quantile

SPEEDS = ("speedup", "rate", "aggregate")
TWICE = 1.001
"""A counter that reads more than this times the distinct tokens counts some of them again."""
REPRODUCING = 0.97
"""How sure a verdict that agrees is. Of claims just false 1.5 % pass, which leaves room for noise of an odd kind."""
REFUTING = 0.99
"""How sure a refutation is, whatever the test: of a claim of one row, and of all its rows together (Holm)."""


_FARTHEST = 600.0
"""Largest logarithm of a ratio that a float still holds with room."""


def half_widths(confidence: float, freedom: float) -> float:
    """How many half-widths of a 95 % interval one of that confidence has, at so many degrees of freedom."""
    return t_quantile(freedom, confidence) / t_quantile(freedom, CONFIDENCE)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A verdict with the figure it rests on. nan never appears: what is not known is None."""

    verdict: str
    reason: str
    measured: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    cells: tuple[str, ...] = ()
    counted: float | None = None
    distinct: float | None = None
    ratio: float | None = None
    """Of a rate: what was measured, over plain decoding."""
    ratio_low: float | None = None
    ratio_high: float | None = None
    brief: str = ""
    """The reason in one sentence, where the figure does not tell it."""


def span(low: float, high: float) -> str:
    """An interval."""
    return f"[{number(low)}, {number(high)}]"


def tolerance(claim: Claim) -> float:
    """The rule's own, or half of the last digit that the claim prints."""
    return half_last_digit(claim.published[0]) if claim.rule.tolerance is None else claim.rule.tolerance


def told_tolerance(claim: Claim) -> str:
    """The tolerance in words, and whether the rule widens what the printed digits allow."""
    own = claim.rule.tolerance is not None and claim.rule.tolerance > half_last_digit(claim.published[0])
    return f"to {number(tolerance(claim))}" + (" as the rule allows" if own else " as printed")


def published_range(claim: Claim) -> tuple[float, float]:
    """Low and high end of what was published."""
    return float(claim.published[0]), float(claim.published[-1])


def of_row(claim: Claim, row: Row, verdict: str, reason: str) -> Outcome:
    """An outcome that rests on one row."""
    low, high = interval(row, claim) or (None, None)
    counted, distinct = figure(row, "counted_tok_s"), figure(row, "tok_s")
    twice = claim.metric in SPEEDS and counted is not None and distinct is not None and counted > TWICE * distinct
    return Outcome(
        verdict,
        reason,
        measured(row, claim),
        low,
        high,
        cells=tuple(cells([row])),
        counted=counted if twice else None,
        distinct=distinct if twice else None,
    )


def supporting(claim: Claim, row: Row, middle: float, ends: tuple[float, float], ratio: bool) -> tuple[float, float]:
    """The interval that has to agree with a claim, from a 95 % one of a figure without skew; of ratios as logs."""
    return _stretched(middle, ends, half_widths(REPRODUCING, freedom(row, claim)), ratio)


def refuting(claim: Claim, row: Row, middle: float, ends: tuple[float, float], ratio: bool) -> tuple[float, float]:
    """The interval that refutes, from a 95 % one of a figure without skew; of ratios in their logarithms.

    Holm (Scandinavian Journal of Statistics 6, 1979, 65-70): one row refutes the claim, so each of the `claim.family`
    rows that are not refuted yet has its share of the error that the claim may have.
    """
    confidence = 1 - (1 - REFUTING) / max(claim.family, 1)
    return _stretched(middle, ends, half_widths(confidence, freedom(row, claim)), ratio)


def step_down(rows: Sequence[Row], judged: Callable[[Row, int], Outcome]) -> list[Outcome]:
    """Holm's whole step-down: what `judged` says of each row when so many of the rows are left that could refute.

    Rows that are refuted leave the family, and the others are looked at again, until no further one is refuted.
    """
    found = [judged(row, len(rows)) for row in rows]
    left = len(rows)
    while 0 < (still := sum(one.verdict != "refuted" for one in found)) < left:
        left = still
        found = [one if one.verdict == "refuted" else judged(row, left) for row, one in zip(rows, found, strict=True)]
    return found


def _stretched(middle: float, ends: tuple[float, float], factor: float, ratio: bool) -> tuple[float, float]:
    low, high = ends
    if ratio and min(middle, low) > 0 and math.isfinite(high):
        below, above = factor * math.log(low / middle), factor * math.log(high / middle)
        return middle * math.exp(max(below, -_FARTHEST)), middle * math.exp(min(above, _FARTHEST))
    return middle - (middle - low) * factor, middle + (high - middle) * factor


def found_in(claim: Claim, rows: Sequence[Row], verdict: str, reason: str) -> Outcome:
    """An outcome without a figure of its own."""
    return Outcome(verdict, reason, cells=tuple(cells(rows)))

"""A verdict on a claim with the figure that it rests on, and the words for numbers in its reason."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from bench.judge.claims.arithmetic import half_last_digit
from bench.judge.claims.claim import Claim
from bench.judge.claims.rows import Row, cells, figure, interval, measured
from bench.judge.claims.words import number

CONFIDENCE = 0.95
SPEEDS = ("speedup", "rate", "aggregate")
TWICE = 1.001
"""A counter that reads more than this times the distinct tokens counts some of them again."""
REFUTING = 0.999
"""How sure a refutation is, whatever the test: of a claim of one row, and of all its rows together (Holm)."""


def further(claim: Claim) -> float:
    """How many half-widths of a 95 % interval a refutation takes where `claim.family` rows are looked at.

    Holm's first step (Scandinavian Journal of Statistics 6, 1979, 65-70): one row refutes the claim, so each has its
    share of the error that the claim may have.
    """
    confidence = 1 - (1 - REFUTING) / max(claim.family, 1)
    return NormalDist().inv_cdf((1 + confidence) / 2) / NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


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


def refuting(claim: Claim, middle: float, low: float, high: float, ratio: bool) -> tuple[float, float]:
    """The interval that refutes, from a 95 % one of a figure without skew; of ratios in their logarithms."""
    far = further(claim)
    if ratio and min(middle, low) > 0 and math.isfinite(high):
        return middle * (low / middle) ** far, middle * (high / middle) ** far
    return middle - (middle - low) * far, middle + (high - middle) * far


def found_in(claim: Claim, rows: Sequence[Row], verdict: str, reason: str) -> Outcome:
    """An outcome without a figure of its own."""
    return Outcome(verdict, reason, cells=tuple(cells(rows)))

"""Whether the A/A of a row's cell is good enough for one claim: by equivalence, in a band of the claimed effect.

A cell is void where A/A is far off for the effect that the cell itself shows (`bench.judge.controls.again`). A claim
may be about less than that: two contexts that differ by 2 % say nothing about a gain of 3 %. It knows no verdict.
"""

from __future__ import annotations

import math

from bench.judge.claims.claim import Claim
from bench.judge.claims.outcome import REFUTING
from bench.judge.claims.rows import Row, figure
from bench.judge.claims.words import number
from bench.judge.controls.again import SHARE_OF_EFFECT
from bench.judge.measure.intervals import CONFIDENCE, t_quantile
from bench.judge.tables.contrast import CANNOT_TELL

OK, OFF = "ok", "off"
LEAST = 0.01
"""Two contexts of one kind differ by so much, as a log ratio, on a sound machine too."""


def effect(claim: Claim, row: Row) -> float | None:
    """What A/A has to be small against, as a log ratio; None for a claim that is about no ratio of speeds.

    The claimed effect, or how far the row is from the claim's edge, where that is more: nobody has to know 1 % to tell
    0.4 from 1.05.
    """
    found = figure(row, "speedup")
    if claim.table != "speedup" or not (claim.column == "speedup" or claim.rule.test == "one_answer") or not found:
        return None
    published = float(claim.published[0])
    if claim.rule.test == "one_answer":
        published /= float(claim.conditions["baseline_tok_s"])
    if not published > 0:
        return None
    edge = published if claim.rule.test != "direction" else 1.0 if claim.rule.edge is None else claim.rule.edge
    return max(abs(math.log(published)), abs(math.log(found / edge)) if edge > 0 else 0.0)


def standing(claim: Claim, row: Row) -> str:
    """`ok`, `cannot tell`, or `off` where A/A is outside the claim's band for sure."""
    about, middle = effect(claim, row), figure(row, "again_ratio")
    if about is None or not middle:
        return CANNOT_TELL if row.get("again") == CANNOT_TELL else OK
    ends = (figure(row, "again_low"), figure(row, "again_high"))
    if ends[0] is None or ends[1] is None or not ends[0] > 0 or math.isinf(ends[1]):
        return CANNOT_TELL
    band, off = max(LEAST, SHARE_OF_EFFECT * about), math.log(middle)
    freedom = figure(row, "again_freedom") or math.inf
    half = math.log(ends[1] / ends[0]) / 2
    surely = half * t_quantile(freedom, REFUTING) / t_quantile(freedom, CONFIDENCE)
    if abs(off) - surely > band:
        return OFF
    return OK if abs(off) + half <= band else CANNOT_TELL


def told(row: Row) -> str:
    """A/A of a row in figures."""
    low, high, middle = (figure(row, name) for name in ("again_low", "again_high", "again_ratio"))
    if middle is None or low is None or high is None:
        return "not told"
    return f"{number(middle)} [{number(low)}, {number(high)}]"

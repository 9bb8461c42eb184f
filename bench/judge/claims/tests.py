"""The tests that judge a claim on one row of the findings. Pure; knows no file and no sheet syntax.

`other` is the sentence that lists conditions that differ, empty under the claim's own. A claim that machine, model or
text decides is never handed over with one (`bench.judge.claims.mechanism`). Intervals are those of the rows.
"""

from __future__ import annotations

from collections.abc import Callable

from bench.judge.claims.arithmetic import FORMULAS, recompute
from bench.judge.claims.checks import WIDEST
from bench.judge.claims.claim import Claim
from bench.judge.claims.outcome import (
    TWICE,
    Outcome,
    of_row,
    published_range,
    refuting,
    span,
    supporting,
    told_tolerance,
    tolerance,
)
from bench.judge.claims.rows import (
    Row,
    column_of,
    ends_for,
    figure,
    interval,
    label,
    measured,
    no_interval,
)
from bench.judge.claims.words import number
from bench.judge.tables.contrast import GRADES

MARGIN = 0.05
"""A published gain counts as reached from 5 % below it on; fixed before any run."""
NIL = 1e-9
"""What rounding may make of a figure that is equal."""
OPEN = " The 95 % interval excludes it and the one that a refutation takes (99 %) does not, so measure more blocks."
CLOSE = " The 95 % interval agrees and the one that a verdict takes (97 %) does not, so measure more blocks."


def _counted_beside(row: Row) -> str:
    """The counted figure beside the distinct one, where a loop counts tokens that it had emitted before."""
    counted, distinct = figure(row, "counted_tok_s"), figure(row, "tok_s")
    if counted is None or distinct is None or counted <= distinct * TWICE:
        return ""
    ratio = figure(row, "counted_speedup")
    return (
        f" Counted: {number(counted)} tok/s{f' ({number(ratio)}x)' if ratio is not None else ''}; "
        f"distinct: {number(distinct)} tok/s; {100 * distinct / counted:.1f} % of the counted tokens are distinct."
    )


def _diverges(claim: Claim, row: Row) -> bool:
    """Whether the figure is of work whose output differed for a reason other than a measured near-tie."""
    of_the_arm = claim.column not in ("baseline_tok_s", "solo_tok_s", "identical_share")
    return of_the_arm and row.get("lossless") == "divergent"


def ratio(claim: Claim, row: Row, other: str) -> Outcome:
    """At least the published gain. Elsewhere only an interval below 1 refutes it: its size belongs to the machine."""
    limits, published = interval(row, claim), float(claim.published[0])
    if limits is None:
        return of_row(claim, row, "inconclusive", no_interval(claim, row))
    verdict, why = _gain(claim, row, limits, published, other)
    return of_row(claim, row, verdict, why + _counted_beside(row))


def _gain(claim: Claim, row: Row, limits: tuple[float, float], published: float, other: str) -> tuple[str, str]:
    """Verdict and reason of an interval against a published gain."""
    low, high = limits
    middle = figure(row, "speedup") or 0.0
    edge, most = published * (1 - MARGIN), refuting(claim, row, middle, limits, ratio=True)[1]
    holds = supporting(claim, row, middle, limits, ratio=True)[0] >= edge
    found = f"{number(middle)}x {span(low, high)} for {label(row)}"
    told = f"{claim.printed}x" if claim.unit == "x" else f"{number(published)}x of the baseline"
    if most < min(edge, 1):
        return "refuted", f"The interval lies below the published {told} and below 1.00: {found}."
    if holds and _diverges(claim, row):
        return "inconclusive", f"Fast enough ({found}), but the output diverges, so it is not the same work."
    if holds:
        return "reproduced", f"At least the published {told} less {MARGIN:.0%}: {found}.{other}"
    if most < edge and not other:
        return "refuted", f"Under the claim's own conditions it stays below {told}: {found}."
    if high < edge and low > 1 and other:
        return "not_comparable", f"A gain here too, but a smaller one: {found}.{other}"
    if low >= edge:
        return "inconclusive", f"At least {told} less {MARGIN:.0%}: {found}.{CLOSE}"
    spanned = "1.00" if high < edge and other else f"the claim's edge {number(edge)}"
    if high < min(edge, 1) or (high < edge and not other):
        return "inconclusive", f"Below {told}: {found}.{OPEN}"
    return "inconclusive", f"The interval spans {spanned}: {found}."


def direction(claim: Claim, row: Row, other: str) -> Outcome:
    """Above or below 1, or the rule's edge; the size is not judged."""
    limits, middle = interval(row, claim), measured(row, claim)
    if limits is None or middle is None:
        return of_row(claim, row, "inconclusive", no_interval(claim, row))
    low, high = limits
    above = claim.rule.expect.startswith("greater_than")
    edge = 1.0 if claim.rule.edge is None else claim.rule.edge
    words = f"{'above' if above else 'below'} {number(edge)}"
    found = f"{number(middle)} {span(low, high)} for {label(row)}"
    ratio_kind = column_of(claim).kind == "x"
    least, most = refuting(claim, row, middle, limits, ratio_kind)
    near = supporting(claim, row, middle, limits, ratio_kind)
    holds, fails = (near[0] > edge, most < edge) if above else (near[1] < edge, least > edge)
    if holds and above and _diverges(claim, row):
        verdict, why = "inconclusive", f"It is {words} ({found}), but the output diverges, so it is not the same work."
    elif holds:
        verdict, why = "reproduced", f"The interval lies {words}, which is all that is judged: {found}."
    elif fails:
        verdict, why = "refuted", f"The interval lies on the other side of {number(edge)}: {found}."
    elif (high < edge) if above else (low > edge):
        verdict, why = "inconclusive", f"The interval lies on the other side of {number(edge)}: {found}.{OPEN}"
    elif (low > edge) if above else (high < edge):
        verdict, why = "inconclusive", f"The interval lies {words}: {found}.{CLOSE}"
    else:
        verdict, why = "inconclusive", f"The interval spans {number(edge)}: {found}."
    return of_row(claim, row, verdict, why + _counted_beside(row))


def one_answer(claim: Claim, row: Row, other: str) -> Outcome:
    """A rate sold as the speed of one answer: how often each token is counted, and the ratio to plain decoding.

    No rate of another machine is put beside the published one. What is told of it is what it is in distinct tokens.
    """
    counted, here, gain = figure(row, "counted_tok_s"), figure(row, "tok_s"), figure(row, "speedup")
    rate, names = float(claim.published[0]), ends_for(claim, row)
    if names is None:
        return of_row(claim, row, "inconclusive", no_interval(claim, row))
    low, high = (figure(row, name) for name in names)
    if not counted or not here or gain is None or low is None or high is None:
        return of_row(claim, row, "inconclusive", "The record lacks a counted rate or an interval.")
    distinct = recompute(claim.rule.formula, claim.rule.inputs) if claim.rule.formula else rate * here / counted
    told = f"{claim.printed} counts each token {rate / distinct:.1f} times; distinct {distinct:.1f} {claim.unit}."
    if claim.rule.formula:
        told += f" ({FORMULAS[claim.rule.formula].text}; the loop of the record counts {counted / here:.1f} times.)"
    told = told if distinct < rate * (1 - MARGIN) else ""
    verdict, why = _gain(claim, row, (low, high), rate / float(claim.conditions["baseline_tok_s"]), other)
    if other and verdict == "reproduced":
        verdict, why = "not_comparable", f"{why} The rate belongs to another machine."
    reason = f"{told} As the speed of one answer: {why[0].lower()}{why[1:]}".strip()
    return Outcome(verdict, reason, distinct if told else None, cells=of_row(claim, row, "", "").cells,
                   counted=rate if told else None, distinct=distinct if told else None, ratio=gain, ratio_low=low,
                   ratio_high=high)  # fmt: skip


def absolute(claim: Claim, row: Row, other: str) -> Outcome:
    """A figure of one machine and model, under its own conditions: its interval against the published one and 5 %."""
    found, (least, most) = measured(row, claim), published_range(claim)
    if found is None:
        return of_row(claim, row, "inconclusive", f"The record lacks {claim.column}.")
    limits = interval(row, claim)
    shown = f"{number(found)} {claim.unit}{' ' + span(*limits) if limits else ''} for {label(row)}"
    if limits is None and not column_of(claim).exact:
        return of_row(claim, row, "inconclusive", f"{no_interval(claim, row)[:-1]}; {shown}.")
    low, high = limits or (found, found)
    edges = least * (1 - MARGIN), most * (1 + MARGIN)
    told = f"the published {claim.printed}, to {MARGIN:.0%}"
    far = refuting(claim, row, found, (low, high), ratio=low > 0)
    near = supporting(claim, row, found, (low, high), ratio=low > 0)
    if edges[0] <= near[0] and near[1] <= edges[1]:
        if _diverges(claim, row):
            return of_row(claim, row, "inconclusive", f"It is {told} ({shown}), but the output diverges.")
        return of_row(claim, row, "reproduced", f"Same conditions: {shown}, is {told}.")
    if far[1] < edges[0] or far[0] > edges[1]:
        return of_row(claim, row, "refuted", f"Same conditions: {shown}, is not {told}.")
    return of_row(claim, row, "inconclusive", f"Same conditions: {shown}, is too wide or too near the edge of {told}.")


def value(claim: Claim, row: Row, other: str) -> Outcome:
    """A count or a share against the published value and its printed precision, or the rule's tolerance."""
    found, (least, most) = measured(row, claim), published_range(claim)
    if found is None:
        return of_row(claim, row, "inconclusive", f"The record lacks {claim.column}.")
    limits = interval(row, claim)
    if limits is None and not column_of(claim).exact:
        return of_row(claim, row, "inconclusive", no_interval(claim, row))
    low, high = limits or (found, found)
    # A share printed as 1 would be half a share exact by its last digit.
    slack, half = min(tolerance(claim), WIDEST * abs(least)), (high - low) / 2
    # No measured share is known to its last printed digit: without a tolerance of its own a claim is supported by an
    # interval inside a margin. What is so by construction has no other value near it.
    wide = slack if claim.rule.tolerance is not None else max(slack, MARGIN * abs(least))
    if claim.rule.by_construction:
        wide = max(wide, 2 * claim.rule.max_half_width)
    limit = claim.rule.max_half_width * (100 if claim.unit == "%" else 1)
    exactly = f"{number(found)} {span(low, high)}" if limits else number(found)
    shown = f"{exactly} for {label(row)}, published {claim.printed}, {told_tolerance(claim)}"
    far = refuting(claim, row, found, (low, high), ratio=False)
    near = supporting(claim, row, found, (low, high), ratio=False)
    if far[1] < least - slack or far[0] > most + slack:
        return of_row(claim, row, "refuted", f"The published value lies outside: {shown}.{_not_by_construction(claim)}")
    if high < least - slack or low > most + slack:
        return of_row(claim, row, "inconclusive", f"The published value lies outside: {shown}.{OPEN}")
    if near[0] < least - wide - NIL or near[1] > most + wide + NIL:
        why = f"The interval is not inside what the claim allows ({number(wide)} either way): {shown}."
        return of_row(claim, row, "inconclusive", why)
    if half > limit:
        why = f"The interval's half-width {number(half)} is above {number(limit)}, too wide to tell: {shown}."
        return of_row(claim, row, "inconclusive", why)
    if _diverges(claim, row):
        return of_row(claim, row, "inconclusive", f"It agrees ({shown}), but the output diverges from plain decoding.")
    return of_row(claim, row, "reproduced", f"The published value agrees: {shown}.")


def _not_by_construction(claim: Claim) -> str:
    """Why a tautology failed."""
    if not claim.rule.by_construction:
        return ""
    return (" It would hold by construction where a decode rounds alike at every width; here it does not, and copies "
            "part at near ties.")  # fmt: skip


def lossless(claim: Claim, row: Row, other: str) -> Outcome:
    """Every token of every answer is the baseline's; up to measured near-ties where the rule says so.

    What another machine rounds otherwise says nothing about one that the claim names; a wrong token does.
    """
    grade, share = row.get("lossless"), figure(row, "identical_share")
    if grade not in GRADES or share is None:
        return of_row(claim, row, "inconclusive", f"The record has no lossless grade for {label(row)}.")
    shown = f"{100 * share:.1f} % of answers are identical for {label(row)}, grade '{grade}'"
    if grade == GRADES[-1]:
        return of_row(claim, row, "refuted", f"The output differs by more than rounding: {shown}.")
    if share >= 1:
        return of_row(claim, row, "reproduced", f"The output is plain decoding's: {shown}.")
    if claim.rule.grade == "near_tie":
        return of_row(claim, row, "reproduced", f"The output is plain decoding's but for measured near-ties: {shown}.")
    why = "the others part at near-ties, where a decode of another width rounds otherwise"
    if other:
        return of_row(claim, row, "not_comparable", f"How a machine rounds is its own: {shown}; {why}.{other}")
    return of_row(claim, row, "refuted", f"The output is not identical: {shown}; {why}.")


ROW_TESTS: dict[str, Callable[[Claim, Row, str], Outcome]] = {
    "ratio": ratio,
    "direction": direction,
    "one_answer": one_answer,
    "absolute": absolute,
    "value": value,
    "lossless": lossless,
}

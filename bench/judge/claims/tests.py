"""The tests that turn rows of the findings into an outcome for a claim. Pure; knows no file and no sheet syntax.

What is judged anywhere: the direction of a ratio, counts, acceptance, losslessness. What is judged only under the
claim's own conditions: absolute figures, and how large a hardware-dependent ratio is. Intervals are those of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from bench.judge.claims.arithmetic import half_last_digit
from bench.judge.claims.rows import Row, cells, column_of, differing, figure, interval, label, measured
from bench.judge.claims.sheet import GRADES, Claim

MARGIN = 0.05
"""A published gain counts as reached from 5 % below it on; fixed before any run."""

REFUTING = 0.999
"""A true claim would be refuted in one sweep of twenty at 95 %; a refutation needs more."""
HALF_WIDTH = 0.10
"""Widest half interval of a rate that still tells anything, unless the claim's rule says another."""

CONFIDENCE = 0.95

MEMORY_MARGIN = 0.10
"""Growth of memory beyond KV cache and state that still counts as the allocator's and the output buffers' own."""


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


def number(value: float) -> str:
    return f"{value:.4g}"


def span(low: float, high: float) -> str:
    return f"[{number(low)}, {number(high)}]"


def tolerance(claim: Claim) -> float:
    """The rule's own, or half of the last digit that the claim prints."""
    return half_last_digit(claim.published[0]) if claim.rule.tolerance is None else claim.rule.tolerance


def published_range(claim: Claim) -> tuple[float, float]:
    return float(claim.published[0]), float(claim.published[-1])


def elsewhere(claim: Claim, row: Row) -> str:
    """Sentence that lists the differing conditions; empty when there are none."""
    differences = differing(claim, row)
    return f" Conditions that differ: {'; '.join(differences)}." if differences else ""


def _outcome(claim: Claim, row: Row, verdict: str, reason: str) -> Outcome:
    limits = interval(row, claim)
    return Outcome(
        verdict,
        reason,
        measured(row, claim),
        *(limits or (None, None)),
        cells=tuple(cells([row])),
        counted=figure(row, "counted_tok_s"),
        distinct=figure(row, "tok_s"),
    )


def _counted_beside(row: Row) -> str:
    """The counted figure beside the distinct one, where a loop counts tokens that it had emitted before."""
    counted, distinct = figure(row, "counted_tok_s"), figure(row, "tok_s")
    if counted is None or distinct is None or counted <= distinct * 1.001:
        return ""
    ratio = figure(row, "counted_speedup")
    return (
        f" Counted: {number(counted)} tok/s{f' ({number(ratio)}x)' if ratio is not None else ''}; "
        f"distinct: {number(distinct)} tok/s; {100 * distinct / counted:.1f} % of the counted tokens are distinct."
    )


def _unlossless(row: Row) -> bool:
    """Whether the row's output differed for a reason other than a measured near-tie."""
    return row.get("lossless") == "divergent"


def ratio(claim: Claim, row: Row) -> Outcome:
    """At least the published gain. Below 1 refutes it anywhere; its size only under the claim's conditions."""
    limits, published = interval(row, claim), float(claim.published[0])
    if limits is None:
        return _outcome(claim, row, "inconclusive", "The record gives no interval for it; measure more blocks.")
    low, high = limits
    found = f"{number(measured(row, claim) or 0)}x {span(low, high)} for {label(row)}"
    edge, other = published * (1 - MARGIN), elsewhere(claim, row)
    if high < edge and high < 1:
        verdict, why = "refuted", f"The interval lies below the published {claim.printed}x and below 1.00: {found}."
    elif low >= edge and not _unlossless(row):
        verdict, why = "reproduced", f"At least the published {claim.printed}x less {MARGIN:.0%}: {found}.{other}"
    elif low >= edge:
        verdict, why = "inconclusive", f"Fast enough ({found}), but the output diverges, so it is not the same work."
    elif high < edge and not other:
        verdict, why = "refuted", f"Under the claim's own conditions it stays below {claim.printed}x: {found}."
    elif high < edge and low > 1:
        verdict, why = "not_comparable", f"A gain here too, but a smaller one: {found}.{other}"
    else:
        spanned = "1.00" if high < edge else f"the claim's edge {number(edge)}"
        verdict, why = "inconclusive", f"The interval spans {spanned}: {found}."
    return _outcome(claim, row, verdict, why + _counted_beside(row))


def direction(claim: Claim, row: Row) -> Outcome:
    """Above or below 1, or the rule's edge; the size is not judged."""
    limits = interval(row, claim)
    if limits is None:
        return _outcome(claim, row, "inconclusive", "The record gives no interval for it; measure more blocks.")
    low, high = limits
    above = claim.rule.expect.startswith("greater_than")
    edge = 1.0 if claim.rule.expect.endswith("_one") or claim.rule.edge is None else claim.rule.edge
    words = f"{'above' if above else 'below'} {number(edge)}"
    found = f"{number(measured(row, claim) or 0)} {span(low, high)} for {label(row)}"
    holds, fails = (low > edge, high < edge) if above else (high < edge, low > edge)
    if holds and above and _unlossless(row):
        verdict, why = "inconclusive", f"It is {words} ({found}), but the output diverges, so it is not the same work."
    elif holds:
        verdict, why = "reproduced", f"The interval lies {words}, which is all that is judged: {found}."
    elif fails:
        verdict, why = "refuted", f"The interval lies on the other side of {number(edge)}: {found}."
    else:
        verdict, why = "inconclusive", f"The interval spans {number(edge)}: {found}."
    return _outcome(claim, row, verdict, why + _counted_beside(row))


def one_answer(claim: Claim, row: Row) -> Outcome:
    """A rate claimed for one answer, judged through what no machine changes: the distinct share, the side of 1.00."""
    counted, distinct, gain = figure(row, "counted_tok_s"), figure(row, "tok_s"), figure(row, "speedup")
    low, high = figure(row, "ci_low"), figure(row, "ci_high")
    if not counted or distinct is None or gain is None or low is None or high is None:
        return _outcome(claim, row, "inconclusive", "The record lacks a counted rate or an interval.")
    share, rate = distinct / counted, float(claim.published[0])
    found = f"one answer runs at {number(gain)}x {span(low, high)} of plain decoding for {label(row)}"
    told = (
        f" Only {100 * share:.1f} % of the tokens that the loop counts are distinct, so {claim.printed} tok/s counted "
        f"is {number(rate * share)} tok/s of new text. Judged through that share and the ratio, which do not depend on "
        f"the machine.{elsewhere(claim, row)}"
    )
    if high < 1 and share < 1 - MARGIN:
        verdict, why = "refuted", f"As the speed of one answer: {found}."
    elif low > 1:
        verdict, why = "not_comparable", f"A gain here: {found}; the absolute rate belongs to another machine."
    else:
        verdict, why = "inconclusive", f"Nothing contradicts or supports it: {found}."
    return _outcome(claim, row, verdict, why + told + _counted_beside(row))


def absolute(claim: Claim, row: Row) -> Outcome:
    """A figure of one machine and model: compared only where every recorded condition is the claim's."""
    found, (low, high) = measured(row, claim), published_range(claim)
    if found is None:
        return _outcome(claim, row, "inconclusive", f"The record lacks {column_of(claim)}.")
    other = elsewhere(claim, row)
    limits = interval(row, claim)
    shown = f"{number(found)} {claim.unit}{' ' + span(*limits) if limits else ''} for {label(row)}"
    if other:
        return _outcome(claim, row, "not_comparable", f"A figure of another set-up; here it is {shown}.{other}")
    within = low * (1 - MARGIN) <= found <= high * (1 + MARGIN)
    words = f"within {MARGIN:.0%} of" if within else f"more than {MARGIN:.0%} from"
    why = f"Same conditions: {shown}, {words} the published {claim.printed}."
    return _outcome(claim, row, "reproduced" if within else "refuted", why)


def value(claim: Claim, row: Row) -> Outcome:
    """A count or a rate that no machine changes, against the published value and its printed precision."""
    found, (least, most) = measured(row, claim), published_range(claim)
    if found is None:
        return _outcome(claim, row, "inconclusive", f"The record lacks {column_of(claim)}.")
    low, high = interval(row, claim) or (found, found)
    slack, half = tolerance(claim), (high - low) / 2
    limit = HALF_WIDTH if claim.rule.max_half_width is None else claim.rule.max_half_width
    shown = f"{number(found)} {span(low, high)} for {label(row)}, published {claim.printed}"
    if high < least - slack or low > most + slack:
        return _outcome(claim, row, "refuted", f"The published value lies outside: {shown}.")
    if half > limit:
        why = f"The interval's half-width {number(half)} is above {number(limit)}, too wide to tell: {shown}."
        return _outcome(claim, row, "inconclusive", why)
    return _outcome(claim, row, "reproduced", f"The published value lies inside: {shown}.")


def lossless(claim: Claim, row: Row) -> Outcome:
    """Same tokens as the baseline; a first difference at a measured near-tie passes unless the rule wants identity."""
    grade, share = row.get("lossless"), figure(row, "identical_share")
    shown = f"grade '{grade}' for {label(row)}"
    shown += f", {100 * share:.1f} % of answers identical" if share is not None else ""
    if grade not in GRADES:
        return _outcome(claim, row, "inconclusive", f"The record has no lossless grade: {shown}.")
    if GRADES.index(grade) > GRADES.index(claim.rule.grade):
        return _outcome(claim, row, "refuted", f"The output differs by more than '{claim.rule.grade}': {shown}.")
    return _outcome(claim, row, "reproduced", f"The output is the baseline's: {shown}.")


def collision(claim: Claim, rows: Sequence[Row]) -> list[Outcome]:
    """Acceptance minus collision probability, at each temperature of each model, all intervals together at 95 %.

    Of several rows at one temperature the one with the most tested guesses is judged: rows that share prompts and seeds
    are not independent, and pooling them would narrow the interval falsely.
    """
    best: dict[tuple[str, float], Row] = {}
    for row in rows:
        key = (str(row.get("model")), float(row["temperature"]))
        if key not in best or (figure(row, "tested") or 0) > (figure(best[key], "tested") or 0):
            best[key] = row
    temperatures = sorted({temperature for _, temperature in best})
    if len(temperatures) < claim.rule.min_temperatures:
        listed = ", ".join(f"{temperature:g}" for temperature in temperatures)
        needed = claim.rule.min_temperatures
        why = f"It needs {needed} temperatures above 0 and {len(temperatures)} are measured ({listed})."
        return [Outcome("inconclusive", why, cells=tuple(cells(rows)))]
    # One interval in twenty leaves the truth outside; m of them are widened so that all m hold together.
    widen = [
        NormalDist().inv_cdf(1 - (1 - confidence) / 2 / len(best)) / NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
        for confidence in (CONFIDENCE, REFUTING)
    ]
    return [_collision_at(claim, row, *widen) for row in best.values()]


def _collision_at(claim: Claim, row: Row, near: float, far: float) -> Outcome:
    """Within `near` half-widths of 0 it is reproduced, beyond `far` refuted; between them more draws have to tell."""
    middle, low, high = (figure(row, name) for name in ("difference", "difference_low", "difference_high"))
    tested = figure(row, "tested") or 0
    if middle is None or low is None or high is None:
        return _outcome(claim, row, "inconclusive", "The record lacks the difference to the collision probability.")
    half = (high - low) / 2
    limit = HALF_WIDTH if claim.rule.max_half_width is None else claim.rule.max_half_width
    shown = f"accepted minus collision {middle:+.4f} {span(low, high)} of {tested:g} guesses at {label(row)}"
    if half > limit:
        verdict, why = "inconclusive", f"The half-width is above {number(limit)}: {shown}."
    elif abs(middle) <= near * half:
        verdict, why = "reproduced", f"0 lies inside: {shown}."
    elif abs(middle) <= far * half:
        verdict, why = "inconclusive", f"0 lies outside at 95 % and inside at 99.9 %, so draw more: {shown}."
    else:
        verdict, why = "refuted", f"0 lies outside: {shown}."
    return Outcome(verdict, why, middle, low, high, tuple(cells([row])))


def stream_memory(claim: Claim, rows: Sequence[Row]) -> list[Outcome]:
    """A further stream costs its KV cache and state and no weights: the growth from the fewest to the most streams."""
    # A contrast's rows hold the memory of the whole process; only a profile's series compares like with like.
    series = [row for row in rows if row.get("source") in (None, "profile")]
    if not series:
        why = "No profile measured the memory at several numbers of streams."
        return [Outcome("inconclusive", why, cells=tuple(cells(rows)))]
    models: dict[str, list[Row]] = {}
    for row in series:
        models.setdefault(str(row.get("model")), []).append(row)
    return [_growth(claim, sorted(found, key=lambda row: row["streams"])) for found in models.values()]


def _growth(claim: Claim, rows: list[Row]) -> Outcome:
    few, many = rows[0], rows[-1]
    added = many["streams"] - few["streams"]
    wanted = ("measured_bytes", "kv_bytes", "state_bytes")
    values = [(figure(few, name), figure(many, name)) for name in wanted]
    if added < 1 or any(value is None for pair in values for value in pair):
        why = "It needs measured, KV and state bytes at two numbers of streams."
        return Outcome("inconclusive", why, cells=tuple(cells(rows)))
    growth, kv, state = ((after - before) / added for before, after in values)  # type: ignore[operator]
    own = kv + state
    shown = (
        f"{growth / 2**20:.2f} MiB a further stream, of which {own / 2**20:.2f} MiB KV cache and state, from "
        f"{few['streams']} to {many['streams']} streams of {few.get('model')}"
    )
    if own <= 0:
        why = f"The caches do not grow with the streams, so nothing can be told: {shown}."
        return Outcome("inconclusive", why, cells=tuple(cells(rows)))
    holds = growth <= own * (1 + MEMORY_MARGIN)
    why = f"{'Nothing but KV cache and state grows' if holds else 'More than KV cache and state grows'}: {shown}."
    return Outcome("reproduced" if holds else "refuted", why, growth / own, cells=tuple(cells(rows)))


def best_kernel(claim: Claim, rows: Sequence[Row]) -> list[Outcome]:
    """What the fastest kernel on each matrix costs over one stream alone: at most what is published.

    Divides by the fastest kernel with one stream, so that a kernel that is slow alone gains nothing by it.
    """
    fastest: dict[tuple[str, ...], Row] = {}
    for row in rows:
        matrix = tuple(str(row.get(key)) for key in ("format", "rows", "cols"))
        us = figure(row, "us")
        if us is not None and us < (figure(fastest.get(matrix, {}), "us") or math.inf):
            fastest[matrix] = row
    if not fastest:
        return [Outcome("inconclusive", "No kernel passed its check there.", cells=tuple(cells(rows)))]
    return [_cost_of_streams(claim, row) for row in fastest.values()]


def _cost_of_streams(claim: Claim, row: Row) -> Outcome:
    names = ("cost_over_best_single", "cost_over_best_single_low", "cost_over_best_single_high")
    middle, low, high = (figure(row, name) for name in names)
    if middle is None or low is None or high is None:
        return Outcome("inconclusive", f"One stream alone was not timed: {label(row)}.", cells=tuple(cells([row])))
    edge = float(claim.published[0]) + tolerance(claim)
    shown = f"the fastest kernel takes {number(middle)} {span(low, high)} of one stream's time for {label(row)}"
    if high <= edge:
        verdict, why = "reproduced", f"At most {claim.printed}, to {number(tolerance(claim))}: {shown}."
    elif low > edge:
        verdict, why = "refuted", f"More than {claim.printed}, to {number(tolerance(claim))}: {shown}."
    else:
        verdict, why = "inconclusive", f"The interval spans {number(edge)}: {shown}."
    return Outcome(verdict, why, middle, low, high, tuple(cells([row])))


ROW_TESTS: dict[str, Callable[[Claim, Row], Outcome]] = {
    "ratio": ratio,
    "direction": direction,
    "one_answer": one_answer,
    "absolute": absolute,
    "value": value,
    "lossless": lossless,
}
TABLE_TESTS: dict[str, Callable[[Claim, Sequence[Row]], list[Outcome]]] = {
    "collision": collision,
    "stream_memory": stream_memory,
    "best_kernel": best_kernel,
}

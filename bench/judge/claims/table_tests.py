"""The tests that judge a claim on several rows of the findings together. Pure; knows no file and no sheet syntax."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from bench.judge.claims.claim import Claim
from bench.judge.claims.outcome import (
    REFUTING,
    REPRODUCING,
    Outcome,
    found_in,
    half_widths,
    of_row,
    refuting,
    span,
    step_down,
    supporting,
    told_tolerance,
    tolerance,
)
from bench.judge.claims.over import over
from bench.judge.claims.rows import Row, cells, figure, label
from bench.judge.claims.words import number

MEMORY_MARGIN = 0.10
"""Growth of memory beyond the context's own buffers that still counts as the allocator's, as a share of them."""
WEIGHTS_MARGIN = 0.02
"""The same as a share of the weights, of which a copy would be the whole: a process that holds little wanders."""


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
    temperatures = sorted({temperature for _, temperature in best if temperature > 0})
    best = {key: row for key, row in best.items() if key[1] > 0}
    if not best:
        return [found_in(claim, rows, "inconclusive", "It is about temperatures above 0, and none is measured.")]
    if len(temperatures) < claim.rule.min_temperatures:
        listed = ", ".join(f"{temperature:g}" for temperature in temperatures)
        needed = claim.rule.min_temperatures
        why = f"It needs {needed} temperatures above 0 and {len(temperatures)} are measured ({listed})."
        return [found_in(claim, rows, "inconclusive", why)]
    near = half_widths(1 - (1 - REPRODUCING) / len(best), math.inf)
    return step_down(list(best.values()), lambda row, left: _collision_at(claim, row, near, left))


def _collision_at(claim: Claim, row: Row, near: float, left: int) -> Outcome:
    """An interval of `near` half-widths inside what the rule allows around 0 is reproduced, one that leaves 0 outside
    together with those of `left` rows refuted: more temperatures make neither easier."""
    far = half_widths(1 - (1 - REFUTING) / left, math.inf)
    middle, low, high = (figure(row, name) for name in ("difference", "difference_low", "difference_high"))
    tested = figure(row, "tested") or 0
    if middle is None or low is None or high is None:
        return of_row(claim, row, "inconclusive", "The record lacks the difference to the collision probability.")
    half = (high - low) / 2
    limit = claim.rule.max_half_width
    shown = f"accepted minus collision {middle:+.4f} {span(low, high)} of {tested:g} guesses at {label(row)}"
    if abs(middle) + near * half <= limit and abs(middle) <= far * half:
        verdict, why = "reproduced", f"The interval lies within {number(limit)} of 0: {shown}."
    elif abs(middle) <= near * half:
        verdict, why = "inconclusive", f"0 lies inside, and so does more than {number(limit)}, so draw more: {shown}."
    elif abs(middle) <= far * half:
        why = f"0 lies outside, but not at the {REFUTING:.0%} that a refutation takes, so draw more: {shown}."
        verdict = "inconclusive"
    else:
        verdict, why = "refuted", f"0 lies outside: {shown}."
    return Outcome(verdict, why, middle, low, high, tuple(cells([row])))


def stream_memory(claim: Claim, rows: Sequence[Row]) -> list[Outcome]:
    """A further stream costs its KV cache and state and no weights: the growth from the fewest to the most streams.

    A profile has a series of contexts; of a contrast it is the treatment's beside the baseline's, unless it drafts.
    """
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        alike = tuple(str(row.get(key)) for key in ("model", "n_ctx", "type_k", "type_v"))
        if row.get("source") in (None, "profile"):
            groups.setdefault(alike, []).append(row)
        elif figure(row, "held_bytes") is not None and not row.get("drafts"):
            groups.setdefault((*alike, *cells([row])), []).append(row)
    series = [sorted(found, key=lambda row: row["streams"]) for found in groups.values()
              if len(found) > 1 or found[0].get("source") in (None, "profile")]  # fmt: skip
    if not series:
        why = "Neither a profile nor the arms of a contrast measured the memory at several numbers of streams."
        return [found_in(claim, rows, "inconclusive", why)]
    return [_growth(claim, found) for found in series]


def _sum(row: Row, *names: str) -> float | None:
    """Of what is known; None where nothing is."""
    known = [value for value in (figure(row, name) for name in names) if value is not None]
    return sum(known) if known else None


def _held(row: Row) -> float | None:
    """What process and cards took for a context; of older records what they measured, if no mere sum of the caches."""
    grown, measured = figure(row, "held_bytes"), figure(row, "measured_bytes")
    if grown is not None:
        return grown
    return None if measured == _sum(row, "kv_bytes", "state_bytes") else measured


def _grown(few: Row, many: Row, of: Callable[[Row], float | None]) -> float | None:
    """How many more bytes the row of more streams has; None where there is no such row."""
    before, after = of(few), of(many)
    return None if before is None or after is None or few["streams"] >= many["streams"] else after - before


def _growth(claim: Claim, rows: list[Row]) -> Outcome:
    """What a further stream takes of process and card, over what its context's own buffers grow by."""
    few, many = rows[0], rows[-1]
    added = many["streams"] - few["streams"]
    caches = _grown(few, many, lambda row: _sum(row, "kv_bytes", "state_bytes"))
    buffers = _grown(few, many, lambda row: _sum(row, "compute_bytes", "output_bytes")) or 0.0
    if caches is None:
        return found_in(claim, rows, "inconclusive", "It needs KV and state bytes at two numbers of streams.")
    growth = _grown(few, many, _held)
    if growth is None:
        why = ("The record's memory is the sum of KV cache and state itself, so nothing else could show in it; it "
               "takes the memory of the whole process or card at two numbers of streams.")  # fmt: skip
        return found_in(claim, rows, "inconclusive", why)
    growth, own = growth / added, (caches + buffers) / added
    shown = (
        f"{growth / 2**20:.2f} MiB a further stream, of which {own / 2**20:.2f} MiB KV cache, state and buffers, from "
        f"{few['streams']} to {many['streams']} streams of {few.get('model')}"
    )
    if caches <= 0 or own <= 0:
        why = f"The caches do not grow with the streams, so nothing can be told: {shown}."
        return found_in(claim, rows, "inconclusive", why)
    margin = max(own * MEMORY_MARGIN, (figure(many, "weight_bytes") or 0.0) * WEIGHTS_MARGIN)
    margin += (figure(few, "compute_bytes") or 0.0) / added  # narrow decodes leave some of these buffers untouched
    cells_of = tuple(cells(rows))
    if growth < own - margin:
        why = f"Process and card grew by less than the buffers that they hold, so nothing can be told: {shown}."
        return Outcome("inconclusive", why, growth / own, cells=cells_of)
    holds = growth <= own + margin
    why = f"{'Nothing but KV cache and state grows' if holds else 'More than KV cache and state grows'}: {shown}."
    return Outcome("reproduced" if holds else "refuted", why, growth / own, cells=cells_of)


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
        return [found_in(claim, rows, "inconclusive", "No kernel passed its check there.")]
    return [_cost_of_streams(claim, row) for row in fastest.values()]


def _cost_of_streams(claim: Claim, row: Row) -> Outcome:
    names = ("cost_over_best_single", "cost_over_best_single_low", "cost_over_best_single_high")
    middle, low, high = (figure(row, name) for name in names)
    if middle is None or low is None or high is None:
        return found_in(claim, [row], "inconclusive", f"One stream alone was not timed: {label(row)}.")
    edge = float(claim.published[0]) + tolerance(claim)
    shown = f"the fastest kernel takes {number(middle)} {span(low, high)} of one stream's time for {label(row)}"
    if supporting(claim, row, middle, (low, high), ratio=True)[1] <= edge:
        verdict, why = "reproduced", f"At most {claim.printed}, {told_tolerance(claim)}: {shown}."
    elif refuting(claim, row, middle, (low, high), ratio=True)[0] > edge:
        verdict, why = "refuted", f"More than {claim.printed}, {told_tolerance(claim)}: {shown}."
    else:
        verdict, why = "inconclusive", f"The interval spans {number(edge)}: {shown}."
    return Outcome(verdict, why, middle, low, high, tuple(cells([row])))


TABLE_TESTS: dict[str, Callable[[Claim, Sequence[Row]], list[Outcome]]] = {
    "collision": collision,
    "stream_memory": stream_memory,
    "best_kernel": best_kernel,
    "over": over,
}

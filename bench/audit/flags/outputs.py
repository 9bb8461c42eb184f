"""What two sides of a comparison said: other tokens, other lengths, and answers that come later.

No speed-up is lossless where the outputs differ, and lengths alone can show that. It knows no rate of a step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from bench.audit.compare import Comparison, Pair
from bench.audit.trials import Flag, Trial

SUMMED = 0.01
"""Sums over many requests may differ by this much before they are other answers."""
WAIT = 0.02
"""An answer comes later when it takes this much longer."""


def output_flags(found: list[Comparison]) -> list[Flag]:
    """Flags about each pair of rows, those of a kind by prompt."""
    flags = []
    for one in found:
        if one.kind in ("width", "baseline"):
            continue
        for pair in one.pairs:
            flags += [*_tokens(one, pair), *_later(one, pair)]
    return flags


def _tokens(one: Comparison, pair: Pair) -> Iterator[Flag]:
    base = pair.base[0]
    for treated in pair.treated:
        if (treated.temperature or 0) > 0 or (base.temperature or 0) > 0:
            continue
        if treated.emits is not None and base.emits is not None:
            found = list(_divergence(one, treated, base))
        else:
            found = list(_lengths(one, treated, base))
        yield from found
        if found:
            return  # replicates of one prompt say the same


def _prompt(trial: Trial) -> str:
    return f" on {trial.prompt}" if trial.prompt else ""


def _divergence(one: Comparison, treated: Trial, base: Trial) -> Iterator[Flag]:
    assert treated.emits is not None and base.emits is not None
    if treated.emits.counts is None or base.emits.counts is None:
        return
    wanted = next(iter(base.emits.counts.answers.values()), None)
    for stream, answer in treated.emits.counts.answers.items():
        if wanted is None or len(treated.emits.counts.answers) > 1:
            return  # streams of other prompts, or several answers: nobody says which belong together
        mine, theirs = answer.listed(), wanted.listed()
        place = next((k for k, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), None)
        if place is None and len(mine) == len(theirs):
            continue
        greedy = "" if treated.temperature == 0 and base.temperature == 0 else " (if both are greedy)"
        if place is None:
            words = f"stops at another place: {len(mine)} against {len(theirs)} tokens"
            place = min(len(mine), len(theirs))
        else:
            words = f"differs from position {place + answer.low} on: {mine[place]} against {theirs[place]}"
        yield Flag(
            "DIVERGENT",
            f"{one.label}{_prompt(treated)}: the output of {treated.where}, stream {stream}, {words}; no lossless "
            f"speed-up{greedy} "
            "unless the logits there show a near tie, which this record does not have",
            {"position": place + answer.low},
        )


def _length(trial: Trial) -> int:
    tokens = trial.emitted if trial.emitted is not None else trial.distinct + trial.first
    return round(tokens / trial.streams) if tokens else 0


def _lengths(one: Comparison, treated: Trial, base: Trial) -> Iterator[Flag]:
    mine, theirs = _length(treated), _length(base)
    if not mine or not theirs or mine == theirs or "under way" in treated.label + base.label:
        return
    if treated.test == "serving" and abs(mine / theirs - 1) < SUMMED:
        return
    greedy = treated.temperature == 0 and base.temperature == 0
    why = (
        "greedy answers under equal settings have to be equal, so this is another output and no lossless speed-up"
        if greedy
        else "at temperature 0 that is another output; without the tokens nothing shows that it is lossless"
    )
    yield Flag(
        "LENGTH",
        f"{one.label}{_prompt(treated)}: {mine} tokens ({treated.place}) against {theirs} ({base.place}); {why}",
        {"tokens": mine, "baseline": theirs},
    )


def _later(one: Comparison, pair: Pair) -> Iterator[Flag]:
    """Decoding that is faster while the whole answer comes later."""
    times = [[trial.answer_time for trial in side if trial.answer_time > 0] for side in (pair.treated, pair.base)]
    if not times[0] or not times[1] or pair.estimate.ratio <= 1 or pair.treated[0].streams != pair.base[0].streams:
        return
    if pair.treated[0].test == "serving":
        return
    mine, theirs = (math.exp(math.fsum(map(math.log, side)) / len(side)) for side in times)
    if mine > theirs * (1 + WAIT):
        yield Flag(
            "LATER",
            f"{one.label}{_prompt(pair.treated[0])}: decodes {pair.estimate.ratio:.2f}x as fast and the answer comes "
            "later: "
            f"{mine:.3f} s against {theirs:.3f} s from the request on, {theirs / mine:.2f}x",
            {"decode": pair.estimate.ratio, "answer": theirs / mine},
        )

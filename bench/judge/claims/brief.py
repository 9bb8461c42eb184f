"""A verdict in one sentence with its two numbers, and what would change it. Decides nothing.

Both numbers mean the same on every machine: a ratio, a share, a count, or figures that the claim's own source gives. A
rate of another machine is never one of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bench.judge.claims.claim import Claim
from bench.judge.claims.command import needed
from bench.judge.claims.mechanism import MATTERS, mechanism, missing
from bench.judge.claims.outcome import TWICE, Outcome

_NOUNS = {
    "speedup": "plain decoding", "aggregate": "plain decoding in sum", "rate": "plain decoding",
    "trial": "the baseline", "step_cost": "a single step", "acceptance": "of guesses accepted",
    "lossless": "of answers identical", "tokens_per_round": "tokens a round",
}  # fmt: skip
"""What a ratio, a share or a count of a metric is of; where a unit is not one of the three, it says so itself."""
_BARE = ("x", "share", "tokens", "difference", "area under the curve")
_EXPECTED = {"at_most": "at most ", "at_least": "at least "}
_SENTENCE_END = re.compile(r"(?<=\.)\s+(?=[A-Z0-9])")


@dataclass(frozen=True, slots=True)
class Pair:
    """What was published and what was found, both in `unit`; the ends are of the 95 % interval of what was found."""

    published: tuple[float | bool, ...]
    found: float | None
    low: float | None
    high: float | None
    unit: str


def first_sentence(reason: str) -> str:
    """The first sentence of a reason."""
    return _SENTENCE_END.split(reason.strip(), maxsplit=1)[0]


def pair_of(claim: Claim, outcome: Outcome) -> Pair:
    """The two numbers of a verdict. A rate that promises a gain is a ratio to the baseline that it names."""
    if claim.rule.test == "one_answer" and "baseline_tok_s" in claim.conditions:
        against = float(claim.conditions["baseline_tok_s"])
        published = tuple(float(text) / against for text in claim.published)
        return Pair(published, outcome.ratio, outcome.ratio_low, outcome.ratio_high, "x")
    values = tuple(text == "true" if text in ("true", "false") else float(text) for text in claim.published)
    return Pair(values, outcome.measured, outcome.ci_low, outcome.ci_high, claim.unit)


def ratios(claim: Claim, outcome: Outcome) -> dict[str, float | None]:
    """`published_ratio`, `ratio`, `ratio_low` and `ratio_high` of a verdict about a ratio; nothing of another."""
    pair = pair_of(claim, outcome)
    if pair.unit != "x":
        return {}
    return {"published_ratio": float(pair.published[0]), "ratio": pair.found, "ratio_low": pair.low,
            "ratio_high": pair.high}  # fmt: skip


def why(claim: Claim, outcome: Outcome) -> str:
    """The verdict's reason in one sentence."""
    if outcome.brief:
        return outcome.brief
    pair = pair_of(claim, outcome)
    expected = _EXPECTED.get(claim.rule.expect, "") if claim.rule.kind == "arithmetic" else ""
    published = f"Published {expected}{_published(claim, pair)}"
    if claim.rule.kind == "projection":
        return f"{published}, a projection that nobody has measured."
    if outcome.verdict == "not_run":
        return f"{published}, no cell here measures it."
    if outcome.verdict == "not_comparable" and pair.found is None:
        return f"{published}{_there(claim)}, nothing here can be held against it."
    if claim.rule.kind == "fact":
        found = "its source agrees" if outcome.verdict == "reproduced" else "its source says otherwise"
        return f"{published}, {found if pair.found is None else f'the source has {_figure(pair.found, pair.unit)}'}."
    if pair.found is None:
        return first_sentence(outcome.reason)
    found = f"{_figure(pair.found, pair.unit)}{_ends(pair)}"
    if claim.rule.kind == "arithmetic":
        return f"{published}, its own figures give {found}."
    place = "here, under other conditions," if outcome.verdict == "not_comparable" else "measured"
    return f"{published}, {place} {found}{_judged(claim)}{_counted(claim, outcome)}."


def would_change(claim: Claim, outcome: Outcome) -> str:
    """What would bring another verdict, a command in backticks where there is one."""
    kind = claim.rule.kind
    if kind == "arithmetic":
        return "other figures from its author, since this is arithmetic on what was published"
    if kind == "fact":
        return f"a better source than that of the fact '{claim.rule.fact}'"
    if kind == "projection":
        nearest = f"; nearest to it: `{claim.rule.command}`" if claim.rule.command else ""
        return f"a measurement of it: {claim.rule.needs}{nearest}"
    if absent := missing(claim):
        return f"the conditions that it was published without: {', '.join(absent)}"
    if outcome.verdict == "not_run":
        return needed(claim)
    if outcome.verdict == "not_comparable":
        trained = mechanism(claim).anywhere and outcome.measured is None
        return f"{'a model that was trained' if trained else 'a run under its own conditions'}: {needed(claim)}"
    if outcome.verdict == "inconclusive":
        return f"more blocks and prompts, or a quieter machine: {needed(claim)}"
    where = "anywhere" if mechanism(claim).anywhere else "under the same conditions"
    return f"{_opposite(claim, outcome)}, {where}"


def _opposite(claim: Claim, outcome: Outcome) -> str:
    """What would speak against a verdict."""
    refuted = outcome.verdict == "refuted"
    if claim.rule.test == "lossless":
        return "answers that are all identical" if refuted else "an answer that differs by more than rounding"
    pair = pair_of(claim, outcome)
    if claim.rule.test == "direction":
        above = claim.rule.expect.startswith("greater")
        edge = 1.0 if claim.rule.edge is None else claim.rule.edge
        return f"an interval {'above' if above == refuted else 'below'} {_of(claim, edge, pair.unit)}"
    edge = min(float(pair.published[0]), 1.0) if claim.rule.test in ("ratio", "one_answer") else pair.published[0]
    return f"an interval that {'reaches' if refuted else 'leaves out'} {_of(claim, edge, pair.unit)}"


def _published(claim: Claim, pair: Pair) -> str:
    figure = " to ".join(_figure(value, pair.unit) for value in pair.published)
    if isinstance(pair.published[0], bool):
        return figure
    if pair.unit == "difference":
        return f"a difference of {figure}"
    return f"{figure} {_noun(claim, pair.unit)}".strip()


def _noun(claim: Claim, unit: str) -> str:
    return _NOUNS.get(claim.metric, "") if unit in _BARE else ""


def _of(claim: Claim, edge: float | bool, unit: str) -> str:
    """An edge with what it is of."""
    noun = _noun(claim, unit)
    if unit == "x" and edge == 1 and noun:
        return noun.replace("plain decoding", "plain decoding's speed")
    return _figure(edge, unit) if unit == "difference" else f"{_figure(edge, unit)} {noun}".strip()


def _figure(value: float | bool, unit: str) -> str:
    """Three digits; a share as per cent, a truth value as yes or no."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if unit == "share":
        return f"{_digits(100 * value)} %"
    if unit == "x":
        return f"{_digits(value)}x"
    return _digits(value) if unit in _BARE else f"{_digits(value)} {unit}"


def _digits(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def _ends(pair: Pair) -> str:
    if pair.low is None or pair.high is None or pair.low == pair.high:
        return ""
    low, high = (_figure(end, pair.unit).removesuffix("x") for end in (pair.low, pair.high))
    return f" ({low} to {high})"


def _judged(claim: Claim) -> str:
    """What of a figure is judged, where it is not the figure itself."""
    if claim.rule.test != "direction":
        return ""
    above = claim.rule.expect.startswith("greater")
    edge = 1.0 if claim.rule.edge is None else claim.rule.edge
    return f", judged by whether it is {'above' if above else 'below'} {_digits(edge)}"


def _counted(claim: Claim, outcome: Outcome) -> str:
    """How often a token was counted, where its rate is of emit calls."""
    if not outcome.counted or not outcome.distinct or outcome.counted <= TWICE * outcome.distinct:
        return ""
    times = f": each token is counted {outcome.counted / outcome.distinct:.1f} times"
    if claim.rule.test != "one_answer":
        return times
    return f"{times}, so {claim.printed} {claim.unit} are {outcome.distinct:.1f} distinct"


def _there(claim: Claim) -> str:
    """The conditions that a figure belongs to."""
    named = {**claim.scope, **claim.conditions}
    told = [str(named[key]) for key in MATTERS.get(claim.table, ()) if key in named]
    return f" on {', '.join(told)}" if told else ""

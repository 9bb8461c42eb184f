"""What guessing is worth, from the price of a decode by its width, the price of a guess and how guesses are accepted.

speed-up = tokens a round / cost of a round, in plain steps: nothing is fitted to a speed-up that was measured. It knows
no records and no method. Arrays may have a leading axis of resamples; a length without a price is nan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from bench.judge.measure.intervals import t_quantile

if TYPE_CHECKING:
    from bench.judge.measure.curve import Curve

MEASURED, INTERPOLATED, PROJECTED = "measured", "interpolated", "projected"
CLIFF, UNMEASURED = "cliff", "unmeasured"
CLIFF_RISE = 2.0
"""A width is a cliff when cost grows more than this many times as fast as tokens do, from the width timed before it."""
LEAST_TESTED = 20
"""A depth at which fewer guesses were tested has no acceptance of its own; the tail is projected from there."""


@dataclass(frozen=True, slots=True)
class Price:
    """Cost of one decode over that of width 1. `low` and `high` bound an interpolated one; nan where there is none."""

    cost: float
    low: float
    high: float
    how: str


@dataclass(frozen=True)
class Prices:
    """Costs of the widths that were timed, relative to width 1, and how uncertain the logarithm of one is."""

    cost: dict[int, float]
    log_se: float = 0.0

    @classmethod
    def of(cls, curve: Curve) -> Prices:
        """Prices of a step-cost curve. Passes are few, so the spread is pooled over widths."""
        known = {width: estimate for width, estimate in curve.relative.items() if np.isfinite(estimate.ratio)}
        spreads = [one.log_se**2 for width, one in known.items() if width > 1 and one.n_units > 1]
        pooled = float(np.sqrt(np.mean(spreads))) if spreads else 0.0
        return cls({width: estimate.ratio for width, estimate in sorted(known.items())}, pooled)

    @property
    def cliffs(self) -> list[int]:
        """Widths from which on a decode costs far more than its tokens account for."""
        widths = sorted(self.cost)
        return [wide for narrow, wide in pairwise(widths) if self._jumps(narrow, wide)]

    def price(self, width: int) -> Price:
        """Price of a width: timed, or between its two timed neighbours where no cliff lies between them."""
        if width in self.cost:
            return Price(*(self.cost[width],) * 3, MEASURED)
        below = max((timed for timed in self.cost if timed < width), default=None)
        above = min((timed for timed in self.cost if timed > width), default=None)
        if below is None or above is None:
            return Price(*(float("nan"),) * 3, UNMEASURED)
        if self._jumps(below, above):
            return Price(*(float("nan"),) * 3, CLIFF)
        low, high = self.cost[below], self.cost[above]
        return Price(low + (high - low) * (width - below) / (above - below), low, high, INTERPOLATED)

    def array(self) -> np.ndarray:
        """Costs by width, from 0 to the widest timed one; nan where there is no price."""
        return np.array([float("nan"), *(self.price(width).cost for width in range(1, max(self.cost) + 1))])

    def drawn(self, generator: np.random.Generator, count: int) -> np.ndarray:
        """`count` arrays like `array`, each with an error of its own at every width above 1."""
        costs = self.array()
        noise = generator.normal(0.0, self.log_se, (count, len(costs)))
        noise[:, :2] = 0.0
        return costs * np.exp(noise)

    def _jumps(self, below: int, above: int) -> bool:
        return self.cost[above] / self.cost[below] - 1 > CLIFF_RISE * (above / below - 1)


def conditional(
    tested: np.ndarray, accepted: np.ndarray, length: int, evidence: np.ndarray | None = None
) -> np.ndarray:
    """Chance that the guess at depth 1..length is right when all before it were; shape (..., length).

    `tested` and `accepted` are counts by depth on the last axis. Beyond the depths with `LEAST_TESTED` tests the chance
    of the deepest tests that add up to as many goes on: a geometric tail. Which depths these are is told by `evidence`,
    the counts behind all resamples. nan when nothing was tested.
    """
    total = tested if evidence is None else evidence
    depth = measured_depth(total)
    deepest = np.flatnonzero(total[::-1].cumsum() >= min(LEAST_TESTED, max(total.sum(), 1)))
    first = len(total) - 1 - int(deepest[0]) if len(deepest) else 0
    with np.errstate(divide="ignore", invalid="ignore"):
        own = accepted[..., :depth] / tested[..., :depth]
        tail = accepted[..., first:].sum(axis=-1) / tested[..., first:].sum(axis=-1)
    made = np.repeat(tail[..., None], length, axis=-1)
    kept = min(depth, length)
    made[..., :kept] = np.where(np.isfinite(own[..., :kept]), own[..., :kept], made[..., :kept])
    return made


def measured_depth(tested: np.ndarray) -> int:
    """Depths from 1 up at which enough guesses were tested; counts by depth, one axis."""
    enough = np.append(tested >= LEAST_TESTED, False)
    return int(np.argmin(enough))


def accepted_guesses(chances: np.ndarray) -> np.ndarray:
    """Mean number of guesses accepted when 1, 2, .. are made; `chances` by depth on the last axis, as is the result."""
    return np.cumsum(np.cumprod(chances, axis=-1), axis=-1)


@dataclass(frozen=True)
class Terms:
    """What a round costs beside its decode, in plain steps, and what it yields. Numbers, or one a resample."""

    fires: np.ndarray | float = 1.0
    """Share of rounds that guess at all; the others are plain steps."""
    kept: float = 1.0
    """New tokens an accepted guess brings: 0 for a loop that says the same tokens again."""
    streams: int = 1
    """Answers decoded together, each with guesses of its own."""
    look: np.ndarray | float = 0.0
    """Drafting time of a round, whether it guesses or not."""
    guess: np.ndarray | float = 0.0
    """Drafting time of one guess."""
    row: np.ndarray | float = 0.0
    """Sampling and comparing one row."""
    rest: np.ndarray | float = 0.0
    """Rolling back, the loop's own time, and time between rounds."""
    switch: np.ndarray | float = 0.0
    """What changes of width add to a decode, in the mean of all rounds."""
    startup: np.ndarray | float = 0.0
    """Start-up rounds of a run, as plain steps for each of its tokens."""
    baseline: np.ndarray | float = 1.0
    """A token of plain decoding: its step, sampling, host time and first steps."""

    def free(self) -> Terms:
        """The same loop with a drafter that takes no time."""
        return replace(self, guess=0.0, look=0.0)


def round_costs(costs: np.ndarray, terms: Terms, longest: int) -> np.ndarray:
    """Mean cost in plain steps of a round with 0, 1, .. `longest` guesses for each answer that guesses; last axis.

    How many of several answers guess in a round is binomial, and every width that this makes needs a price.
    """
    lengths, streams = np.arange(longest + 1), terms.streams
    fires = np.asarray(terms.fires, dtype=float)[..., None]
    room = np.full((*costs.shape[:-1], max(streams * (1 + longest) + 1 - costs.shape[-1], 0)), np.nan)
    priced = np.concatenate([costs, room], axis=-1)
    total = np.zeros(1)
    for guessing in range(streams + 1):
        share = comb(streams, guessing) * fires**guessing * (1 - fires) ** (streams - guessing)
        total = total + np.where(share > 0, share * priced[..., streams + lengths * guessing], 0.0)
    rows = streams * fires * lengths
    looks, guess, row, rest, switch = (
        np.asarray(value, dtype=float)[..., None]
        for value in (terms.look, terms.guess, terms.row, terms.rest, terms.switch)
    )
    made: np.ndarray = total + switch + looks + guess * rows + row * (streams + rows) + rest
    return made


def speedups(costs: np.ndarray, chances: np.ndarray, terms: Terms) -> np.ndarray:
    """Predicted speed-up, all streams in sum, with 1, 2, .. guesses; last axis as long as that of `chances`."""
    fires, startup, baseline = (
        np.asarray(value, dtype=float)[..., None] for value in (terms.fires, terms.startup, terms.baseline)
    )
    tokens = terms.streams * (1 + terms.kept * fires * accepted_guesses(chances))
    made: np.ndarray = baseline / (round_costs(costs, terms, chances.shape[-1])[..., 1:] / tokens + startup)
    return made


def all_accepted(costs: np.ndarray, terms: Terms, length: int) -> float:
    """Speed-up when every guess is right and an answer has no end: the ceiling of one draft length."""
    full = float(round_costs(costs, replace(terms, fires=1.0), length)[length])
    return float(terms.baseline / (full / (1 + terms.kept * length) / terms.streams + terms.startup))


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of `tokens` tokens after its first, whose decodes begin anew after a prefill."""

    tokens: int
    narrows: bool = False
    """Whether a round guesses no further than the answer goes: its last rounds are changes of width then."""
    unsettled: tuple[float, ...] = ()
    """What the first decodes after a change of width take beyond their price, in plain steps."""
    settles: bool = True
    """Whether rounds follow each other without decodes of another width between them."""


def planted(costs: np.ndarray, terms: Terms, length: int, answer: Answer, right: bool) -> float:
    """Speed-up over one answer when every guess is right, or every guess is wrong. Changes of width are counted."""
    by_length = round_costs(costs, replace(terms, fires=1.0, switch=0.0), length)
    left, spent, before, age = answer.tokens, 0.0, -1, 0
    while left > 0:
        guesses = min(length, left - 1) if answer.narrows else length
        age = age + 1 if guesses == before and answer.settles else 0
        spent += float(by_length[guesses]) + (answer.unsettled[age] if age < len(answer.unsettled) else 0.0)
        left -= 1 + guesses if right else 1
        before = guesses
    return float(terms.baseline / (spent / answer.tokens / terms.streams + terms.startup))


@dataclass(frozen=True)
class Best:
    """The draft length with the highest predicted speed-up, and where both lie in 95 % of resamples."""

    length: int
    speedup: float
    low: float
    high: float
    shortest: int
    longest: int


def best_length(found: np.ndarray, resampled: np.ndarray | None = None, units: int = 0) -> Best | None:
    """The best of the lengths 1, 2, .. from `found` (length,), None when none has a price.

    The interval is Student's on the log scale with the spread of `resampled` (resamples, length): percentiles of a
    bootstrap over a handful of units would be too narrow. nan without two units.
    """
    if not np.isfinite(found).any():
        return None
    place = int(np.nanargmax(found))
    nan = float("nan")
    low, high, ends = nan, nan, (place + 1, place + 1)
    if resampled is not None and units > 1:
        low, high = log_interval(found[place], resampled[:, place], units)
        chosen = 1 + np.argmax(np.nan_to_num(resampled, nan=-np.inf), axis=1)
        first, last = np.quantile(chosen, (0.025, 0.975), method="inverted_cdf")
        ends = (int(first), int(last))
    return Best(place + 1, float(found[place]), low, high, *ends)


def log_interval(value: float, resampled: np.ndarray, units: int) -> tuple[float, float]:
    """95 % interval around a value from its bootstrap over `units` units, whose spread is (n-1)/n of the truth's."""
    logs = np.log(resampled[np.isfinite(resampled) & (resampled > 0)])
    if len(logs) < 2 or units < 2:
        return float("nan"), float("nan")
    half = t_quantile(units - 1, 0.95) * float(logs.std(ddof=1)) * np.sqrt(units / (units - 1))
    return float(value * np.exp(-half)), float(value * np.exp(min(half, 700.0)))


def break_even(costs: np.ndarray, terms: Terms, longest: int) -> tuple[float, int]:
    """The lowest acceptance of a guess, alike at every depth, with which some length up to `longest` is as fast as
    plain decoding; and that length. (nan, 0) when not even right guesses are.
    """
    rounds = round_costs(costs, terms, longest)
    lowest = (float("nan"), 0)
    for length in range(1, longest + 1):
        tokens = float(rounds[length]) / float(terms.baseline - terms.startup) / terms.streams
        needed = _acceptance_for(max(tokens - 1, 0.0) / (terms.kept * float(terms.fires) or np.nan), length)
        if not lowest[0] <= needed:
            lowest = (needed, length) if needed == needed else lowest
    return lowest


def _acceptance_for(guesses: float, length: int) -> float:
    """The chance a with a + a^2 + .. + a^length = `guesses`; nan when 1 does not do."""
    if not guesses <= length:
        return float("nan")
    low, high = 0.0, 1.0
    while high - low > 1e-7:
        middle = (low + high) / 2
        short = middle * (1 - middle**length) / (1 - middle) < guesses  # the sum in closed form; middle stays below 1
        low, high = (middle, high) if short else (low, middle)
    return high


@lru_cache(maxsize=256)
def resamples(units: int, count: int, seed: int) -> np.ndarray:
    """How often each of `units` units is taken in each of `count` resamples; (count, units), rows add up to units."""
    generator = np.random.default_rng(seed)
    return generator.multinomial(units, np.full(units, 1 / units), size=count).astype(float)

"""How well a score tells two kinds of prompts apart: the area under the ROC curve, and a threshold with its errors.

A low score means off the domain. Every prompt weighs the same, and prompts are what the intervals count: two answers to
one prompt are not two pieces of evidence. It knows nothing about guesses, models or what the score is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench.judge.measure.intervals import CONFIDENCE, mean_interval, satterthwaite, t_quantile, wilson, z_quantile

CHANCE = 0.5
"""The area under the curve of a score that tells nothing."""


@dataclass(frozen=True)
class Scores:
    """Scores (n,) of n answers, the number (n,) of the prompt of each, and whether it is on the domain (n,)."""

    score: np.ndarray
    prompt: np.ndarray
    on: np.ndarray

    @property
    def enough(self) -> bool:
        """Whether both sides have two prompts or more, without which there is no spread."""
        return all(len(np.unique(self.prompt[side])) > 1 for side in (self.on, ~self.on))

    def means(self, on: bool) -> np.ndarray:
        """Mean score of each prompt of one side."""
        return _by_prompt(self.score[self.on == on], self.prompt[self.on == on])


@dataclass(frozen=True, slots=True)
class Share:
    """A share with its interval."""

    value: float
    low: float
    high: float


def _by_prompt(values: np.ndarray, prompt: np.ndarray) -> np.ndarray:
    """Mean of the values of each prompt, in the order of their numbers."""
    _, place = np.unique(prompt, return_inverse=True)
    return np.bincount(place, weights=values) / np.bincount(place)


def side_mean(scores: Scores, on: bool) -> Share:
    """Mean over the prompts of one side, with Student's interval."""
    return Share(*mean_interval(scores.means(on)))


def drop(scores: Scores) -> Share:
    """Mean on the domain minus mean off it, with Welch's interval over prompts."""
    sides = [scores.means(on) for on in (True, False)]
    shares = [side.var(ddof=1) / len(side) for side in sides]
    variance, difference = sum(shares), float(sides[0].mean() - sides[1].mean())
    if variance == 0:
        return Share(difference, difference, difference)
    freedom = satterthwaite(shares, [len(side) - 1 for side in sides])
    half = t_quantile(freedom, CONFIDENCE) * float(np.sqrt(variance))
    return Share(difference, difference - half, difference + half)


def area(scores: Scores) -> Share:
    """Area under the ROC curve: how often an answer on the domain scores above one off it, ties counted half.

    With equally many answers a prompt it is the Mann-Whitney statistic over the number of pairs.
    """
    high, low = scores.score[scores.on], scores.score[~scores.on]
    wins = (high[:, None] > low) + 0.5 * (high[:, None] == low)
    rows = [_by_prompt(column, scores.prompt[scores.on]) for column in wins.T]
    value = float(_by_prompt(np.mean(rows, axis=1), scores.prompt[~scores.on]).mean())
    return Share(value, *area_interval(value, len(scores.means(True)), len(scores.means(False))))


def area_interval(value: float, n_on: int, n_off: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Score interval of an area under the curve from two independent samples of prompts.

    Newcombe's method 5 (Statistics in Medicine 25, 2006, 559-573): unlike a bootstrap it has a width at 0 and 1, which
    a handful of prompts reach easily.
    """
    z, pairs = z_quantile(confidence), n_on * n_off

    def beyond(true: float) -> bool:
        bent = (n_on + n_off) / 2 - 1
        spread = true * (1 - true) * (1 + bent * ((1 - true) / (2 - true) + true / (1 + true))) / pairs
        return bool(abs(true - value) > z * np.sqrt(spread))

    return _edge(value, 0.0, beyond), _edge(value, 1.0, beyond)


def _edge(inside: float, outside: float, beyond: Callable[[float], bool]) -> float:
    """Where `beyond` becomes true between a value and the end of the scale, by halving."""
    if not beyond(outside):
        return outside
    while abs(outside - inside) > 1e-9:
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if beyond(middle) else (middle, outside)
    return (inside + outside) / 2


def threshold(scores: Scores) -> float:
    """The middle between the mean on the domain and the mean off it, which no single answer can move far."""
    return float(scores.means(True).mean() + scores.means(False).mean()) / 2


def errors(scores: Scores) -> tuple[Share, Share]:
    """False alarms (on the domain, below the threshold) and misses (off it, not below), as shares of answers.

    The threshold for the answers to a prompt is that of all other prompts. Wilson's intervals over prompts.
    """
    found = []
    for on in (True, False):
        mine, other = scores.means(on), float(scores.means(not on).mean())
        rest = (mine.sum() - mine) / (len(mine) - 1)
        _, place = np.unique(scores.prompt[scores.on == on], return_inverse=True)
        below = scores.score[scores.on == on] < ((rest + other) / 2)[place]
        wrong = _by_prompt((below == on).astype(float), place)
        found.append(Share(float(wrong.mean()), *wilson(float(wrong.sum()), len(wrong))))
    return found[0], found[1]

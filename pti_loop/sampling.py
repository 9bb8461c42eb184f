"""Greedy choice and sampling at a temperature, with randomness keyed by (seed, stream, position).

A draw depends on its key and on the logits alone, never on how many draws came before it. So a seed replays a run,
and two loops that ask for the same position draw the same token from the same distribution.
It knows nothing about engines or loops.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pti_loop.weights import Weigh, by_numpy

TWINS = 64
"""Keys of one answer: twin 0 is the model's own draw, twins 1.. draw guesses for the same answer."""

_MASK = (1 << 64) - 1
_BLOCK = 256
_NEGLIGIBLE = 1e-30
_COLD = 0.1
"""Below this temperature a logit over the temperature is too large for float32 to keep its differences."""
_STEEPEST = 1e30
"""Largest factor of a difference of logits: the likeliest tokens alone have any weight, and nothing overflows."""


def _mix(x: int) -> int:
    """Finaliser of splitmix64 (Steele, Lea and Flood 2014): a bijection of 64 bits with full avalanche."""
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def uniform(seed: int, stream: int, position: int) -> float:
    """A number in [0, 1) that only the key decides: 53 bits of a chained splitmix64."""
    return (_mix(_mix(_mix(seed & _MASK) ^ stream) ^ position) >> 11) * 2.0**-53


@dataclass(frozen=True, slots=True)
class Choice:
    """A token, and the collision probability of the distribution it came from (nan when greedy)."""

    token: int
    collision: float


class Sampler:
    """Draws tokens of a vocabulary of `n_vocab` at one temperature. Temperature 0 is the argmax, lowest id on a tie.

    Raises `ValueError` for a temperature that is no number from 0 up.
    """

    def __init__(self, n_vocab: int, temperature: float, seed: int, weigh: Weigh = by_numpy) -> None:
        if temperature < 0 or not math.isfinite(temperature):
            raise ValueError(f"temperature {temperature} is not a number from 0 up")
        self.temperature = temperature
        self.seed = seed
        rows = -(-n_vocab // _BLOCK)
        self._n_vocab = n_vocab
        self._weigh = weigh
        self._weights = np.zeros(rows * _BLOCK, dtype=np.float32)
        self._blocks = self._weights.reshape(rows, _BLOCK)

    def draw(self, logits: NDArray[np.float32], answer: int, twin: int, position: int) -> Choice:
        """Token for `position` of `answer`, drawn from float32 (n_vocab,) logits with the key of `twin`."""
        if self.temperature == 0:
            return Choice(int(logits.argmax()), math.nan)
        return self.pick(logits, uniform(self.seed, answer * TWINS + twin, position))

    def pick(self, logits: NDArray[np.float32], u: float) -> Choice:
        """Inverse of the cumulative distribution of float32 (n_vocab,) logits, in order of token id, at `u` in [0, 1).

        Weights are float32 and summed so in blocks of 256, the blocks in float64: few passes over the vocabulary and
        no sort.
        """
        weights = self._weights[: self._n_vocab]
        self._scale(logits, weights)
        self._weigh(weights, float(weights.max()))
        ends = np.einsum("ij->i", self._blocks).cumsum(dtype=np.float64)
        total = ends[-1]
        target = u * total
        row = min(int(ends.searchsorted(target, side="right")), len(ends) - 1)
        inside = self._blocks[row].cumsum(dtype=np.float64)
        before = ends[row - 1] if row else 0.0
        column = int(inside.searchsorted(target - before, side="right"))
        token = min(row * _BLOCK + column, self._n_vocab - 1)
        while weights[token] < _NEGLIGIBLE and token > 0:  # rounding may land on a token of no probability
            token -= 1
        if weights[token] < _NEGLIGIBLE:  # and so may u = 0, before the first that has any
            token = int((weights >= _NEGLIGIBLE).argmax())
        return Choice(token, float(np.dot(weights, weights)) / (total * total))

    def _scale(self, logits: NDArray[np.float32], out: NDArray[np.float32]) -> None:
        """Logits over the temperature, up to a constant, into float32 (n_vocab,) `out`."""
        if self.temperature >= _COLD:
            np.multiply(logits, np.float32(1.0 / self.temperature), out=out)
            return
        np.subtract(logits, logits.max(), out=out)  # exact where it matters: close to the maximum
        np.multiply(out, np.float32(min(1.0 / self.temperature, _STEEPEST)), out=out)


def cumulative(logits: NDArray[np.float32], temperature: float) -> NDArray[np.float64]:
    """Cumulative distribution float64 (n_vocab,) of logits (n_vocab,), by token id: `pick` is tested against it."""
    with np.errstate(over="ignore"):  # a tiny temperature: minus infinity is what is meant
        scaled = (logits.astype(np.float64) - float(logits.max())) / temperature
    weights = np.exp(scaled)
    sums: NDArray[np.float64] = np.cumsum(weights)
    return sums / float(sums[-1])

"""Greedy choice and sampling at a temperature, with randomness keyed by (seed, stream, position).

A draw depends on its key and on the logits alone, never on how many draws came before it. So a seed replays a run,
and two loops that ask for the same position draw the same token from the same distribution.
It knows nothing about engines or loops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pti_loop.chain import Chain
from pti_loop.native_draw import NativeDraw, compiled
from pti_loop.weights import Weigh, by_numpy

TWINS = 64
"""Keys of one answer: twin 0 is the model's own draw, twins 1.. draw guesses for the same answer."""

_MASK = (1 << 64) - 1
_BLOCK = 256
_STEEPEST = 1e30
"""Largest factor of a difference of logits that float32 is asked for."""


def _mix(x: int) -> int:
    """Finaliser of splitmix64 (Steele, Lea and Flood 2014): a bijection of 64 bits with full avalanche."""
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def uniform(seed: int, stream: int, position: int) -> float:
    """A number in [0, 1) that only the key decides: 53 bits of a chained splitmix64."""
    return _number(_mixed(seed, stream), position)


def _mixed(seed: int, stream: int) -> int:
    """What all positions of a stream have in common."""
    return _mix(_mix(seed & _MASK) ^ stream)


def _number(mixed: int, position: int) -> float:
    return (_mix(mixed ^ position) >> 11) * 2.0**-53


class Choice(NamedTuple):
    """A token, and the collision probability of the distribution it came from (nan when greedy)."""

    token: int
    collision: float


class Sampler:
    """Draws tokens of a vocabulary of `n_vocab` at one temperature. Temperature 0 is the argmax, lowest id on a tie.

    Above it a token is the one of `exact`, whatever computes it: `weigh` is how fast that goes without a compiler.
    Logits go through `chain` first. `ends` are tokens that may end an answer, and are not drawn as its first: an answer
    of nothing has no rate. Raises `ValueError` for a temperature that is no number from 0 up.
    """

    def __init__(self, n_vocab: int, temperature: float, seed: int, weigh: Weigh = by_numpy, chain: Chain | None = None,
                 ends: Sequence[int] = ()) -> None:  # fmt: skip
        if temperature < 0 or not math.isfinite(temperature):
            raise ValueError(f"temperature {temperature} is not a number from 0 up")
        self.temperature = temperature
        self.seed = seed
        self.chain = chain or Chain()
        self._ends = list(ends)
        self._as_is = not (self._ends or self.chain.reads_text or self.chain.cuts)
        """Whether every row is drawn from as it came: then none of the steps before the draw is taken."""
        self._n_vocab = n_vocab
        self._mixed: dict[int, int] = {}
        function = compiled() if temperature else None
        self._search = NativeDraw(function, n_vocab) if function else WeighedDraw(n_vocab, weigh)
        self._scale = min(1.0 / temperature, _STEEPEST) if temperature else 0.0
        self._slack = slack(n_vocab, self._search.added)

    @property
    def reads_text(self) -> bool:
        """Whether a draw has to be told the text before it."""
        return self.chain.reads_text

    @property
    def is_argmax(self) -> bool:
        """Whether every draw but an answer's first is the likeliest token of its logits as they are."""
        return self.temperature == 0 and not self.chain.reads_text

    def penalised(self, logits: NDArray[np.float32], position: int, text: Sequence[int] = ()) -> NDArray[np.float32]:
        """Logits float32 (n_vocab,) for `position` of an answer behind `text`, before any cut."""
        row = self.chain.penalised(logits, text)
        if self._ends and position == 0:
            row = np.array(row, dtype=np.float32)
            row[self._ends] = -np.inf
        return row

    def seen(self, logits: NDArray[np.float32], position: int, text: Sequence[int] = ()) -> NDArray[np.float32]:
        """The row that a token is drawn from: penalised, and above temperature 0 cut. Cuts leave the likeliest."""
        row = self.penalised(logits, position, text)
        return self.chain.cut(row) if self.temperature else row

    def draw(self, logits: NDArray[np.float32], answer: int, twin: int, position: int,
             text: Sequence[int] = ()) -> Choice:  # fmt: skip
        """Token for `position` of `answer`, drawn from float32 (n_vocab,) logits with the key of `twin`.

        `text` are prompt and answer before it, which only a sampler that `reads_text` looks at.
        """
        row = logits if self._as_is else self.seen(logits, position, text)
        if self.temperature == 0:
            return Choice(int(row.argmax()), math.nan)
        stream = answer * TWINS + twin
        if (mixed := self._mixed.get(stream)) is None:
            mixed = self._mixed[stream] = _mixed(self.seed, stream)
        return self.pick(row, _number(mixed, position))

    def pick(self, logits: NDArray[np.float32], u: float) -> Choice:
        """The token of `exact` for float32 (n_vocab,) logits at `u` in [0, 1).

        It is searched in float32, and in float64 only where u is so close to a boundary that rounding could decide.
        """
        token, collision = self._search(logits, self._scale, u, self._slack)
        if token < 0 or self._scale == _STEEPEST:
            token = exact(np.asarray(logits), self.temperature, u)
        return Choice(token, collision)


def drawn_by() -> str:
    """What searches for a token above temperature 0 on this machine: `compiled` code, or `numpy`."""
    return "compiled" if compiled() else "numpy"


class WeighedDraw:
    """The same search as the compiled one's in a dozen calls of numpy, for one vocabulary."""

    added = _BLOCK

    def __init__(self, n_vocab: int, weigh: Weigh) -> None:
        rows = -(-n_vocab // _BLOCK)
        self._n_vocab, self._weigh = n_vocab, weigh
        self._weights = np.zeros(rows * _BLOCK, dtype=np.float32)
        self._blocks = self._weights.reshape(rows, _BLOCK)

    def __call__(self, logits: NDArray[np.float32], scale: float, u: float, slack: float) -> tuple[int, float]:
        """(token, collision probability) of float32 (n_vocab,) logits at `u` in [0, 1); token -1 where none is sure.

        Weights are float32 and summed so in blocks of 256, the blocks in float64: few passes over the vocabulary and
        no sort.
        """
        weights = self._weights[: self._n_vocab]
        np.subtract(logits, logits.max(), out=weights)
        with np.errstate(over="ignore"):  # minus infinity is what is meant
            np.multiply(weights, np.float32(scale), out=weights)
        self._weigh(weights, 0.0)
        ends = np.einsum("ij->i", self._blocks).cumsum(dtype=np.float64)
        total = float(ends[-1])
        target, near = u * total, slack * total
        row = min(int(ends.searchsorted(target, side="right")), len(ends) - 1)
        start = float(ends[row - 1]) if row else 0.0
        inside = self._blocks[row].cumsum(dtype=np.float64) + start
        column = int(inside.searchsorted(target, side="right"))
        token = row * _BLOCK + column
        collision = float(np.dot(weights, weights)) / (total * total)
        if column == _BLOCK or token >= self._n_vocab:
            return -1, collision
        before = float(inside[column - 1]) if column else start
        sure = target - before > near and float(inside[column]) - target > near
        return token if sure else -1, collision


def slack(n_vocab: int, added: int) -> float:
    """How far rounding can move a boundary of the cumulative distribution in a float32 search, as a share of it.

    A weight exp(z) has three roundings in z and those of its polynomial: (3 |z| + 6) 2^-24 of it. The mean of |z| is
    the entropy less the logarithm of the sum of weights, of which the greatest is 1, so at most log(n_vocab). Sums of
    `added` float32 numbers lose so many more. A boundary is the quotient of two such sums.
    """
    return float((3 * math.log(n_vocab) + 6 + added) * 2.0**-23)


def exact(logits: NDArray[np.float32], temperature: float, u: float) -> int:
    """The rule of every draw: the first token whose cumulative probability, in order of ids, is above `u` in [0, 1)."""
    found = cumulative(logits, temperature).searchsorted(u, side="right")
    return min(int(found), len(logits) - 1)


def cumulative(logits: NDArray[np.float32], temperature: float) -> NDArray[np.float64]:
    """Cumulative distribution float64 (n_vocab,) of logits float32 (n_vocab,) over a temperature, by token id."""
    with np.errstate(over="ignore"):  # a tiny temperature: minus infinity is what is meant
        scaled = (logits.astype(np.float64) - float(logits.max())) / temperature
    weights = np.exp(scaled)
    sums: NDArray[np.float64] = np.cumsum(weights)
    return sums / float(sums[-1])

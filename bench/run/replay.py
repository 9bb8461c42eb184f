"""How much logits move with the shape of the decode, and what a difference between two arms' tokens was worth.

Both arms are replayed on one and the same prefix (teacher-forced), outside every timed window. It grades nothing: it
writes the gaps and the measured noise, and the judge compares them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from pti_loop.beginning import Beginning
from pti_loop.engine import Context, prefill
from pti_loop.sampling import TWINS, Sampler, cumulative, uniform

_TOP = 4
"""The noise of a gap is taken over all pairs of the most likely tokens, not over one pair only."""


@dataclass(frozen=True)
class Shape:
    """How an arm decodes: `width` sequences in step (`sequences`), or windows of one sequence (`tokens`)."""

    width: int
    layout: str
    phase: int = 0
    """Length of the first window, where it is not the width: which row of its window a position is rounds it too."""

    @property
    def phases(self) -> list[Shape]:
        """The shape with every row of a window as the first position."""
        return [replace(self, phase=phase) for phase in range(self.width if self.layout == "tokens" else 1)]


def replay(ctx: Context, prompt: Sequence[int], tokens: Sequence[int], shape: Shape,
           beginning: Beginning | None = None) -> Iterator[np.ndarray]:  # fmt: skip
    """Logits float32 (n_vocab,) before each token of the answer, decoded in this shape with the given tokens.

    Row k predicts `tokens[k]`; row 0 comes from the prefill, which takes up a `beginning` as a run does.
    """
    ctx.clear()
    prefill(ctx, prompt, 0, held=beginning.take_up(ctx, prompt, 0) if beginning else 0)
    yield ctx.logits()[0].copy()
    step = 1
    if shape.layout == "sequences":
        for sequence in range(1, shape.width):
            ctx.copy(0, sequence)
    else:
        step = shape.width
    starts = sorted({0, *range(shape.phase, len(tokens) - 1, step)})
    for start, end in pairwise([*starts, len(tokens) - 1]):
        piece = list(tokens[start:end])
        base = len(prompt) + start
        if shape.layout == "sequences":
            ctx.decode(piece * shape.width, [base] * shape.width, range(shape.width), None)
            yield ctx.logits()[0].copy()
        else:
            ctx.decode(piece, range(base, base + len(piece)), [0] * len(piece), None)
            yield from ctx.logits().copy()


class KeptRows:
    """Rows of the replays of one text, since several arms are compared on it: each shape of a context decodes it once.

    Rows of another text take their place. What does not fit into `most` bytes is decoded whenever it is asked for.
    """

    def __init__(self, beginning: Beginning | None = None, most: int = 512 << 20) -> None:
        self._beginning, self.most, self._left = beginning, most, most
        self._text: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
        self._rows: dict[tuple[int, Shape], list[np.ndarray]] = {}

    def replay(self, ctx: Context, prompt: Sequence[int], tokens: Sequence[int], shape: Shape) -> Iterator[np.ndarray]:
        """As the function of that name. The contexts that are asked for stay open meanwhile."""
        text, key = (tuple(prompt), tuple(tokens)), (id(ctx), shape)
        if text != self._text:
            self._text, self._rows, self._left = text, {}, self.most
        if key not in self._rows:
            size = len(tokens) * ctx.n_vocab * np.dtype(np.float32).itemsize
            if size > self._left:
                return replay(ctx, prompt, tokens, shape, self._beginning)
            self._left -= size
            self._rows[key] = list(replay(ctx, prompt, tokens, shape, self._beginning))
        return iter(self._rows[key])


@dataclass
class Comparison:
    """Two replays of one prefix, position by position. Lists are as long as the answer."""

    logit_noise: list[float]
    cdf_noise: list[float]
    baseline_gap: list[float]
    """How far the baseline's replay is from saying the arm's token, at each position."""
    arm_gap: list[float]
    """How far the arm's replay is from saying the baseline's token."""
    disagrees: list[bool]
    """Whether the arm's replay says another token than the one given."""

    def worst_gap(self) -> float:
        """Largest gap among the positions where the replays disagree; 0 when there are none."""
        pairs = zip(self.baseline_gap, self.arm_gap, self.disagrees, strict=True)
        return max((max(left, right) for left, right, differs in pairs if differs), default=0.0)


def compare(baseline: Iterable[np.ndarray], arm: Iterable[np.ndarray], prompt: Sequence[int], tokens: Sequence[int], *,
            sampler: Sampler, answer: int, first: tuple[int, int] | None = None) -> Comparison:
    """Two replays of `tokens` behind a prompt, row by row, as `sampler` draws from them, with its seed.

    `first` is (position, token) where the arm's own text left them. There the gaps are those to that token; elsewhere,
    to what the arm's replay says on the given prefix. At temperature 0 a gap is in logits, penalties among them; above,
    it is the distance of the draw's random number to the interval of the cumulative distribution that would have given
    the other token.
    """
    result = Comparison([], [], [], [], [])
    temperature, seed = sampler.temperature, sampler.seed
    rows = zip(baseline, arm, tokens, strict=True)
    for position, (left, right, token) in enumerate(rows):
        text = [*prompt, *tokens[:position]] if sampler.reads_text else ()
        left, right = (sampler.penalised(row, position, text) for row in (left, right))
        result.logit_noise.append(_pair_noise(left, right))
        if temperature == 0:
            drawn = int(right.argmax())
            rival = first[1] if first and first[0] == position else drawn
            gaps = _logit_gap(left, token, rival), _logit_gap(right, rival, token)
        else:
            u = uniform(seed, answer * TWINS, position)
            left_cdf, right_cdf = (cumulative(sampler.chain.cut(row), temperature) for row in (left, right))
            result.cdf_noise.append(float(np.abs(left_cdf - right_cdf).max()))
            drawn = min(int(np.searchsorted(right_cdf, u, side="right")), len(right_cdf) - 1)
            rival = first[1] if first and first[0] == position else drawn
            gaps = _cdf_gap(left_cdf, u, rival), _cdf_gap(right_cdf, u, int(token))
        result.baseline_gap.append(gaps[0])
        result.arm_gap.append(gaps[1])
        result.disagrees.append(drawn != token)
    return result


def _pair_noise(left: np.ndarray, right: np.ndarray) -> float:
    """Largest move of a difference between two of the most likely tokens' logits."""
    top = np.argpartition(left, -_TOP)[-_TOP:]
    moved = (left[top] - right[top]).astype(np.float64)
    return float(moved.max() - moved.min())


def _logit_gap(row: np.ndarray, ahead: int, behind: int) -> float:
    return float(row[ahead]) - float(row[behind])


def _cdf_gap(cdf: np.ndarray, u: float, token: int) -> float:
    """Distance of u to the interval of the cumulative distribution that belongs to `token`; 0 inside it."""
    low = float(cdf[token - 1]) if token else 0.0
    return max(low - u, u - float(cdf[token]), 0.0)

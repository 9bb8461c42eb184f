"""What a row of logits goes through before a token is drawn: penalties for what was said, and cuts of the unlikely.

The order and every rule is llama.cpp's own default (`src/llama-sampler.cpp`, `common/common.h`): penalties, top-k,
top-p, min-p, and the temperature behind them, so that the cuts are made at temperature 1. Of two logits that are equal
the lower id comes first. It knows nothing about random numbers, engines or loops.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

_FIRST, _MORE = 256, 8
"""Of the likeliest tokens so many are put in order for top-p, and so many times more where they are too few."""
_NOTHING: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Chain:
    """Usual values leave a row as it is."""

    top_k: int = 0
    """Tokens that are kept, the likeliest; 0 keeps all."""
    top_p: float = 1.0
    """Probability that the likeliest tokens, which are kept, have at least together; 1 keeps all."""
    min_p: float = 0.0
    """Share of the likeliest token's probability that a kept one has at least."""
    repeat_penalty: float = 1.0
    """What the logit of a token that was said is divided by where it is above 0, else multiplied by."""
    frequency_penalty: float = 0.0
    """What is taken from a logit for each time that its token was said."""
    presence_penalty: float = 0.0
    """What is taken from a logit whose token was said at all."""
    repeat_last_n: int = 64
    """Tokens of prompt and answer that count as said, the newest; -1 are all, 0 none."""

    @property
    def reads_text(self) -> bool:
        """Whether what is drawn depends on the text before it, beyond its logits."""
        penalties = (self.repeat_penalty, self.frequency_penalty, self.presence_penalty)
        return self.repeat_last_n != 0 and penalties != (1.0, 0.0, 0.0)

    @property
    def cuts(self) -> bool:
        """Whether it takes tokens away."""
        return self.top_k > 0 or self.top_p < 1 or self.min_p > 0

    def as_dict(self) -> dict[str, float]:
        """By name."""
        return asdict(self)

    def penalised(self, logits: NDArray[np.float32], text: Sequence[int]) -> NDArray[np.float32]:
        """Logits float32 (n_vocab,) behind a text, prompt and answer: the row itself where nothing is penalised."""
        if not self.reads_text:
            return logits
        said = Counter(text if self.repeat_last_n < 0 else text[-self.repeat_last_n :])
        tokens = np.fromiter(said, dtype=np.intp, count=len(said))
        counts = np.fromiter(said.values(), dtype=np.float32, count=len(said))
        row = np.array(logits, dtype=np.float32)
        own = row[tokens]
        by = np.float32(self.repeat_penalty)
        own = np.where(own > 0, own / by, own * by)
        row[tokens] = own - counts * np.float32(self.frequency_penalty) - np.float32(self.presence_penalty)
        return row

    def cut(self, row: NDArray[np.float32]) -> NDArray[np.float32]:
        """Penalised logits float32 (n_vocab,), minus infinity where a token is cut; the row itself where none is."""
        if not self.cuts:
            return row
        row = np.asarray(row)
        kept: NDArray[np.intp] = largest(row, self.top_k) if 0 < self.top_k < len(row) else np.arange(len(row))
        if self.top_p < 1:
            kept = kept[nucleus(row[kept], self.top_p)]
        if self.min_p > 0:
            own = row[kept].astype(np.float64)
            kept = kept[own >= own.max() + math.log(self.min_p)]
        left = np.full_like(row, -np.inf)
        left[kept] = row[kept]
        return left


def largest(values: NDArray[np.float32], count: int) -> NDArray[np.intp]:
    """Places of the `count` largest of (n,) values, ascending; of equal ones the first."""
    least = np.partition(values, len(values) - count)[len(values) - count]
    above = np.flatnonzero(values > least)
    equal = np.flatnonzero(values == least)[: count - len(above)]
    return np.sort(np.concatenate([above, equal]))


def nucleus(values: NDArray[np.float32], share: float) -> NDArray[np.intp]:
    """Places, ascending, of the fewest of (n,) logits, from the largest on, with that share of the probability."""
    weights = np.exp(values.astype(np.float64) - float(values.max()))
    goal, size = share * float(weights.sum()), min(_FIRST, len(values))
    while True:
        top = largest(values, size) if size < len(values) else np.arange(len(values))
        ordered = top[np.argsort(-values[top], kind="stable")]
        sums = np.cumsum(weights[ordered])
        if sums[-1] >= goal or size == len(values):
            break
        size = min(size * _MORE, len(values))
    count = int(np.searchsorted(sums, goal, side="left")) + 1
    return np.sort(ordered[:count])

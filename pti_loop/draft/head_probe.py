"""Which token does a nextn head speak about? Measured, not assumed: both pairings of token and hidden state are tried.

Fed with the state before a token (t + 2), a head is a drafter. A head that only works with the token's own state says
what the trunk has just said (t + 1), and has nothing to add. It knows nothing about loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pti_loop.engine import Context, Head

LONGEST = 256
SURE = 4.0
"""Standard errors by which the other pairing must be ahead before a head counts as no drafter."""


@dataclass(frozen=True)
class Pairing:
    """How often the head said the trunk's own choice, fed either way, over `n` positions."""

    t_plus_2: float
    t_plus_1: float
    n: int

    @property
    def drafts(self) -> bool:
        """Whether the head is worth asking as a drafter: not unless fed with a state that only later tokens have."""
        share = (self.t_plus_1 + self.t_plus_2) / 2
        error = (2 * share * (1 - share) / max(self.n, 1)) ** 0.5
        return bool(self.t_plus_1 - self.t_plus_2 <= SURE * error)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a record."""
        return asdict(self)


def pairing(trunk: Context, head: Head, tokens: Sequence[int]) -> Pairing:
    """Compare the head with the trunk's argmax on one text, teacher-forced. Both are cleared before and after."""
    tokens = list(tokens)[:LONGEST]
    said, hidden = [], []
    trunk.clear()
    for place, token in enumerate(tokens):
        trunk.decode([token], [place], [0], None)
        said += trunk.greedy()
        hidden.append(trunk.hidden()[-1].copy())
    trunk.clear()
    before = np.stack([np.zeros_like(hidden[0]), *hidden[:-1]])
    first, second = (_agreement(head, tokens, rows, said) for rows in (before, np.stack(hidden)))
    return Pairing(first, second, n=len(tokens) - 1)


def _agreement(head: Head, tokens: list[int], rows: np.ndarray, said: list[int]) -> float:
    """Share of positions, but for the first, at which the head says what the trunk says behind the same token."""
    head.drop(0)
    right = 0
    for place, token in enumerate(tokens):
        head.decode_after([token], [place], [0], rows[place : place + 1], [0])
        right += place > 0 and head.greedy()[0] == said[place]
    head.drop(0)
    return right / max(len(tokens) - 1, 1)

"""Trunk and nextn head of a model in llama.cpp, both teacher-forced: scores of every position of a text.

It knows nothing about drafting in a loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pti_loop.engine import ContextSpec
from pti_loop.llama.model import LlamaModel

CHUNK = 512


class NextnModel:
    """A model with one nextn head, its trunk's context and its head's. Raises `Unsupported` when it has no head."""

    def __init__(self, path: str | Path, n_ctx: int = 1024, threads: int = 1, n_gpu_layers: int = 0) -> None:
        spec = ContextSpec(n_ctx, 1, n_batch=CHUNK, n_ubatch=CHUNK, threads=threads, n_outputs=CHUNK, hidden=True)
        self.model = LlamaModel(path, n_gpu_layers=n_gpu_layers, load_mtp=True)
        self._trunk = self.model.context(spec)
        self._head = self.model.head(self._trunk, spec)

    def trunk(self, tokens: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Scores (n, n_vocab) for the token after each of `tokens`, and hidden states (n, n_embd)."""
        self._trunk.clear()
        parts = []
        for start in range(0, len(tokens), CHUNK):
            piece = tokens[start : start + CHUNK]
            self._trunk.decode(piece, range(start, start + len(piece)), [0] * len(piece), None)
            parts.append((self._trunk.scores().copy(), self._trunk.hidden().copy()))
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def head(self, tokens: Sequence[int], hidden: np.ndarray) -> np.ndarray:
        """Scores (n, n_vocab) of the head. Row t is given token t and the hidden state of t - 1, zeros for row 0.

        So row t guesses what the trunk will say at row t, one decode earlier.
        """
        self._head.clear()
        before = np.concatenate([np.zeros((1, hidden.shape[1]), np.float32), hidden[:-1]])
        parts = []
        for start in range(0, len(tokens), CHUNK):
            piece, rows = tokens[start : start + CHUNK], before[start : start + CHUNK]
            places = range(start, start + len(piece))
            self._head.decode_after(piece, places, [0] * len(piece), rows, range(len(piece)))
            parts.append(self._head.scores().copy())
        return np.concatenate(parts)

    def close(self) -> None:
        """Free contexts and weights."""
        self._head.close()
        self._trunk.close()
        self.model.close()

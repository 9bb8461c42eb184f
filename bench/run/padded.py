"""A context that decodes no row alone: beside a single one it decodes another, in a sequence that nobody reads.

Kernels round by how many rows a decode has, and many builds have one arithmetic for a row alone and one for all others.
Behind this context plain decoding and guess-and-verify share theirs, so that they have to say the same tokens. It is as
strict as the engine's context in its place. Nothing that is timed runs on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pti_loop.engine import ContextSpec, Model

LEAST = 2
"""Rows of the narrowest decode."""


class Padded:
    """A context of `spec` with one more sequence, for the other row."""

    def __init__(self, model: Model, spec: ContextSpec) -> None:
        sequences = spec.n_seq_max + 1
        self.inner = model.context(replace(spec, n_seq_max=sequences, n_outputs=max(spec.n_outputs, sequences)))
        self.spec = replace(self.inner.spec, n_seq_max=spec.n_seq_max)
        self.n_vocab, self.clock = self.inner.n_vocab, self.inner.clock
        self.logits, self.greedy, self.copy, self.drop = (self.inner.logits, self.inner.greedy, self.inner.copy,
                                                          self.inner.drop)  # fmt: skip
        self.rewind, self.length = self.inner.rewind, self.inner.length
        self._other, self._rows = spec.n_seq_max, 0

    def decode(self, tokens: Sequence[int], positions: Sequence[int], sequences: Sequence[int],
               outputs: Sequence[int] | None = None) -> None:  # fmt: skip
        """As the engine's; a single row gets company, which is no output. Raises `EngineError`."""
        self._rows = len(tokens)
        if self._rows < LEAST:
            place = self.inner.length(self._other)
            if place + 1 >= self.spec.n_ctx:
                self.inner.drop(self._other)
                place = 0
            outputs = list(range(self._rows)) if outputs is None else outputs
            tokens, positions = [*tokens, tokens[0]], [*positions, place]
            sequences = [*sequences, self._other]
        self.inner.decode(tokens, positions, sequences, outputs)

    def hidden(self) -> np.ndarray:
        """Float32 (n_rows, n_embd) of the rows that were asked for. Raises `EngineError`."""
        return self.inner.hidden()[: self._rows]

    def clear(self) -> None:
        """Forget all sequences, the other row's too."""
        self.inner.clear()

    def facts(self) -> dict[str, Any]:
        """As the engine's, with its one more sequence."""
        return self.inner.facts()

    def close(self) -> None:
        """As the engine's."""
        self.inner.close()

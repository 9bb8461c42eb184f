"""A context that evaluates a prompt once and then copies it, for many short runs behind one prompt.

It stands in for a context of the engine with the same promises. Nothing that is timed runs on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pti_loop.engine import ContextSpec, Model


class Recall:
    """A context of `spec` with one more sequence, which keeps the prompt that was evaluated last.

    A decode into an empty sequence from position 0 is a prompt. Where it equals the kept one, a whole copy takes its
    place, which every kind of memory can make.
    """

    def __init__(self, model: Model, spec: ContextSpec) -> None:
        sequences = spec.n_seq_max + 1
        self.inner = model.context(replace(spec, n_seq_max=sequences, n_outputs=max(spec.n_outputs, sequences)))
        self.spec = replace(self.inner.spec, n_seq_max=spec.n_seq_max)
        self.n_vocab, self.clock = self.inner.n_vocab, self.inner.clock
        self._spare = spec.n_seq_max
        self._kept: tuple[Any, ...] | None = None
        self._rows = np.zeros((0, self.n_vocab), dtype=np.float32)
        self._recalled: tuple[Any, ...] | None = None
        """Arguments of the last decode when a copy took its place."""

    def decode(self, tokens: Sequence[int], positions: Sequence[int], sequences: Sequence[int],
               outputs: Sequence[int] | None = None) -> None:
        """As the engine's, but for prompts."""
        self._recalled = None
        sequence = sequences[0]
        if positions[0] or self.inner.length(sequence) or any(other != sequence for other in sequences):
            self.inner.decode(tokens, positions, sequences, outputs)
            return
        key = (tuple(tokens), None if outputs is None else tuple(outputs))
        if key != self._kept:
            self.inner.drop(self._spare)
            self.inner.decode(tokens, positions, [self._spare] * len(tokens), outputs)
            wanted = outputs is None or len(outputs)
            self._rows = self.inner.logits().copy() if wanted else self._rows[:0]
            self._kept = key
        self.inner.copy(self._spare, sequence)
        self._recalled = (tokens, positions, sequences, outputs)

    def logits(self) -> np.ndarray:
        """Float32 (n_outputs, n_vocab) of the last decode."""
        return self._rows if self._recalled else self.inner.logits()

    def greedy(self) -> list[int]:
        """Argmax of every output row."""
        return self._rows.argmax(axis=1).tolist() if self._recalled else self.inner.greedy()

    def clear(self) -> None:
        """Forget all sequences but the kept one."""
        for sequence in range(self.spec.n_seq_max):
            self.inner.drop(sequence)

    def copy(self, source: int, target: int) -> None:
        """As the engine's."""
        self.inner.copy(source, target)

    def drop(self, sequence: int) -> None:
        """As the engine's."""
        self.inner.drop(sequence)

    def rewind(self, sequence: int, position: int) -> bool:
        """As the engine's."""
        return self.inner.rewind(sequence, position)

    def length(self, sequence: int) -> int:
        """As the engine's."""
        return self.inner.length(sequence)

    def facts(self) -> dict[str, Any]:
        """As the engine's, with its one more sequence."""
        return self.inner.facts()

    def close(self) -> None:
        """As the engine's."""
        self.inner.close()

    def __getattr__(self, name: str) -> Any:
        """What else an engine's context has. The copy did not bring it, so the prompt is evaluated after all."""
        if self._recalled:
            arguments, self._recalled = self._recalled, None
            self.inner.drop(arguments[2][0])
            self.inner.decode(*arguments)
        return getattr(self.inner, name)

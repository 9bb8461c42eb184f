"""The batch of a `llama_decode`, laid out in numpy arrays. It knows nothing about what is decoded."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from pti_loop.engine import EngineError


class Batch:
    """A `llama_batch` over numpy arrays of fixed size: filling a row costs a list assignment, no allocation.

    With `n_embd` every row has a vector beside its token, which is to be written into `embd` (size, n_embd).
    """

    def __init__(self, lib: ModuleType, size: int, n_embd: int = 0) -> None:
        self.size = size
        self.embd: NDArray[np.float32] = np.zeros((size, n_embd), dtype=np.float32)
        self.token = np.zeros(size, dtype=np.int32)
        self.pos = np.zeros(size, dtype=np.int32)
        self.n_seq = np.ones(size, dtype=np.int32)
        self.seq = np.zeros(size, dtype=np.int32)
        self.out = np.zeros(size, dtype=np.int8)
        base, step = self.seq.ctypes.data, self.seq.itemsize
        self._pointers = np.array([base + i * step for i in range(size)], dtype=np.uint64)
        fields = {name: kind for name, kind in lib.llama_batch._fields_}
        self.struct = lib.llama_batch(
            n_tokens=0,
            token=ctypes.cast(self.token.ctypes.data, fields["token"]),
            embd=ctypes.cast(self.embd.ctypes.data, fields["embd"]) if n_embd else None,
            pos=ctypes.cast(self.pos.ctypes.data, fields["pos"]),
            n_seq_id=ctypes.cast(self.n_seq.ctypes.data, fields["n_seq_id"]),
            seq_id=ctypes.cast(self._pointers.ctypes.data, fields["seq_id"]),
            logits=ctypes.cast(self.out.ctypes.data, fields["logits"]),
        )

    def fill(self, tokens: Sequence[int], positions: Sequence[int], sequences: Sequence[int],
             outputs: Sequence[int] | None) -> int:
        """Write the rows; returns how many outputs they ask for. Raises `EngineError` when there are too many."""
        n = len(tokens)
        if n > self.size:
            raise EngineError(f"a batch of {n} tokens is larger than n_batch {self.size}; set engine.n_batch={n}")
        self.token[:n] = tokens
        self.pos[:n] = positions
        self.seq[:n] = sequences
        if outputs is None:
            self.out[:n] = 1
        else:
            self.out[:n] = 0
            self.out[list(outputs)] = 1
        self.struct.n_tokens = n
        return n if outputs is None else len(outputs)

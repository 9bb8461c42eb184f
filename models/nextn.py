"""Trunk and nextn head of a model in llama.cpp, both teacher-forced: scores of every position of a text.

The trunk runs in an ordinary context that also gives its hidden states, the head in a context of type MTP that takes
them. Source: llama.cpp's `common/speculative.cpp` (draft-mtp). It knows nothing about drafting in a loop.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from pti_loop import llama
from pti_loop.engine import EngineError

CHUNK = 512


class NextnModel:
    """A model with one nextn head, its trunk's context and its head's. Raises `EngineError` when it has no head."""

    def __init__(self, path, n_ctx: int = 1024, threads: int = 1, n_gpu_layers: int = 0) -> None:
        self.lib = llama.library()
        from llama_cpp import llama_cpp_ext

        self.ext = llama_cpp_ext
        self.model = llama.LlamaModel(path, n_gpu_layers=n_gpu_layers, load_mtp=True)
        if self.model.n_nextn != 1:
            raise EngineError(f"{path} has {self.model.n_nextn} nextn layers, one is needed")
        self.n_embd = self.lib.llama_model_n_embd(self.model._model)
        self._trunk = self._context(n_ctx, threads, self.lib.LLAMA_CONTEXT_TYPE_DEFAULT)
        self._head = self._context(n_ctx, threads, self.lib.LLAMA_CONTEXT_TYPE_MTP)
        self.ext.llama_set_embeddings_nextn(self._trunk, True, False)

    def _context(self, n_ctx: int, threads: int, kind: int):
        params = self.lib.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = n_ctx, CHUNK, CHUNK
        params.n_threads = params.n_threads_batch = threads
        params.ctx_type = kind
        if kind == self.lib.LLAMA_CONTEXT_TYPE_MTP:
            params.ctx_other = self._trunk
        ctx = self.lib.llama_init_from_model(self.model._model, params)
        if not ctx:
            raise EngineError(f"llama.cpp makes no context of type {kind}: {llama.log().last_error()}")
        return ctx

    def trunk(self, tokens: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Scores (n, n_vocab) for the token after each of `tokens`, and hidden states (n, n_embd)."""
        self.lib.llama_memory_clear(self.lib.llama_get_memory(self._trunk), True)
        parts = []
        for start in range(0, len(tokens), CHUNK):
            piece = tokens[start : start + CHUNK]
            self._decode(self._trunk, piece, start, None)
            hidden = self._read(self.ext.llama_get_embeddings_nextn(self._trunk), len(piece), self.n_embd)
            parts.append((self._read(self.lib.llama_get_logits(self._trunk), len(piece), self.model.n_vocab), hidden))
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def head(self, tokens: Sequence[int], hidden: np.ndarray) -> np.ndarray:
        """Scores (n, n_vocab) of the head. Row t is given token t and the hidden state of t - 1, zeros for row 0.

        So row t guesses what the trunk will say at row t, one decode earlier.
        """
        self.lib.llama_memory_clear(self.lib.llama_get_memory(self._head), True)
        before = np.concatenate([np.zeros((1, self.n_embd), np.float32), hidden[:-1]])
        parts = []
        for start in range(0, len(tokens), CHUNK):
            piece = tokens[start : start + CHUNK]
            self._decode(self._head, piece, start, before[start : start + CHUNK])
            parts.append(self._read(self.lib.llama_get_logits(self._head), len(piece), self.model.n_vocab))
        return np.concatenate(parts)

    def _decode(self, ctx, tokens, start: int, hidden: np.ndarray | None) -> None:
        n = len(tokens)
        batch = self.lib.llama_batch_init(n, 0, 1)
        batch.n_tokens = n
        for i, token in enumerate(tokens):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = token, start + i, 1, 1
            batch.seq_id[i][0] = 0
        if hidden is not None:
            hidden = np.ascontiguousarray(hidden, dtype=np.float32)
            batch.embd = hidden.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        code = self.lib.llama_decode(ctx, batch)
        batch.embd = None  # it is numpy's memory, which llama_batch_free must not free
        self.lib.llama_batch_free(batch)
        if code != 0:
            raise EngineError(f"llama_decode of {n} tokens returned {code}: {llama.log().last_error()}")

    def _read(self, pointer, rows: int, columns: int) -> np.ndarray:
        if not pointer:
            raise EngineError("the last decode left no output")
        return np.ctypeslib.as_array(pointer, shape=(rows, columns)).copy()

    def close(self) -> None:
        """Free contexts and weights."""
        for ctx in (self._head, self._trunk):
            self.lib.llama_free(ctx)
        self.model.close()

"""The nextn head of a model in llama.cpp: a context of type MTP beside the trunk's. Knows nothing about drafting.

Source of how it is fed: llama.cpp's `common/speculative.cpp` (draft-mtp).
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pti_loop.engine import ContextSpec, EngineError
from pti_loop.llama.context import LlamaContext
from pti_loop.llama.loaded import Loaded


class LlamaHead(LlamaContext):
    """One head, with an attention memory of its own for as many sequences as its spec says."""

    def __init__(self, model: Loaded, trunk: LlamaContext, spec: ContextSpec) -> None:
        self._trunk = trunk
        super().__init__(model, spec)
        self._keep_hidden(every_row=False)

    def _n_beside(self) -> int:
        return self.model.n_embd_out

    def _params(self, lib: ModuleType) -> Any:
        params = super()._params(lib)
        params.ctx_type, params.ctx_other = lib.LLAMA_CONTEXT_TYPE_MTP, self._trunk.handle
        return params

    def decode_after(self, tokens: Sequence[int], positions: Sequence[int], sequences: Sequence[int],
                     hidden: NDArray[np.float32], outputs: Sequence[int]) -> None:  # fmt: skip
        """One decode of the head: row i is a token, and float32 (n_rows, n_embd) the states of the positions before.

        Raises `EngineError` on any return code but 0.
        """
        self._fill(tokens, positions, sequences, outputs)
        self._batch.embd[: len(tokens)] = hidden
        self._run(len(tokens))

    def decode(self, tokens: Sequence[int], positions: Sequence[int], sequences: Sequence[int],
               outputs: Sequence[int] | None = None) -> None:  # fmt: skip
        """A head decodes nothing without hidden states. Raises `EngineError`."""
        raise EngineError("a nextn head needs the hidden states of the trunk; use decode_after")

    def hidden(self) -> NDArray[np.float32]:
        """View of float32 (n_outputs, n_embd): the head's own hidden states at the output rows.

        Raises `EngineError` when the last decode left none.
        """
        return self._hidden(self._outputs)

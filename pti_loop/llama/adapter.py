"""A LoRA adapter on a context of llama.cpp. Knows nothing about how one is trained or what it is good for."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from pti_loop.engine import EngineError
from pti_loop.llama.library import library, log

if TYPE_CHECKING:
    from pti_loop.llama.model import LlamaContext, LlamaModel


class Adapter:
    """An adapter loaded for a model. Freed with the model. Raises `EngineError` when llama.cpp refuses the file."""

    def __init__(self, model: LlamaModel, path: Path) -> None:
        self._lib, mark = library(), log().mark()
        self._handle = self._lib.llama_adapter_lora_init(model._model, str(path).encode())
        if not self._handle:
            raise EngineError(f"llama.cpp does not load the adapter {path}: {log().last_error(mark)}")

    def attach(self, ctx: LlamaContext, scale: float = 1.0) -> None:
        """Decode with the adapter from here on; scale 0 takes it off."""
        count = 1 if scale else 0
        handles = (self._lib.llama_adapter_lora_p_ctypes * 1)(self._handle)
        if code := self._lib.llama_set_adapters_lora(ctx._ctx, handles, count, (ctypes.c_float * 1)(scale)):
            raise EngineError(f"llama.cpp does not take the adapter (return code {code})")

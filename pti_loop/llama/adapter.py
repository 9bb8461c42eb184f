"""A LoRA adapter that llama.cpp has loaded. Knows nothing about how one is trained or what it is good for."""

from __future__ import annotations

from pathlib import Path

from pti_loop.engine import EngineError
from pti_loop.llama.library import library, log
from pti_loop.llama.loaded import Loaded


class Adapter:
    """An adapter of `model`, for `LlamaContext.attach`. Freed with the model.

    Raises `EngineError` when llama.cpp refuses the file.
    """

    def __init__(self, model: Loaded, path: Path) -> None:
        mark = log().mark()
        self.handle = library().llama_adapter_lora_init(model.handle, str(path).encode())
        """llama.cpp's `llama_adapter_lora *`, as the binding gives it."""
        if not self.handle:
            raise EngineError(f"llama.cpp does not load the adapter {path}: {log().last_error(mark)}")

"""What the parts of this folder may know of a model that llama.cpp has loaded. Calls nothing, and frees nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Loaded:
    """A loaded model for its contexts, head and adapters. The `LlamaModel` that made it frees it, after all of them."""

    handle: Any
    """llama.cpp's `llama_model *`, as the binding gives it."""
    n_vocab: int
    n_layer: int
    """Layers that plain decoding runs."""
    n_embd_out: int
    """Length of a hidden state, in floats."""
    end_tokens: tuple[int, ...]
    """End-of-generation tokens, ascending."""
    layers_offloaded: int
    """Layers that llama.cpp says it put on a GPU."""
    split_mode: str = "layer"
    """How it lies on several GPUs."""
    main_gpu: int = 0
    """The GPU that it lies on where it is not split."""
    tensor_split: str = ""
    """Shares of the GPUs, as 3/1; empty where llama.cpp divides it."""
    repack: bool = True
    """Whether its weights may lie in an order of a backend's own."""
    load_s: float = 0.0
    """Seconds that llama.cpp took to load it, a repacking included."""

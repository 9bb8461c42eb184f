"""Bytes that a model's decode step reads and its sequences occupy, from metadata alone.

Follows llama.cpp's own sizing (llama-hparams.cpp, llama-kv-cache.cpp, llama-memory-recurrent.cpp of the pinned build).
It knows nothing about devices, and nothing about compute buffers, which depend on the build.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Protocol

from pti_loop.gguf.header import TENSOR_TYPES, ModelFileError, Tensor, Value

_BLOCK = re.compile(r"^blk\.([0-9]{1,9})\.")
_LOOKED_UP = ("position_embd.weight", "token_types.weight", "per_layer_token_embd.weight")
"""Tables from which a step takes single rows."""
_INTERVAL = ("qwen3next", "qwen35", "qwen35moe", "qwen4exp", "minimax-01")
"""Hybrids whose every n-th layer has attention; the others say it by a head count of 0."""
_STATE_KEYS = ("ssm.state_size", "shortconv.l_cache", "wkv.head_size", "kda.head_dim")
_F32 = 4


class Described(Protocol):
    """The part of `GgufFile` that the formulas need."""

    @property
    def tensors(self) -> tuple[Tensor, ...]: ...

    @property
    def architecture(self) -> str: ...

    @property
    def n_layer(self) -> int: ...

    def key(self, suffix: str) -> Value | None: ...

    def number(self, suffix: str, default: int = 0) -> int: ...


def type_bytes(name: str) -> Fraction:
    """Bytes of one element of a cache or tensor type, by ggml's name in any case; exact, since blocks may be odd.

    Raises `ModelFileError` when there is no such type.
    """
    for known, block, size in TENSOR_TYPES.values():
        if known == name.upper():
            return Fraction(size, block)
    raise ModelFileError(f"there is no tensor type '{name}'")


def step_bytes(model: Described) -> int:
    """Weights that one decode step of one token reads.

    All tensors, except: a token-embedding table beside a separate output matrix and other tables that are only looked
    up, the layers of a multi-token-prediction head, and experts that are not chosen. With tied embeddings the table is
    the output matrix, so it is read whole. A wider step reads more experts than this.
    """
    names = {tensor.name for tensor in model.tensors}
    skipped = set(_LOOKED_UP) | ({"token_embd.weight"} if "output.weight" in names else set())
    experts = model.number("expert_count")
    total = Fraction(0)
    for tensor in model.tensors:
        block = _BLOCK.match(tensor.name)
        layer = int(block[1]) if block else None
        if tensor.name in skipped or (layer is not None and layer >= model.n_layer):
            continue
        if _is_expert(tensor, experts):
            total += tensor.bytes * Fraction(_per_layer(model, "expert_used_count", layer or 0), experts)
        else:
            total += tensor.bytes
    return round(total)


def _is_expert(tensor: Tensor, experts: int) -> bool:
    return experts > 0 and "_exps." in tensor.name and tensor.shape[-1] == experts


def _per_layer(model: Described, key: str, layer: int, default: int = 0) -> int:
    """A key that is one number for all layers or an array of one number a layer."""
    value = model.key(key)
    if isinstance(value, tuple):
        return int(value[layer]) if layer < len(value) else default
    return int(value) if isinstance(value, (int, float)) else default


def _heads_kv(model: Described, layer: int) -> int:
    heads = _per_layer(model, "attention.head_count", layer)
    return _per_layer(model, "attention.head_count_kv", layer, heads)


def _head_length(model: Described, which: str) -> int:
    heads = _per_layer(model, "attention.head_count", 0)
    if not heads:
        return 0
    return model.number(f"attention.{which}_length", model.number("embedding_length") // heads)


def has_state(model: Described) -> bool:
    """Whether sequences of this model have a recurrent state."""
    return any(model.key(key) for key in _STATE_KEYS)


def recurrent_layers(model: Described) -> set[int]:
    """Layers with a recurrent state instead of (falcon-h1: besides) attention."""
    if not has_state(model) and model.architecture != "minimax-01":
        return set()
    layers = range(model.n_layer)
    flags = model.key("attention.recurrent_layers")
    if isinstance(flags, tuple):
        return {layer for layer in layers if flags[layer]}
    if model.architecture in _INTERVAL:
        interval = model.number("full_attention_interval", 4)
        return {layer for layer in layers if (layer + 1) % interval}
    if model.architecture == "falcon-h1":
        return set(layers)
    without = {layer for layer in layers if _heads_kv(model, layer) == 0}
    if model.architecture.startswith("nemotron_h"):
        return {layer for layer in without if _per_layer(model, "feed_forward_length", layer) == 0}
    return without


def attention_layers(model: Described) -> list[int]:
    """Layers that keep keys and values of their own."""
    recurrent = recurrent_layers(model) if model.architecture != "falcon-h1" else set()
    last = model.n_layer
    if model.architecture == "gemma3n":
        last = 20
    elif model.key("attention.shared_kv_layers"):
        last -= model.number("attention.shared_kv_layers")
    return [layer for layer in range(min(last, model.n_layer)) if layer not in recurrent and _heads_kv(model, layer)]


def kv_bytes_per_token(model: Described, type_k: str, type_v: str) -> int:
    """Bytes of keys and values of one token of one sequence, in all layers that have attention."""
    length_k, length_v = _head_length(model, "key"), _head_length(model, "value")
    if model.key("attention.key_length_mla"):
        length_v = 0  # multi-head latent attention stores one compressed row and reads the values out of it
    heads = sum(_heads_kv(model, layer) for layer in attention_layers(model))
    return round(heads * (length_k * type_bytes(type_k) + length_v * type_bytes(type_v)))


def state_bytes_per_sequence(model: Described) -> int:
    """Bytes of recurrent state of one sequence: convolution rows and state matrix in float32, all recurrent layers."""
    return len(recurrent_layers(model)) * (_conv_elements(model) + _state_elements(model)) * _F32


def _conv_elements(model: Described) -> int:
    width = model.number("embedding_length")
    if model.key("wkv.head_size"):
        return model.number("token_shift_count", 2) * width
    if model.key("shortconv.l_cache"):
        return width * (model.number("shortconv.l_cache") - 1)
    kernel = model.number("ssm.conv_kernel")
    if model.key("kda.head_dim"):
        inner = _per_layer(model, "attention.head_count", 0) * model.number("kda.head_dim")
        return 3 * (kernel - 1 if kernel else 3) * inner
    channels = model.number("ssm.inner_size") + 2 * model.number("ssm.group_count") * model.number("ssm.state_size")
    return max(kernel - 1, 0) * channels


def _state_elements(model: Described) -> int:
    heads = _per_layer(model, "attention.head_count", 0)
    if model.key("wkv.head_size"):
        return model.number("embedding_length") * model.number("wkv.head_size")
    if model.key("kda.head_dim"):
        return model.number("kda.head_dim") ** 2 * heads
    if model.architecture == "minimax-01":
        return _head_length(model, "key") ** 2 * heads
    return model.number("ssm.state_size") * model.number("ssm.inner_size")


def note(model: Described) -> str:
    """Why the formulas may differ from what the engine allocates; empty when they are exact."""
    if model.key("attention.indexer.head_count"):
        return "sparse attention keeps an indexer cache besides keys and values, which is not counted"
    if model.key("attention.key_length_swa"):
        return "sliding-window layers have heads of another size, and are counted like the others"
    if model.key("attention.sliding_window"):
        return "sliding-window layers may be given fewer cells than the context has"
    if model.key("hyper_connection.count") or model.key("ple.layers"):
        return f"the architecture {model.architecture} keeps state that is not counted"
    return ""

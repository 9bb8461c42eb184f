"""The sizes that a GGUF file's metadata give, checked once before anything is computed from them.

A file may say anything: a text where a number belongs, a thousand million layers, an interval of 0. It knows which keys
are sizes and not what is made of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from pti_loop.gguf.header import ArrayLength, ModelFileError, Value

MOST = 2**31 - 1
"""What llama.cpp keeps them in."""
MOST_LAYERS = 512
"""llama.cpp's own bound. Where it is raised, a layer still has at least one tensor."""
_NUMBERS = (
    "block_count", "embedding_length", "context_length", "vocab_size", "nextn_predict_layers", "expert_count",
    "full_attention_interval", "token_shift_count", "wkv.head_size", "shortconv.l_cache", "ssm.conv_kernel",
    "ssm.inner_size", "ssm.group_count", "ssm.state_size", "kda.head_dim", "attention.key_length",
    "attention.value_length", "attention.key_length_mla", "attention.shared_kv_layers",
)  # fmt: skip
_PER_LAYER = (
    "expert_used_count", "attention.head_count", "attention.head_count_kv", "feed_forward_length",
    "attention.recurrent_layers",
)  # fmt: skip
_AT_LEAST_1 = ("full_attention_interval",)


def check_sizes(path: Path, metadata: Mapping[str, Value], tensors: int) -> None:
    """Raise `ModelFileError` where a size is none, or where `tensors` of them cannot hold so many layers."""
    architecture = metadata["general.architecture"]
    for suffix in (*_NUMBERS, *_PER_LAYER):
        value = metadata.get(f"{architecture}.{suffix}")
        if value is None:
            continue
        values = value if isinstance(value, tuple) and suffix in _PER_LAYER else (value,)
        for one in values:
            _check(path, f"{architecture}.{suffix}", one, int(suffix in _AT_LEAST_1),
                   flag=suffix == "attention.recurrent_layers")  # fmt: skip
    layers = _whole(metadata.get(f"{architecture}.block_count"))
    if layers > max(tensors, MOST_LAYERS):
        raise ModelFileError(f"{path} is damaged: {architecture}.block_count is {layers}, and it has {tensors} tensors")
    heads = _whole(metadata.get(f"{architecture}.nextn_predict_layers"))
    if heads >= layers:
        raise ModelFileError(f"{path} is damaged: {heads} of its {layers} layers predict further tokens, none decodes")
    flags = metadata.get(f"{architecture}.attention.recurrent_layers")
    if isinstance(flags, tuple) and len(flags) < layers - heads:
        raise ModelFileError(
            f"{path} is damaged: {architecture}.attention.recurrent_layers tells of {len(flags)} layers of {layers}"
        )


def _check(path: Path, key: str, value: object, least: int, flag: bool) -> None:
    shown = f"an array of {value.length}" if isinstance(value, ArrayLength) else repr(value)[:80]
    if not isinstance(value, (int, float)) or (isinstance(value, bool) and not flag):
        raise ModelFileError(f"{path} is damaged: {key} is {shown}, not a number")
    if not math.isfinite(value) or value != int(value) or not least <= value <= MOST:
        raise ModelFileError(f"{path} is damaged: {key} is {shown}, not a whole number from {least} to {MOST}")


def _whole(value: object) -> int:
    return int(value) if isinstance(value, (int, float)) else 0

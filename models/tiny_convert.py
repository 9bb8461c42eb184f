"""Turn a checkpoint of `pti-tiny` into a GGUF file. Reads safetensors and a tokenizer; needs no PyTorch.

    python -m models.tiny_convert CHECKPOINT.safetensors TOKENIZER.json OUT.gguf [--type Q8_0]
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from models.tiny_shape import Shape

END = "<|endoftext|>"
PRE_TOKENIZER = "qwen35"
QUANTIZED = ("token_embd", "attn_q", "attn_k", "attn_v", "attn_output", "attn_qkv", "attn_gate", "ssm_out", "ffn_gate",
             "ffn_up", "ffn_down", "eh_proj")  # fmt: skip


def tensor_name(name: str, shape: Shape) -> str:
    """Name in the file of a parameter of `TinyModel`."""
    name = name.replace(".mixer.", ".")
    if name.startswith("nextn."):
        name = f"blk.{shape.n_layer}.{name}"
    if name.endswith("ssm_conv1d"):
        return name + ".weight"
    if name.endswith("ssm_dt"):
        return name + ".bias"
    return name.replace("ssm_a_log", "ssm_a")


def add_shape(writer: gguf.GGUFWriter, shape: Shape) -> None:
    """What llama.cpp needs to know of the shape."""
    writer.add_block_count(shape.n_layer + 1)
    writer.add_nextn_predict_layers(1)
    writer.add_context_length(shape.n_ctx)
    writer.add_embedding_length(shape.n_embd)
    writer.add_feed_forward_length(shape.n_ff)
    writer.add_head_count(shape.n_head)
    writer.add_head_count_kv(shape.n_head_kv)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_rope_dimension_count(shape.n_rot)
    writer.add_rope_dimension_sections(shape.rope_sections)
    writer.add_rope_freq_base(shape.rope_base)
    writer.add_layer_norm_rms_eps(shape.eps)
    writer.add_full_attention_interval(shape.full_attention_interval)
    writer.add_ssm_conv_kernel(shape.n_conv)
    writer.add_ssm_state_size(shape.state_dim)
    writer.add_ssm_group_count(shape.n_key_heads)
    writer.add_ssm_time_step_rank(shape.n_value_heads)
    writer.add_ssm_inner_size(shape.value_dim)


def add_tokenizer(writer: gguf.GGUFWriter, tokenizer: Mapping[str, Any]) -> None:
    """Pieces and merges of a byte-level BPE as the library `tokenizers` writes them.

    Raises `ValueError` when the ids are not 0, 1, 2 and so on.
    """
    model = tokenizer["model"]
    pieces = sorted(model["vocab"], key=model["vocab"].get)
    if [model["vocab"][piece] for piece in pieces] != list(range(len(pieces))):
        raise ValueError("the tokenizer's ids have holes")
    kinds = [gguf.TokenType.CONTROL if piece == END else gguf.TokenType.NORMAL for piece in pieces]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(PRE_TOKENIZER)
    writer.add_token_list(pieces)
    writer.add_token_types(kinds)
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in model["merges"]])
    writer.add_eos_token_id(model["vocab"][END])
    writer.add_add_bos_token(False)


def convert(weights: Mapping[str, np.ndarray], shape: Shape, tokenizer: Mapping[str, Any], target: Path,
            kind: str = "Q8_0", facts: Mapping[str, str] | None = None) -> None:  # fmt: skip
    """Write `target`, whole or not at all. `weights` are a `TinyModel`'s parameters by name, matrices (rows, columns).

    Raises `ValueError` when vocabulary and embedding differ in size.
    """
    if len(tokenizer["model"]["vocab"]) != shape.n_vocab:
        raise ValueError(f"the tokenizer has {len(tokenizer['model']['vocab'])} pieces, the model {shape.n_vocab} rows")
    wanted = gguf.GGMLQuantizationType[kind]
    part = target.with_name(target.name + ".part")
    writer = gguf.GGUFWriter(part, "qwen35")
    writer.add_name(target.name.split(".")[0])
    for key, value in (facts or {}).items():
        writer.add_string(f"general.{key}", value)
    writer.add_file_type(gguf.LlamaFileType["MOSTLY_" + kind if kind != "F32" else "ALL_F32"])
    add_shape(writer, shape)
    add_tokenizer(writer, tokenizer)
    for parameter, trained in weights.items():
        values: np.ndarray = np.ascontiguousarray(trained, dtype=np.float32)
        if parameter.endswith("ssm_a_log"):
            values = -np.exp(values)
        name = tensor_name(parameter, shape)
        quantized = name.split(".")[-2] in QUANTIZED
        if quantized:
            writer.add_tensor(name, gguf.quants.quantize(values, wanted), raw_dtype=wanted)
        else:
            writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.replace(part, target)


def main(argv: list[str] | None = None) -> None:
    """Command line."""
    from safetensors import safe_open

    parser = argparse.ArgumentParser(prog="python -m models.tiny_convert", description=__doc__.split("\n")[0])
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--type", default="Q8_0", choices=["F32", "F16", "Q8_0"])
    options = parser.parse_args(argv)
    with safe_open(options.checkpoint, "numpy") as file:
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        facts = file.metadata()
    shape = Shape(**json.loads(facts.pop("shape")))
    tokenizer = json.loads(options.tokenizer.read_text(encoding="utf-8"))
    convert(weights, shape, tokenizer, options.target, options.type, facts)
    print(f"{options.target}: {options.target.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()

"""Small model files for the tests of SSQ: written with the gguf package, and safetensors by hand."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type


def write_gguf(path: Path, tensors: Mapping[str, tuple[np.ndarray, str]]) -> Path:
    """A GGUF with some metadata. Each tensor is its data and its type; float data of a quantized type is quantized."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("small")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_0)
    writer.add_array("tokenizer.ggml.tokens", ["a", "bc", "\u00fc"])
    writer.add_array("some.numbers", [1, 2, 3])
    for name, (data, kind) in tensors.items():
        if data.dtype == np.uint8:
            writer.add_tensor(name, data, raw_dtype=Type[kind])
        elif kind in ("F32", "F16"):
            writer.add_tensor(name, data.astype(np.float32 if kind == "F32" else np.float16))
        else:
            writer.add_tensor(name, gguf.quants.quantize(data.astype(np.float32), Type[kind]), raw_dtype=Type[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_safetensors(path: Path, tensors: Mapping[str, np.ndarray]) -> Path:
    """A safetensors file of f32 and f16 arrays, from the description of the format."""
    names = {np.dtype("f4"): "F32", np.dtype("f2"): "F16", np.dtype("u1"): "U8"}
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, values in tensors.items():
        end = len(data) + values.nbytes
        header[name] = {"dtype": names[values.dtype], "shape": list(values.shape), "data_offsets": [len(data), end]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def matrix(seed: int, rows: int = 6, columns: int = 256) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, columns)).astype(np.float32)

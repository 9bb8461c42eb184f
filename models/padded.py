"""A model of architecture llama with zeros added, so that its rows are long enough for kernels that take whole tiles.

    python -m models.padded SOURCE.gguf OUT.gguf [--columns 1024] [--tile 256]

It says what the source says: added channels stay zero through every layer. The norms, which divide by the number of
channels, get weights and an epsilon that make up for the longer rows; added heads attend to nothing but zeros. Matrices
are written in F16, for llama.cpp's quantiser to make a file of. It knows no engine.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np

from models import stop

_ARCHITECTURE = "llama"
_SKIPPED = ("GGUF.", "general.architecture", "general.file_type", "general.quantization_version")


@dataclass(frozen=True)
class Sizes:
    """Channels and heads of a model."""

    columns: int
    heads: int
    kv_heads: int
    head: int
    """Channels of a head."""

    def rows_of(self, name: str) -> int | None:
        """Rows of a tensor by the last word of its name; None where they are those of the source."""
        return {"attn_q": self.heads * self.head, "attn_k": self.kv_heads * self.head,
                "attn_v": self.kv_heads * self.head, "attn_output": self.columns, "ffn_down": self.columns,
                "attn_norm": self.columns, "ffn_norm": self.columns, "output_norm": self.columns}.get(name)  # fmt: skip

    def columns_of(self, name: str) -> int | None:
        """Columns likewise."""
        return {"attn_output": self.heads * self.head, "ffn_down": None}.get(name, self.columns)


def padded_sizes(own: Sizes, columns: int, tile: int) -> Sizes:
    """At least `columns` channels, and heads in groups as the source has them, until all rows are whole tiles long."""
    group = own.heads // own.kv_heads
    kv_heads = own.kv_heads
    while kv_heads * group * own.head % tile:
        kv_heads += 1
    return Sizes(math.ceil(max(columns, own.columns) / tile) * tile, kv_heads * group, kv_heads, own.head)


def sizes_of(reader: gguf.GGUFReader) -> Sizes:
    """What the header says. Raises `ValueError` for another architecture."""
    said = _text(reader, "general.architecture")
    if said != _ARCHITECTURE:
        raise ValueError(f"the source is of architecture {said}, and zeros are added to {_ARCHITECTURE} alone")
    columns, heads = (_number(reader, name) for name in ("embedding_length", "attention.head_count"))
    return Sizes(int(columns), int(heads), int(_number(reader, "attention.head_count_kv")), int(columns // heads))


def padded(values: np.ndarray, name: str, own: Sizes, wide: Sizes) -> np.ndarray:
    """A tensor of the source, float32, with zeros added: (rows, columns), or the weights of a norm (columns,)."""
    kind = name.split(".")[-2]
    if values.ndim == 1:
        weights = np.zeros(wide.columns, np.float32)
        weights[: len(values)] = values * math.sqrt(own.columns / wide.columns)
        return weights
    rows, columns = wide.rows_of(kind) or values.shape[0], wide.columns_of(kind) or values.shape[1]
    result = np.zeros((rows, columns), np.float32)
    result[: values.shape[0], : values.shape[1]] = values
    return result


def write(source: Path, target: Path, columns: int = 1024, tile: int = 256) -> Sizes:
    """Write `target`, whole or not at all; returns its sizes. Raises `ValueError`."""
    reader = gguf.GGUFReader(source)
    own = sizes_of(reader)
    wide = padded_sizes(own, columns, tile)
    part = target.with_name(target.name + ".part")
    writer = gguf.GGUFWriter(part, _ARCHITECTURE)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    epsilon = _number(reader, "attention.layer_norm_rms_epsilon") * own.columns / wide.columns
    changed = {"embedding_length": wide.columns, "attention.head_count": wide.heads, "attention.head_count_kv":
               wide.kv_heads, "attention.layer_norm_rms_epsilon": epsilon}  # fmt: skip
    _copy_header(reader, writer, changed)
    writer.add_key_length(own.head)
    writer.add_value_length(own.head)
    for tensor in reader.tensors:
        values = padded(gguf.quants.dequantize(tensor.data, tensor.tensor_type), tensor.name, own, wide)
        writer.add_tensor(tensor.name, values if values.ndim == 1 else values.astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.replace(part, target)
    return wide


def _copy_header(reader: gguf.GGUFReader, writer: gguf.GGUFWriter, changed: Mapping[str, float]) -> None:
    own = {f"{_ARCHITECTURE}.{name}": value for name, value in changed.items()}
    for key, field in reader.fields.items():
        if key.startswith(_SKIPPED):
            continue
        inner = field.types[-1] if len(field.types) > 1 else None
        writer.add_key_value(key, own.get(key, field.contents()), field.types[0], inner)


def _number(reader: gguf.GGUFReader, name: str) -> float:
    field = reader.fields.get(f"{_ARCHITECTURE}.{name}")
    if field is None:
        raise ValueError(f"the source does not say its {name}")
    return float(field.contents())


def _text(reader: gguf.GGUFReader, key: str) -> str:
    field = reader.fields.get(key)
    return str(field.contents()) if field else "none"


def main(argv: list[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m models.padded", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--columns", type=int, default=1024, help="least channels of a layer")
    parser.add_argument("--tile", type=int, default=256, help="what the columns of every matrix are a multiple of")
    options = parser.parse_args(argv)
    try:
        wide = write(options.source, options.target, options.columns, options.tile)
    except (OSError, ValueError) as error:
        stop(f"{options.source}: {error}")
    print(f"{options.target}: {wide.columns} channels, {wide.heads} heads, {wide.kv_heads} for keys and values, "
          f"{options.target.stat().st_size / 1e6:.0f} MB")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Writes the models in an SSQ file back as GGUF files: matrices in Q8_0, everything else as it was.

A GGUF whose matrices were all Q8_0 comes back bit by bit. It does not quantize, and it does not look at the metadata
beyond their general.file_type, which says Q8_0 afterwards.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, LlamaFileType

from kernels.errors import KernelError
from kernels.ssq import block
from kernels.ssq.container import Container, open_container
from kernels.ssq.source import read_metadata
from kernels.ssq.table import PIECE_BLOCKS, Tensor
from kernels.ssq.whole_file import whole_file, write_all

GGUF_VERSION = 3
MAX_DIMENSIONS = 4


def unpack(path: Path, outs: list[Path]) -> None:
    """Write stream A to the first of `outs` and B to the second.

    Raises KernelError for a damaged file, which is checked before anything is written, or an `out` that cannot be
    written. Tensors from safetensors come without metadata: such a file is read by the gguf package, not by llama.cpp.
    """
    held = open_container(path)
    if damage := held.damage():
        raise KernelError(damage[0])
    for which, out in enumerate(outs):
        _write(held, which, out)


def _write(held: Container, which: int, out: Path) -> None:
    origin = held.origins[min(which, len(held.origins) - 1)]
    metadata = _metadata(held, which)
    infos, offsets, end = [], [], 0
    for tensor in held.tensors.values():
        offset = _aligned(end, origin.alignment)
        kind, size = _stored(tensor, which)
        infos.append(_info(held, tensor, kind, offset))
        offsets.append(offset)
        end = offset + size
    start = struct.pack("<4sIQQ", b"GGUF", GGUF_VERSION, len(infos), origin.pairs) + metadata + b"".join(infos)
    data_at = _aligned(len(start), origin.alignment)
    total = data_at + _aligned(end, origin.alignment)
    with whole_file(out, total) as target:
        write_all(target, start, 0)
        for tensor, offset in zip(held.tensors.values(), offsets, strict=True):
            _write_tensor(held, tensor, which, target, data_at + offset)
        # What llama.cpp's own writer does: the last tensor is padded as well.
        padding = total - (data_at + end)
        write_all(target, bytes(padding), total - padding)


def _aligned(at: int, alignment: int) -> int:
    return -(-at // alignment) * alignment


def _metadata(held: Container, which: int) -> bytes:
    """The source's key-value pairs, with the file type put right."""
    origin = held.origins[min(which, len(held.origins) - 1)]
    data = bytearray(held.part(origin.metadata))
    try:
        at = read_metadata(bytes(data), 0, origin.pairs).file_type_at
    except (struct.error, OverflowError, KeyError) as error:
        raise KernelError(
            f"{held.path} is damaged: the metadata of {origin.file} cannot be read ({error}); pack it again"
        ) from error
    if at >= 0:
        struct.pack_into("<I", data, at, LlamaFileType.MOSTLY_Q8_0)
    return bytes(data)


def _stored(tensor: Tensor, which: int) -> tuple[str, int]:
    """ggml type and bytes of a tensor in the file that is written."""
    if tensor.kind == "ssq":
        return "Q8_0", tensor.weights // block.WEIGHTS * block.Q8_BYTES
    part = tensor.parts[min(which, len(tensor.parts) - 1)]
    return part.kind, part.bytes


def _info(held: Container, tensor: Tensor, kind: str, offset: int) -> bytes:
    if len(tensor.shape) > MAX_DIMENSIONS:
        raise KernelError(
            f"{held.path}: tensor {tensor.name} has {len(tensor.shape)} dimensions, GGUF holds {MAX_DIMENSIONS}"
        )
    name = tensor.name.encode()
    dims = tensor.shape[::-1]
    return (
        struct.pack("<Q", len(name)) + name + struct.pack(f"<I{len(dims)}Q", len(dims), *dims)
        + struct.pack("<IQ", GGMLQuantizationType[kind], offset)
    )  # fmt: skip


def _write_tensor(held: Container, tensor: Tensor, which: int, target: int, at: int) -> None:
    if tensor.kind == "raw":
        write_all(target, held.raw(tensor.name, which)[1].data, at)
        return
    blocks = held.blocks(tensor.name).reshape(-1, block.BYTES)
    for first in range(0, len(blocks), PIECE_BLOCKS):
        q8 = block.stream(np.asarray(blocks[first : first + PIECE_BLOCKS]), which)
        write_all(target, q8.reshape(-1).data, at + first * block.Q8_BYTES)

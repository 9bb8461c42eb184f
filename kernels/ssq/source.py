"""Where weights come from: a GGUF or a safetensors file, as a list of tensors with their place in it.

It reads headers alone and checks that the data is there. The gguf package's reader is not used for this: it makes
an object of each word of the vocabulary, which takes longer than packing the weights does.
"""

from __future__ import annotations

import json
import math
import mmap
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

from kernels.errors import KernelError

_SCALARS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of GGUF's metadata types that have a fixed size."""
_STRING, _ARRAY = 8, 9
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")
SAFETENSORS = {
    "F64": "F64", "F32": "F32", "F16": "F16", "BF16": "BF16", "I64": "I64", "I32": "I32", "I16": "I16", "I8": "I8",
}  # fmt: skip
"""Types of safetensors that ggml has too."""
MAX_SAFETENSORS_HEADER = 16 << 20
MAX_NAME_BYTES = 1 << 16
MAX_ENTRIES = 1 << 18
MAX_WORDS = 1 << 24
"""Of an array of texts; the largest vocabularies have less than a million."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One tensor of a file. `shape` has rows first and the values of a row last; `kind` is its ggml type."""

    name: str
    kind: str
    shape: tuple[int, ...]
    offset: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Metadata:
    """GGUF's key-value pairs as they stand in the file: their place, their number, the alignment that they set."""

    offset: int = 0
    bytes: int = 0
    pairs: int = 0
    alignment: int = 32
    file_type_at: int = -1
    """Where the value of general.file_type stands, from `offset` on; -1 where it does not."""


@dataclass(frozen=True, slots=True)
class Source:
    """One model's file."""

    path: Path
    format: str
    tensors: dict[str, Entry]
    metadata: Metadata
    file_bytes: int


def open_source(path: Path) -> Source:
    """Read a file's header. KernelError where it is no GGUF or safetensors file, damaged, or cut short."""
    try:
        if path.exists() and not path.is_file():
            raise KernelError(f"{path} is no regular file; give a model's file")
        size = path.stat().st_size
        with path.open("rb") as file:
            start = file.read(16)
            if start[:4] == b"GGUF":
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                    found = _gguf(path, data)
            elif start[8:9] == b"{":
                found = _safetensors(path, file.read, start, size)
            else:
                raise KernelError(
                    f"{path} begins with {start[:4]!r}: neither GGUF nor safetensors; give a model in one of them"
                )
    except OSError as error:
        raise KernelError(f"{path} cannot be read ({error.strerror or error}); check the path") from error
    for entry in found.tensors.values():
        if entry.offset + entry.bytes > size:
            raise KernelError(
                f"{path} is truncated: tensor {entry.name} ends at byte {entry.offset + entry.bytes}, the file at "
                f"{size}; copy or download it again"
            )
    return found


def _gguf(path: Path, data: mmap.mmap) -> Source:
    try:
        version, count, pairs = struct.unpack_from("<IQQ", data, 4)
        if version not in (2, 3):
            raise KernelError(f"{path} says GGUF version {version}; versions 2 and 3 can be read")
        if count > MAX_ENTRIES:
            raise KernelError(f"{path} is damaged: it has {count} tensors; download it again")
        metadata = read_metadata(data, 24, pairs)
        at = metadata.offset + metadata.bytes
        rows = []
        for _ in range(count):
            row, at = _gguf_entry(path, data, at)
            rows.append(row)
    except (struct.error, OverflowError, KeyError) as error:
        raise KernelError(f"{path} is damaged: its header ends early or cannot be read; download it again") from error
    start = -(-at // metadata.alignment) * metadata.alignment
    tensors = {name: Entry(name, kind, shape, start + offset, size) for name, kind, shape, offset, size in rows}
    return Source(path, "gguf", tensors, metadata, len(data))


def read_metadata(data: bytes | mmap.mmap, offset: int, pairs: int) -> Metadata:
    """Steps over GGUF's pairs from `offset` on. struct.error, OverflowError or KeyError where they cannot be read."""
    at, alignment, file_type_at = offset, 32, -1
    if pairs > MAX_ENTRIES:
        raise KeyError(f"{pairs} pairs")
    for _ in range(pairs):
        length = _name_length(data, at)
        key = bytes(data[at + 8 : at + 8 + length])
        kind = _U32.unpack_from(data, at + 8 + length)[0]
        at += 12 + length
        if key == b"general.alignment":
            alignment = _U32.unpack_from(data, at)[0]
        if key == b"general.file_type" and kind == 4:
            file_type_at = at - offset
        at = _skip_value(data, at, kind)
    if alignment <= 0 or alignment & (alignment - 1):
        raise KeyError("general.alignment")
    return Metadata(offset, at - offset, pairs, alignment, file_type_at)


def _name_length(data: bytes | mmap.mmap, at: int) -> int:
    length: int = _U64.unpack_from(data, at)[0]
    if length > MAX_NAME_BYTES:
        raise KeyError(f"a name of {length} bytes")
    return length


def _skip_value(data: bytes | mmap.mmap, at: int, kind: int) -> int:
    length: int
    if kind == _STRING:
        length = _U64.unpack_from(data, at)[0]
        return at + 8 + length
    if kind != _ARRAY:
        return at + _SCALARS[kind]
    kind, length = _U32.unpack_from(data, at)[0], _U64.unpack_from(data, at + 4)[0]
    at += 12
    if kind != _STRING:
        return at + length * _SCALARS[kind]
    if length > MAX_WORDS:
        raise KeyError(f"{length} texts")
    unpack = _U64.unpack_from
    for _ in range(length):
        at += 8 + unpack(data, at)[0]
    return at


def _gguf_entry(path: Path, data: mmap.mmap, at: int) -> tuple[tuple[str, str, tuple[int, ...], int, int], int]:
    length = _name_length(data, at)
    name = bytes(data[at + 8 : at + 8 + length]).decode("utf-8", "replace")
    at += 8 + length
    dims = _U32.unpack_from(data, at)[0]
    if not 1 <= dims <= 4:
        raise KernelError(f"{path} is damaged: tensor {name} has {dims} dimensions")
    shape = struct.unpack_from(f"<{dims}Q", data, at + 4)[::-1]
    type_id, offset = struct.unpack_from("<IQ", data, at + 4 + 8 * dims)
    try:
        kind = GGMLQuantizationType(type_id)
    except ValueError as error:
        raise KernelError(
            f"{path}: tensor {name} has the type {type_id}, which this gguf package does not know"
        ) from error
    weights, size = GGML_QUANT_SIZES[kind]
    if shape[-1] % weights:
        raise KernelError(
            f"{path} is damaged: tensor {name} has rows of {shape[-1]}, no multiple of {kind.name}'s {weights}"
        )
    return (name, kind.name, shape, offset, math.prod(shape) // weights * size), at + 16 + 8 * dims


def _safetensors(path: Path, read: Callable[[int], bytes], start: bytes, size: int) -> Source:
    """Format: 8 bytes of length, a JSON header of that length, the data. https://github.com/huggingface/safetensors"""
    length = _U64.unpack(start[:8])[0]
    if length > min(size - 8, MAX_SAFETENSORS_HEADER):
        raise KernelError(f"{path} is truncated: its header has {length} bytes and the file {size}; download it again")
    try:
        header = json.loads(start[8:] + read(length - 8))
        tensors = {}
        for name, about in header.items():
            if name == "__metadata__":
                continue
            kind, shape, (begin, end) = about["dtype"], tuple(about["shape"]), about["data_offsets"]
            if kind not in SAFETENSORS:
                raise KernelError(
                    f"{path}: tensor {name} is of the type {kind}; SSQ takes {', '.join(SAFETENSORS)} from safetensors"
                )
            wanted = math.prod(shape) * GGML_QUANT_SIZES[GGMLQuantizationType[kind]][1]
            if end - begin != wanted:
                raise KernelError(f"{path} is damaged: tensor {name} has {end - begin} bytes, its shape needs {wanted}")
            tensors[name] = Entry(name, kind, shape or (1,), 8 + length + begin, wanted)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise KernelError(f"{path} is damaged: its safetensors header cannot be read ({error})") from error
    return Source(path, "safetensors", tensors, Metadata(), size)

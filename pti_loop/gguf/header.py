"""The header of a GGUF file as plain values: metadata and the list of tensors.

Written for a check before loading: one pass over the header, big arrays are skipped, and each way in which a file can
be no model is its own sentence. Knows nothing about architectures, memory, or the library that loads the file.
Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

VERSIONS = (2, 3)
KEEP_ARRAY = 1024
"""Numeric arrays up to this length are kept as tuples (per-layer head counts); others leave their length only."""

MOST_TEXT_BYTES = 16 << 20
"""Of one text: a chat template has some thousands."""
MOST_WORDS = 1 << 24
"""Of an array of texts: the largest vocabularies have less than a million."""
MOST_PAIRS, MOST_TENSORS = 1 << 16, 1 << 18

TENSOR_TYPES: dict[int, tuple[str, int, int]] = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 36), 10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210), 15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82), 23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4), 27: ("I64", 1, 8), 28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2), 34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17), 40: ("NVFP4", 64, 36), 41: ("Q1_0", 128, 18), 42: ("Q2_0", 64, 18),
}  # fmt: skip
"""Type id -> (name, weights a block, bytes a block)."""

_REMOVED_TYPES = {
    4: "Q4_2", 5: "Q4_3", 31: "Q4_0_4_4", 32: "Q4_0_4_8", 33: "Q4_0_8_8",
    36: "IQ4_NL_4_4", 37: "IQ4_NL_4_8", 38: "IQ4_NL_8_8",
}  # fmt: skip
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_U64 = struct.Struct("<Q")
_MAX_DIMS = 4


class ModelFileError(ValueError):
    """This file cannot be the model that was asked for; the sentence says why and what to do."""


@dataclass(frozen=True, slots=True)
class ArrayLength:
    """An array whose values were not read."""

    length: int


Value: TypeAlias = int | float | str | ArrayLength | tuple[int | float, ...] | tuple[bytes, ...]
"""A value of the metadata. Texts of an array that was kept are bytes."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor's entry. `shape` has the fastest dimension first, as in the file; `bytes` is its size on disk."""

    name: str
    type: str
    shape: tuple[int, ...]
    offset: int
    """Where its data begin, in bytes from the file's `data_start`."""
    bytes: int

    @property
    def elements(self) -> int:
        """Number of weights."""
        count = 1
        for size in self.shape:
            count *= size
        return count


@dataclass(frozen=True, slots=True)
class Header:
    """What one file says about itself; `data_start` is where tensor data begins, in bytes from the file's start."""

    path: Path
    version: int
    metadata: dict[str, Value]
    tensors: tuple[Tensor, ...]
    data_start: int
    file_bytes: int


def read_header(path: Path, keep: Collection[str] = ()) -> Header:
    """Read and check one file's header. Raises `ModelFileError`; reads no tensor data.

    The values of the arrays named in `keep` are read whatever their length, texts as bytes.
    """
    size = _regular_file_size(path)
    try:
        with path.open("rb") as file:
            start = file.read(512)
            _check_start(path, start, size)
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _parse(_Cursor(path, data, size, keep))
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror or error}") from error


def _regular_file_size(path: Path) -> int:
    if path.is_dir():
        inside = sorted(path.glob("*.gguf"))
        hint = f"; did you mean {inside[0]}?" if inside else " and no *.gguf file is in it"
        raise ModelFileError(f"{path} is a directory, not a GGUF file{hint}")
    if not path.exists():
        raise ModelFileError(f"there is no file {path}")
    if not path.is_file():
        raise ModelFileError(f"{path} is not a regular file")
    if not os.access(path, os.R_OK):
        raise ModelFileError(f"{path} cannot be read: permission denied; try `chmod +r {path}`")
    return path.stat().st_size


def _check_start(path: Path, start: bytes, size: int) -> None:
    """Name the usual wrong files by their first bytes before anything is parsed."""
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    again = "download the file again"
    if size == 0:
        raise ModelFileError(f"{path} is empty; {again}")
    if text.startswith((b"<!doctype", b"<html", b"<?xml")):
        raise ModelFileError(f"{path} is a web page, not a model: the download saved an HTML answer; {again}")
    if text.startswith(b"version https://git-lfs"):
        raise ModelFileError(f"{path} is a Git LFS pointer, not the model itself; run `git lfs pull` there")
    if not any(start):
        raise ModelFileError(f"{path} begins with {len(start)} zero bytes: the download never arrived; {again}")
    if start[:4] in (b"lmgg", b"tjgg", b"fmgg", b"algg"):
        raise ModelFileError(f"{path} is a GGML file of 2023, older than GGUF; convert it or get a GGUF file")
    if not b"GGUF".startswith(start[:4]):
        raise ModelFileError(f"{path} is not a GGUF file: it begins with {start[:4]!r} instead of b'GGUF'")
    if size < 24:
        raise ModelFileError(f"{path} is {size} bytes long, shorter than a GGUF header; {again}")
    version = struct.unpack_from("<I", start, 4)[0]
    if version & 0xFFFF == 0:
        raise ModelFileError(f"{path} is a big-endian GGUF file, which this machine's llama.cpp does not read")
    if version not in VERSIONS:
        raise ModelFileError(f"{path} says GGUF version {version}; versions 2 and 3 can be read")


class _Cursor:
    """A place in the file; every read checks that the bytes are there."""

    def __init__(self, path: Path, data: mmap.mmap, size: int, keep: Collection[str]) -> None:
        self.path, self.data, self.size, self.at = path, data, size, 24
        self.keep = keep

    def truncated(self, what: str) -> ModelFileError:
        return ModelFileError(
            f"{self.path} is truncated: its {self.size} bytes end inside {what}, within the header; download it again"
        )

    def scalar(self, code: str, what: str) -> int | float:
        try:
            value: int | float = struct.unpack_from("<" + code, self.data, self.at)[0]
        except struct.error:
            raise self.truncated(what) from None
        self.at += struct.calcsize("<" + code)
        return value

    def take(self, code: str, what: str) -> int:
        return int(self.scalar(code, what))

    def skip(self, count: int, what: str) -> None:
        self.at += count
        if self.at > self.size:
            raise self.truncated(what)

    def raw(self, what: str) -> bytes:
        length = self.take("Q", what)
        start = self.at
        if MOST_TEXT_BYTES < length <= self.size - start:
            raise ModelFileError(f"{self.path} is damaged: a text of {length} bytes stands in {what}")
        self.skip(length, what)
        return self.data[start : self.at]

    def text(self, what: str) -> str:
        return self.raw(what).decode("utf-8", "replace")

    def skip_strings(self, count: int, what: str) -> None:
        """Step over `count` strings: the one loop whose length is the vocabulary's."""
        unpack, data, at = _U64.unpack_from, self.data, self.at
        try:
            for _ in range(count):
                at += 8 + unpack(data, at)[0]
        except (struct.error, OverflowError):  # the latter where a length is beyond what an offset can be
            raise self.truncated(what) from None
        self.at = at
        self.skip(0, what)


def _value(cursor: _Cursor, kind: int, key: str) -> Value:
    if kind == _STRING:
        return cursor.text(f"the value of {key}")
    if kind == _ARRAY:
        return _array(cursor, key)
    if kind not in _SCALARS:
        raise ModelFileError(f"{cursor.path} is damaged: the value of {key} has the unknown type {kind}")
    return cursor.scalar(_SCALARS[kind], f"the value of {key}")


def _array(cursor: _Cursor, key: str) -> Value:
    what = f"the array {key}"
    kind, length = cursor.take("I", what), cursor.take("Q", what)
    if kind == _STRING:
        if length > MOST_WORDS:
            raise ModelFileError(f"{cursor.path} is damaged: {what} has {length} texts")
        if key in cursor.keep:
            return tuple(cursor.raw(what) for _ in range(length))
        cursor.skip_strings(length, what)
        return ArrayLength(length)
    if kind not in _SCALARS:
        raise ModelFileError(f"{cursor.path} is damaged: {what} has elements of the unknown type {kind}")
    start = cursor.at
    cursor.skip(length * struct.calcsize("<" + _SCALARS[kind]), what)
    if length > KEEP_ARRAY and key not in cursor.keep:
        return ArrayLength(length)
    return struct.unpack(f"<{length}{_SCALARS[kind]}", cursor.data[start : cursor.at])


def _tensor(cursor: _Cursor) -> Tensor:
    name = cursor.text("the list of tensors")
    what = f"the entry of tensor {name}"
    n_dims = cursor.take("I", what)
    if not 1 <= n_dims <= _MAX_DIMS:
        raise ModelFileError(f"{cursor.path} is damaged: tensor {name} has {n_dims} dimensions")
    shape = tuple(cursor.take("Q", what) for _ in range(n_dims))
    type_id, offset = cursor.take("I", what), cursor.take("Q", what)
    if type_id in _REMOVED_TYPES:
        raise ModelFileError(
            f"{cursor.path} has tensor {name} in {_REMOVED_TYPES[type_id]}, which llama.cpp no longer reads"
        )
    if type_id not in TENSOR_TYPES:
        raise ModelFileError(
            f"{cursor.path} has tensor {name} in the quantization type {type_id}, which this build does not know"
        )
    type_name, block, block_bytes = TENSOR_TYPES[type_id]
    if shape[0] % block:
        raise ModelFileError(
            f"{cursor.path} is damaged: tensor {name} has rows of {shape[0]}, no multiple of {type_name}'s {block}"
        )
    entry = Tensor(name, type_name, shape, offset, 0)
    return Tensor(name, type_name, shape, offset, entry.elements // block * block_bytes)


def _parse(cursor: _Cursor) -> Header:
    path, data, size = cursor.path, cursor.data, cursor.size
    version, n_tensors, n_pairs = struct.unpack_from("<IQQ", data, 4)
    # The shortest possible entries are 13 and 32 bytes long; a count beyond that would loop over garbage for hours.
    if n_pairs * 13 + n_tensors * 32 > size:
        raise ModelFileError(
            f"{path} promises {n_pairs} metadata entries and {n_tensors} tensors, more than its {size} bytes can hold: "
            "it is truncated or damaged; download it again"
        )
    if n_pairs > MOST_PAIRS or n_tensors > MOST_TENSORS:
        raise ModelFileError(f"{path} is damaged: it has {n_pairs} metadata entries and {n_tensors} tensors")
    metadata: dict[str, Value] = {}
    for _ in range(n_pairs):
        key = cursor.text("its metadata")
        metadata[key] = _value(cursor, cursor.take("I", f"the type of {key}"), key)
    tensors = tuple(_tensor(cursor) for _ in range(n_tensors))
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment <= 0 or alignment & (alignment - 1):
        raise ModelFileError(f"{path} is damaged: general.alignment is {alignment!r}, not a power of two")
    data_start = (cursor.at + alignment - 1) // alignment * alignment
    _check_data(path, tensors, data_start, size)
    return Header(path, version, metadata, tensors, data_start, size)


def _check_data(path: Path, tensors: tuple[Tensor, ...], data_start: int, size: int) -> None:
    names: set[str] = set()
    for tensor in tensors:
        if tensor.name in names:
            raise ModelFileError(f"{path} is damaged: it names tensor {tensor.name} twice")
        names.add(tensor.name)
        end = data_start + tensor.offset + tensor.bytes
        if end > size:
            raise ModelFileError(
                f"{path} is truncated: tensor {tensor.name} ends at byte {end}, the file at {size}; download it again"
            )

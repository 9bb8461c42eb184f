"""The SSQ file: a header, tensors, and a table of them with checksums. Read through a memory map.

    header   64 bytes, little-endian: magic "SSQTWIN\\0", u32 version, u32 header bytes, u64 table offset, u64 table
             bytes, u32 CRC-32 of the table, zeros, u32 CRC-32 of the 60 bytes before
    data     parts of tensors, each at a multiple of 256 bytes
    table    JSON, UTF-8, at the end of the file

A tensor of the kind `ssq` has one part, its blocks in the order of rows. One of the kind `raw` (a norm, a bias, a row
that is no multiple of 32) has one part a source, its bytes as they were. A part has one CRC-32 for each `PIECE` bytes,
so a large tensor is checked by several threads and damage is located. This module does not know where the weights came
from.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from kernels.errors import KernelError
from kernels.ssq import block
from kernels.ssq.block import BYTES, WEIGHTS
from kernels.ssq.table import PIECE, Origin, Part, TableError, Tensor, pieces, table_of

MAGIC = b"SSQTWIN\0"
VERSION = 1
HEADER_BYTES = 64
ALIGNMENT = 256
MAX_TABLE_BYTES = 16 << 20
"""A model of 27 thousand million weights has one of a few hundred thousand."""
_HEADER = struct.Struct("<8sIIQQI24x")


def threads() -> int:
    """How many threads share work that is mostly numpy: the processors at hand, at most 8."""
    return min(len(os.sched_getaffinity(0)), 8)


def header_bytes(table_offset: int, table: bytes) -> bytes:
    """The first 64 bytes of a file."""
    start = _HEADER.pack(MAGIC, VERSION, HEADER_BYTES, table_offset, len(table), zlib.crc32(table))
    return start + struct.pack("<I", zlib.crc32(start))


class Container:
    """An open SSQ file. Arrays that it hands out are views of `data`: the whole file, uint8 [bytes,], mapped."""

    def __init__(self, path: Path, data: np.ndarray, origins: list[Origin], tensors: dict[str, Tensor]) -> None:
        self.path, self.origins, self.tensors, self._data = path, origins, tensors, data

    @property
    def identical(self) -> bool:
        """Whether both streams are the same model."""
        return len(self.origins) == 1

    def part(self, part: Part) -> np.ndarray:
        """The bytes of a part, uint8 [bytes,]."""
        return self._data[part.offset : part.offset + part.bytes]

    def blocks(self, name: str) -> np.ndarray:
        """SSQ blocks of a tensor: uint8 [rows.., blocks a row, 68]. KernelError where it is no such tensor."""
        tensor = self._find(name, "ssq")
        *rows, columns = tensor.shape
        return self.part(tensor.parts[0]).reshape(*rows, columns // WEIGHTS, BYTES)

    def weights(self, name: str, which: int) -> np.ndarray:
        """Weights of a tensor, float32 [rows.., columns]; `which` is 0 for stream A, 1 for B. KernelError."""
        blocks = self.blocks(name).reshape(-1, BYTES)
        return block.values(block.stream(blocks, which)).reshape(self.tensors[name].shape)

    def raw(self, name: str, which: int) -> tuple[str, np.ndarray]:
        """ggml type and bytes, uint8 [bytes,], of a tensor that was kept as it was. KernelError."""
        tensor = self._find(name, "raw")
        part = tensor.parts[min(which, len(tensor.parts) - 1)]
        return part.kind, self.part(part)

    def _find(self, name: str, kind: str) -> Tensor:
        tensor = self.tensors.get(name)
        if tensor is None:
            raise KernelError(f"{self.path} has no tensor {name}; `python -m kernels.ssq info {self.path}` lists them")
        if tensor.kind != kind:
            raise KernelError(f"{self.path}: tensor {name} is of the kind {tensor.kind}, not {kind}")
        return tensor

    def damage(self) -> list[str]:
        """One sentence for each tensor, and each source's metadata, whose bytes are not those of its checksums."""
        named = [(f"tensor {t.name}", part) for t in self.tensors.values() for part in t.parts]
        named += [(f"the metadata of {origin.file}", origin.metadata) for origin in self.origins]
        tasks = [(place, *span) for place, (_, part) in enumerate(named) for span in pieces(part.bytes)]
        with ThreadPoolExecutor(threads()) as pool:
            sums = list(pool.map(lambda task: zlib.crc32(self.part(named[task[0]][1])[task[1] : task[2]].data), tasks))
        wrong: dict[int, tuple[int, int]] = {}
        for (place, start, end), found in zip(tasks, sums, strict=True):
            if found != named[place][1].crc32[start // PIECE]:
                wrong.setdefault(place, (start, end))
        return [
            f"{self.path}: the checksum of {named[place][0]} is wrong in its bytes {start} to {end}; pack it again"
            for place, (start, end) in wrong.items()
        ]


def open_container(path: Path) -> Container:
    """Map a file and read its table. KernelError names what is wrong with it; no tensor's checksum is computed."""
    try:
        if path.exists() and not path.is_file():
            raise KernelError(f"{path} is no regular file; give an SSQ file")
        with path.open("rb") as file:
            start, size = file.read(HEADER_BYTES), os.fstat(file.fileno()).st_size
        table = _read_table(path, start, size)
        data = np.memmap(path, np.uint8, "r")
    except OSError as error:
        raise KernelError(f"{path} cannot be read ({error.strerror or error}); check the path") from error
    try:
        origins, tensors = table_of(table, size)
    except TableError as error:
        raise KernelError(f"{path} is damaged: {error}; pack it again") from error
    return Container(path, data, origins, tensors)


def _read_table(path: Path, start: bytes, size: int) -> Any:
    if start[:8] != MAGIC:
        raise KernelError(f"{path} is no SSQ file: it begins with {start[:8]!r}; make one: python -m kernels.ssq pack")
    if len(start) < HEADER_BYTES:
        raise KernelError(f"{path} is truncated: it ends inside its header, after {len(start)} bytes; pack it again")
    _, version, _, offset, length, checksum = _HEADER.unpack(start[:-4])
    if struct.unpack("<I", start[-4:])[0] != zlib.crc32(start[:-4]):
        raise KernelError(f"{path} is damaged: the checksum of its header does not match; pack it again")
    if version != VERSION:
        raise KernelError(f"{path} is of SSQ version {version}, this program reads {VERSION}; pack it again")
    if length > MAX_TABLE_BYTES:
        raise KernelError(f"{path} is damaged: its table has {length} bytes; pack it again")
    if offset + length > size:
        raise KernelError(
            f"{path} is truncated: its table ends at byte {offset + length}, the file at {size}; copy it again"
        )
    with path.open("rb") as file:
        file.seek(offset)
        text = file.read(length)
    if zlib.crc32(text) != checksum:
        raise KernelError(f"{path} is damaged: the checksum of its table does not match; pack it again")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise KernelError(f"{path} is damaged: its table is no JSON ({error}); pack it again") from error

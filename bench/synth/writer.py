"""A synthetic model written to disk: checked before, streamed, and renamed when it is whole.

Weights come from pools of random pieces that are written again and again from a start of their own for each tensor, so
that the disk is what limits. The bytes depend on the order alone, not on how they are cut into writes.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
from gguf import GGUFWriter
from gguf.constants import GGMLQuantizationType

from bench.errors import UserError
from bench.synth import blocks
from bench.synth.formats import check_format, unit
from bench.synth.metadata import describe
from bench.synth.shape import Order
from bench.synth.tensors import Tensor, tensors

CHUNK = 32 << 20
_BYTES_A_TOKEN = 64
_HEADER = 1 << 20
Progress = Callable[[int], None]
"""Called with the bytes that a write added."""


def size_of(order: Order) -> int:
    """Bytes of the tensors, with the padding between them."""
    return sum(_padded(tensor.bytes) for tensor in tensors(order))


def _padded(size: int) -> int:
    return GGUFWriter.ggml_pad(size, 32)


def write(order: Order, target: Path, *, force: bool = False, progress: Progress = lambda _: None,
          chunk: int = CHUNK) -> int:
    """Write the model; returns the bytes of the file. Raises `UserError`, and then leaves nothing behind.

    While it is written it is called `TARGET.part`. An interrupt leaves nothing behind either; a file that was at
    `target` before stays until the other one is whole.
    """
    check_format(order.format)
    planned = tensors(order)
    _check_target(target, force)
    with _part(target) as (part, file):
        _check_disk(target, _HEADER + _BYTES_A_TOKEN * order.shape.vocabulary + sum(_padded(t.bytes) for t in planned))
        try:
            _header(order, planned, part)
            file.seek(0, os.SEEK_END)
            _body(order, planned, file, progress, chunk)
            written = file.tell()
        except OSError as error:
            raise UserError(f"{part} could not be written to the end ({error.strerror}); it was removed") from error
        os.replace(part, target)
    return written


def _check_target(target: Path, force: bool) -> None:
    if target.is_dir():
        raise UserError(f"{target} is a folder; give the name of a file in it, such as {target / 'model.gguf'}")
    if not target.parent.is_dir():
        raise UserError(f"there is no folder {target.parent} to write {target.name} into; make it, or give another")
    if target.exists() and not force:
        raise UserError(f"{target} exists; give another name, or --force to replace it")


def _check_disk(target: Path, need: int) -> None:
    free = shutil.disk_usage(target.parent).free
    if need > free:
        raise UserError(
            f"{target} needs {need / 1e9:.2f} GB and {target.parent} has {free / 1e9:.2f} GB free; lower layers or "
            "vocabulary, take a smaller format, or write elsewhere"
        )


@contextmanager
def _part(target: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """The unfinished file, held by this process alone and gone in the end, whatever happens."""
    part = target.with_name(target.name + ".part")
    try:
        file = part.open("ab", buffering=0)
    except OSError as error:
        raise UserError(f"{part} cannot be written ({error.strerror}); give a target elsewhere") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"another process is writing {target}; wait for it, or give another name") from None
        try:
            file.truncate(0)
            yield part, file
        finally:
            part.unlink(missing_ok=True)


def _header(order: Order, planned: list[Tensor], path: Path) -> None:
    """Keys and the list of tensors, by the gguf package."""
    writer = GGUFWriter(path, order.shape.architecture)
    describe(writer, order)
    for tensor in planned:
        raw = None if tensor.type == GGMLQuantizationType.F32 else tensor.type
        writer.add_tensor_info(tensor.name, tensor.shape[::-1], np.dtype(np.float32), tensor.bytes, raw)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    assert writer.fout, "it was opened above"
    (file,) = writer.fout
    writer.write_padding(file, file.tell())
    writer.close()


def _body(order: Order, planned: list[Tensor], file: BinaryIO, progress: Progress, chunk: int) -> None:
    pools = _Pools(order.seed, max(tensor.rows for tensor in planned), planned)
    for number, tensor in enumerate(planned):
        for piece in _contents(order.seed, tensor, number, pools, chunk):
            _write_all(file, piece)
            progress(len(piece))
    os.fsync(file.fileno())


def _write_all(file: BinaryIO, piece: memoryview) -> None:
    """A write may take less than it was given, on a disk that is all but full for one."""
    while len(piece):
        piece = piece[file.write(piece) :]


def _contents(seed: int, tensor: Tensor, number: int, pools: _Pools, chunk: int) -> Iterator[memoryview]:
    """A tensor's bytes and its padding, in pieces of at most `chunk` bytes."""
    if tensor.type == GGMLQuantizationType.F32:
        values = blocks.numbers(seed, tensor.name, tensor.elements, tensor.centre, tensor.spread)
        yield memoryview(values.tobytes())
    else:
        pool = pools.of(tensor, number)
        size = unit(tensor.type)[1]
        at = int(blocks.words(seed, tensor.name, 1)[0]) % (len(pool) // size) * size
        left = tensor.bytes
        while left:
            piece = pool[at : at + min(left, chunk)]
            yield piece
            left -= len(piece)
            at = (at + len(piece)) % len(pool)
    if padding := _padded(tensor.bytes) - tensor.bytes:
        yield memoryview(bytes(padding))


class _Pools:
    """Pools by type and spread, made when first used and dropped after their last tensor."""

    def __init__(self, seed: int, rows: int, planned: list[Tensor]) -> None:
        self.seed, self.rows = seed, rows
        self.last = {(tensor.type, tensor.spread): number for number, tensor in enumerate(planned)}
        self.made: dict[tuple[GGMLQuantizationType, float], memoryview] = {}

    def of(self, tensor: Tensor, number: int) -> memoryview:
        self.made = {key: pool for key, pool in self.made.items() if self.last[key] >= number}
        key = (tensor.type, tensor.spread)
        if key not in self.made:
            self.made[key] = blocks.pool(self.seed, *key, self.rows).data
        return self.made[key]

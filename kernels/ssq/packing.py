"""Packs one or two models into an SSQ file, piece by piece on several threads.

A thread holds a piece of each source and of the result, some 9 MB, whatever a tensor's size. It does not know what a
type's bits mean (`quantize`) nor where a file's tensors lie (`source`).
"""

from __future__ import annotations

import contextlib
import os
import threading
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kernels.errors import KernelError
from kernels.ssq import block, container, table
from kernels.ssq.quantize import INTEGERS, block_size, can_decode, to_q8_0
from kernels.ssq.source import Entry, Source, open_source
from kernels.ssq.table import Origin, Part, Tensor
from kernels.ssq.whole_file import whole_file, write_all

STEP_BLOCKS = 4096
"""Blocks converted at once: their floats stay in a core's cache."""


@dataclass(frozen=True, slots=True)
class Packed:
    """What was done. `input_bytes` counts the tensors of every source."""

    tensors: int
    raw_tensors: int
    input_bytes: int
    output_bytes: int


@dataclass(frozen=True, slots=True)
class _Task:
    """One piece of one part: where it goes, and what makes its bytes."""

    part: int
    offset: int
    make: Callable[[], np.ndarray]


def pack(out: Path, first: Path, second: Path | None = None, threads: int | None = None) -> Packed:
    """Write `out` from one model (identical twins) or two. Returns what was packed.

    Raises KernelError, with the tensor's name where there is one, when sources do not match or cannot be read, and when
    `out` cannot be written; then no file is left. Matrices whose rows are a multiple of 32 are packed, others kept.
    """
    sources = [open_source(path) for path in (first, second) if path is not None]
    if len(sources) == 2:
        _check_twins(*sources)
    tensors, origins, end = _layout(sources)
    with _opened(sources) as files, whole_file(out, end) as target:
        tasks = [task for tensor in tensors for task in _tensor_tasks(tensor, sources, files)]
        tasks += [task for source, origin, file in zip(sources, origins, files, strict=True)
                  for task in _copies(origin.metadata, file, source.metadata.offset)]  # fmt: skip
        sums = _run(tasks, target, threads or container.threads())
        tensors = [replace(tensor, parts=tuple(_summed(part, sums) for part in tensor.parts)) for tensor in tensors]
        origins = [replace(origin, metadata=_summed(origin.metadata, sums)) for origin in origins]
        text = table.table_bytes(tensors, origins)
        write_all(target, text, end)
        write_all(target, container.header_bytes(end, text), 0)
    read = sum(entry.bytes for source in sources for entry in source.tensors.values())
    raw = sum(tensor.kind == "raw" for tensor in tensors)
    return Packed(len(tensors), raw, read, end + len(text))


def _check_twins(a: Source, b: Source) -> None:
    for name in [*a.tensors, *b.tensors]:
        if name not in b.tensors or name not in a.tensors:
            has, lacks = (a, b) if name in a.tensors else (b, a)
            raise KernelError(
                f"tensor {name} is in {has.path} and not in {lacks.path}; twins must have the same tensors"
            )
        left, right = a.tensors[name].shape, b.tensors[name].shape
        if left != right:
            raise KernelError(
                f"tensor {name} is {_by(left)} in {a.path} and {_by(right)} in {b.path}; the shapes of twins match"
            )


def _by(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def _layout(sources: list[Source]) -> tuple[list[Tensor], list[Origin], int]:
    """Every part at its place, without checksums yet; and where the table begins."""
    end = container.HEADER_BYTES

    def placed(kind: str, size: int) -> Part:
        nonlocal end
        start = -(-end // container.ALIGNMENT) * container.ALIGNMENT
        end = start + size
        return Part(kind, start, size)

    tensors = []
    for name, entry in sources[0].tensors.items():
        entries = [source.tensors[name] for source in sources]
        kinds = tuple(one.kind for one in entries)
        parts: tuple[Part, ...]
        if _is_packed(entries, sources):
            parts = (placed("SSQ", _count(entry) // block.WEIGHTS * block.BYTES),)
            tensors.append(Tensor(name, "ssq", entry.shape, kinds, parts))
        else:
            parts = tuple(placed(one.kind, one.bytes) for one in entries)
            tensors.append(Tensor(name, "raw", entry.shape, kinds, parts))
    origins = [
        Origin(source.path.name, source.format, source.metadata.pairs, source.metadata.alignment,
               placed("metadata", source.metadata.bytes))
        for source in sources
    ]  # fmt: skip
    return tensors, origins, end


def _count(entry: Entry) -> int:
    weights, size = block_size(entry.kind)
    return entry.bytes // size * weights


def _is_packed(entries: list[Entry], sources: list[Source]) -> bool:
    entry = entries[0]
    if len(entry.shape) < 2 or entry.shape[-1] % block.WEIGHTS or INTEGERS & {one.kind for one in entries}:
        return False
    if any(_kept_exact(one, source) for one, source in zip(entries, sources, strict=True)):
        return False
    for one, source in zip(entries, sources, strict=True):
        if not can_decode(one.kind):
            raise KernelError(f"{source.path}: tensor {one.name} is of the type {one.kind}, which gguf cannot decode")
    return True


def _kept_exact(entry: Entry, source: Source) -> bool:
    """A matrix in F32 beside matrices of other types was left so on purpose (a router, a recurrent layer's gates)."""
    return entry.kind == "F32" and any(
        len(other.shape) > 1 and other.kind != "F32" for other in source.tensors.values()
    )


@contextlib.contextmanager
def _opened(sources: list[Source]) -> Iterator[list[int]]:
    with contextlib.ExitStack() as stack:
        files = []
        for source in sources:
            files.append(os.open(source.path, os.O_RDONLY))
            stack.callback(os.close, files[-1])
        yield files


def _tensor_tasks(tensor: Tensor, sources: list[Source], files: list[int]) -> list[_Task]:
    entries = [source.tensors[tensor.name] for source in sources]
    if tensor.kind == "raw":
        return [task for part, entry, file in zip(tensor.parts, entries, files, strict=True)
                for task in _copies(part, file, entry.offset)]  # fmt: skip
    (part,) = tensor.parts
    spans = [(start, start // block.BYTES, end // block.BYTES) for start, end in table.pieces(part.bytes)]
    return [
        _Task(part.offset, part.offset + start, _twin(entries, sources, files, first, last))
        for start, first, last in spans
    ]


def _copies(part: Part, file: int, offset: int) -> list[_Task]:
    def reading(start: int, end: int) -> Callable[[], np.ndarray]:
        return lambda: _read(file, offset + start, end - start, 2)

    return [_Task(part.offset, part.offset + start, reading(start, end)) for start, end in table.pieces(part.bytes)]


def _twin(
    entries: list[Entry], sources: list[Source], files: list[int], first: int, last: int
) -> Callable[[], np.ndarray]:
    """What makes the SSQ blocks `first` to `last` of a tensor."""

    def make() -> np.ndarray:
        out = _scratch(2, (last - first) * block.BYTES).reshape(-1, block.BYTES)
        raw = [_read_blocks(file, entry, first, last, place)
               for place, (file, entry) in enumerate(zip(files, entries, strict=True))]  # fmt: skip
        for low, high in pairwise([*range(0, last - first, STEP_BLOCKS), last - first]):
            q8 = [_converted(data, size, entry, source, low, high)
                  for (data, size), entry, source in zip(raw, entries, sources, strict=True)]  # fmt: skip
            block.interleave(q8[0], q8[-1], out[low:high])
        return out.reshape(-1)

    return make


def _read_blocks(file: int, entry: Entry, first: int, last: int, place: int) -> tuple[np.ndarray, float]:
    """The bytes of 32-weight groups `first` to `last`, and how many bytes one of them has.

    Pieces begin at a multiple of 65536 groups, so at a whole block of every type.
    """
    weights, size = block_size(entry.kind)
    each = size * block.WEIGHTS / weights
    return _read(file, entry.offset + int(first * each), int((last - first) * each), place), each


def _converted(data: np.ndarray, each: float, entry: Entry, source: Source, low: int, high: int) -> np.ndarray:
    try:
        return to_q8_0(data[int(low * each) : int(high * each)], entry.kind)
    except ValueError as error:
        raise KernelError(f"{source.path}: tensor {entry.name} {error}") from error


class _Own(threading.local):
    """Buffers of one thread, by their place."""

    def __init__(self) -> None:
        self.buffers: dict[int, NDArray[np.uint8]] = {}


_own = _Own()


def _scratch(place: int, size: int) -> NDArray[np.uint8]:
    """A buffer of this thread, used again for the next piece: new pages for each cost as much as the work."""
    buffers = _own.buffers
    if place not in buffers or len(buffers[place]) < size:
        buffers[place] = np.empty(size, np.uint8)
    return buffers[place][:size]


def _read(file: int, offset: int, size: int, place: int) -> np.ndarray:
    data = _scratch(place, size)
    view = data.data
    while view:
        got = os.preadv(file, [view], offset)
        if not got:
            raise KernelError("a source became shorter while it was read; pack it again")
        view, offset = view[got:], offset + got
    return data


def _run(tasks: list[_Task], target: int, threads: int) -> dict[int, list[int]]:
    """Make and write every piece; checksums by the part's place, in order."""

    def work(task: _Task) -> int:
        data = task.make()
        write_all(target, data.data, task.offset)
        return zlib.crc32(data.data)

    pool = ThreadPoolExecutor(threads)
    try:
        sums: dict[int, list[int]] = {}
        for task, found in zip(tasks, pool.map(work, tasks), strict=True):
            sums.setdefault(task.part, []).append(found)
        return sums
    finally:
        pool.shutdown(cancel_futures=True)


def _summed(part: Part, sums: dict[int, list[int]]) -> Part:
    # A part without bytes has no place of its own.
    return replace(part, crc32=tuple(sums[part.offset]) if part.bytes else ())

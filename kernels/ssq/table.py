"""The table of an SSQ file: what a tensor and a source are in it, as JSON, and back with every value checked.

A checksum says that a table is as it was written, not that what it says makes sense: sizes may be negative or larger
than any file. It reads no file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from gguf import GGMLQuantizationType

from kernels.ssq.block import BYTES, WEIGHTS

PIECE_BLOCKS = 65536
PIECE = PIECE_BLOCKS * BYTES
MAX_WEIGHTS = 1 << 48
MAX_TEXT = 1 << 16
MAX_DIMENSIONS = 8
_KINDS = frozenset(GGMLQuantizationType.__members__)


class TableError(ValueError):
    """The table cannot be that of an SSQ file; the sentence says why."""


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes of a tensor in the file, with a checksum for each `PIECE` of them. `kind` is the ggml type it came from."""

    kind: str
    offset: int
    bytes: int
    crc32: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Tensor:
    """`shape` has rows first. `kinds` names the ggml types of the sources: one where both streams are one model."""

    name: str
    kind: str
    shape: tuple[int, ...]
    kinds: tuple[str, ...]
    parts: tuple[Part, ...]

    @property
    def weights(self) -> int:
        """Weights of one stream."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Origin:
    """What a stream came from: the file's name, its format, and GGUF's metadata as one part."""

    file: str
    format: str
    pairs: int
    alignment: int
    metadata: Part


def pieces(size: int) -> Iterator[tuple[int, int]]:
    """Start and end of each piece of a part."""
    return ((start, min(start + PIECE, size)) for start in range(0, size, PIECE))


def table_bytes(tensors: list[Tensor], origins: list[Origin]) -> bytes:
    """The table at the end of a file, as JSON."""
    whole = {
        "block": {"weights": WEIGHTS, "bytes": BYTES},
        "piece": PIECE,
        "origins": [_record(origin) | {"metadata": _record(origin.metadata)} for origin in origins],
        "tensors": [_record(tensor) | {"parts": [*map(_record, tensor.parts)]} for tensor in tensors],
    }
    return json.dumps(whole, separators=(",", ":")).encode()


def _record(entry: Part | Tensor | Origin) -> dict[str, Any]:
    return {field.name: getattr(entry, field.name) for field in fields(entry)}


def table_of(table: Any, size: int) -> tuple[list[Origin], dict[str, Tensor]]:
    """Sources, and tensors by name, of a table that stands in a file of `size` bytes. Raises `TableError`."""
    whole = _mapping(table, "its table")
    held = _mapping(_get(whole, "block", "its table"), "its blocks")
    shape = (_get(held, "weights", "its blocks"), _get(held, "bytes", "its blocks"), _get(whole, "piece", "its table"))
    if shape != (WEIGHTS, BYTES, PIECE):
        raise TableError(f"it has blocks and pieces of {shape}; this version reads {(WEIGHTS, BYTES, PIECE)}")
    origins = [_origin(entry, size) for entry in _list(_get(whole, "origins", "its table"), "its origins")]
    if len(origins) not in (1, 2):
        raise TableError(f"it comes from {len(origins)} sources, not from one or two")
    tensors: dict[str, Tensor] = {}
    for entry in _list(_get(whole, "tensors", "its table"), "its tensors"):
        found = _tensor(entry, size, len(origins))
        if found.name in tensors:
            raise TableError(f"it names tensor {found.name} twice")
        tensors[found.name] = found
    return origins, tensors


def _origin(entry: Any, size: int) -> Origin:
    known = _mapping(entry, "an origin")
    file = _text(_get(known, "file", "an origin"), "an origin's file")
    alignment = _number(_get(known, "alignment", file), f"the alignment of {file}", 1 << 20)
    if alignment < 1 or alignment & (alignment - 1):
        raise TableError(f"the alignment of {file} is {alignment}, no power of two")
    return Origin(
        file, _text(_get(known, "format", file), f"the format of {file}"),
        _number(_get(known, "pairs", file), f"the pairs of {file}", 1 << 32), alignment,
        _part(_get(known, "metadata", file), size, f"the metadata of {file}"),
    )  # fmt: skip


def _tensor(entry: Any, size: int, origins: int) -> Tensor:
    known = _mapping(entry, "a tensor")
    name = _text(_get(known, "name", "a tensor"), "a tensor's name")
    what = f"tensor {name}"
    kind = _text(_get(known, "kind", what), f"the kind of {what}")
    shape = tuple(_number(one, f"the shape of {what}", MAX_WEIGHTS) for one in _list(_get(known, "shape", what), what))
    if not 1 <= len(shape) <= MAX_DIMENSIONS or math.prod(shape) > MAX_WEIGHTS:
        raise TableError(f"{what} has the shape {shape}")
    kinds = tuple(_kind(one, what) for one in _list(_get(known, "kinds", what), what))
    parts = tuple(_part(part, size, what) for part in _list(_get(known, "parts", what), what))
    made = Tensor(name, kind, shape, kinds, parts)
    if kind == "ssq":
        fits = len(parts) == 1 and shape[-1] % WEIGHTS == 0 and parts[0].bytes * WEIGHTS == made.weights * BYTES
    elif kind == "raw":
        fits = 1 <= len(parts) <= origins
        for part in parts:
            _kind(part.kind, what)
    else:
        raise TableError(f"{what} is of the kind {kind[:80]!r}, neither ssq nor raw")
    if not fits:
        raise TableError(f"{what} has not the bytes of its shape")
    return made


def _part(entry: Any, size: int, what: str) -> Part:
    known = _mapping(entry, what)
    offset = _number(_get(known, "offset", what), f"the offset of {what}", 1 << 62)
    length = _number(_get(known, "bytes", what), f"the bytes of {what}", 1 << 62)
    if offset + length > size:
        raise TableError(f"it is truncated: {what} ends beyond its {size} bytes")
    sums = _list(_get(known, "crc32", what), f"the checksums of {what}")
    if len(sums) != -(-length // PIECE):
        raise TableError(f"{what} lacks checksums")
    checked = tuple(_number(one, f"a checksum of {what}", (1 << 32) - 1) for one in sums)
    return Part(_text(_get(known, "kind", what), f"the kind of {what}"), offset, length, checked)


def _get(known: dict[str, Any], key: str, what: str) -> Any:
    if key not in known:
        raise TableError(f"{what} lacks '{key}'")
    return known[key]


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TableError(f"{what} is no mapping")
    return value


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise TableError(f"{what} has no list where one belongs")
    return value


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise TableError(f"{what} is no text")
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a pair of surrogates, which JSON can write and no file's name hold
        raise TableError(f"{what} is no text") from None
    return value


def _kind(value: Any, what: str) -> str:
    if value not in _KINDS if isinstance(value, str) else True:
        raise TableError(f"{what} is of the type {str(value)[:80]!r}, which this gguf package does not know")
    return str(value)


def _number(value: Any, what: str, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise TableError(f"{what} is {str(value)[:80]}, not a whole number from 0 to {most}")
    return value

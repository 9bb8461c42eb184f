"""A table whose checksum is right and that says nonsense: one sentence, and nothing is computed from it."""

from __future__ import annotations

import json
import struct
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernels.errors import KernelError
from kernels.ssq import open_container, unpack
from kernels.ssq.block import BYTES, WEIGHTS
from kernels.ssq.container import HEADER_BYTES, header_bytes
from kernels.ssq.table import PIECE, TableError, table_of

SIZE = 4096


def part(**more: Any) -> dict[str, Any]:
    return {"kind": "F32", "offset": 64, "bytes": 128, "crc32": [1]} | more


def sound() -> dict[str, Any]:
    origin = {"file": "a.gguf", "format": "gguf", "pairs": 0, "alignment": 32, "metadata": part(bytes=0, crc32=[])}
    packed = {"name": "w", "kind": "ssq", "shape": [2, WEIGHTS], "kinds": ["Q8_0"], "parts": [part(bytes=2 * BYTES)]}
    kept = {"name": "n", "kind": "raw", "shape": [32], "kinds": ["F32"], "parts": [part()]}
    block = {"weights": WEIGHTS, "bytes": BYTES}
    return {"block": block, "piece": PIECE, "origins": [origin], "tensors": [packed, kept]}


def at(*path: str | int, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(table: dict[str, Any]) -> None:
        place: Any = table
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


NONSENSE = [
    *(at(key, value=value) for key in ("block", "piece", "origins", "tensors")
      for value in (None, [1], {"a": 1}, "x", 3)),
    *(at("origins", 0, key, value=value) for key in ("file", "pairs", "alignment", "metadata")
      for value in (None, -1, 2**70, "\ud800", [], 1.5, True)),
    at("origins", 0, "metadata", "bytes", value=2**63), at("origins", value=[]), at("origins", 0, "alignment", value=3),
    *(at("tensors", 0, "parts", 0, key, value=value) for key in ("offset", "bytes", "crc32")
      for value in (-1, 2**63, "1", None, 1.0, {})),
    at("tensors", 0, "parts", value=[]), at("tensors", 0, "parts", value=[part(), part()]),
    at("tensors", 0, "shape", value=[]), at("tensors", 0, "shape", value=[2**40, 2**40]),
    at("tensors", 0, "shape", value=[-2, 32]), at("tensors", 0, "shape", value=[2, 31]),
    at("tensors", 0, "kind", value="other"), at("tensors", 1, "parts", 0, "kind", value="F33"),
    at("tensors", 1, "kinds", value=["Z"]), at("tensors", 1, "name", value="w"), at("tensors", 1, "name", value=7),
    at("tensors", 1, "parts", value=[part(), part()]),
]  # fmt: skip


def test_a_sound_table() -> None:
    origins, tensors = table_of(sound(), SIZE)
    assert len(origins) == 1 and [*tensors] == ["w", "n"] and tensors["w"].weights == 64


@pytest.mark.parametrize("change", NONSENSE)
def test_nonsense_is_told(change: Callable[[dict[str, Any]], None]) -> None:
    table = sound()
    change(table)
    with pytest.raises(TableError):
        table_of(table, SIZE)


def written(path: Path, text: bytes) -> Path:
    path.write_bytes(header_bytes(SIZE, text) + bytes(SIZE - HEADER_BYTES) + text)
    return path


@pytest.mark.parametrize("text", [b"", b"no json", b"[" * 100_000, b"[]", b"{}", b"\xff", b"1" * 5000])
def test_a_table_that_is_none_with_a_right_checksum(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(KernelError, match=r"is damaged: .*pack it again"):
        open_container(written(tmp_path / "t.ssq", text))


def test_metadata_of_two_to_the_63_bytes_is_refused_at_once(tmp_path: Path) -> None:
    table = sound()
    at("origins", 0, "metadata", "bytes", value=2**63)(table)
    began = time.monotonic()
    with pytest.raises(KernelError, match="is damaged"):
        open_container(written(tmp_path / "t.ssq", json.dumps(table).encode()))
    assert time.monotonic() - began < 1


def test_metadata_that_cannot_be_read_are_told_when_unpacking(tmp_path: Path) -> None:
    table = sound()
    table["tensors"] = []
    table["origins"][0] |= {"pairs": 3, "metadata": part(bytes=16, crc32=[zlib.crc32(bytes(16))])}
    with pytest.raises(KernelError, match=r"metadata of a\.gguf cannot be read"):
        unpack(written(tmp_path / "t.ssq", json.dumps(table).encode()), [tmp_path / "a.gguf"])
    assert not (tmp_path / "a.gguf").exists()


def test_a_table_of_gigabytes_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "t.ssq"
    start = bytearray(header_bytes(HEADER_BYTES, b""))
    struct.pack_into("<Q", start, 24, 1 << 40)
    start[-4:] = struct.pack("<I", zlib.crc32(bytes(start[:-4])))
    path.write_bytes(bytes(start))
    with pytest.raises(KernelError, match="its table has 1099511627776 bytes"):
        open_container(path)

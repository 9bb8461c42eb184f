"""Random weights as the bytes of a file: blocks of random bits whose scales make the weights spread as asked.

Nothing is quantised: any bits are valid quants, and only the few scale fields of a block decide how large its weights
are. Layouts follow ggml-common.h. Each block's scale has a random size (0.5 to 1.5) and sign; the sign takes away the
small bias of formats without an exact middle, which deep stacks of layers would otherwise add up.

It knows no tensor and no file. Random bits come from numpy's SFC64 as raw words, whose stream numpy keeps stable.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from gguf.constants import GGMLQuantizationType as Type
from numpy.typing import NDArray

from bench.synth.formats import unit

POOL_BYTES = 16 << 20
_UNIFORM = math.sqrt(12.0)
_SIZES = math.sqrt(1 + 1 / 12)
"""Root mean square of a scale's random size."""
Pieces: TypeAlias = NDArray[np.uint8]
"""Blocks of a type as bytes, uint8 (blocks, bytes of a block)."""
Scales: TypeAlias = NDArray[np.float64]
"""How far the weights of each block spread, float64 (blocks,), with a sign."""
Put: TypeAlias = Callable[[Pieces, Scales], None]
"""Writes the scales into the pieces, whose other bits stay as they are."""


def words(seed: int, label: str, count: int) -> NDArray[np.uint64]:
    """Random uint64 (count,), fixed by the seed and the label."""
    digest = hashlib.sha256(f"{seed}/{label}".encode()).digest()
    sequence = np.random.SeedSequence(np.frombuffer(digest, dtype="<u4").tolist())
    return np.random.SFC64(sequence).random_raw(count)


def _fractions(seed: int, label: str, count: int) -> NDArray[np.float64]:
    """Uniform numbers of [0, 1)."""
    return (words(seed, label, count) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def numbers(seed: int, label: str, count: int, centre: float, spread: float) -> NDArray[np.float32]:
    """Float32 (count,), uniform around `centre` with the standard deviation `spread`."""
    return ((_fractions(seed, label, count) - 0.5) * (_UNIFORM * spread) + centre).astype("<f4")


def pool(seed: int, kind: Type, spread: float, rows: int) -> NDArray[np.uint8]:
    """Random pieces of a type, uint8 (bytes,), to be written again and again.

    Their number is a prime above `rows`, so that rows of a whole number of pieces never begin at the same place: no two
    rows of a matrix are equal, and no two logits are equal by construction.
    """
    count = _prime_above(max(rows, POOL_BYTES // unit(kind)[1]))
    label = kind.name
    size = unit(kind)[1]
    raw = words(seed, f"{label}/quants", -(-count * size // 8)).astype("<u8").view(np.uint8)[: count * size]
    pieces = raw.reshape(count, size)
    draws = words(seed, f"{label}/scales", count)
    sign = 1.0 - 2.0 * (draws & np.uint64(1))
    scale = (0.5 + (draws >> np.uint64(11)) * 2.0**-53) * sign * (spread / _SIZES)
    _SET[kind](pieces, scale)
    return pieces.reshape(-1)


def _half(pieces: Pieces, at: int, values: NDArray[np.floating]) -> None:
    """Write float16 into two bytes of every piece."""
    pieces[:, at : at + 2] = values.astype("<f2").view(np.uint8).reshape(-1, 2)


def _f16(pieces: Pieces, scale: Scales) -> None:
    bits = pieces.view("<u2").astype(np.float32)  # uniform whole numbers, 0 to 65535
    steps = (bits - 32767.5) * np.float32(_UNIFORM / 65536)
    pieces[:] = (steps * scale[:, None].astype(np.float32)).astype("<f2").view(np.uint8)


def _symmetric(levels: int, at: int = 0) -> Put:
    """Quants around a middle that the format subtracts; one float16 scale at the byte `at`."""

    def put(pieces: Pieces, scale: Scales) -> None:
        _half(pieces, at, scale / _deviation(levels))

    return put


def _with_minimum(levels: int) -> Put:
    """Quants from 0 up: a float16 scale, then a float16 minimum that is added."""

    def put(pieces: Pieces, scale: Scales) -> None:
        step = (scale / _deviation(levels)).astype(np.float16).astype(np.float64)
        _half(pieces, 0, step)
        _half(pieces, 2, -step * (levels - 1) / 2)

    return put


def _super_block(levels: int) -> Put:
    """Q4_K, Q5_K: eight 6-bit scales and minima in 12 bytes, made equal pairs of 32 to 63."""

    def put(pieces: Pieces, scale: Scales) -> None:
        step = (scale / (_deviation(levels) * _mean_square_root(32, 64))).astype(np.float16).astype(np.float64)
        _half(pieces, 0, step)
        _half(pieces, 2, step * (levels - 1) / 2)
        packed = pieces[:, 4:16]
        packed[:, 0:4] |= 0xA0  # the highest bit of this scale, and of the one four further on
        packed[:, 4:8] = packed[:, 0:4]
        low = packed[:, 8:12] & 0x0F
        packed[:, 8:12] = low | (low << 4)

    return put


def _q6_k(pieces: Pieces, scale: Scales) -> None:
    """Sixteen int8 scales at byte 192, made +-64 to +-127, and a float16 at byte 208."""
    scales = pieces[:, 192:208].view(np.int8)
    scales[:] = np.where(scales < 0, -1, 1) * (64 + (scales & 0x3F))
    _half(pieces, 208, scale / (_deviation(64) * _mean_square_root(64, 128)))


def _deviation(levels: int) -> float:
    """Standard deviation of whole numbers drawn uniformly from that many neighbours."""
    return math.sqrt((levels * levels - 1) / 12)


def _mean_square_root(low: int, high: int) -> float:
    return math.sqrt(sum(value * value for value in range(low, high)) / (high - low))


_SET: dict[Type, Put] = {
    Type.F16: _f16, Type.Q8_0: _symmetric(256), Type.Q5_0: _symmetric(32), Type.Q4_1: _with_minimum(16),
    Type.Q5_1: _with_minimum(32), Type.Q4_K: _super_block(16), Type.Q5_K: _super_block(32), Type.Q6_K: _q6_k,
}  # fmt: skip


def _prime_above(number: int) -> int:
    candidate = number + 1
    while any(candidate % divisor == 0 for divisor in range(2, math.isqrt(candidate) + 1)):
        candidate += 1
    return candidate

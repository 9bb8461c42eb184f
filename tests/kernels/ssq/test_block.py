"""The 68 bytes of a block against the description of the format, read with struct."""

from __future__ import annotations

import struct

import numpy as np

from kernels.ssq import block


def q8_blocks(seed: int, count: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, block.Q8_BYTES), dtype=np.uint8)


def read_slowly(packed: bytes) -> tuple[list[tuple[bytes, list[int]]], list[tuple[bytes, list[int]]]]:
    """[scale_A f16][scale_B f16][32 x uint16], A in the high byte: both streams, one value at a time."""
    a, b = [], []
    for start in range(0, len(packed), 68):
        scales, words = packed[start : start + 4], struct.unpack_from("<32H", packed, start + 4)
        a.append((scales[:2], [(word >> 8) - 256 * (word >> 15) for word in words]))
        b.append((scales[2:], [(word & 0xFF) - 256 * (word >> 7 & 1) for word in words]))
    return a, b


def as_q8(stream: list[tuple[bytes, list[int]]]) -> bytes:
    return b"".join(scale + struct.pack("<32b", *weights) for scale, weights in stream)


def test_blocks_are_what_the_format_says() -> None:
    a, b = q8_blocks(1, 9), q8_blocks(2, 9)
    out = np.zeros((9, block.BYTES), np.uint8)
    block.interleave(a, b, out)
    first, second = read_slowly(out.tobytes())
    assert as_q8(first) == a.tobytes()
    assert as_q8(second) == b.tobytes()


def test_identical_twins_hold_the_same_weights_twice() -> None:
    a = q8_blocks(3, 5)
    once, twice = np.zeros((5, 68), np.uint8), np.zeros((5, 68), np.uint8)
    block.interleave(a, a, once)
    block.interleave(a, a.copy(), twice)
    assert once.tobytes() == twice.tobytes()


def test_streams_come_back() -> None:
    a, b = q8_blocks(4, 7), q8_blocks(5, 7)
    out = np.zeros((7, 68), np.uint8)
    block.interleave(a, b, out)
    assert block.stream(out, 0).tobytes() == a.tobytes()
    assert block.stream(out, 1).tobytes() == b.tobytes()


def test_values_are_scale_times_weight() -> None:
    q8 = np.frombuffer(struct.pack("<e32b", 0.5, *range(-16, 16)), np.uint8).reshape(1, 34)
    assert block.values(q8)[0].tolist() == [0.5 * weight for weight in range(-16, 16)]

"""One block: 32 weights of two streams in 68 bytes, and the Q8_0 blocks that it is made of.

All arrays are uint8 with one block a row; everything is little-endian. It knows no file and no tensor.
"""

from __future__ import annotations

import numpy as np

WEIGHTS = 32
"""Weights of each stream in a block, the same number as in a Q8_0 block."""
BYTES = 68
"""Two f16 scales and 32 uint16."""
Q8_BYTES = 34
"""A Q8_0 block: one f16 scale and 32 int8."""


def interleave(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """Blocks of stream A and B (n x 34, Q8_0) side by side into `out` (n x 68). The bits of both are kept.

    Every byte becomes half a word, those of the scales too, which takes a third of the time of going row by row; a
    block's first two words, which should hold the scales whole, are put right after.
    """
    words = out.reshape(-1).view("<u2")
    np.copyto(words, a.reshape(-1))
    if a is b:
        np.multiply(words, np.uint16(0x101), out=words)
    else:
        np.left_shift(words, np.uint16(8), out=words)
        np.bitwise_or(words, b.reshape(-1), out=words)
    scales = out.view("<u2")
    scales[:, 0] = a.view("<u2")[:, 0]
    scales[:, 1] = b.view("<u2")[:, 0]


def stream(blocks: np.ndarray, which: int) -> np.ndarray:
    """The Q8_0 blocks (n x 34) of one stream, 0 for A and 1 for B, out of SSQ blocks (n x 68)."""
    out = np.empty((len(blocks), Q8_BYTES), np.uint8)
    out[:, :2] = blocks[:, 2 * which : 2 * which + 2]
    out[:, 2:] = blocks[:, 5 - which :: 2]
    return out


def values(q8: np.ndarray) -> np.ndarray:
    """Weights of Q8_0 blocks (n x 34) as float32, n x 32."""
    return q8[:, :2].copy().view("<f2").astype(np.float32) * q8[:, 2:].view(np.int8)

"""Weights in planes, as src/planes.h has them: the file's own bytes in the order in which dot products take them.

It moves bits and loses none: `to_blocks` gives the file's bytes back. It knows no device and decodes no value.
"""

from __future__ import annotations

import numpy as np

from kernels.errors import KernelError
from kernels.layouts import Q4_K, Q5_K, Q6_K, Q8_0, Format, q4_values, q5_values, q6_values


def of_blocks(fmt: Format, blocks: np.ndarray, cols: int) -> np.ndarray:
    """The planes one after the other, uint8 [rows x row_bytes], of uint8 [rows, row_bytes] in the file's layout.

    KernelError where `cols` is no multiple of 256.
    """
    if cols % 256:
        raise KernelError(f"{cols} columns are no multiple of 256, and planes are made of such; choose another number.")
    data = blocks.reshape(len(blocks), cols // 256, fmt.bytes_256)
    parts = {Q8_0: _q8_0, Q6_K: _q6_k, Q5_K: _q5_k, Q4_K: _q4_k}[fmt](data)
    return np.concatenate([np.ascontiguousarray(part).reshape(-1) for part in parts])


def to_blocks(fmt: Format, planes: np.ndarray, rows: int, cols: int) -> np.ndarray:
    """The inverse: uint8 [rows, row_bytes]."""
    supers = rows * cols // 256
    sizes = {Q8_0: (256, 16), Q6_K: (128, 64, 16, 2), Q5_K: (128, 32, 16), Q4_K: (128, 16)}[fmt]
    ends = np.cumsum([size * supers for size in sizes])[:-1]
    parts = [part.reshape(supers, -1) for part in np.split(planes, ends)]
    made = {Q8_0: _from_q8_0, Q6_K: _from_q6_k, Q5_K: _from_q5_k, Q4_K: _from_q4_k}[fmt](parts)
    return made.reshape(rows, -1)


def _words(values: np.ndarray) -> np.ndarray:
    """[rows, s, 256] -> [rows x s x 8 chunks, 8 words, 4 bytes]."""
    return values.reshape(-1, 8, 4)


def _low(words: np.ndarray) -> np.ndarray:
    """Nibbles of the words, [chunks, 4, 4]: word j in the lower nibble of word j / 2 where j is even."""
    return (words[:, 0::2] & 15) | (words[:, 1::2] & 15) << 4


def _from_low(low: np.ndarray) -> np.ndarray:
    """[.., 128] -> [chunks, 8, 4]."""
    pairs = low.reshape(-1, 4, 1, 4)
    return np.concatenate([pairs & 15, pairs >> 4], axis=2).reshape(-1, 8, 4)


def _q8_0(data: np.ndarray) -> list[np.ndarray]:
    blocks = data.reshape(-1, 34)
    return [blocks[:, 2:], blocks[:, :2]]


def _from_q8_0(parts: list[np.ndarray]) -> np.ndarray:
    quants, scales = parts
    return np.concatenate([scales.reshape(-1, 2), quants.reshape(-1, 32)], axis=1)


def _q6_k(data: np.ndarray) -> list[np.ndarray]:
    words = _words(q6_values(data))
    shifts = 2 * np.arange(4, dtype=np.uint8).reshape(4, 1)
    high = np.bitwise_or.reduce((words.reshape(-1, 2, 4, 4) >> 4) << shifts, axis=2)
    return [_low(words), high, data[..., 192:208], data[..., 208:]]


def _from_q6_k(parts: list[np.ndarray]) -> np.ndarray:
    low, high, scales, d = parts
    shifts = 2 * np.arange(4, dtype=np.uint8).reshape(4, 1)
    top = (high.reshape(-1, 2, 1, 4) >> shifts & 3).reshape(-1, 8, 4)
    values = (_from_low(low) | top << 4).reshape(-1, 2, 4, 32)  # superblock, half, quarter, weight
    ql = (values[:, :, :2] & 15) | (values[:, :, 2:] & 15) << 4
    places = 2 * np.arange(4, dtype=np.uint8).reshape(4, 1)
    qh = np.bitwise_or.reduce((values >> 4) << places, axis=2)
    return np.concatenate([ql.reshape(-1, 128), qh.reshape(-1, 64), scales, d], axis=1)


def _q5_k(data: np.ndarray) -> list[np.ndarray]:
    words = _words(q5_values(data))
    high = np.bitwise_or.reduce((words >> 4) << np.arange(8, dtype=np.uint8).reshape(8, 1), axis=1)
    return [_low(words), high, data[..., :16]]


def _from_q5_k(parts: list[np.ndarray]) -> np.ndarray:
    low, high, header = parts
    top = high.reshape(-1, 1, 4) >> np.arange(8, dtype=np.uint8).reshape(8, 1) & 1
    values = (_from_low(low) | top << 4).reshape(-1, 8, 32)  # superblock, block, weight
    qh = np.bitwise_or.reduce((values >> 4) << np.arange(8, dtype=np.uint8).reshape(8, 1), axis=1)
    return np.concatenate([header, qh, _file_nibbles(values)], axis=1)


def _q4_k(data: np.ndarray) -> list[np.ndarray]:
    return [_low(_words(q4_values(data))), data[..., :16]]


def _from_q4_k(parts: list[np.ndarray]) -> np.ndarray:
    low, header = parts
    return np.concatenate([header, _file_nibbles(_from_low(low).reshape(-1, 8, 32))], axis=1)


def _file_nibbles(values: np.ndarray) -> np.ndarray:
    """[superblocks, 8 blocks, 32] -> [superblocks, 128]: blocks 2 k and 2 k + 1 share the bytes of pair k."""
    return ((values[:, 0::2] & 15) | (values[:, 1::2] & 15) << 4).reshape(-1, 128)

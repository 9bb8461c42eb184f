"""What each kernel must compute, in float64. It knows no device and no timing.

The dequantisers follow ggml's block layouts (ggml-common.h, ggml-quants.c); gguf's own checks them in tests.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from kernels.layouts import Q5_K, Q6_K, Q8_0, Format, q4_values, q5_scales, q5_values, q6_values

FLOAT_TOLERANCE = 1e-3
INT8_TOLERANCE = 1e-2  # int8 activations with one scale for 32 values


def _half(data: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(data).view("<f2").astype(np.float64)


def dequantise(fmt: Format, blocks: np.ndarray, cols: int) -> NDArray[np.float64]:
    """float64 [rows, cols] of uint8 [rows, row_bytes] in the file's layout."""
    data = blocks.reshape(blocks.shape[0], cols // 256, fmt.bytes_256)
    if fmt is Q8_0:
        part = data.reshape(blocks.shape[0], cols // 32, 34)
        values = np.ascontiguousarray(part[..., 2:]).view(np.int8) * _half(part[..., :2])
    elif fmt is Q6_K:
        scales = np.ascontiguousarray(data[..., 192:208]).view(np.int8) * _half(data[..., 208:])
        values = (q6_values(data).astype(np.float64) - 32) * np.repeat(scales, 16, axis=2)
    else:
        scales, least = q5_scales(data[..., 4:16])
        d, dmin = _half(data[..., :2]), _half(data[..., 2:4])
        quants = q5_values(data) if fmt is Q5_K else q4_values(data)
        values = quants * np.repeat(scales * d, 32, axis=2) - np.repeat(least * dmin, 32, axis=2)
    dense: NDArray[np.float64] = values.reshape(blocks.shape[0], cols)
    return dense


def flat(quants: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """float64 [rows, cols] of int8 [rows, cols] and f16 [rows, cols / 32]."""
    return quants.astype(np.float64) * np.repeat(scales.astype(np.float64), 32, axis=1)


def ssq(blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Matrices A and B, float64 [rows, cols], of uint8 [rows, cols / 32, 68]."""
    scales = np.ascontiguousarray(blocks[..., :4]).view("<f2").astype(np.float64)
    words = np.ascontiguousarray(blocks[..., 4:]).view("<u2")
    a = (words >> 8).astype(np.uint8).view(np.int8) * scales[..., 0:1]
    b = (words & 255).astype(np.uint8).view(np.int8) * scales[..., 1:2]
    return a.reshape(len(blocks), -1), b.reshape(len(blocks), -1)


def gemv(weights: NDArray[np.float64], x: np.ndarray) -> NDArray[np.float64]:
    """float64 [n, rows] of weights [rows, cols] and activations [n, cols]."""
    product: NDArray[np.float64] = x.astype(np.float64) @ weights.T
    return product


def twin_scores(q: np.ndarray, keys: np.ndarray) -> NDArray[np.float64]:
    """float64 [2, positions] of q [2, dim] and keys [2, positions, dim]."""
    scores: NDArray[np.float64] = np.einsum("td,tpd->tp", q.astype(np.float64), keys.astype(np.float64))
    return scores / math.sqrt(q.shape[1])


def softmax(logits: np.ndarray) -> NDArray[np.float64]:
    """float64 [n, vocabulary], each row of logits [n, vocabulary] as probabilities."""
    shifted: NDArray[np.float64] = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    sums: NDArray[np.float64] = shifted.sum(axis=1, keepdims=True)
    return shifted / sums


def verify(logits: np.ndarray, drafts: np.ndarray) -> tuple[np.ndarray, int]:
    """argmax of each row of logits [n, vocabulary], and how many of drafts [n - 1] agree with the row before them."""
    tokens = logits.argmax(axis=1)
    agree = tokens[:-1] == drafts
    return tokens, int(len(agree) if agree.all() else agree.argmin())


def relative_error(out: np.ndarray, expected: np.ndarray) -> float:
    """Frobenius norm of the difference over that of the oracle, two arrays of one shape [n, rows]; NaN is infinite."""
    difference = np.linalg.norm(out.astype(np.float64) - expected) / np.linalg.norm(expected)
    return float(difference) if np.isfinite(difference) else float("inf")

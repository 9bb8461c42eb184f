"""Any weight type to Q8_0 blocks: a Q8_0 source is handed through bit by bit, others are decoded and rounded.

What a type means is the gguf package's word. ggml's own routines are many times as fast; they
take its place where the installed llama.cpp has them and they agree with it bit by bit on a sample, so the result is
the same on every machine. It knows no file and no tensor's name.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type

from kernels.ssq.block import Q8_BYTES, WEIGHTS

PLAIN = frozenset({"F64", "F32", "F16", "BF16"})
"""Types without scales: one value may be no number while its neighbours are."""
INTEGERS = frozenset({"I8", "I16", "I32", "I64"})
Decode = Callable[[np.ndarray], np.ndarray]
"""Bytes of whole blocks to float32, both flat."""
SAMPLE_BLOCKS = 64


@lru_cache
def can_decode(kind: str) -> bool:
    """Whether weights of this ggml type have values that the gguf package knows."""
    try:
        gguf.quants.dequantize(np.zeros((1, block_size(kind)[1]), np.uint8), Type[kind])
    except NotImplementedError:
        return kind == "F16"
    return True


def block_size(kind: str) -> tuple[int, int]:
    """Weights and bytes of a block of a ggml type."""
    weights, size = gguf.GGML_QUANT_SIZES[Type[kind]]
    return weights, size


def to_q8_0(data: np.ndarray, kind: str) -> np.ndarray:
    """Q8_0 blocks (n x 34, uint8) of the bytes of 32 n weights.

    Scale: largest magnitude / 127, stored as f16; weights: nearest, ties to even. ValueError where a value is not
    finite or too large for an f16 scale.
    """
    if kind == "Q8_0":
        return data.reshape(-1, Q8_BYTES)
    floats = decoder(kind)(data)
    if kind in PLAIN:
        # NaN and infinities survive a sum, which is the quickest way to see them.
        with np.errstate(over="ignore", invalid="ignore"):
            if not np.isfinite(np.add.reduce(floats)):
                raise ValueError("has values that are not finite numbers")
    blocks = quantizer()(floats)
    # In the other types a scale makes a value infinite or NaN, and with it all 32, so the largest is too.
    if not np.isfinite(blocks.view("<f2")[:, 0]).all():
        raise ValueError("has values beyond 127 x 65504, which no f16 scale can hold")
    return blocks


def rounded(floats: np.ndarray) -> np.ndarray:
    """The definition of the rounding above, in numpy: Q8_0 blocks (n x 34, uint8) of float32 (32 n,)."""
    rows = floats.reshape(-1, WEIGHTS)
    largest = np.abs(rows).max(axis=1)
    out = np.empty((len(rows), Q8_BYTES), np.uint8)
    with np.errstate(over="ignore", divide="ignore"):
        out[:, :2] = (largest / np.float32(127)).astype("<f2")[:, None].view(np.uint8)
        factor = np.where(largest > 0, np.float32(127) / largest, np.float32(0))
    out[:, 2:] = np.rint(rows * factor[:, None]).astype(np.int8).view(np.uint8)
    return out


@lru_cache
def decoder(kind: str) -> Decode:
    """How the weights of a type are decoded here: by ggml where it gives the same bits, else by the gguf package."""
    if kind == "F32":
        return lambda data: data.view("<f4")
    slow = _package_decoder(kind)
    fast = _ggml_decoder(kind)
    if fast is None:
        return slow
    bytes_each = block_size(kind)[1]
    sample = np.random.default_rng(0).integers(0, 256, SAMPLE_BLOCKS * bytes_each, dtype=np.uint8)
    with np.errstate(all="ignore"):
        return fast if np.array_equal(slow(sample), fast(sample), equal_nan=True) else slow


def _package_decoder(kind: str) -> Decode:
    size, type_ = block_size(kind)[1], Type[kind]
    if kind == "F16":
        return lambda data: data.view("<f2").astype(np.float32)
    return lambda data: gguf.quants.dequantize(data.reshape(-1, size), type_).reshape(-1)


@lru_cache
def quantizer() -> Decode:
    """How floats are rounded here: ggml's routine where it keeps to the definition, else the definition."""
    library = _library("ggml-cpu")
    if library is None:
        return rounded
    library.ggml_cpu_init()
    library.ggml_get_type_traits_cpu.restype = ctypes.POINTER(_ROUTINE)
    routine = library.ggml_get_type_traits_cpu(int(Type.Q8_0)).contents

    def quick(floats: np.ndarray) -> np.ndarray:
        out = np.empty((floats.size // WEIGHTS, Q8_BYTES), np.uint8)
        routine(floats.ctypes.data, out.ctypes.data, floats.size)
        return out

    random = np.random.default_rng(0)
    plain = random.standard_normal(4096).astype(np.float32)
    ties = random.integers(-127, 128, 4096).astype(np.float32) / np.float32(2)
    ties[::WEIGHTS] = 127  # a factor of exactly 1, so every second value lies between two integers
    samples = (plain, plain * np.float32(1e-7), ties, np.zeros(WEIGHTS, np.float32))
    return quick if all(np.array_equal(quick(sample), rounded(sample)) for sample in samples) else rounded


_ROUTINE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


class _Traits(ctypes.Structure):
    """`struct ggml_type_traits` of ggml.h, up to the routine that is called."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("weights", ctypes.c_int64),
        ("interleave", ctypes.c_int64),
        ("bytes", ctypes.c_size_t),
        ("quantized", ctypes.c_bool),
        ("to_float", ctypes.c_void_p),
    )


def _ggml_decoder(kind: str) -> Decode | None:
    library = _library("ggml-base")
    if library is None:
        return None
    library.ggml_get_type_traits.restype = ctypes.POINTER(_Traits)
    traits = library.ggml_get_type_traits(int(Type[kind])).contents
    weights, size = block_size(kind)
    # Another layout of the structure would call an address that is none.
    if (traits.name or b"").lower() != kind.lower().encode() or (traits.weights, traits.bytes) != (weights, size):
        return None
    if not traits.to_float:
        return None
    routine = _ROUTINE(traits.to_float)

    def decode(data: np.ndarray) -> np.ndarray:
        floats = np.empty(data.size // size * weights, np.float32)
        routine(data.ctypes.data, floats.ctypes.data, floats.size)
        return floats

    return decode


@lru_cache
def _library(name: str) -> ctypes.CDLL | None:
    """One of the libraries of the installed llama-cpp-python, without importing it."""
    spec = importlib.util.find_spec("llama_cpp")
    folder = os.environ.get("LLAMA_CPP_LIB_PATH") or (spec and spec.origin and Path(spec.origin).parent / "lib")
    if not folder:
        return None
    try:
        if name != "ggml-base":
            _library("ggml-base")
        return ctypes.CDLL(str(Path(folder) / f"lib{name}.so"))
    except OSError:
        return None

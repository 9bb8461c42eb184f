"""Planes hold every bit of the file, and what a lane makes of them, and of file blocks, is the product.

The device's own headers are compiled for this processor, with the product of four bytes written out, lane by lane.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

from kernels import layouts, planes, reference
from kernels.build import SOURCE_DIR
from kernels.errors import KernelError
from kernels.layouts import FORMATS, Q4_K
from kernels.variants import K_FORMATS
from tests.kernels.on_cpu import DEVICE, KERNELS

STREAMS = (1, 3, 8)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planes")
    for name in ("args.h", "planes.h", "native.h"):
        shutil.copy(SOURCE_DIR / name, folder / name)
    (folder / "device.h").write_text(DEVICE)
    (folder / "kernels.cpp").write_text(KERNELS)
    compiler = next(filter(None, map(shutil.which, ("g++", "clang++", "c++"))))
    command = [compiler, "-std=c++17", "-O1", "-w", "-shared", "-fPIC", "kernels.cpp", "-o", "kernels.so"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "kernels.so"))


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize(("rows", "cols"), [(8, 256), (24, 1024)])
def test_no_bit_is_lost(fmt, rows, cols):
    blocks = layouts.random_blocks(fmt, rows, cols, np.random.default_rng())
    made = planes.of_blocks(fmt, blocks, cols)
    assert made.size == blocks.size  # not one byte more than the file has
    assert np.array_equal(planes.to_blocks(fmt, made, rows, cols), blocks)
    assert not np.array_equal(made, blocks.reshape(-1))


def test_columns_that_fill_no_superblock_are_refused():
    with pytest.raises(KernelError, match="100 columns"):
        planes.of_blocks(Q4_K, np.zeros((8, 144), np.uint8), 100)


def quantised(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """int8 and scales of activations [n, cols], a scale for 32 values, as quantise.cu rounds them."""
    parts = x.reshape(len(x), -1, 32)
    scales = np.abs(parts).max(axis=2).astype(np.float32) / np.float32(127)
    return np.rint(parts / scales[..., None]).astype(np.int8), scales


@pytest.mark.parametrize("streams", STREAMS)
@pytest.mark.parametrize(
    ("layout", "name"), [*(("planes", name) for name in FORMATS), *(("native", name) for name in K_FORMATS)]
)
def test_the_lanes_make_the_product(library, name, streams, layout):
    """Against float64, of the same rounded activations: only the order of sums is another."""
    fmt = FORMATS[name]
    rng, rows, cols = np.random.default_rng(), 16, 1280
    blocks = layouts.random_blocks(fmt, rows, cols, rng)
    quants, scales = quantised(rng.standard_normal((streams, cols)).astype(np.float32))
    sixteens = -32 * quants.reshape(streams, -1, 16).astype(np.int32).sum(axis=2, dtype=np.int32)
    floats = (quants.sum(axis=2, dtype=np.int32) * scales).astype(np.float32)
    given = planes.of_blocks(fmt, blocks, cols) if layout == "planes" else np.ascontiguousarray(blocks).reshape(-1)
    sums = sixteens if layout == "planes" else np.concatenate([scales.reshape(-1), floats.reshape(-1)])
    out = np.full((streams, rows), np.nan, np.float32)
    arrays = [np.ascontiguousarray(one) for one in (given, quants, scales, sums, out)]
    pointers = [ctypes.c_void_p(one.ctypes.data) for one in arrays]
    assert getattr(library, layout)(fmt.code, streams, rows, cols, *pointers) == 0
    rounded = (quants * scales[..., None].astype(float)).reshape(streams, cols)
    expected = reference.gemv(reference.dequantise(fmt, blocks, cols), rounded)
    assert reference.relative_error(arrays[-1], expected) < 2e-6


def test_a_weight_in_the_wrong_plane_is_seen(library):
    """The check above is not one that any order of bytes passes."""
    fmt, rng = FORMATS["Q6_K"], np.random.default_rng(1)
    blocks = layouts.random_blocks(fmt, 16, 512, rng)
    quants, scales = quantised(rng.standard_normal((1, 512)).astype(np.float32))
    sums = -32 * quants.reshape(1, -1, 16).astype(np.int32).sum(axis=2, dtype=np.int32)
    made = planes.of_blocks(fmt, blocks, 512)
    expected = reference.gemv(reference.dequantise(fmt, blocks, 512), (quants * scales[..., None]).reshape(1, 512))
    for place in (300, 16 * 512 // 2 + 7, 16 * 512 // 4 * 3 + 2):
        spoilt, out = made.copy(), np.zeros((1, 16), np.float32)
        spoilt[place] ^= 0x11
        pointers = [ctypes.c_void_p(one.ctypes.data) for one in (spoilt, quants, scales, sums, out)]
        library.planes(fmt.code, 1, 16, 512, *pointers)
        assert reference.relative_error(out, expected) > 1e-5

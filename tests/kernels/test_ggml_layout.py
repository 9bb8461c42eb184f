"""The layout code that goes into ggml packs and unpacks as kernels/layouts.py does, which gguf checks."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

from bench.host.pins import ROOT
from kernels import layouts
from kernels.layouts import FORMATS, TILE_COLS, TILE_ROWS

SHIM = """
#define __host__
#define __device__
#include "packed-layout.cuh"
using namespace packed;
extern "C" void pack_matrix(int format, const uint8_t *in, uint8_t *out, int tiles, int superblocks) {
    const int64_t stride = int64_t(superblocks) * native_bytes(format);
    for (int tile = 0; tile < tiles; ++tile)
        for (int s = 0; s < superblocks; ++s) {
            uint8_t *to = out + tile_index(tile, tiles, s, superblocks) * tile_bytes(format);
            const uint8_t *rows = in + tile * TILE_ROWS * stride + s * native_bytes(format);
            for (int at = 0; at < tile_bytes(format); ++at) to[at] = packed_byte(format, rows, stride, at);
        }
}
extern "C" void unpack_matrix(int format, const uint8_t *in, uint8_t *out, int tiles, int superblocks) {
    const int64_t stride = int64_t(superblocks) * native_bytes(format);
    for (int tile = 0; tile < tiles; ++tile)
        for (int s = 0; s < superblocks; ++s)
            for (int row = 0; row < TILE_ROWS; ++row)
                for (int at = 0; at < native_bytes(format); ++at)
                    out[(tile * TILE_ROWS + row) * stride + s * native_bytes(format) + at] = native_byte(
                        format, in + tile_index(tile, tiles, s, superblocks) * tile_bytes(format), row, at);
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("layout")
    (folder / "packed-src").mkdir()
    for name in ("args.h", "packed.h"):
        shutil.copy(ROOT / "kernels" / "src" / name, folder / "packed-src" / name)
    shutil.copy(ROOT / "kernels" / "ggml" / "packed-layout.cuh", folder)
    (folder / "shim.cpp").write_text(SHIM)
    compiler = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))))
    command = [compiler, "-std=c++17", "-O1", "-shared", "-fPIC", "shim.cpp", "-o", "shim.so"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "shim.so"))


def called(function, fmt, data, rows, cols):
    out = np.zeros(data.size, np.uint8)
    given = np.ascontiguousarray(data).ravel()
    address = ctypes.c_void_p(given.ctypes.data), ctypes.c_void_p(out.ctypes.data)
    function(fmt.code, *address, rows // TILE_ROWS, cols // TILE_COLS)
    return out


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("rows,cols", [(16, 256), (144, 512), (528, 768)])
def test_it_packs_and_unpacks_byte_for_byte(library, fmt, rows, cols):
    blocks = layouts.random_blocks(fmt, rows, cols, np.random.default_rng())
    packed = called(library.pack_matrix, fmt, blocks, rows, cols)
    assert np.array_equal(packed, layouts.pack(fmt, blocks, cols))
    assert np.array_equal(called(library.unpack_matrix, fmt, packed, rows, cols), blocks.ravel())

"""Packing loses no bit, and the packed words mean what src/packed.h says. gguf is the oracle of the dequantisers."""

import gguf
import numpy as np
import pytest

from kernels import layouts, reference
from kernels.errors import KernelError
from kernels.layouts import FORMATS, Q4_K, Q5_K, Q6_K, Q8_0

SHAPES = [(16, 256), (128, 512), (304, 768)]


@pytest.fixture
def rng():
    return np.random.default_rng()


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
def test_dequantiser_agrees_with_gguf(fmt, rng):
    blocks = layouts.random_blocks(fmt, 48, 768, rng)
    expected = gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType[fmt.name])
    np.testing.assert_allclose(reference.dequantise(fmt, blocks, 768), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("rows,cols", SHAPES)
def test_unpacking_gives_back_every_byte(fmt, rows, cols, rng):
    blocks = layouts.random_blocks(fmt, rows, cols, rng)
    packed = layouts.pack(fmt, blocks, cols)
    assert packed.size == blocks.size  # not one byte more than the file has
    assert np.array_equal(layouts.unpack(fmt, packed, rows, cols), blocks)


def words_of(tile, at, count):
    return np.frombuffer(tile[at : at + 4 * count].tobytes(), "<u4")


def spare_six(a, b, c):
    return ((a << 6) & 0xC0C0C0C0) | ((b << 4) & 0x30303030) | ((c << 2) & 0x0C0C0C0C)


def operand(fmt, tile, lane, block):
    """The four words that a lane hands to the matrix unit for 32 columns, by the shifts of src/consume.h."""
    if fmt is Q8_0:
        return words_of(tile, block * 512 + lane * 16, 4)
    if fmt is Q6_K:
        p = [words_of(tile, w // 4 * 512 + lane * 16 + w % 4 * 4, 1)[0] for w in range(3 * block, 3 * block + 3)]
        return np.array([*(int(w) & 0xFCFCFCFC for w in p), spare_six(*map(int, p))], "<u4")
    if fmt is Q4_K:
        held = words_of(tile, block // 2 * 512 + lane * 16, 4)
        return held >> np.uint32(block % 2 * 4) & np.uint32(0x0F0F0F0F)
    base, first = block // 4 * 1280, block // 2 % 2 * 5
    held = [*words_of(tile, base + lane * 16, 4), *words_of(tile, base + 512 + lane * 16, 4)]
    held += [*words_of(tile, base + 1024 + lane * 8, 2)]
    p = [int(w) for w in held[first : first + 5]]
    words = [w & 0xF8F8F8F8 for w in p]
    words.append(((p[0] << 5) & 0xE0E0E0E0) | ((p[3] << 2) & 0x18181818))
    words.append(((p[1] << 5) & 0xE0E0E0E0) | ((p[4] << 2) & 0x18181818))
    words.append(((p[2] << 5) & 0xE0E0E0E0) | ((p[3] << 4) & 0x10101010) | ((p[4] << 3) & 0x08080808))
    return np.array(words[block % 2 * 4 :][:4], "<u4")


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
def test_each_lane_holds_the_operand_of_the_matrix_unit(fmt, rng):
    """PTX, mma.m16n8k32: lane 4 g + t holds row g and g + 8, columns 4t to 4t + 3 and 16 + 4t to 16 + 4t + 3."""
    blocks = layouts.random_blocks(fmt, 16, 256, rng)
    tile = layouts.pack(fmt, blocks, 256)
    data = blocks.reshape(16, 1, -1)
    if fmt is Q8_0:
        values = blocks.reshape(16, 8, 34)[..., 2:].reshape(16, 256)
    elif fmt is Q6_K:
        values = ((layouts.q6_values(data)[:, 0].astype(int) - 32) * 4).astype(np.int8).view(np.uint8)
    elif fmt is Q4_K:
        values = layouts.q4_values(data)[:, 0]
    else:
        values = layouts.q5_values(data)[:, 0] * 8
    for lane in range(32):
        g, t = divmod(lane, 4)
        for block in range(8):
            held = operand(fmt, tile, lane, block).view(np.uint8).reshape(4, 4)
            for word, (row, column) in enumerate(((g, 0), (g + 8, 0), (g, 16), (g + 8, 16))):
                at = block * 32 + column + 4 * t
                assert np.array_equal(held[word], values[row, at : at + 4])


@pytest.mark.parametrize("fmt,quants", [(Q5_K, 2560), (Q4_K, 2048)], ids=["Q5_K", "Q4_K"])
def test_packed_scales_and_minima(fmt, quants, rng):
    """A row's four words: 4 sc(0..3), 4 sc(4..7), 4 m(0..3), and m(4..7) in their lower bits."""
    blocks = layouts.random_blocks(fmt, 16, 256, rng)
    tile = layouts.pack(fmt, blocks, 256)
    scales, least = layouts.q5_scales(blocks[:, 4:16])
    for row in range(16):
        a, b, c, d = (int(w) for w in words_of(tile, quants + row * 16, 4))
        found = [w >> 8 * i & 0xFC for w in (a, b, c, spare_six(a, b, c)) for i in range(4)]
        assert found == [4 * int(v) for v in (*scales[row], *least[row])]
        assert d.to_bytes(4, "little") == blocks[row, :4].tobytes()


@pytest.mark.parametrize("rows,cols", [(24, 256), (16, 128)])
def test_a_shape_that_cannot_be_packed_is_named(rows, cols, rng):
    with pytest.raises(KernelError, match=f"{rows} x {cols}.*multiple of 16"):
        layouts.pack(Q8_0, np.zeros((rows, cols // 256 * 272), np.uint8), cols)


def test_columns_of_random_blocks(rng):
    with pytest.raises(KernelError, match="100 columns of Q6_K"):
        layouts.random_blocks(Q6_K, 16, 100, rng)

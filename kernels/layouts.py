"""Blocks of Q8_0, Q6_K, Q5_K and Q4_K: their geometry, random ones, and the packed order of the matrix-unit kernels.

Packing moves bits and loses none: `unpack` gives back the file's bytes. It knows no device and decodes no value.
The packed order is described in src/packed.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernels.errors import KernelError

TILE_ROWS, TILE_COLS, GROUP_TILES = 16, 256, 8


@dataclass(frozen=True, slots=True)
class Format:
    """`code`: what the C side calls it; `bytes_256`: bytes of 256 weights in a row, in the file and packed alike."""

    name: str
    code: int
    block: int
    bytes_256: int

    def bytes_per_weight(self) -> float:
        """Of a matrix, scales included."""
        return self.bytes_256 / 256

    def row_bytes(self, cols: int) -> int:
        """Bytes of a row of `cols` weights, a multiple of 256."""
        return cols // 256 * self.bytes_256


Q8_0 = Format("Q8_0", 0, 32, 272)
Q6_K = Format("Q6_K", 1, 256, 210)
Q5_K = Format("Q5_K", 2, 256, 176)
Q4_K = Format("Q4_K", 3, 256, 144)
FORMATS = {f.name: f for f in (Q8_0, Q6_K, Q5_K, Q4_K)}


def random_blocks(fmt: Format, rows: int, cols: int, rng: np.random.Generator) -> np.ndarray:
    """uint8 [rows, row_bytes] in the file's layout: every bit of the quants random, scales of a usual size.

    KernelError where `cols` is no multiple of 256.
    """
    if cols % 256:
        raise KernelError(f"{cols} columns of {fmt.name} are no multiple of 256; choose such a number of columns.")
    data = rng.integers(0, 256, size=(rows, cols // 256, fmt.bytes_256), dtype=np.uint8)
    if fmt is Q8_0:
        data = data.reshape(rows, cols // 32, 34)
        data[..., :2] = _halves(rng, data.shape[:2])
    elif fmt is Q6_K:
        data[..., 208:] = _halves(rng, data.shape[:2])
    else:
        data[..., 0:2] = _halves(rng, data.shape[:2])
        middle = 7.5e-3 if fmt is Q4_K else 15.5e-3  # of 0..15 and 0..31: weights are around zero
        data[..., 2:4] = _halves(rng, data.shape[:2], middle)
    return data.reshape(rows, -1)


def _halves(rng: np.random.Generator, shape: tuple[int, ...], size: float = 1e-3) -> np.ndarray:
    return (rng.uniform(0.5, 1.5, size=(*shape, 1)) * size).astype("<f2").view(np.uint8)


def pack(fmt: Format, blocks: np.ndarray, cols: int) -> np.ndarray:
    """The packed bytes, uint8 [rows x row_bytes], of uint8 [rows, row_bytes] in the file's layout.

    KernelError where rows or columns do not fill whole tiles.
    """
    rows = blocks.shape[0]
    if rows % TILE_ROWS or cols % TILE_COLS:
        raise KernelError(
            f"{rows} x {cols} cannot be packed: rows must be a multiple of {TILE_ROWS}, columns of {TILE_COLS}."
        )
    data = blocks.reshape(rows, cols // 256, fmt.bytes_256)
    tiles = {"Q8_0": _pack_q8_0, "Q6_K": _pack_q6_k, "Q5_K": _pack_q5_k, "Q4_K": _pack_q4_k}[fmt.name](data)
    return np.concatenate([group.swapaxes(0, 1).ravel() for group in _groups(tiles)])


def unpack(fmt: Format, packed: np.ndarray, rows: int, cols: int) -> np.ndarray:
    """The inverse of `pack`: uint8 [rows, row_bytes]."""
    tile, columns = TILE_ROWS * fmt.bytes_256, cols // TILE_COLS
    parts = np.split(packed, range(GROUP_TILES * columns * tile, packed.size, GROUP_TILES * columns * tile))
    tiles = np.concatenate([part.reshape(columns, -1, tile).swapaxes(0, 1) for part in parts])
    unpackers = {"Q8_0": _unpack_q8_0, "Q6_K": _unpack_q6_k, "Q5_K": _unpack_q5_k, "Q4_K": _unpack_q4_k}
    data = unpackers[fmt.name](tiles)
    return data.reshape(rows, -1)


def _groups(tiles: np.ndarray) -> list[np.ndarray]:
    return np.split(tiles, range(GROUP_TILES, len(tiles), GROUP_TILES))


def _to_lanes(q: np.ndarray) -> np.ndarray:
    """[rows, s, 256] -> [rows / 16, s, 8 blocks, 32 lanes, 4 words, 4 bytes], the A operand of mma.m16n8k32."""
    rows, s, _ = q.shape
    q = q.reshape(rows // 16, 2, 8, s, 8, 2, 4, 4)  # tile, upper or lower, g, s, block, half, t, byte
    return np.ascontiguousarray(q.transpose(0, 3, 4, 2, 6, 5, 1, 7)).reshape(rows // 16, s, 8, 32, 4, 4)


def _from_lanes(lanes: np.ndarray) -> np.ndarray:
    tiles, s = lanes.shape[:2]
    q = lanes.reshape(tiles, s, 8, 8, 4, 2, 2, 4).transpose(0, 6, 3, 1, 2, 5, 4, 7)
    return np.ascontiguousarray(q).reshape(tiles * 16, s, 256)


def _row_pairs(values: np.ndarray) -> np.ndarray:
    """[rows, s, k] -> [rows / 16, s, 8 g, k, 2]: the values of rows g and g + 8 side by side."""
    rows, s, k = values.shape
    return values.reshape(rows // 16, 2, 8, s, k).transpose(0, 3, 2, 4, 1)


def _from_row_pairs(pairs: np.ndarray) -> np.ndarray:
    tiles, s, _, k, _ = pairs.shape
    return pairs.transpose(0, 4, 2, 1, 3).reshape(tiles * 16, s, k)


def _row_bytes(values: np.ndarray) -> np.ndarray:
    """[rows, s, k] -> [rows / 16, s, 16 k]."""
    rows, s, k = values.shape
    return values.reshape(rows // 16, 16, s, k).transpose(0, 2, 1, 3).reshape(rows // 16, s, 16 * k)


def _from_row_bytes(data: np.ndarray) -> np.ndarray:
    tiles, s, size = data.shape
    return data.reshape(tiles, s, 16, size // 16).transpose(0, 2, 1, 3).reshape(tiles * 16, s, size // 16)


def _bytes(array: np.ndarray) -> np.ndarray:
    """The bytes of [tiles, s, ...] as [tiles, s, n]."""
    return np.ascontiguousarray(array).view(np.uint8).reshape(*array.shape[:2], -1)


def _pack_q8_0(data: np.ndarray) -> np.ndarray:
    blocks = data.reshape(*data.shape[:2], 8, 34)
    scales = np.ascontiguousarray(blocks[..., :2]).view("<u2")[..., 0]
    quants = np.ascontiguousarray(blocks[..., 2:]).reshape(*data.shape[:2], 256)
    return np.concatenate([_bytes(_to_lanes(quants)), _bytes(_row_pairs(scales))], axis=2)


def _unpack_q8_0(tiles: np.ndarray) -> np.ndarray:
    t, s, _ = tiles.shape
    quants = _from_lanes(tiles[..., :4096].reshape(t, s, 8, 32, 4, 4)).reshape(t * 16, s, 8, 32)
    pairs = np.ascontiguousarray(tiles[..., 4096:]).view("<u2").reshape(t, s, 8, 8, 2)
    scales = np.ascontiguousarray(_from_row_pairs(pairs)).view(np.uint8).reshape(t * 16, s, 8, 2)
    return np.concatenate([scales, quants], axis=3)


def q6_values(data: np.ndarray) -> np.ndarray:
    """0..63 in the order of the columns, uint8 [rows, s, 256], of Q6_K's blocks, uint8 [rows, s, 210]."""
    low, high = (
        data[..., :128].reshape(*data.shape[:2], 2, 2, 32),
        data[..., 128:192].reshape(*data.shape[:2], 2, 1, 32),
    )
    shifts = np.array([0, 2], np.uint8).reshape(2, 1)
    first = (low & 15) | ((high >> shifts & 3) << 4)
    second = (low >> 4) | ((high >> (shifts + 4) & 3) << 4)
    return np.stack([first, second], axis=3).reshape(*data.shape[:2], 256)


def _q6_bits(values: np.ndarray) -> np.ndarray:
    """The inverse of `q6_values`: 128 bytes of lower bits, 64 of upper ones."""
    v = values.reshape(*values.shape[:2], 2, 2, 2, 32)  # half, nibble, which 32, byte
    low = (v[:, :, :, 0] & 15) | (v[:, :, :, 1] & 15) << 4
    top = v >> 4
    high = top[:, :, :, 0, 0] | top[:, :, :, 0, 1] << 2 | top[:, :, :, 1, 0] << 4 | top[:, :, :, 1, 1] << 6
    shape = values.shape[:2]
    return np.concatenate([low.reshape(*shape, 128), high.reshape(*shape, 64)], axis=2)


def _pack_q6_k(data: np.ndarray) -> np.ndarray:
    lanes = _to_lanes(((q6_values(data) ^ 32) << 2).astype(np.uint8))  # 4 (q - 32) as a signed byte
    spare = lanes[..., 3, :]
    words = np.stack([lanes[..., i, :] | (spare >> 6 - 2 * i & 3) for i in range(3)], axis=4)
    # tile, s, block, lane, word, byte
    t, s = words.shape[:2]
    quants = words.transpose(0, 1, 3, 2, 4, 5).reshape(t, s, 32, 6, 16).transpose(0, 1, 3, 2, 4)
    d = np.ascontiguousarray(data[..., 208:]).view("<u2")
    return np.concatenate([_bytes(quants), _row_bytes(data[..., 192:208]), _bytes(_row_pairs(d))], axis=2)


def _unpack_q6_k(tiles: np.ndarray) -> np.ndarray:
    t, s, _ = tiles.shape
    words = tiles[..., :3072].reshape(t, s, 6, 32, 16).transpose(0, 1, 3, 2, 4).reshape(t, s, 32, 8, 3, 4)
    words = words.transpose(0, 1, 3, 2, 4, 5)
    spare = (words[..., 0, :] & 3) << 6 | (words[..., 1, :] & 3) << 4 | (words[..., 2, :] & 3) << 2
    lanes = np.concatenate([words & 0xFC, spare[..., None, :]], axis=4)
    values = (_from_lanes(lanes) >> 2) ^ 32
    d = np.ascontiguousarray(tiles[..., 3328:]).view("<u2").reshape(t, s, 8, 1, 2)
    d = np.ascontiguousarray(_from_row_pairs(d)).view(np.uint8).reshape(t * 16, s, 2)
    return np.concatenate([_q6_bits(values), _from_row_bytes(tiles[..., 3072:3328]), d], axis=2)


def q5_values(data: np.ndarray) -> np.ndarray:
    """0..31 in the order of the columns, uint8 [rows, s, 256], of Q5_K's blocks, uint8 [rows, s, 176]."""
    low = data[..., 48:].reshape(*data.shape[:2], 4, 1, 32)
    high = data[..., 16:48].reshape(*data.shape[:2], 1, 1, 32)
    bit = np.arange(8, dtype=np.uint8).reshape(4, 2, 1)
    nibble = np.array([0, 4], np.uint8).reshape(2, 1)
    return ((low >> nibble & 15) | (high >> bit & 1) << 4).reshape(*data.shape[:2], 256)


def _q5_bits(values: np.ndarray) -> np.ndarray:
    """The inverse of `q5_values`: 32 bytes of upper bits, 128 of lower ones."""
    v = values.reshape(*values.shape[:2], 4, 2, 32)
    bit = np.arange(8, dtype=np.uint8).reshape(4, 2, 1)
    high = np.bitwise_or.reduce((v >> 4 << bit).reshape(*values.shape[:2], 8, 32), axis=2)
    low = (v[..., 0, :] & 15) | (v[..., 1, :] & 15) << 4
    return np.concatenate([high, low.reshape(*values.shape[:2], 128)], axis=2)


def q5_scales(packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scales and minima, 0..63, uint8 [..., 8] each, of the 12 bytes [..., 12] in which Q5_K keeps them."""
    a, b, c = packed[..., :4], packed[..., 4:8], packed[..., 8:]
    scales = np.concatenate([a & 63, (c & 15) | (a >> 6) << 4], axis=-1)
    return scales, np.concatenate([b & 63, (c >> 4) | (b >> 6) << 4], axis=-1)


def _q5_scale_bytes(scales: np.ndarray, least: np.ndarray) -> np.ndarray:
    a = scales[..., :4] | (scales[..., 4:] >> 4) << 6
    b = least[..., :4] | (least[..., 4:] >> 4) << 6
    return np.concatenate([a, b, (scales[..., 4:] & 15) | (least[..., 4:] & 15) << 4], axis=-1)


def _k_header(data: np.ndarray) -> np.ndarray:
    """uint8 [rows, s, 16]: the four words of a row of Q5_K's and Q4_K's blocks."""
    scales, least = q5_scales(data[..., 4:16])
    m = least[..., 4:] << 2
    return np.concatenate(
        [
            scales[..., :4] << 2 | m >> 6,
            scales[..., 4:] << 2 | (m >> 4 & 3),
            least[..., :4] << 2 | (m >> 2 & 3),
            data[..., :4],
        ],
        axis=2,
    )


def _k_file_header(row: np.ndarray) -> np.ndarray:
    """The inverse of `_k_header`: the first 16 bytes of a block in the file."""
    m = (row[..., :4] & 3) << 6 | (row[..., 4:8] & 3) << 4 | (row[..., 8:12] & 3) << 2
    scales, least = row[..., :8] >> 2, np.concatenate([row[..., 8:12] >> 2, m >> 2], axis=2)
    return np.concatenate([row[..., 12:], _q5_scale_bytes(scales, least)], axis=2)


def _pack_q5_k(data: np.ndarray) -> np.ndarray:
    lanes = _to_lanes(q5_values(data) << 3)
    t, s = lanes.shape[:2]
    v = lanes.reshape(t, s, 4, 2, 32, 4, 4).transpose(0, 1, 4, 2, 3, 5, 6).reshape(t, s, 32, 4, 8, 4)
    v5, v6, v7 = v[..., 5, :], v[..., 6, :], v[..., 7, :]
    words = np.stack(
        [
            v[..., 0, :] | v5 >> 5,
            v[..., 1, :] | v6 >> 5,
            v[..., 2, :] | v7 >> 5,
            v[..., 3, :] | (v5 >> 3 & 3) << 1 | (v7 >> 4 & 1),
            v[..., 4, :] | (v6 >> 3 & 3) << 1 | (v7 >> 3 & 1),
        ],
        axis=4,
    ).reshape(t, s, 32, 2, 10, 4)  # tile, s, lane, half, word, byte
    first = words[..., :8, :].reshape(t, s, 32, 2, 2, 16).transpose(0, 1, 3, 4, 2, 5).reshape(t, s, 2, 1024)
    rest = words[..., 8:, :].transpose(0, 1, 3, 2, 4, 5).reshape(t, s, 2, 256)
    quants = np.concatenate([first, rest], axis=3)
    return np.concatenate([_bytes(quants), _row_bytes(_k_header(data))], axis=2)


def _unpack_q5_k(tiles: np.ndarray) -> np.ndarray:
    t, s, _ = tiles.shape
    quants = tiles[..., :2560].reshape(t, s, 2, 1280)
    first = quants[..., :1024].reshape(t, s, 2, 2, 32, 16).transpose(0, 1, 4, 2, 3, 5).reshape(t, s, 32, 2, 8, 4)
    rest = quants[..., 1024:].reshape(t, s, 2, 32, 2, 4).transpose(0, 1, 3, 2, 4, 5)
    p = np.concatenate([first, rest], axis=4).reshape(t, s, 32, 4, 5, 4)
    p0, p1, p2, p3, p4 = (p[..., k, :] for k in range(5))
    v5 = p0 << 5 | (p3 >> 1 & 3) << 3
    v6 = p1 << 5 | (p4 >> 1 & 3) << 3
    v7 = p2 << 5 | (p3 & 1) << 4 | (p4 & 1) << 3
    v = np.concatenate([p & 0xF8, np.stack([v5, v6, v7], axis=4)], axis=4)
    lanes = v.reshape(t, s, 32, 4, 2, 4, 4).transpose(0, 1, 3, 4, 2, 5, 6).reshape(t, s, 8, 32, 4, 4)
    values = _from_lanes(lanes) >> 3
    return np.concatenate([_k_file_header(_from_row_bytes(tiles[..., 2560:])), _q5_bits(values)], axis=2)


def q4_values(data: np.ndarray) -> np.ndarray:
    """0..15 in the order of the columns, uint8 [rows, s, 256], of Q4_K's blocks, uint8 [rows, s, 144]."""
    nibble = np.array([0, 4], np.uint8).reshape(2, 1)
    return (data[..., 16:].reshape(*data.shape[:2], 4, 1, 32) >> nibble & 15).reshape(*data.shape[:2], 256)


def _pack_q4_k(data: np.ndarray) -> np.ndarray:
    lanes = _to_lanes(q4_values(data))
    quants = lanes[:, :, 0::2] | lanes[:, :, 1::2] << 4
    return np.concatenate([_bytes(quants), _row_bytes(_k_header(data))], axis=2)


def _unpack_q4_k(tiles: np.ndarray) -> np.ndarray:
    t, s, _ = tiles.shape
    quants = tiles[..., :2048].reshape(t, s, 4, 1, 32, 4, 4)
    lanes = np.concatenate([quants & 15, quants >> 4], axis=3).reshape(t, s, 8, 32, 4, 4)
    v = _from_lanes(lanes).reshape(t * 16, s, 4, 2, 32)
    low = (v[..., 0, :] | v[..., 1, :] << 4).reshape(t * 16, s, 128)
    return np.concatenate([_k_file_header(_from_row_bytes(tiles[..., 2048:])), low], axis=2)

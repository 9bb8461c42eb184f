// The packed layout (packed-src/packed.h), byte by byte, both ways: what a buffer needs when a tensor is written or read.
// Runs on host and device and knows nothing of ggml.
#pragma once
#include <stdint.h>

#ifdef __CUDACC__
#define PACKED_FN static __host__ __device__ inline
#else
#define PACKED_FN static inline
#endif

namespace packed {

#include "packed-src/packed.h"

// Of 256 columns of a row, in the file.
PACKED_FN constexpr int native_bytes(int format) { return tile_bytes(format) / TILE_ROWS; }

// Where tile `tile` of the rows' tiles and superblock `s` lies, in tiles.
PACKED_FN int64_t tile_index(int tile, int tiles, int s, int superblocks) {
    const int group = tile / GROUP_TILES, first = group * GROUP_TILES;
    const int members = tiles - first < GROUP_TILES ? tiles - first : GROUP_TILES;
    return int64_t(first) * superblocks + int64_t(s) * members + (tile - first);
}

// ---- the file's blocks -> values ----

PACKED_FN int native_q6(const uint8_t * b, int c) {
    const int half = c / 128, r = c % 128, quarter = r / 32, l = r % 32;
    const int low = b[64 * half + 32 * (quarter % 2) + l], high = b[128 + 32 * half + l];
    return (quarter < 2 ? low & 15 : low >> 4) | ((high >> (2 * quarter)) & 3) << 4;
}

PACKED_FN int native_q5(const uint8_t * b, int c) {
    const int j = c / 64, nibble = c / 32 % 2, l = c % 32;
    return ((b[48 + 32 * j + l] >> (4 * nibble)) & 15) | ((b[16 + l] >> (2 * j + nibble)) & 1) << 4;
}

PACKED_FN int native_q4(const uint8_t * b, int c) { return (b[16 + c / 64 * 32 + c % 32] >> (c / 32 % 2 * 4)) & 15; }

// Scale and minimum of block i, of Q5_K and Q4_K.
PACKED_FN int native_k_scale(const uint8_t * b, int i) {
    const uint8_t * s = b + 4;
    return i < 4 ? s[i] & 63 : (s[4 + i] & 15) | (s[i - 4] >> 6) << 4;
}

PACKED_FN int native_k_least(const uint8_t * b, int i) {
    const uint8_t * s = b + 4;
    return i < 4 ? s[4 + i] & 63 : (s[4 + i] >> 4) | (s[i] >> 6) << 4;
}

// Byte `b` of word `w` of lane `lane` for block `j` of 32 columns: which row and column of the tile.
PACKED_FN void place(int j, int lane, int w, int b, int & row, int & col) {
    row = lane / 4 + 8 * (w & 1), col = 32 * j + 16 * (w >> 1) + 4 * (lane % 4) + b;
}

// Byte i of the rows' scales of a tile of Q5_K or Q4_K.
PACKED_FN uint8_t packed_k_scales(const uint8_t * rows, int64_t stride, int i) {
    const int b = i % 4, word = i / 4 % 4;
    const uint8_t * block = rows + i / 16 * stride;
    if (word == 3) return block[b];
    const int m = native_k_least(block, 4 + b) << 2;
    if (word == 0) return uint8_t(native_k_scale(block, b) << 2 | m >> 6);
    if (word == 1) return uint8_t(native_k_scale(block, 4 + b) << 2 | (m >> 4 & 3));
    return uint8_t(native_k_least(block, b) << 2 | (m >> 2 & 3));
}

// Byte `at` of a packed tile. rows: the file's bytes of row 0 of the tile for these 256 columns; next row: + stride.
PACKED_FN uint8_t packed_byte(int format, const uint8_t * rows, int64_t stride, int at) {
    int row, col;
    if (format == Q8_0) {
        if (at < 4096) {
            place(at / 512, at / 16 % 32, at / 4 % 4, at % 4, row, col);
            return rows[row * stride + col / 32 * 34 + 2 + col % 32];
        }
        const int i = at - 4096, g = i / 32, block = i / 4 % 8;
        return rows[(g + 8 * (i / 2 % 2)) * stride + block * 34 + i % 2];
    }
    if (format == Q6_K) {
        if (at < 3072) {
            const int k = at / 512 * 4 + at / 4 % 4, lane = at / 16 % 32, b = at % 4, j = k / 3, w = k % 3;
            place(j, lane, w, b, row, col);
            const int own = (native_q6(rows + row * stride, col) ^ 32) << 2 & 255;
            place(j, lane, 3, b, row, col);
            const int spare = (native_q6(rows + row * stride, col) ^ 32) << 2 & 255;
            return uint8_t(own | ((spare >> (6 - 2 * w)) & 3));
        }
        if (at < 3328) return rows[(at - 3072) / 16 * stride + 192 + (at - 3072) % 16];
        const int i = at - 3328;
        return rows[(i / 4 + 8 * (i / 2 % 2)) * stride + 208 + i % 2];
    }
    if (format == Q4_K) {
        if (at >= 2048) return packed_k_scales(rows, stride, at - 2048);
        const int pair = at / 512, lane = at / 16 % 32;
        place(2 * pair, lane, at / 4 % 4, at % 4, row, col);
        return uint8_t(native_q4(rows + row * stride, col) | native_q4(rows + row * stride, col + 32) << 4);
    }
    if (at < 2560) {
        const int half = at / 1280, i = at % 1280;
        int k, lane;
        if (i < 1024) k = i / 512 * 4 + i / 4 % 4, lane = i / 16 % 32;
        else k = 8 + (i - 1024) / 4 % 2, lane = (i - 1024) / 8;
        const int pair = 2 * half + k / 5, word = k % 5, b = at % 4;
        int v[8];
        for (int m = 0; m < 8; ++m) {
            place(2 * pair + m / 4, lane, m % 4, b, row, col);
            v[m] = native_q5(rows + row * stride, col) << 3;
        }
        if (word < 3) return uint8_t(v[word] | v[5 + word] >> 5);
        if (word == 3) return uint8_t(v[3] | (v[5] >> 3 & 3) << 1 | (v[7] >> 4 & 1));
        return uint8_t(v[4] | (v[6] >> 3 & 3) << 1 | (v[7] >> 3 & 1));
    }
    return packed_k_scales(rows, stride, at - 2560);
}

// ---- a packed tile -> the file's bytes ----

PACKED_FN int tile_q6(const uint8_t * tile, int row, int col) {
    const int lane = 4 * (row % 8) + col % 16 / 4, j = col / 32, w = 2 * (col / 16 % 2) + row / 8, b = col % 4;
    int word[3];
    for (int i = 0; i < 3; ++i) {
        const int k = 3 * j + i;
        word[i] = tile[k / 4 * 512 + lane * 16 + k % 4 * 4 + b];
    }
    const int v = w < 3 ? word[w] & 0xfc : (word[0] & 3) << 6 | (word[1] & 3) << 4 | (word[2] & 3) << 2;
    return v >> 2 ^ 32;
}

PACKED_FN int tile_q5(const uint8_t * tile, int row, int col) {
    const int lane = 4 * (row % 8) + col % 16 / 4, j = col / 32, b = col % 4, pair = j / 2, half = pair / 2;
    const int index = j % 2 * 4 + 2 * (col / 16 % 2) + row / 8;
    int p[5];
    for (int i = 0; i < 5; ++i) {
        const int k = pair % 2 * 5 + i;
        p[i] = tile[half * 1280 + (k < 8 ? k / 4 * 512 + lane * 16 + k % 4 * 4 : 1024 + lane * 8 + (k - 8) * 4) + b];
    }
    if (index < 5) return p[index] >> 3;
    if (index == 5) return (p[0] << 5 & 0xe0 | (p[3] >> 1 & 3) << 3) >> 3;
    if (index == 6) return (p[1] << 5 & 0xe0 | (p[4] >> 1 & 3) << 3) >> 3;
    return (p[2] << 5 & 0xe0 | (p[3] & 1) << 4 | (p[4] & 1) << 3) >> 3;
}

PACKED_FN int tile_q4(const uint8_t * tile, int row, int col) {
    const int lane = 4 * (row % 8) + col % 16 / 4, w = 2 * (col / 16 % 2) + row / 8;
    return (tile[col / 64 * 512 + lane * 16 + w * 4 + col % 4] >> (col / 32 % 2 * 4)) & 15;
}

// Byte `at` of the 16 before the quants of a block of Q5_K or Q4_K; r: the row's four words in the tile.
PACKED_FN uint8_t native_k_header(const uint8_t * r, int at) {
    if (at < 4) return r[12 + at];
    const int i = (at - 4) % 4, sc0 = r[i] >> 2, sc4 = r[4 + i] >> 2, m0 = r[8 + i] >> 2;
    const int m4 = ((r[i] & 3) << 6 | (r[4 + i] & 3) << 4 | (r[8 + i] & 3) << 2) >> 2;
    if (at < 8) return uint8_t(sc0 | (sc4 >> 4) << 6);
    if (at < 12) return uint8_t(m0 | (m4 >> 4) << 6);
    return uint8_t((sc4 & 15) | (m4 & 15) << 4);
}

// Byte `at` of the file's bytes of one row of the tile for these 256 columns.
PACKED_FN uint8_t native_byte(int format, const uint8_t * tile, int row, int at) {
    const int g = row % 8, upper = row / 8;
    if (format == Q8_0) {
        const int block = at / 34, i = at % 34;
        if (i < 2) return tile[4096 + g * 32 + block * 4 + upper * 2 + i];
        const int c = i - 2;
        return tile[block * 512 + (4 * g + c % 16 / 4) * 16 + (2 * (c / 16) + upper) * 4 + c % 4];
    }
    if (format == Q6_K) {
        if (at < 128) {
            const int col = at / 64 * 128 + at % 64;
            return uint8_t(tile_q6(tile, row, col) & 15 | (tile_q6(tile, row, col + 64) & 15) << 4);
        }
        if (at < 192) {
            const int col = (at - 128) / 32 * 128 + at % 32;
            int v = 0;
            for (int k = 0; k < 4; ++k) v |= (tile_q6(tile, row, col + 32 * k) >> 4) << (2 * k);
            return uint8_t(v);
        }
        if (at < 208) return tile[3072 + row * 16 + at - 192];
        return tile[3328 + g * 4 + upper * 2 + at - 208];
    }
    const uint8_t * scales = tile + (format == Q4_K ? 2048 : 2560) + row * 16;
    if (at < 16) return native_k_header(scales, at);
    if (format == Q4_K) {
        const int j = (at - 16) / 32, col = 64 * j + (at - 16) % 32;
        return uint8_t(tile_q4(tile, row, col) | tile_q4(tile, row, col + 32) << 4);
    }
    if (at < 48) {
        int v = 0;
        for (int k = 0; k < 8; ++k) v |= (tile_q5(tile, row, 32 * k + at - 16) >> 4) << k;
        return uint8_t(v);
    }
    const int j = (at - 48) / 32, l = (at - 48) % 32;
    return uint8_t(tile_q5(tile, row, 64 * j + l) & 15 | (tile_q5(tile, row, 64 * j + 32 + l) & 15) << 4);
}

}  // namespace packed

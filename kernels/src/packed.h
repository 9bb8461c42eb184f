// The packed layout: 16 rows x 256 columns are one tile, all its bytes together. Eight row tiles are a group: for each
// 256 columns its tiles lie side by side, then come the next 256 columns, then the next group. The last group may be
// smaller. Inside a tile the quants have the order in which the lanes of a warp hold the A operand of mma.m16n8k32:
// lane = 4 g + t holds, for each 32 columns, four words: row g, columns 4t..; row g + 8, columns 4t..; row g, columns
// 16 + 4t..; row g + 8, columns 16 + 4t... Each tile has exactly the bytes that the file has for it.
//
//   Q8_0, 4352 bytes: [8 blocks][32 lanes][4 words], then f16 scales [8 g][8 blocks][rows g, g + 8]
//   Q6_K, 3360 bytes: [6][32 lanes][4 words]: 24 words a lane, three for each 32 columns: words 0, 1, 2 hold
//       4 (q - 32) in the upper six bits of each byte; their lower bits are the fourth word, highest bits first.
//       Then int8 scales [16 rows][16], then f16 d [8 g][rows g, g + 8].
//   Q5_K, 2816 bytes: [2 halves] of [2][32 lanes][4 words] and [32 lanes][2 words]: 10 words a lane, five for each 64
//       columns: words 0 to 4 hold 8 q in the upper five bits of each byte, their lower three bits are words 5 to 7:
//       5 = low(0) << 2 | low(3) >> 1, 6 = low(1) << 2 | low(4) >> 1, 7 = low(2) << 2 | (low(3) & 1) << 1 | low(4) & 1.
//       Then, a row, four words: 4 sc(0..3), 4 sc(4..7), 4 m(0..3) in the upper six bits of each byte, with m(4..7) in
//       the lower bits, highest first; f16 d, f16 dmin.
//   Q4_K, 2304 bytes: [4 pairs of blocks][32 lanes][4 words]: the lower nibble of each byte is of the first block of 32
//       columns, the upper one of the second. Then, a row, four words as in Q5_K.
//
// Activations: a chunk for each 256 columns. With G = 8 / width phases (consume.h), 4 at most, block 2 k G + h G + p
// of its eight blocks of 32 is half h of pair k G + p: int8 [4 pairs][width][t][half][columns 4t.., 16 + 4t..], float
// scale [4 pairs][pairs of vectors, at least 1][half][vector], float sum of the 32 quantised values [8 blocks][width,
// at least 2]. The width is n rounded up to 1, 2, 4 or 8; vectors past n are zero.
#pragma once
#include "args.h"

constexpr int TILE_ROWS = 16, TILE_COLS = 256, GROUP_TILES = 8;

__host__ __device__ constexpr int width_of(int n) { return n <= 2 ? n : n <= 4 ? 4 : 8; }
__host__ __device__ constexpr int scale_stride(int width) { return width < 2 ? 2 : width; }
__host__ __device__ constexpr int phases_of(int width) { return 8 / scale_stride(width); }
__host__ __device__ constexpr int chunk_scales(int width) { return 256 * width; }
__host__ __device__ constexpr int chunk_bytes(int width) { return 256 * width + 64 * scale_stride(width); }
__host__ __device__ constexpr int tile_bytes(int format) {
    return format == Q8_0 ? 4352 : format == Q6_K ? 3360 : format == Q5_K ? 2816 : 2304;
}

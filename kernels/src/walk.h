// The way of one warp through a row tile's superblocks, which the warps of a block of threads take in turn. It knows
// nothing of what becomes of the sums.
#pragma once
#include "consume.h"

#if HAS_MMA
template <int FORMAT, int WIDTH> struct Walk {
    int64_t first;  // bytes to this warp's first tile
    int step;       // bytes from one of its tiles to the next
    int left, warp, warps;

    // `tile` of the `tiles` row tiles of a matrix of `superblocks` x 256 columns
    __device__ __forceinline__ Walk(int tile, int tiles, int superblocks, int warp, int warps)
        : left(superblocks - warp), warp(warp), warps(warps) {
        const int group = tile / GROUP_TILES, members = min(GROUP_TILES, tiles - group * GROUP_TILES);
        const int64_t at = int64_t(group) * superblocks * GROUP_TILES + tile % GROUP_TILES + warp * members;
        first = at * tile_bytes(FORMAT), step = warps * members * tile_bytes(FORMAT);
    }

    // acc[p] += w x for this warp's superblocks and pass p of WIDTH vectors, whose chunks lie pass_bytes apart. The first
    // weights are on their way before `ready` is called; the activations are read after it.
    template <int PASSES, class Ready>
    __device__ __forceinline__ void multiply(const uint8_t *w, const uint8_t *x, int64_t pass_bytes,
                                             float (&acc)[PASSES][4], const Lane &l, Ready ready) const {
        const uint8_t *from = w + first;
        Chunk<WIDTH> chunk{x + warp * chunk_bytes(WIDTH)};
        int rest = left;
        Tile<FORMAT, WIDTH> tile;
        if (rest > 0) tile.load(from, l);
        ready();
#pragma unroll 1
        while (rest > 0) {
#pragma unroll
            for (int p = 0; p < PASSES; ++p) tile.multiply(Chunk<WIDTH>{chunk.base + p * pass_bytes}, acc[p], l);
            rest -= warps, from += step, chunk.base += warps * chunk_bytes(WIDTH);
            if (rest > 0) tile.load(from, l);
        }
    }
};
#endif

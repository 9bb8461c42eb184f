// GEMV of packed tiles (packed.h) with n <= 8 int8 activation vectors on the matrix units.
//
// A block of threads takes one row tile, or a share of its columns; its warps take the tiles (or halves of tiles) in
// turn, straight from memory into registers in the order in which the matrix units want them: no shared memory, no
// barrier and no copy engine between. The bytes in flight come from many warps. Shares leave their sums in `work`; the
// one that is done last adds them, in the order of the shares: same result every time.
#include "args.h"
#include "consume.h"
#include "device.h"

constexpr int MAX_WARPS = 16;

#if HAS_MMA
__device__ __forceinline__ void add(float4 &to, float4 v) { to.x += v.x, to.y += v.y, to.z += v.z, to.w += v.w; }

__device__ __forceinline__ void store(const Args &a, int tile, const Lane &l, float4 sum) {
    int column = 2 * l.t;
    float *at = reinterpret_cast<float *>(a.y) + int64_t(column) * a.rows + tile * TILE_ROWS + l.g;
    if (column < a.n) at[0] = sum.x, at[8] = sum.z;
    if (column + 1 < a.n) at[a.rows] = sum.y, at[a.rows + 8] = sum.w;
}

// True for the share that comes last; `sum` is then that of all shares.
__device__ __forceinline__ bool join(const Args &a, int tile, int lane, float4 &sum) {
    float4 *work = reinterpret_cast<float4 *>(a.work) + tile * LANES + lane;
    const int64_t step = int64_t(gridDim.x) * LANES;
    __stcg(work + blockIdx.y * step, sum);
    __threadfence();
    __syncwarp();
    int before = 0;
    if (lane == 0) before = atomicAdd(a.flags + tile, 1);
    if (__shfl_sync(0xffffffffu, before, 0) != int(gridDim.y) - 1) return false;
    __threadfence();
    sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int i = 0; i < int(gridDim.y); ++i) add(sum, __ldcg(work + i * step));
    if (lane == 0) a.flags[tile] = 0;
    return true;
}
#endif

#ifdef __HIP__
#define MOST_REGISTERS(n)
#else
#define MOST_REGISTERS(n) __maxnreg__(n)
#endif

template <int FORMAT, int SPLIT, int WIDTH, int DEPTH, int REGISTERS>
__global__ void MOST_REGISTERS(REGISTERS) gemv_packed(const __grid_constant__ Args a) {
#if HAS_MMA
    constexpr int BYTES = tile_bytes(FORMAT);
    __shared__ float4 parts[MAX_WARPS * LANES];
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES, warps = blockDim.x / LANES;
    const int tiles = gridDim.x, tile = blockIdx.x, superblocks = a.cols / TILE_COLS;
    const int group = tile / GROUP_TILES, members = min(GROUP_TILES, tiles - group * GROUP_TILES);
    const int first = blockIdx.y * superblocks / gridDim.y, end = (blockIdx.y + 1) * superblocks / gridDim.y;
    const int part = warp % SPLIT, each = warps / SPLIT, step = each * members * BYTES;
    const Lane l = Lane::of<WIDTH>(lane);
    int left = end - first - warp / SPLIT;
    const uint8_t *from = reinterpret_cast<const uint8_t *>(a.w) +
                          (int64_t(group) * superblocks * GROUP_TILES + tile % GROUP_TILES) * BYTES +
                          int64_t(first + warp / SPLIT) * members * BYTES;
    Chunk<WIDTH> chunk{reinterpret_cast<const uint8_t *>(a.x) + int64_t(first + warp / SPLIT) * chunk_bytes(WIDTH)};
    float acc[4] = {};
    Tile<FORMAT, SPLIT> held[DEPTH];
    if (DEPTH == 2 && left > 0) held[0].load(from, l, part);
#pragma unroll 1
    for (; left > 0; left -= each, chunk.base += each * chunk_bytes(WIDTH)) {
        if (DEPTH == 1) held[0].load(from, l, part);
        from += step;
        if (DEPTH == 2 && left > each) held[DEPTH - 1].load(from, l, part);
        held[0].multiply(chunk, acc, l, part);
        if (DEPTH == 2) held[0] = held[DEPTH - 1];
    }
    float4 sum = make_float4(acc[0], acc[1], acc[2], acc[3]);
    parts[threadIdx.x] = sum;
    __syncthreads();
    if (warp > 0) return;
    for (int k = 1; k < warps; ++k) add(sum, parts[k * LANES + lane]);
    if (gridDim.y == 1 || join(a, tile, lane, sum)) store(a, tile, l, sum);
#endif
}

#ifndef __HIP__
template <int FORMAT, int WIDTH> static int start(const Args &a, cudaStream_t stream) {
    dim3 grid(a.rows / TILE_ROWS, a.shares);
    switch (a.form) {
    case 0: gemv_packed<FORMAT, 2, WIDTH, 1, 48><<<grid, a.block, 0, stream>>>(a); break;
    case 1: gemv_packed<FORMAT, 1, WIDTH, 1, 56><<<grid, a.block, 0, stream>>>(a); break;
    case 2: gemv_packed<FORMAT, 1, WIDTH, 1, 64><<<grid, a.block, 0, stream>>>(a); break;
    case 3: gemv_packed<FORMAT, 2, WIDTH, 2, 64><<<grid, a.block, 0, stream>>>(a); break;
    case 4: gemv_packed<FORMAT, 2, WIDTH, 2, 80><<<grid, a.block, 0, stream>>>(a); break;
    case 5: gemv_packed<FORMAT, 1, WIDTH, 1, 80><<<grid, a.block, 0, stream>>>(a); break;
    case 6: gemv_packed<FORMAT, 1, WIDTH, 2, 112><<<grid, a.block, 0, stream>>>(a); break;
    default: return BAD_ARGUMENT;
    }
    return cudaGetLastError();
}

template <int FORMAT> static int choose(const Args &a, cudaStream_t stream) {
    switch (width_of(a.n)) {
    case 1: return start<FORMAT, 1>(a, stream);
    case 2: return start<FORMAT, 2>(a, stream);
    case 4: return start<FORMAT, 4>(a, stream);
    default: return start<FORMAT, 8>(a, stream);
    }
}

extern "C" int launch_packed(const Args *a, void *stream) {
    if (a->rows % TILE_ROWS || a->cols % TILE_COLS || a->n < 1 || a->n > 8) return BAD_ARGUMENT;
    if (a->block % (2 * LANES) || a->block < 1 || a->block > MAX_WARPS * LANES || a->shares < 1) return BAD_ARGUMENT;
    if (a->format == Q8_0) return choose<Q8_0>(*a, cudaStream_t(stream));
    if (a->format == Q6_K) return choose<Q6_K>(*a, cudaStream_t(stream));
    if (a->format == Q5_K) return choose<Q5_K>(*a, cudaStream_t(stream));
    return BAD_ARGUMENT;
}
#else
extern "C" int launch_packed(const Args *, void *) { return BAD_ARGUMENT; }
#endif

// GEMV of packed tiles (packed.h) with n <= 8 int8 activation vectors on the matrix units.
//
// A block of threads takes one row tile; its warps take the tile's superblocks in turn, straight from memory into
// registers in the order in which the matrix units want them: no shared memory, no barrier and no copy engine between.
// The bytes in flight come from many warps. The warps' sums are added in order: same result every time.
#include "args.h"
#include "consume.h"
#include "device.h"
#include "walk.h"

constexpr int MAX_WARPS = 16;

#if HAS_MMA
__device__ __forceinline__ void add(float4 &to, float4 v) { to.x += v.x, to.y += v.y, to.z += v.z, to.w += v.w; }

__device__ __forceinline__ void store(const Args &a, int tile, const Lane &l, float4 sum) {
    int column = 2 * l.t;
    float *at = reinterpret_cast<float *>(a.y) + int64_t(column) * a.rows + tile * TILE_ROWS + l.g;
    if (column < a.n) at[0] = sum.x, at[8] = sum.z;
    if (column + 1 < a.n) at[a.rows] = sum.y, at[a.rows + 8] = sum.w;
}
#endif

// So that a multiprocessor with 64 Ki registers holds 20 warps. Fewer registers and more warps were slower: loads and
// the work on what came then wait for each other.
#ifdef __HIP__
#define MOST_REGISTERS
#else
#define MOST_REGISTERS __maxnreg__(96)
#endif

template <int FORMAT, int WIDTH> __global__ void MOST_REGISTERS gemv_packed(const __grid_constant__ Args a) {
#if HAS_MMA
    __shared__ float4 parts[MAX_WARPS * LANES];
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES, warps = blockDim.x / LANES;
    const Lane l = Lane::of<WIDTH>(lane);
    float acc[1][4] = {};
    Walk<FORMAT, WIDTH> walk(blockIdx.x, gridDim.x, a.cols / TILE_COLS, warp, warps);
    walk.multiply(static_cast<const uint8_t *>(a.w), static_cast<const uint8_t *>(a.x), 0, acc, l, [] {});
    over_phases<WIDTH>(acc[0]);
    float4 sum = make_float4(acc[0][0], acc[0][1], acc[0][2], acc[0][3]);
    parts[threadIdx.x] = sum;
    __syncthreads();
    if (warp > 0) return;
#pragma unroll 1
    for (int k = 1; k < warps; ++k) add(sum, parts[k * LANES + lane]);
    store(a, blockIdx.x, l, sum);
#endif
}

#ifndef __HIP__
template <int FORMAT, int WIDTH> static int start(const Args &a, cudaStream_t stream) {
    gemv_packed<FORMAT, WIDTH><<<a.rows / TILE_ROWS, a.block, 0, stream>>>(a);
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
    if (a->block % LANES || a->block < 1 || a->block > MAX_WARPS * LANES) return BAD_ARGUMENT;
    if (a->format == Q8_0) return choose<Q8_0>(*a, cudaStream_t(stream));
    if (a->format == Q6_K) return choose<Q6_K>(*a, cudaStream_t(stream));
    if (a->format == Q5_K) return choose<Q5_K>(*a, cudaStream_t(stream));
    if (a->format == Q4_K) return choose<Q4_K>(*a, cudaStream_t(stream));
    return BAD_ARGUMENT;
}
#else
extern "C" int launch_packed(const Args *, void *) { return BAD_ARGUMENT; }
#endif

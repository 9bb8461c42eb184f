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

#if HAS_MMA
// Where a warp's tiles lie, one after the other, and the activations for them.
template <int FORMAT, int WIDTH> struct Walk {
    const uint8_t *from;
    Chunk<WIDTH> chunk;
    int left, each, step;  // superblocks that are left, and between two of this warp; bytes between them

    __device__ __forceinline__ Walk(const Args &a, int warp, int warps) {
        const int tiles = gridDim.x, tile = blockIdx.x, superblocks = a.cols / TILE_COLS;
        const int group = tile / GROUP_TILES, members = min(GROUP_TILES, tiles - group * GROUP_TILES);
        int end = superblocks, first = warp;
        if (gridDim.y > 1) {
            end = (blockIdx.y + 1) * superblocks / gridDim.y;
            first += blockIdx.y * superblocks / gridDim.y;
        }
        each = warps, step = each * members * tile_bytes(FORMAT), left = end - first;
        int64_t at = int64_t(group) * superblocks * GROUP_TILES + tile % GROUP_TILES + int64_t(first) * members;
        from = reinterpret_cast<const uint8_t *>(a.w) + at * tile_bytes(FORMAT);
        chunk.base = reinterpret_cast<const uint8_t *>(a.x) + int64_t(first) * chunk_bytes(WIDTH);
    }
    __device__ __forceinline__ void next() {
        left -= each, from += step, chunk.base += each * chunk_bytes(WIDTH);
    }
};

// AT_ONCE tiles are asked for before the first is multiplied.
template <int FORMAT, int WIDTH, int AT_ONCE>
__device__ __forceinline__ void multiply_all(Walk<FORMAT, WIDTH> walk, float (&acc)[4], const Lane &l) {
#pragma unroll 1
    while (walk.left > 0) {
        Tile<FORMAT, WIDTH> held[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k)
            if (k == 0 || walk.left > k * walk.each) held[k].load(walk.from + k * walk.step, l);
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k) {
            if (walk.left > 0) held[k].multiply(walk.chunk, acc, l);
            walk.next();
        }
    }
}
#endif

template <int FORMAT, int WIDTH, int AT_ONCE, int REGISTERS>
__global__ void MOST_REGISTERS(REGISTERS) gemv_packed(const __grid_constant__ Args a) {
#if HAS_MMA
    __shared__ float4 parts[MAX_WARPS * LANES];
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES, warps = blockDim.x / LANES;
    const Lane l = Lane::of<WIDTH>(lane);
    float acc[4] = {};
    multiply_all<FORMAT, WIDTH, AT_ONCE>(Walk<FORMAT, WIDTH>(a, warp, warps), acc, l);
    over_phases<WIDTH>(acc);
    float4 sum = make_float4(acc[0], acc[1], acc[2], acc[3]);
    parts[threadIdx.x] = sum;
    __syncthreads();
    if (warp > 0) return;
#pragma unroll 1
    for (int k = 1; k < warps; ++k) add(sum, parts[k * LANES + lane]);
    if (gridDim.y == 1 || join(a, blockIdx.x, lane, sum)) store(a, blockIdx.x, l, sum);
#endif
}

#ifndef __HIP__
template <int FORMAT, int WIDTH, int AT_ONCE, int REGISTERS> static int start(const Args &a, cudaStream_t stream) {
    gemv_packed<FORMAT, WIDTH, AT_ONCE, REGISTERS><<<dim3(a.rows / TILE_ROWS, a.shares), a.block, 0, stream>>>(a);
    return cudaGetLastError();
}

template <int FORMAT, int WIDTH> static int choose_form(const Args &a, cudaStream_t stream) {
    switch (a.form) {
    case 0: return start<FORMAT, WIDTH, 1, 56>(a, stream);
    case 1: return start<FORMAT, WIDTH, 1, 64>(a, stream);
    case 2: return start<FORMAT, WIDTH, 1, 72>(a, stream);
    case 3: return start<FORMAT, WIDTH, 1, 80>(a, stream);
    case 4: return start<FORMAT, WIDTH, 1, 96>(a, stream);
    case 5: return start<FORMAT, WIDTH, 1, 112>(a, stream);
    case 6: return start<FORMAT, WIDTH, 2, 96>(a, stream);
    case 7: return start<FORMAT, WIDTH, 2, 112>(a, stream);
    default: return BAD_ARGUMENT;
    }
}

template <int FORMAT> static int choose(const Args &a, cudaStream_t stream) {
    switch (width_of(a.n)) {
    case 1: return choose_form<FORMAT, 1>(a, stream);
    case 2: return choose_form<FORMAT, 2>(a, stream);
    case 4: return choose_form<FORMAT, 4>(a, stream);
    default: return choose_form<FORMAT, 8>(a, stream);
    }
}

extern "C" int launch_packed(const Args *a, void *stream) {
    if (a->rows % TILE_ROWS || a->cols % TILE_COLS || a->n < 1 || a->n > 8) return BAD_ARGUMENT;
    if (a->block % LANES || a->block < 1 || a->block > MAX_WARPS * LANES || a->shares < 1) return BAD_ARGUMENT;
    if (a->format == Q8_0) return choose<Q8_0>(*a, cudaStream_t(stream));
    if (a->format == Q6_K) return choose<Q6_K>(*a, cudaStream_t(stream));
    if (a->format == Q5_K) return choose<Q5_K>(*a, cudaStream_t(stream));
    return BAD_ARGUMENT;
}
#else
extern "C" int launch_packed(const Args *, void *) { return BAD_ARGUMENT; }
#endif

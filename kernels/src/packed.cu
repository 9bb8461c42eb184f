// GEMV of packed tiles (packed.h) with n <= 8 int8 activation vectors on the matrix units. One block of threads an SM
// streams its share of all tiles through shared memory: one warp fetches with bulk copies, the others multiply.
//
// Work is counted in units: `tiles` row tiles x 256 columns. Each block of threads takes the units starts[i] to
// starts[i + 1] of the whole matrix, so the shares are even whatever the shape. A row group that ends in a later block
// is worked on first and its sums are left in `work`; the block that holds the group's end adds them in a fixed order.
// It waits only for blocks of lower index, which have started before it: no deadlock, same result every time.
#include "args.h"
#include "consume.h"
#include "device.h"

constexpr int MAX_STAGES = 16;

#if HAS_BULK
__device__ __forceinline__ uint32_t shared_address(const void *p) { return uint32_t(__cvta_generic_to_shared(p)); }

__device__ __forceinline__ void barrier_init(uint64_t *bar, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(bar)), "r"(count));
}

__device__ __forceinline__ void barrier_arrive(uint64_t *bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(bar)) : "memory");
}

__device__ __forceinline__ void barrier_expect(uint64_t *bar, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(bar)), "r"(bytes) : "memory");
}

__device__ __forceinline__ void barrier_wait(uint64_t *bar, uint32_t phase) {
    asm volatile(
        "{\n.reg .pred done;\nAGAIN:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@done bra OUT;\nbra AGAIN;\nOUT:\n}" ::"r"(shared_address(bar)), "r"(phase) : "memory");
}

__device__ __forceinline__ uint64_t leave_first() {
    uint64_t policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

__device__ __forceinline__ void fetch(void *to, const void *from, uint32_t bytes, uint64_t *bar, uint64_t policy) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(
            shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(bar)), "l"(policy) : "memory");
}

__device__ __forceinline__ void fetch_shared(void *to, const void *from, uint32_t bytes, uint64_t *bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(bar)) : "memory");
}
#endif

#if HAS_MMA
// The units of one block of threads, the unfinished row group first.
struct Share {
    int first, end, cut, units, groups_end;
    __device__ __forceinline__ Share(const int *starts, int block, int superblocks) {
        first = starts[block], end = starts[block + 1], units = end - first;
        cut = max(first, end - end % superblocks);
        groups_end = end - cut;
    }
    __device__ __forceinline__ int unit(int i) const { return i < groups_end ? cut + i : first + i - groups_end; }
    __device__ __forceinline__ bool last_of_piece(int i, int superblocks) const {
        return i + 1 == units || i + 1 == groups_end || (unit(i) + 1) % superblocks == 0;
    }
};

__device__ __forceinline__ int read_flag(const int *flag) {
    int v;
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
    return v;
}

__device__ __forceinline__ void write_flag(int *flag, int v) {
    asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(flag), "r"(v) : "memory");
}

// Sums that earlier blocks of threads left for this row group, nearest block first.
__device__ __forceinline__ void add_partials(float (&acc)[4], const Args &a, int group_start, int tile, int lane) {
    for (int c = int(blockIdx.x) - 1; c >= 0; --c) {
        int from = a.starts[c], to = a.starts[c + 1];
        if (to <= group_start) break;
        if (from == to) continue;
        int slot = c * a.tiles + tile;
        while (read_flag(a.flags + slot) == 0) {}
        float4 p = __ldcg(reinterpret_cast<const float4 *>(a.work) + slot * LANES + lane);
        acc[0] += p.x, acc[1] += p.y, acc[2] += p.z, acc[3] += p.w;
        __syncwarp();
        if (lane == 0) write_flag(a.flags + slot, 0);
    }
}

__device__ __forceinline__ void store(const float (&acc)[4], const Args &a, int row, int column) {
    float *y = reinterpret_cast<float *>(a.y);
    if (column < a.n) {
        y[int64_t(column) * a.rows + row] = acc[0];
        y[int64_t(column) * a.rows + row + 8] = acc[2];
    }
    if (column + 1 < a.n) {
        y[int64_t(column + 1) * a.rows + row] = acc[1];
        y[int64_t(column + 1) * a.rows + row + 8] = acc[3];
    }
}

template <int SPLIT>
__device__ __forceinline__ void join_parts(float (&acc)[4], float4 *exchange, int tile, int part, int lane) {
    if (SPLIT == 1) return;
    float4 *mine = exchange + tile * LANES + lane;
    if (part == 1) *mine = make_float4(acc[0], acc[1], acc[2], acc[3]);
    asm volatile("bar.sync %0, 64;" ::"r"(tile + 1) : "memory");
    if (part == 0) {
        float4 p = *mine;
        acc[0] += p.x, acc[1] += p.y, acc[2] += p.z, acc[3] += p.w;
    }
    asm volatile("bar.sync %0, 64;" ::"r"(tile + 1) : "memory");
}

// What becomes of a piece's sums: left for a later block, or joined with what earlier ones left and stored.
__device__ __forceinline__ void finish(float (&acc)[4], const Args &a, const Share &share, int i, int superblocks,
                                       int tile, bool present, const Lane &l) {
    int unit = share.unit(i), group = unit / superblocks;
    if (i < share.groups_end) {
        int slot = blockIdx.x * a.tiles + tile;
        __stcg(reinterpret_cast<float4 *>(a.work) + slot * LANES + l.index, make_float4(acc[0], acc[1], acc[2], acc[3]));
        __threadfence();
        __syncwarp();
        if (l.index == 0) write_flag(a.flags + slot, 1);
        return;
    }
    if (share.first > group * superblocks) add_partials(acc, a, group * superblocks, tile, l.index);
    if (present) store(acc, a, (group * a.tiles + tile) * TILE_ROWS + l.g, 2 * l.t);
}
#endif

// The sums of row tiles that the matrix does not have (past its end, in the last group) are zero and go nowhere.
template <int FORMAT, int TILES, int SPLIT>
__global__ void __launch_bounds__(LANES *(TILES *SPLIT + 1), 1) gemv_packed(const __grid_constant__ Args a) {
#if HAS_MMA
    constexpr int BYTES = tile_bytes(FORMAT), WARPS = TILES * SPLIT;
    extern __shared__ __align__(128) uint8_t memory[];
    __shared__ float4 exchange[SPLIT == 1 ? 1 : TILES * LANES];
    const int superblocks = a.cols / TILE_COLS, row_tiles = a.rows / TILE_ROWS;
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const Share share(a.starts, blockIdx.x, superblocks);
    const uint8_t *weights = reinterpret_cast<const uint8_t *>(a.w), *chunks = reinterpret_cast<const uint8_t *>(a.x);
    const int chunk = chunk_bytes(a.n), stage_bytes = TILES * BYTES + chunk;
#if HAS_BULK
    __shared__ uint64_t full[MAX_STAGES], empty[MAX_STAGES];
    if (threadIdx.x < a.stages) {
        barrier_init(full + threadIdx.x, 1);
        barrier_init(empty + threadIdx.x, WARPS);
        asm volatile("fence.mbarrier_init.release.cluster;");
    }
    __syncthreads();
    if (warp == WARPS) {
        uint64_t policy = leave_first();
        int stage = 0, phase = 0;
        for (int i = 0; i < share.units; ++i) {
            int unit = share.unit(i), group = unit / superblocks, sb = unit % superblocks;
            int present = min(TILES, row_tiles - group * TILES);
            if (i >= a.stages) barrier_wait(empty + stage, phase ^ 1);
            uint8_t *to = memory + stage * stage_bytes;
            if (lane == 0) barrier_expect(full + stage, present * BYTES + chunk);
            __syncwarp();
            if (lane < present)
                fetch(to + lane * BYTES, weights + (int64_t(group * TILES + lane) * superblocks + sb) * BYTES, BYTES,
                      full + stage, policy);
            if (lane == TILES) fetch_shared(to + TILES * BYTES, chunks + int64_t(sb) * chunk, chunk, full + stage);
            if (++stage == a.stages) stage = 0, phase ^= 1;
        }
        return;
    }
#else
    if (warp == WARPS) return;
#endif
    const int tile = warp % TILES, part = warp / TILES;
    Lane l;
    l.index = lane, l.g = lane / 4, l.t = lane % 4;
    l.column = min(l.g, a.n - 1), l.pair = min(l.t, even(a.n) / 2 - 1);
    float acc[4] = {};
    int stage = 0, phase = 0;
    for (int i = 0; i < share.units; ++i) {
        int group = share.unit(i) / superblocks;
        bool present = group * TILES + tile < row_tiles;
#if HAS_BULK
        const uint8_t *held = memory + stage * stage_bytes;
        barrier_wait(full + stage, phase);
        if (present)
            Consumer<FORMAT, SPLIT>::run(held + tile * BYTES, Chunk{held + TILES * BYTES, a.n}, acc, l, part);
        __syncwarp();
        if (lane == 0) barrier_arrive(empty + stage);
        if (++stage == a.stages) stage = 0, phase ^= 1;
#else
        int sb = share.unit(i) % superblocks;
        if (present)
            Consumer<FORMAT, SPLIT>::run(weights + (int64_t(group * TILES + tile) * superblocks + sb) * BYTES,
                                         Chunk{chunks + int64_t(sb) * chunk, a.n}, acc, l, part);
#endif
        if (!share.last_of_piece(i, superblocks)) continue;
        join_parts<SPLIT>(acc, exchange, tile, part, lane);
        if (part == 0) finish(acc, a, share, i, superblocks, tile, present, l);
#pragma unroll
        for (int k = 0; k < 4; ++k) acc[k] = 0.0f;
    }
#endif
}

#ifndef __HIP__
template <int FORMAT, int TILES, int SPLIT> static int start(const Args &a, cudaStream_t stream) {
    auto kernel = gemv_packed<FORMAT, TILES, SPLIT>;
    size_t memory = size_t(a.stages) * (TILES * tile_bytes(FORMAT) + chunk_bytes(a.n));
    cudaError_t status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(memory));
    if (status != cudaSuccess) return status;
    kernel<<<a.grid, LANES *(TILES *SPLIT + 1), memory, stream>>>(a);
    return cudaGetLastError();
}

template <int FORMAT> static int choose(const Args &a, cudaStream_t stream) {
    if (a.tiles == 8 && a.split == 1) return start<FORMAT, 8, 1>(a, stream);
    if (a.tiles == 8 && a.split == 2) return start<FORMAT, 8, 2>(a, stream);
    if (a.tiles == 4 && a.split == 1) return start<FORMAT, 4, 1>(a, stream);
    if (a.tiles == 4 && a.split == 2) return start<FORMAT, 4, 2>(a, stream);
    return BAD_ARGUMENT;
}

extern "C" int launch_packed(const Args *a, void *stream) {
    if (a->rows % TILE_ROWS || a->cols % TILE_COLS || a->n < 1 || a->n > 8) return BAD_ARGUMENT;
    if (a->stages < 1 || a->stages > MAX_STAGES) return BAD_ARGUMENT;
    if (a->format == Q8_0) return choose<Q8_0>(*a, cudaStream_t(stream));
    if (a->format == Q6_K) return choose<Q6_K>(*a, cudaStream_t(stream));
    if (a->format == Q5_K) return choose<Q5_K>(*a, cudaStream_t(stream));
    return BAD_ARGUMENT;
}
#else
extern "C" int launch_packed(const Args *, void *) { return BAD_ARGUMENT; }
#endif

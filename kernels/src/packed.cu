// GEMV of packed tiles (packed.h) with n <= 8 int8 activation vectors on the matrix units. One block of threads an SM
// streams its share of all tiles through shared memory. Three roles: one warp fetches with bulk copies, 8 or 16 multiply,
// and one deals with finished sums, so that no fence and no wait for another block ever stops the multiplying ones:
// behind a deep queue of fetches such a round trip takes microseconds.
//
// Work is counted in units: a group of 8 row tiles x 256 columns. Each block of threads takes a run of units
// of the whole matrix, so the shares are even whatever the shape. A group that ends in a later block is
// worked on first and its sums are left in `work`; the block that holds the group's end adds them in a fixed order.
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

// Weights leave the L2 first, activations stay.
__device__ __forceinline__ void fetch_once(void *to, const void *from, uint32_t bytes, uint64_t *bar) {
    uint64_t policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(
            shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(bar)), "l"(policy) : "memory");
}

__device__ __forceinline__ void fetch(void *to, const void *from, uint32_t bytes, uint64_t *bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(bar)) : "memory");
}
#endif

#if HAS_MMA
// The first unit of each block of threads; that of block `grid` is the number of units (kernels/shares.py says the same).
__device__ __forceinline__ int start_of(const Args &a, int block, int superblocks) {
    if (a.pieces) return block / a.pieces * superblocks + block % a.pieces * a.piece;
    int groups = (a.rows / TILE_ROWS + GROUP_TILES - 1) / GROUP_TILES;
    return int(int64_t(block) * groups * superblocks / a.grid);
}

// The units of one block of threads as pieces, each within one group; the piece whose group goes on elsewhere comes first.
struct Pieces {
    int superblocks, first, end, cut, cursor;
    bool tail;
    int at, stop, group;   // the piece in hand: units at to stop
    bool finished, begun;  // it holds the group's last unit, its first

    __device__ __forceinline__ Pieces(const Args &a, int block) : superblocks(a.cols / TILE_COLS) {
        first = start_of(a, block, superblocks), end = start_of(a, block + 1, superblocks);
        cut = max(first, end - end % superblocks);
        tail = cut < end, cursor = first;
    }
    __device__ __forceinline__ bool next() {
        if (!tail && cursor >= cut) return false;
        at = tail ? cut : cursor;
        group = at / superblocks;
        int group_end = (group + 1) * superblocks;
        stop = tail ? end : min(cut, group_end);
        if (!tail) cursor = stop;
        tail = false;
        finished = stop == group_end;
        begun = at == group * superblocks;
        return true;
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

struct Sums {
    float4 tile[GROUP_TILES];

    template <int SPLIT> __device__ __forceinline__ void take(const float4 *parts, int lane) {
#pragma unroll
        for (int i = 0; i < GROUP_TILES; ++i) {
            tile[i] = parts[i * LANES + lane];
            if (SPLIT == 2) add(i, parts[(GROUP_TILES + i) * LANES + lane]);
        }
    }
    __device__ __forceinline__ void add(int i, float4 p) {
        tile[i].x += p.x, tile[i].y += p.y, tile[i].z += p.z, tile[i].w += p.w;
    }
    // For the block of threads in which the group ends.
    __device__ __forceinline__ void leave(const Args &a, int lane) const {
        float4 *to = reinterpret_cast<float4 *>(a.work) + blockIdx.x * GROUP_TILES * LANES + lane;
#pragma unroll
        for (int i = 0; i < GROUP_TILES; ++i) __stcg(to + i * LANES, tile[i]);
        __syncwarp();
        if (lane == 0) write_flag(a.flags + blockIdx.x, 1);
    }
    // What earlier blocks of threads left, nearest first.
    __device__ __forceinline__ void collect(const Args &a, const Pieces &pieces, int lane) {
        int group_start = pieces.group * pieces.superblocks;
        for (int c = int(blockIdx.x) - 1; c >= 0; --c) {
            if (start_of(a, c + 1, pieces.superblocks) <= group_start) break;
            while (read_flag(a.flags + c) == 0) {}
            const float4 *left = reinterpret_cast<const float4 *>(a.work) + c * GROUP_TILES * LANES + lane;
#pragma unroll
            for (int i = 0; i < GROUP_TILES; ++i) add(i, __ldcg(left + i * LANES));
            __syncwarp();
            if (lane == 0) a.flags[c] = 0;
        }
    }
    __device__ __forceinline__ void store(const Args &a, int group, const Lane &l) const {
        float *y = reinterpret_cast<float *>(a.y);
        int tiles = min(GROUP_TILES, a.rows / TILE_ROWS - group * GROUP_TILES), column = 2 * l.t;
#pragma unroll
        for (int i = 0; i < GROUP_TILES; ++i) {
            if (i >= tiles) break;
            float *at = y + int64_t(column) * a.rows + (group * GROUP_TILES + i) * TILE_ROWS + l.g;
            if (column < a.n) at[0] = tile[i].x, at[8] = tile[i].z;
            if (column + 1 < a.n) at[a.rows] = tile[i].y, at[a.rows + 8] = tile[i].w;
        }
    }
};

__device__ __forceinline__ void finish(Sums &sums, const Args &a, const Pieces &pieces, const Lane &l) {
    if (!pieces.finished) return sums.leave(a, l.index);
    if (!pieces.begun) sums.collect(a, pieces, l.index);
    sums.store(a, pieces.group, l);
}
#endif

// Sums of row tiles that the matrix does not have (past its end, in the last group) are zero and are not stored.
template <int FORMAT, int SPLIT, int WIDTH>
__global__ void __launch_bounds__(LANES *(GROUP_TILES *SPLIT + 2), 1) gemv_packed(const __grid_constant__ Args a) {
#if HAS_MMA
    constexpr int BYTES = tile_bytes(FORMAT), WARPS = GROUP_TILES * SPLIT, CHUNK = chunk_bytes(WIDTH);
    constexpr int STAGE = GROUP_TILES * BYTES + CHUNK;
    extern __shared__ __align__(128) uint8_t memory[];
    __shared__ float4 parts[WARPS * LANES];
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES, row_tiles = a.rows / TILE_ROWS;
    const uint8_t *weights = reinterpret_cast<const uint8_t *>(a.w), *chunks = reinterpret_cast<const uint8_t *>(a.x);
    Pieces pieces(a, blockIdx.x);
#if HAS_BULK
    __shared__ uint64_t full[MAX_STAGES], empty[MAX_STAGES], done, taken;
    if (threadIdx.x == 0) {
        for (int i = 0; i < a.stages; ++i) barrier_init(full + i, 1), barrier_init(empty + i, WARPS);
        barrier_init(&done, WARPS), barrier_init(&taken, 1);
        asm volatile("fence.mbarrier_init.release.cluster;");
    }
    __syncthreads();
    int stage = 0, phase = 0;
    if (warp == WARPS) {
        if (lane != 0) return;
        bool filled = false;
        while (pieces.next()) {
            int group = pieces.group, bytes = min(GROUP_TILES, row_tiles - group * GROUP_TILES) * BYTES;
            int sb = pieces.at - group * pieces.superblocks;
            const uint8_t *from = weights + int64_t(group) * pieces.superblocks * (GROUP_TILES * BYTES) + int64_t(sb) * bytes;
            const uint8_t *chunk = chunks + int64_t(sb) * CHUNK;
            for (int i = pieces.at; i < pieces.stop; ++i, from += bytes, chunk += CHUNK) {
                if (filled) barrier_wait(empty + stage, phase ^ 1);
                uint8_t *to = memory + stage * STAGE;
                barrier_expect(full + stage, bytes + CHUNK);
                fetch_once(to, from, bytes, full + stage);
                fetch(to + GROUP_TILES * BYTES, chunk, CHUNK, full + stage);
                if (++stage == a.stages) stage = 0, phase ^= 1, filled = true;
            }
        }
        return;
    }
#endif
    const Lane l = Lane::of<WIDTH>(lane);
#if HAS_BULK
    if (warp == WARPS + 1) {
        while (pieces.next()) {
            Sums sums;
            barrier_wait(&done, phase);
            sums.take<SPLIT>(parts, lane);
            __syncwarp();
            if (lane == 0) barrier_arrive(&taken);
            phase ^= 1;
            finish(sums, a, pieces, l);
        }
        return;
    }
    int piece = 0;
#endif
    const int tile = warp % GROUP_TILES, part = warp / GROUP_TILES;
    while (pieces.next()) {
        float acc[4] = {};
        const bool present = warp < WARPS && pieces.group * GROUP_TILES + tile < row_tiles;
#if HAS_BULK
        for (int i = pieces.at; i < pieces.stop; ++i) {
            const uint8_t *held = memory + stage * STAGE;
            barrier_wait(full + stage, phase);
            if (present)
                Consumer<FORMAT, SPLIT, WIDTH>::run(held + tile * BYTES, Chunk<WIDTH>{held + GROUP_TILES * BYTES}, acc, l, part);
            __syncwarp();
            if (lane == 0) barrier_arrive(empty + stage);
            if (++stage == a.stages) stage = 0, phase ^= 1;
        }
        if (piece > 0) barrier_wait(&taken, (piece - 1) & 1);
        parts[warp * LANES + lane] = make_float4(acc[0], acc[1], acc[2], acc[3]);
        __syncwarp();
        if (lane == 0) barrier_arrive(&done);
        ++piece;
#else
        int64_t base = int64_t(pieces.group) * pieces.superblocks * GROUP_TILES;
        int tiles = min(GROUP_TILES, row_tiles - pieces.group * GROUP_TILES);
        for (int i = pieces.at; present && i < pieces.stop; ++i) {
            int sb = i - pieces.group * pieces.superblocks;
            Consumer<FORMAT, SPLIT, WIDTH>::run(weights + (base + int64_t(sb) * tiles + tile) * BYTES,
                                                Chunk<WIDTH>{chunks + int64_t(sb) * CHUNK}, acc, l, part);
        }
        if (warp < WARPS) parts[warp * LANES + lane] = make_float4(acc[0], acc[1], acc[2], acc[3]);
        __syncthreads();
        if (warp == WARPS) {
            Sums sums;
            sums.take<SPLIT>(parts, lane);
            finish(sums, a, pieces, l);
        }
        __syncthreads();
#endif
    }
#endif
}

#ifndef __HIP__
template <int FORMAT, int SPLIT, int WIDTH> static int start(const Args &a, cudaStream_t stream) {
    auto kernel = gemv_packed<FORMAT, SPLIT, WIDTH>;
    size_t memory = size_t(a.stages) * (GROUP_TILES * tile_bytes(FORMAT) + chunk_bytes(WIDTH));
    cudaError_t status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(memory));
    if (status != cudaSuccess) return status;
    kernel<<<a.grid, LANES *(GROUP_TILES *SPLIT + 2), memory, stream>>>(a);
    return cudaGetLastError();
}

template <int FORMAT, int SPLIT> static int choose_width(const Args &a, cudaStream_t stream) {
    switch (width_of(a.n)) {
    case 1: return start<FORMAT, SPLIT, 1>(a, stream);
    case 2: return start<FORMAT, SPLIT, 2>(a, stream);
    case 4: return start<FORMAT, SPLIT, 4>(a, stream);
    default: return start<FORMAT, SPLIT, 8>(a, stream);
    }
}

template <int FORMAT> static int choose(const Args &a, cudaStream_t stream) {
    return a.split == 1 ? choose_width<FORMAT, 1>(a, stream) : choose_width<FORMAT, 2>(a, stream);
}

extern "C" int launch_packed(const Args *a, void *stream) {
    if (a->rows % TILE_ROWS || a->cols % TILE_COLS || a->n < 1 || a->n > 8) return BAD_ARGUMENT;
    if (a->grid < 1 || a->pieces < 0 || (a->pieces && a->grid % a->pieces)) return BAD_ARGUMENT;
    if (a->stages < 1 || a->stages > MAX_STAGES || a->split < 1 || a->split > 2) return BAD_ARGUMENT;
    if (a->format == Q8_0) return choose<Q8_0>(*a, cudaStream_t(stream));
    if (a->format == Q6_K) return choose<Q6_K>(*a, cudaStream_t(stream));
    if (a->format == Q5_K) return choose<Q5_K>(*a, cudaStream_t(stream));
    return BAD_ARGUMENT;
}
#else
extern "C" int launch_packed(const Args *, void *) { return BAD_ARGUMENT; }
#endif

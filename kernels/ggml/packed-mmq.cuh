// Tile loaders of mul_mat_q for packed matrices: 128 rows x 256 columns are the eight tiles of a group, which lie side by
// side. A warp takes one, in the order in which it reads a tile for a GEMV, and leaves in shared memory what the loaders
// for the file's layout leave there: products are the same to the last bit.
#pragma once
#include "packed.cuh"

#if GGML_CUDA_PACKED_AVAILABLE
#include "packed-device.cuh"
#else
#define HAS_MMA 0
#endif

// In the place of the precision of src1: the weights are packed.
static constexpr ggml_prec GGML_CUDA_PREC_PACKED = (ggml_prec) 60;

struct mmq_args;
void ggml_cuda_mul_mat_q_packed(ggml_backend_cuda_context & ctx, const mmq_args & args, cudaStream_t stream);

#if HAS_MMA

static constexpr __device__ int packed_format_of(ggml_type type) {
    return type == GGML_TYPE_Q8_0 ? packed::Q8_0 : type == GGML_TYPE_Q6_K ? packed::Q6_K :
           type == GGML_TYPE_Q5_K ? packed::Q5_K : packed::Q4_K;
}

// `up` and `low`: rows g and g + 8 of the warp's tile in shared memory; S: ints from row to row. j: block of 32 columns.
static __device__ __forceinline__ void packed_store_block(
        int * up, int * low, const int j, const int t, const uint4 v) {
    up [8*j + t]     = v.x;
    low[8*j + t]     = v.y;
    up [8*j + 4 + t] = v.z;
    low[8*j + 4 + t] = v.w;
}

static __device__ __forceinline__ uint32_t packed_signed_six(const uint32_t v) {
    return __vsub4(((v >> 2) & 0x3f3f3f3f) ^ 0x20202020, 0x20202020);
}

static __device__ __forceinline__ void packed_to_shared(
        const packed::Tile<packed::Q8_0, 8> & tile, int * up, int * low, const int t) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        packed_store_block(up, low, j, t, tile.q[j]);
    }
    float * up_d = (float *) (up + 2*MMQ_TILE_NE_K), * low_d = (float *) (low + 2*MMQ_TILE_NE_K);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        if (j / 2 == t) {
            const float2 d = packed::halves(tile.d[j]);
            up_d[j] = d.x, low_d[j] = d.y;
        }
    }
}

static __device__ __forceinline__ void packed_to_shared(
        const packed::Tile<packed::Q6_K, 8> & tile, int * up, int * low, const int t) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        const uint32_t p0 = tile.word(3*j), p1 = tile.word(3*j + 1), p2 = tile.word(3*j + 2);
        packed_store_block(up, low, j, t, make_uint4(packed_signed_six(p0), packed_signed_six(p1),
            packed_signed_six(p2), packed_signed_six(packed::spare_six(p0, p1, p2))));
    }
    int * up_d = up + 2*MMQ_TILE_NE_K, * low_d = low + 2*MMQ_TILE_NE_K;
    if (t == 0) {
        const float2 d = packed::halves(tile.d);
        *(float *) up_d = d.x, *(float *) low_d = d.y;
    }
    up_d [MMQ_TILE_NE_K/QI6_K + t] = packed::word_of(tile.upper, t);
    low_d[MMQ_TILE_NE_K/QI6_K + t] = packed::word_of(tile.lower, t);
}

// A row's scales and minima of the blocks 2 t and 2 t + 1.
static __device__ __forceinline__ void packed_store_scales(half2 * to, const uint4 row, const int t) {
    half2 dm;
    memcpy(&dm, &row.w, sizeof(dm));
    dm = dm * make_half2(1.0f, -1.0f);
    const uint32_t sc = t < 2 ? row.x : row.y, m = t < 2 ? row.z : packed::spare_six(row.x, row.y, row.z);
#pragma unroll
    for (int l = 0; l < 2; ++l) {
        const int shift = 8 * (t % 2 * 2 + l) + 2;
        to[2*t + l] = dm * make_half2((sc >> shift) & 63, (m >> shift) & 63);
    }
}

template <int FORMAT, int SHIFT>
static __device__ __forceinline__ void packed_k_to_shared(
        const packed::Tile<FORMAT, 8> & tile, int * up, int * low, const int t) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        const uint4 v = tile.values(j);
        packed_store_block(up, low, j, t, make_uint4(v.x >> SHIFT, v.y >> SHIFT, v.z >> SHIFT, v.w >> SHIFT));
    }
    packed_store_scales((half2 *) (up  + 2*MMQ_TILE_NE_K), tile.upper, t);
    packed_store_scales((half2 *) (low + 2*MMQ_TILE_NE_K), tile.lower, t);
}

static __device__ __forceinline__ void packed_to_shared(
        const packed::Tile<packed::Q5_K, 8> & tile, int * up, int * low, const int t) {
    packed_k_to_shared<packed::Q5_K, 3>(tile, up, low, t);
}

static __device__ __forceinline__ void packed_to_shared(
        const packed::Tile<packed::Q4_K, 8> & tile, int * up, int * low, const int t) {
    packed_k_to_shared<packed::Q4_K, 0>(tile, up, low, t);
}

template <ggml_type type, int J, bool fallback>
static __device__ __forceinline__ void ggml_cuda_mmq_load_tiles_packed(
        const char * __restrict__ x, int * __restrict__ x_tile, const int kbx0, const int i_max, const int stride) {
    constexpr int FORMAT      = packed_format_of(type);
    constexpr int sram_stride = ggml_cuda_mmq_get_sram_stride(type, J, fallback);
    constexpr int blocks      = packed::TILE_COLS / ggml_cuda_type_traits<type>::qk; // of the file, in a superblock
    static_assert(ggml_cuda_mmq_get_I(type, J, fallback) == packed::GROUP_TILES*packed::TILE_ROWS, "bad I");
    static_assert(ggml_cuda_mmq_get_nthreads(type, J, fallback) == packed::GROUP_TILES*WARP_SIZE, "bad nthreads");

    const int row     = kbx0 / stride;
    const int s       = (kbx0 - row*stride) / blocks;
    const int members = fallback ? min(packed::GROUP_TILES, (i_max + 1) / packed::TILE_ROWS) : packed::GROUP_TILES;
    const int member  = fallback ? min(int(threadIdx.y), members - 1) : threadIdx.y;
    const int64_t at  = int64_t(row / packed::TILE_ROWS) * (stride / blocks) + s*members + member;

    const packed::Lane lane = packed::Lane::of<8>(threadIdx.x);
    packed::Tile<FORMAT, 8> tile;
    tile.load((const uint8_t *) x + at*packed::tile_bytes(FORMAT), lane);
    int * up = x_tile + (threadIdx.y*packed::TILE_ROWS + lane.g)*sram_stride;
    packed_to_shared(tile, up, up + 8*sram_stride, lane.t);
}

#endif // HAS_MMA

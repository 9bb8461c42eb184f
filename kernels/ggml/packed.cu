// Products of a packed matrix with 1 to 32 columns on the int8 matrix units: 8 at a time, in passes over a tile that is in registers.
#include "packed.cuh"

#if GGML_CUDA_PACKED_AVAILABLE

#include "packed-device.cuh"
#include "unary.cuh"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <unordered_map>

// Columns up to which four passes over a tile are not slower than mul_mat_q.
static constexpr int PACKED_MAX_COLUMNS = 4 * GGML_CUDA_PACKED_PASS;

static std::atomic<uint64_t> packed_graph;

void ggml_cuda_packed_new_graph() { packed_graph++; }

struct packed_args {
    const uint8_t * w;     // packed
    const uint8_t * gate;  // packed, the same shape
    const uint8_t * x;     // chunks
    float         * y;
    const float   * bias;  // added to w x, column by column
    const float   * gate_bias;
    int     rows, cols, n;
    int64_t pass_bytes;  // of the chunks of one pass
    int64_t stride_y, stride_bias, stride_gate_bias;  // floats, from column to column
    int     glu;
    float   limit;
};

// Registers of a thread: a multiprocessor with 64 Ki of them then holds 20 warps, with more passes 16 or 12.
static constexpr int packed_registers(const int passes) { return passes == 1 ? 96 : passes == 2 ? 128 : 168; }

#if CUDART_VERSION >= 12040
#define PACKED_REGISTERS(passes) __maxnreg__(packed_registers(passes))
#else
#define PACKED_REGISTERS(passes)
#endif

static __device__ __forceinline__ float packed_glu(const int op, const float gate, const float up, const float limit) {
    switch (op) {
        case GGML_GLU_OP_SWIGLU:       return up * ggml_cuda_op_silu_single(gate);
        case GGML_GLU_OP_GEGLU:        return up * ggml_cuda_op_gelu_single(gate);
        case GGML_GLU_OP_SWIGLU_OAI:   return ggml_cuda_op_swiglu_oai_single(gate, up);
        case GGML_GLU_OP_SWIGLU_CLAMP: return ggml_cuda_op_swiglu_clamp_single(gate, up, limit);
        default:                       return up * gate;
    }
}

template <bool GATE>
static __device__ __forceinline__ void packed_store(
        const packed_args & a, const int row, const int column, float v, float gate) {
    if (column >= a.n) {
        return;
    }
    if (a.bias) {
        v += a.bias[column * a.stride_bias + row];
    }
    if (GATE) {
        if (a.gate_bias) {
            gate += a.gate_bias[column * a.stride_gate_bias + row];
        }
        v = packed_glu(a.glu, gate, v, a.limit);
    }
    a.y[column * a.stride_y + row] = v;
}

// A block of threads takes one row tile; its warps take the tile's superblocks in turn, straight from memory into
// registers in the order in which the matrix units want them. A tile that is there is multiplied with the vectors of all
// passes. The warps' sums are added in order: the same every time.
// The first weights are on their way before what is upstream in the stream has finished.
template <int FORMAT, int WIDTH, int PASSES, bool GATE>
static __global__ void PACKED_REGISTERS(PASSES) mul_mat_packed(const __grid_constant__ packed_args a) {
#if HAS_MMA
    extern __shared__ float4 packed_parts[];  // [matrix or pass][warp][lane]
    const int warp = threadIdx.x / WARP_SIZE, lane = threadIdx.x % WARP_SIZE, warps = blockDim.x / WARP_SIZE;
    const packed::Lane l = packed::Lane::of<WIDTH>(lane);
    const packed::Walk<FORMAT, WIDTH> walk(blockIdx.x, gridDim.x, a.cols / packed::TILE_COLS, warp, warps);

#pragma unroll 1
    for (int m = 0; m < (GATE ? 2 : 1); ++m) {  // the gate's matrix after the other: its sums need no registers meanwhile
        float acc[PASSES][4] = {};
        walk.multiply(GATE && m ? a.gate : a.w, a.x, a.pass_bytes, acc, l, [m] {
            if (m == 0) {
                ggml_cuda_pdl_sync();
            }
        });
#pragma unroll
        for (int p = 0; p < PASSES; ++p) {
            packed::over_phases<WIDTH>(acc[p]);
            packed_parts[(m + p) * blockDim.x + threadIdx.x] = make_float4(acc[p][0], acc[p][1], acc[p][2], acc[p][3]);
        }
    }
    __syncthreads();
#pragma unroll 1
    for (int p = warp; p < PASSES; p += warps) {
        float4 sum = make_float4(0, 0, 0, 0), gate_sum = make_float4(0, 0, 0, 0);
#pragma unroll 1
        for (int k = 0; k < warps; ++k) {
            const float4 v = packed_parts[p * blockDim.x + k * WARP_SIZE + lane];
            sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
            if (GATE) {
                const float4 q = packed_parts[blockDim.x + k * WARP_SIZE + lane];
                gate_sum.x += q.x, gate_sum.y += q.y, gate_sum.z += q.z, gate_sum.w += q.w;
            }
        }
        const int row = blockIdx.x * packed::TILE_ROWS + l.g, column = p * WIDTH + 2 * l.t;
        packed_store<GATE>(a, row,     column,     sum.x, gate_sum.x);
        packed_store<GATE>(a, row,     column + 1, sum.y, gate_sum.y);
        packed_store<GATE>(a, row + 8, column,     sum.z, gate_sum.z);
        packed_store<GATE>(a, row + 8, column + 1, sum.w, gate_sum.w);
    }
#else
    GGML_UNUSED(a);
    NO_DEVICE_CODE;
#endif
}

// Int8 activations with a float scale for 32 values, in chunks. A warp takes one block of 32 values; vectors past n are 0.
static __global__ void packed_quantise(const float * x, uint8_t * out, const int cols, const int64_t stride, const int n,
        const int width, const int columns, const int64_t pass_bytes) {
    ggml_cuda_pdl_lc();
    const int lane = threadIdx.x % WARP_SIZE, block = (blockIdx.x * blockDim.x + threadIdx.x) / WARP_SIZE;
    const int per_column = cols / 32, column = block / per_column, b = block % per_column;
    ggml_cuda_pdl_sync();
    if (column >= columns) {
        return;
    }
    packed::quantise_to_chunk(column < n ? x[column * stride + b * 32 + lane] : 0.0f, out + column / width * pass_bytes,
        b, column % width, lane, width);
}

// So many warps a block of threads that all blocks run at once where the chip holds them; of the numbers that give no
// warp more superblocks than the most allowed does, the smallest. Tuned on an H200.
static int packed_warps(const int64_t rows, const int64_t cols, const int passes, const int nsm) {
    const int64_t held   = 65536 / (packed_registers(passes) * WARP_SIZE) / 4 * 4;
    const int64_t blocks = (rows / packed::TILE_ROWS + nsm - 1) / nsm, superblocks = cols / packed::TILE_COLS;
    const int64_t most   = std::min<int64_t>(std::max<int64_t>(held / blocks, 2), 10);
    const int64_t each   = (superblocks + most - 1) / most;
    return int((superblocks + each - 1) / each);
}

template <int FORMAT, int WIDTH, int PASSES, bool GATE>
static void packed_launch(const packed_args & a, const int warps, cudaStream_t stream) {
    const size_t shared = sizeof(float4) * WARP_SIZE * warps * std::max(GATE ? 2 : 1, PASSES);
    const ggml_cuda_kernel_launch_params params(
        dim3(a.rows / packed::TILE_ROWS), dim3(warps * WARP_SIZE), shared, stream);
    ggml_cuda_kernel_launch(mul_mat_packed<FORMAT, WIDTH, PASSES, GATE>, params, a);
}

template <int FORMAT, int WIDTH>
static void packed_launch_narrow(const packed_args & a, const int warps, cudaStream_t stream) {
    if (a.gate) {
        packed_launch<FORMAT, WIDTH, 1, true>(a, warps, stream);
    } else {
        packed_launch<FORMAT, WIDTH, 1, false>(a, warps, stream);
    }
}

template <int FORMAT>
static void packed_launch_width(const packed_args & a, const int warps, cudaStream_t stream) {
    switch ((a.n + GGML_CUDA_PACKED_PASS - 1) / GGML_CUDA_PACKED_PASS) {
        case 1: break;
        case 2:  packed_launch<FORMAT, GGML_CUDA_PACKED_PASS, 2, false>(a, warps, stream); return;
        case 3:  packed_launch<FORMAT, GGML_CUDA_PACKED_PASS, 3, false>(a, warps, stream); return;
        default: packed_launch<FORMAT, GGML_CUDA_PACKED_PASS, 4, false>(a, warps, stream); return;
    }
    switch (packed::width_of(a.n)) {
        case 1:  packed_launch_narrow<FORMAT, 1>(a, warps, stream); break;
        case 2:  packed_launch_narrow<FORMAT, 2>(a, warps, stream); break;
        case 4:  packed_launch_narrow<FORMAT, 4>(a, warps, stream); break;
        default: packed_launch_narrow<FORMAT, 8>(a, warps, stream); break;
    }
}

static void packed_launch_quantise(const float * x, uint8_t * out, const int cols, const int64_t stride, const int n,
        const int64_t pass_bytes, cudaStream_t stream) {
    const int width = packed::width_of(std::min(n, GGML_CUDA_PACKED_PASS)), columns = GGML_PAD(n, width);
    const int blocks = columns * (cols / 32), per_block = 4;
    const ggml_cuda_kernel_launch_params params(
        dim3((blocks + per_block - 1) / per_block), dim3(per_block * WARP_SIZE), size_t(0), stream);
    ggml_cuda_kernel_launch(packed_quantise, params, x, out, cols, stride, n, width, columns, pass_bytes);
}

// Several products of one graph read the same activations, one after the other: they are quantised once. Kept for the
// tensor and the evaluation that they belong to, on the main stream only.
struct packed_kept {
    const ggml_tensor * src1   = nullptr;
    const void        * floats = nullptr;
    uint64_t            graph  = 0;
    uint8_t           * data   = nullptr;
    int                 device = -1;
};

static constexpr int64_t PACKED_KEPT_BYTES = int64_t(1) << 20;

static packed_kept * packed_kept_of(ggml_backend_cuda_context & ctx) {
    static const bool off = getenv("GGML_CUDA_PACKED_REUSE") && atoi(getenv("GGML_CUDA_PACKED_REUSE")) == 0;
    if (off || ctx.curr_stream_no != 0 || !ctx.stream_context().concurrent_events.empty()) {
        return nullptr;
    }
    static std::mutex mutex;
    static std::unordered_map<const ggml_backend_cuda_context *, packed_kept> all;
    std::lock_guard<std::mutex> lock(mutex);
    packed_kept & kept = all[&ctx];
    if (kept.device != ctx.device) {  // a first use; or another context was here, on another device
        if (cudaMalloc((void **) &kept.data, PACKED_KEPT_BYTES) != cudaSuccess) {
            (void) cudaGetLastError();
            all.erase(&ctx);
            return nullptr;
        }
        kept.device = ctx.device, kept.src1 = nullptr;
    }
    return &kept;
}

bool ggml_cuda_mul_mat_packed(ggml_backend_cuda_context & ctx, const ggml_tensor * src0, const ggml_tensor * src1,
        ggml_tensor * dst, const ggml_cuda_mm_fusion_args_host * fusion) {
    const int64_t n = ggml_cuda_packed_columns(src1), stride = ggml_cuda_packed_stride(src1), stride_y = ggml_cuda_packed_stride(dst);
    if (n > PACKED_MAX_COLUMNS || stride == 0 || stride_y == 0) {
        return false;
    }
    const int format = ggml_cuda_packed_format(src0->type);
    const int rows = src0->ne[1], cols = src0->ne[0];
    cudaStream_t stream = ctx.stream();

    packed_args a = {};
    a.w = (const uint8_t *) src0->data;
    a.rows = rows, a.cols = cols, a.stride_y = stride_y;
    if (fusion) {
        GGML_ASSERT(n <= GGML_CUDA_PACKED_PASS && !fusion->x_scale && !fusion->gate_scale);
        if (fusion->gate) {
            GGML_ASSERT(ggml_cuda_is_packed(fusion->gate) && fusion->gate->type == src0->type &&
                ggml_are_same_shape(fusion->gate, src0));
            a.gate = (const uint8_t *) fusion->gate->data;
            a.glu = fusion->glu_op, a.limit = fusion->glu_limit;
        }
        if (fusion->x_bias) {
            GGML_ASSERT(fusion->x_bias->type == GGML_TYPE_F32 && fusion->x_bias->ne[0] == rows);
            a.bias = (const float *) fusion->x_bias->data, a.stride_bias = ggml_cuda_packed_stride(fusion->x_bias);
        }
        if (fusion->gate_bias) {
            GGML_ASSERT(fusion->gate_bias->type == GGML_TYPE_F32 && fusion->gate_bias->ne[0] == rows);
            a.gate_bias = (const float *) fusion->gate_bias->data, a.stride_gate_bias = ggml_cuda_packed_stride(fusion->gate_bias);
        }
        GGML_ASSERT((!a.bias || a.stride_bias > 0) && (!a.gate_bias || a.stride_gate_bias > 0));
    }

    const int passes = (n + GGML_CUDA_PACKED_PASS - 1) / GGML_CUDA_PACKED_PASS;
    a.n = n;
    a.pass_bytes = int64_t(cols / packed::TILE_COLS) *
        packed::chunk_bytes(packed::width_of(std::min<int64_t>(n, GGML_CUDA_PACKED_PASS)));
    packed_kept * kept = passes * a.pass_bytes <= PACKED_KEPT_BYTES ? packed_kept_of(ctx) : nullptr;
    ggml_cuda_pool_alloc<uint8_t> own(ctx.pool());
    uint8_t * x = kept ? kept->data : own.alloc(passes * a.pass_bytes);
    const bool there = kept && kept->src1 == src1 && kept->floats == src1->data && kept->graph == packed_graph;

    a.x = x;
    a.y = (float *) dst->data;
    if (!there) {
        packed_launch_quantise((const float *) src1->data, x, cols, stride, a.n, a.pass_bytes, stream);
    }
    const int warps = packed_warps(rows, cols, passes, ggml_cuda_info().devices[ctx.device].nsm);
    switch (format) {
        case packed::Q8_0: packed_launch_width<packed::Q8_0>(a, warps, stream); break;
        case packed::Q6_K: packed_launch_width<packed::Q6_K>(a, warps, stream); break;
        case packed::Q5_K: packed_launch_width<packed::Q5_K>(a, warps, stream); break;
        default:           packed_launch_width<packed::Q4_K>(a, warps, stream); break;
    }
    if (kept) {
        kept->src1 = src1, kept->floats = src1->data, kept->graph = packed_graph;
    }
    ggml_cuda_packed_count_product(n);
    return true;
}

#else

bool ggml_cuda_mul_mat_packed(ggml_backend_cuda_context &, const ggml_tensor *, const ggml_tensor *, ggml_tensor *,
        const ggml_cuda_mm_fusion_args_host *) {
    return false;
}
void ggml_cuda_packed_new_graph() {}

#endif  // GGML_CUDA_PACKED_AVAILABLE

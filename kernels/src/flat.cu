// Flat Q8: a plane of int8 [rows][cols] and a plane of f16 scales [rows][cols / 32]. The kernels that the claim
// describes (float activations), and one with int8 activations and dp4a that also runs on AMD.
#include "args.h"
#include "device.h"

constexpr int THREADS = 256, WARPS = THREADS / LANES;

template <int COUNT> __device__ __forceinline__ void block_sum(float (&v)[COUNT], float *shared) {
    int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES, warps = blockDim.x / LANES;
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        v[k] = group_sum(v[k]);
        if (lane == 0) shared[k * warps + warp] = v[k];
    }
    __syncthreads();
    if (threadIdx.x < COUNT) {
        float sum = 0.0f;
        for (int k = 0; k < warps; ++k) sum += shared[threadIdx.x * warps + k];
        shared[threadIdx.x * warps] = sum;
    }
    __syncthreads();
}

struct Flat {
    const int8_t *q;
    const __half *d;
    int cols;
    __device__ __forceinline__ float scale(int row, int col) const {
        return __half2float(d[int64_t(row) * (cols / 32) + col / 32]);
    }
    __device__ __forceinline__ const int8_t *at(int row, int col) const { return q + int64_t(row) * cols + col; }
};

__device__ __forceinline__ int8_t element(const uint4 &v, int i) {
    uint32_t word = i < 4 ? v.x : i < 8 ? v.y : i < 12 ? v.z : v.w;
    return int8_t(word >> (8 * (i % 4)));
}

// Weights and scales are read and summed: what is left of a GEMV without activations.
extern "C" __global__ void __launch_bounds__(THREADS) weight_only(Flat w, float *y) {
    __shared__ float shared[WARPS];
    int row = blockIdx.x;
    float acc[1] = {};
    for (int c = threadIdx.x * 16; c < w.cols; c += THREADS * 16) {
        uint4 v = load_once(w.at(row, c));
        float sum = 0.0f;
#pragma unroll
        for (int k = 0; k < 16; ++k) sum += float(element(v, k));
        acc[0] += w.scale(row, c) * sum;
    }
    block_sum<1>(acc, shared);
    if (threadIdx.x == 0) y[row] = shared[0];
}

// One block a row, one byte a load, every stream's activation read for every weight.
template <int N> __global__ void __launch_bounds__(THREADS) flat_scalar(Flat w, const float *x, float *y, int rows) {
    __shared__ float shared[N * WARPS];
    int row = blockIdx.x;
    float acc[N] = {};
    for (int c = threadIdx.x; c < w.cols; c += THREADS) {
        float v = w.scale(row, c) * float(*w.at(row, c));
#pragma unroll
        for (int n = 0; n < N; ++n) acc[n] += v * x[int64_t(n) * w.cols + c];
    }
    block_sum<N>(acc, shared);
    if (threadIdx.x < N) y[int64_t(threadIdx.x) * rows + row] = shared[threadIdx.x * WARPS];
}

// The same with loads of 16 bytes, and R rows a block that share the activations they read.
template <int N, int R> __global__ void __launch_bounds__(THREADS) flat_vector(Flat w, const float *x, float *y,
    int rows) {
    __shared__ float shared[N * R * WARPS];
    int row = blockIdx.x * R;
    float acc[N * R] = {};
    for (int c = threadIdx.x * 16; c < w.cols; c += THREADS * 16) {
        uint4 q[R];
        float d[R];
#pragma unroll
        for (int r = 0; r < R; ++r) q[r] = load_once(w.at(row + r, c)), d[r] = w.scale(row + r, c);
#pragma unroll
        for (int n = 0; n < N; ++n) {
            float part[R] = {};
#pragma unroll
            for (int k = 0; k < 16; k += 4) {
                float4 v = *reinterpret_cast<const float4 *>(x + int64_t(n) * w.cols + c + k);
#pragma unroll
                for (int r = 0; r < R; ++r)
                    part[r] += float(element(q[r], k)) * v.x + float(element(q[r], k + 1)) * v.y +
                               float(element(q[r], k + 2)) * v.z + float(element(q[r], k + 3)) * v.w;
            }
#pragma unroll
            for (int r = 0; r < R; ++r) acc[n * R + r] += d[r] * part[r];
        }
    }
    block_sum<N * R>(acc, shared);
    if (threadIdx.x < N * R)
        y[int64_t(threadIdx.x / R) * rows + row + threadIdx.x % R] = shared[threadIdx.x * WARPS];
}

// Four activation vectors interleaved: one float4 for each column.
template <int R> __global__ void __launch_bounds__(THREADS) flat_interleaved(Flat w, const float4 *x, float *y,
    int rows) {
    __shared__ float shared[4 * R * WARPS];
    int row = blockIdx.x * R;
    float acc[4 * R] = {};
    for (int c = threadIdx.x * 16; c < w.cols; c += THREADS * 16) {
        uint4 q[R];
        float d[R];
#pragma unroll
        for (int r = 0; r < R; ++r) q[r] = load_once(w.at(row + r, c)), d[r] = w.scale(row + r, c);
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            float4 v = x[c + k];
#pragma unroll
            for (int r = 0; r < R; ++r) {
                float f = d[r] * float(element(q[r], k));
                acc[r] += f * v.x, acc[R + r] += f * v.y, acc[2 * R + r] += f * v.z, acc[3 * R + r] += f * v.w;
            }
        }
    }
    block_sum<4 * R>(acc, shared);
    if (threadIdx.x < 4 * R)
        y[int64_t(threadIdx.x / R) * rows + row + threadIdx.x % R] = shared[threadIdx.x * WARPS];
}

// int8 activations (quantise_plain): a warp takes R rows, 512 columns at a time.
template <int N, int R>
__global__ void __launch_bounds__(THREADS) flat_dot4(Flat w, const int8_t *x, const float *scales, float *y, int rows) {
    int row = (blockIdx.x * WARPS + threadIdx.x / LANES) * R, lane = threadIdx.x % LANES;
    if (row >= rows) return;
    float acc[N * R] = {};
    for (int c = lane * 16; c < w.cols; c += LANES * 16) {
        uint4 q[R];
        float d[R];
#pragma unroll
        for (int r = 0; r < R; ++r) q[r] = load_once(w.at(row + r, c)), d[r] = w.scale(row + r, c);
#pragma unroll
        for (int n = 0; n < N; ++n) {
            uint4 v = *reinterpret_cast<const uint4 *>(x + int64_t(n) * w.cols + c);
            float s = scales[n * (w.cols / 32) + c / 32];
#pragma unroll
            for (int r = 0; r < R; ++r) {
                int sum = dot4(q[r].x, v.x, dot4(q[r].y, v.y, dot4(q[r].z, v.z, dot4(q[r].w, v.w, 0))));
                acc[n * R + r] += float(sum) * (d[r] * s);
            }
        }
    }
#pragma unroll
    for (int k = 0; k < N * R; ++k) {
        float sum = group_sum(acc[k]);
        if (lane == 0) y[int64_t(k / R) * rows + row + k % R] = sum;
    }
}

enum FlatKind { SCALAR = 0, VECTOR = 1, TILED = 2, INTERLEAVED = 3, WEIGHT_ONLY = 4, DOT4 = 5 };

template <int N> static int start(const Args &a, cudaStream_t stream) {
    Flat w{(const int8_t *)a.w, (const __half *)a.w2, a.cols};
    auto x = (const float *)a.x;
    auto y = (float *)a.y;
    int groups = (a.rows / 2 + WARPS - 1) / WARPS;
    if (a.kind == DOT4) {
        flat_dot4<N, 2><<<groups, THREADS, 0, stream>>>(w, (const int8_t *)a.x, (const float *)a.x2, y, a.rows);
        return cudaGetLastError();
    }
    if constexpr (N <= 4) {  // with eight, the accumulators of four rows do not fit the registers
        if (a.kind == SCALAR) {
            flat_scalar<N><<<a.rows, THREADS, 0, stream>>>(w, x, y, a.rows);
            return cudaGetLastError();
        }
        if (a.kind == VECTOR) {
            flat_vector<N, 1><<<a.rows, THREADS, 0, stream>>>(w, x, y, a.rows);
            return cudaGetLastError();
        }
        if (a.kind == TILED) {
            flat_vector<N, 4><<<a.rows / 4, THREADS, 0, stream>>>(w, x, y, a.rows);
            return cudaGetLastError();
        }
    }
    return BAD_ARGUMENT;
}

// Float kernels take up to four streams, dp4a up to eight.
extern "C" int launch_flat(const Args *a, void *stream) {
    if (a->cols % 32 || a->rows % 4 || (a->kind == DOT4 && a->cols % 16)) return BAD_ARGUMENT;
    cudaStream_t s = cudaStream_t(stream);
    if (a->kind == WEIGHT_ONLY) {
        weight_only<<<a->rows, THREADS, 0, s>>>(Flat{(const int8_t *)a->w, (const __half *)a->w2, a->cols},
            (float *)a->y);
        return cudaGetLastError();
    }
    if (a->kind == INTERLEAVED) {
        if (a->n != 4) return BAD_ARGUMENT;
        flat_interleaved<4><<<a->rows / 4, THREADS, 0, s>>>(Flat{(const int8_t *)a->w, (const __half *)a->w2, a->cols},
                                                            (const float4 *)a->x, (float *)a->y, a->rows);
        return cudaGetLastError();
    }
    switch (a->n) {
    case 1: return start<1>(*a, s);
    case 2: return start<2>(*a, s);
    case 3: return start<3>(*a, s);
    case 4: return start<4>(*a, s);
    case 8: return a->kind == DOT4 ? start<8>(*a, s) : BAD_ARGUMENT;
    default: return BAD_ARGUMENT;
    }
}

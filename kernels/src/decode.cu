// The small kernels of a decode round: twin attention scores, softmax, and verify (argmax and accept).
#include "args.h"
#include "device.h"

// A row of logits is cut into PARTS, a block of threads each; a second kernel joins them.
constexpr int THREADS = 256, WARPS = THREADS / LANES, PARTS = 64;

// Scores of one query against the keys of two streams: q [2][dim] floats, keys [2][positions][dim] f16.
extern "C" __global__ void __launch_bounds__(THREADS) twin_scores(const float *q, const __half *keys, float *y,
    int positions, int dim) {
    int lane = threadIdx.x % LANES, twin = blockIdx.y;
    int position = blockIdx.x * WARPS + threadIdx.x / LANES;
    if (position >= positions) return;
    const __half2 *k = reinterpret_cast<const __half2 *>(keys + (int64_t(twin) * positions + position) * dim);
    const float2 *v = reinterpret_cast<const float2 *>(q + twin * dim);
    float sum = 0.0f;
    for (int i = lane; i < dim / 2; i += LANES) {
        float2 a = __half22float2(k[i]), b = v[i];
        sum += a.x * b.x + a.y * b.y;
    }
    sum = group_sum(sum);
    if (lane == 0) y[int64_t(twin) * positions + position] = sum * rsqrtf(float(dim));
}

__device__ __forceinline__ float block_max(float v, float *shared) {
    v = group_max(v);
    if (threadIdx.x % LANES == 0) shared[threadIdx.x / LANES] = v;
    __syncthreads();
    v = shared[0];
    for (int k = 1; k < WARPS; ++k) v = fmaxf(v, shared[k]);
    __syncthreads();
    return v;
}

__device__ __forceinline__ float block_total(float v, float *shared) {
    v = group_sum(v);
    if (threadIdx.x % LANES == 0) shared[threadIdx.x / LANES] = v;
    __syncthreads();
    v = 0.0f;
    for (int k = 0; k < WARPS; ++k) v += shared[k];
    __syncthreads();
    return v;
}

struct Part {
    int first, end;
    __device__ __forceinline__ Part(int cols) : first(int64_t(blockIdx.x) * cols / PARTS),
        end(int64_t(blockIdx.x + 1) * cols / PARTS) {}
};

// x: [n][cols] floats. work: the largest value of each part, and the sum of the exponentials below it.
extern "C" __global__ void __launch_bounds__(THREADS) softmax_parts(const float *x, float2 *work, int cols) {
    __shared__ float shared[WARPS];
    const float *in = x + int64_t(blockIdx.y) * cols;
    const Part part(cols);
    float top = -INFINITY, sum = 0.0f;
    for (int i = part.first + threadIdx.x; i < part.end; i += THREADS) top = fmaxf(top, in[i]);
    top = block_max(top, shared);
    for (int i = part.first + threadIdx.x; i < part.end; i += THREADS) sum += expf(in[i] - top);
    sum = block_total(sum, shared);
    if (threadIdx.x == 0) work[blockIdx.y * PARTS + blockIdx.x] = make_float2(top, sum);
}

extern "C" __global__ void __launch_bounds__(THREADS) softmax_rows(const float *x, const float2 *work, float *y,
    int cols) {
    const int64_t row = int64_t(blockIdx.y) * cols;
    const Part part(cols);
    const float2 *of_row = work + blockIdx.y * PARTS + threadIdx.x % LANES;
    float2 a = of_row[0], b = of_row[LANES];
    float top = group_max(fmaxf(a.x, b.x));
    float scale = 1.0f / group_sum(a.y * expf(a.x - top) + b.y * expf(b.x - top));
    for (int i = part.first + threadIdx.x; i < part.end; i += THREADS) y[row + i] = expf(x[row + i] - top) * scale;
}

// A value and its index; of equal values, the first.
struct Best {
    float value;
    int index;
    __device__ __forceinline__ void take(float other, int at) {
        if (other > value || (other == value && at < index)) value = other, index = at;
    }
    __device__ __forceinline__ void over_group() {
        for (int m = LANES / 2; m > 0; m >>= 1) take(shuffle_xor(value, m), shuffle_xor(index, m));
    }
};

extern "C" __global__ void __launch_bounds__(THREADS) argmax_parts(const float *x, Best *work, int cols) {
    __shared__ Best shared[WARPS];
    const float *in = x + int64_t(blockIdx.y) * cols;
    const Part part(cols);
    Best best{-INFINITY, cols};
    for (int i = part.first + threadIdx.x; i < part.end; i += THREADS) best.take(in[i], i);
    best.over_group();
    if (threadIdx.x % LANES == 0) shared[threadIdx.x / LANES] = best;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int k = 1; k < WARPS; ++k) best.take(shared[k].value, shared[k].index);
    work[blockIdx.y * PARTS + blockIdx.x] = best;
}

// 32 lanes a row: tokens gets the first index of its largest logit.
extern "C" __global__ void argmax_rows(const Best *work, int *tokens) {
    const Best *row = work + blockIdx.x * PARTS;
    Best best = row[threadIdx.x];
    best.take(row[LANES + threadIdx.x].value, row[LANES + threadIdx.x].index);
    best.over_group();
    if (threadIdx.x == 0) tokens[blockIdx.x] = best.index;
}

// How many drafted tokens agree with the argmax of the row before them; y2: that count. drafts: [n - 1].
extern "C" __global__ void accept_drafts(const int *tokens, const int *drafts, int *accepted, int n) {
    int k = 0;
    while (k < n - 1 && tokens[k] == drafts[k]) ++k;
    *accepted = k;
}

enum DecodeKind { SCORES = 0, SOFTMAX = 1, VERIFY = 2 };

// Scores: w keys, x queries, rows positions, cols dim, n = 2. Softmax and verify: x logits of n rows of cols, work.
extern "C" int launch_decode(const Args *a, void *stream) {
    cudaStream_t s = cudaStream_t(stream);
    if (a->kind == SCORES) {
        if (a->n != 2 || a->cols % 2) return BAD_ARGUMENT;
        dim3 grid((a->rows + WARPS - 1) / WARPS, 2);
        twin_scores<<<grid, THREADS, 0, s>>>((const float *)a->x, (const __half *)a->w, (float *)a->y, a->rows,
            a->cols);
    } else if (a->kind == SOFTMAX) {
        softmax_parts<<<dim3(PARTS, a->n), THREADS, 0, s>>>((const float *)a->x, (float2 *)a->work, a->cols);
        softmax_rows<<<dim3(PARTS, a->n), THREADS, 0, s>>>((const float *)a->x, (const float2 *)a->work,
            (float *)a->y, a->cols);
    } else if (a->kind == VERIFY) {
        argmax_parts<<<dim3(PARTS, a->n), THREADS, 0, s>>>((const float *)a->x, (Best *)a->work, a->cols);
        argmax_rows<<<a->n, LANES, 0, s>>>((const Best *)a->work, (int *)a->y);
        accept_drafts<<<1, 1, 0, s>>>((const int *)a->y, (const int *)a->w2, (int *)a->y2, a->n);
    } else {
        return BAD_ARGUMENT;
    }
    return cudaGetLastError();
}

// The small kernels of a decode round: twin attention scores, softmax, and verify (argmax and accept).
#include "args.h"
#include "device.h"

constexpr int THREADS = 256, WARPS = THREADS / LANES;

// Scores of one query against the keys of two streams: q [2][dim] floats, keys [2][positions][dim] f16.
extern "C" __global__ void __launch_bounds__(THREADS) twin_scores(const float *q, const __half *keys, float *y, int positions, int dim) {
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

// One block a row. x, y: [n][cols] floats.
extern "C" __global__ void __launch_bounds__(THREADS) softmax_rows(const float *x, float *y, int cols) {
    __shared__ float shared[WARPS];
    const float *in = x + int64_t(blockIdx.x) * cols;
    float *out = y + int64_t(blockIdx.x) * cols;
    float top = -INFINITY, sum = 0.0f;
    for (int i = threadIdx.x; i < cols; i += THREADS) top = fmaxf(top, in[i]);
    top = block_max(top, shared);
    for (int i = threadIdx.x; i < cols; i += THREADS) sum += expf(in[i] - top);
    sum = block_total(sum, shared);
    for (int i = threadIdx.x; i < cols; i += THREADS) out[i] = expf(in[i] - top) / sum;
}

// The first index of the largest logit of each of n rows.
extern "C" __global__ void __launch_bounds__(THREADS) argmax_rows(const float *x, int *y, int cols) {
    __shared__ float top[WARPS];
    __shared__ int where[WARPS];
    const float *in = x + int64_t(blockIdx.x) * cols;
    float best = -INFINITY;
    int index = 0;
    for (int i = threadIdx.x; i < cols; i += THREADS)
        if (in[i] > best) best = in[i], index = i;
    for (int m = LANES / 2; m > 0; m >>= 1) {
        float other = shuffle_xor(best, m);
        int at = shuffle_xor(index, m);
        if (other > best || (other == best && at < index)) best = other, index = at;
    }
    if (threadIdx.x % LANES == 0) top[threadIdx.x / LANES] = best, where[threadIdx.x / LANES] = index;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int k = 1; k < WARPS; ++k)
        if (top[k] > best || (top[k] == best && where[k] < index)) best = top[k], index = where[k];
    y[blockIdx.x] = index;
}

// How many drafted tokens agree with the argmax of the row before them; y2: that count. drafts: [n - 1].
extern "C" __global__ void accept_drafts(const int *tokens, const int *drafts, int *accepted, int n) {
    int k = 0;
    while (k < n - 1 && tokens[k] == drafts[k]) ++k;
    *accepted = k;
}

enum DecodeKind { SCORES = 0, SOFTMAX = 1, VERIFY = 2 };

// Scores: w keys, x queries, rows positions, cols dim, n = 2. Softmax and verify: x logits of n rows of cols.
extern "C" int launch_decode(const Args *a, void *stream) {
    cudaStream_t s = cudaStream_t(stream);
    if (a->kind == SCORES) {
        if (a->n != 2 || a->cols % 2) return BAD_ARGUMENT;
        dim3 grid((a->rows + WARPS - 1) / WARPS, 2);
        twin_scores<<<grid, THREADS, 0, s>>>((const float *)a->x, (const __half *)a->w, (float *)a->y, a->rows, a->cols);
    } else if (a->kind == SOFTMAX) {
        softmax_rows<<<a->n, THREADS, 0, s>>>((const float *)a->x, (float *)a->y, a->cols);
    } else if (a->kind == VERIFY) {
        argmax_rows<<<a->n, THREADS, 0, s>>>((const float *)a->x, (int *)a->y, a->cols);
        accept_drafts<<<1, 1, 0, s>>>((const int *)a->y, (const int *)a->w2, (int *)a->y2, a->n);
    } else {
        return BAD_ARGUMENT;
    }
    return cudaGetLastError();
}

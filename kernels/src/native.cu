// GEMV over the blocks as they lie in the file (Q8_0, Q6_K, Q5_K), with N int8 activation vectors and dp4a.
// What a lane does is in native.h.
#include "native.h"

constexpr int THREADS = NATIVE_WARPS * LANES;

template <int FORMAT, int N, int R>
__global__ void __launch_bounds__(THREADS) gemv_native(const uint8_t *w, Activations x, float *y, int rows) {
    __shared__ float shared[NATIVE_WARPS][N * R];
    int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES, row = blockIdx.x * R;
    float acc[N * R] = {};
    native_part<FORMAT, N, R>(w, x, row, warp, lane, acc);
#pragma unroll
    for (int k = 0; k < N * R; ++k) {
        float sum = group_sum(acc[k]);
        if (lane == 0) shared[warp][k] = sum;
    }
    __syncthreads();
    int k = threadIdx.x;
    if (k < N * R) y[int64_t(k / R) * rows + row + k % R] = shared[0][k] + shared[1][k] + shared[2][k] + shared[3][k];
}

template <int FORMAT, int N> static int start(const Args &a, cudaStream_t stream) {
    Activations x{(const int8_t *)a.x, (const float *)a.x2, a.cols, a.n};
    gemv_native<FORMAT, N, 2><<<a.rows / 2, THREADS, 0, stream>>>((const uint8_t *)a.w, x, (float *)a.y, a.rows);
    return cudaGetLastError();
}

template <int FORMAT> static int choose(const Args &a, cudaStream_t stream) {
    switch (a.n) {
    case 1: return start<FORMAT, 1>(a, stream);
    case 2: return start<FORMAT, 2>(a, stream);
    case 3: return start<FORMAT, 3>(a, stream);
    case 4: return start<FORMAT, 4>(a, stream);
    case 5: return start<FORMAT, 5>(a, stream);
    case 6: return start<FORMAT, 6>(a, stream);
    case 7: return start<FORMAT, 7>(a, stream);
    case 8: return start<FORMAT, 8>(a, stream);
    default: return BAD_ARGUMENT;
    }
}

extern "C" int launch_native(const Args *a, void *stream) {
    if (a->cols % 256 || a->rows % 2) return BAD_ARGUMENT;
    if (a->format == Q8_0) return choose<Q8_0>(*a, cudaStream_t(stream));
    if (a->format == Q6_K) return choose<Q6_K>(*a, cudaStream_t(stream));
    if (a->format == Q5_K) return choose<Q5_K>(*a, cudaStream_t(stream));
    return BAD_ARGUMENT;
}

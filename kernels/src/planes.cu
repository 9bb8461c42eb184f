// GEMV over weights in planes (Q8_0, Q6_K, Q5_K, Q4_K), with N int8 activation vectors and dp4a, for cards without
// matrix units. A group of 32 lanes takes two rows; what a lane does is in planes.h.
#include "planes.h"

constexpr int THREADS = 256, GROUPS = THREADS / LANES;

template <int FORMAT, int N, int R>
__global__ void __launch_bounds__(THREADS) gemv_planes(const uint8_t *w, Sixteens x, float *y, int rows) {
    int lane = threadIdx.x % LANES, row = (blockIdx.x * GROUPS + threadIdx.x / LANES) * R;
    if (row >= rows) return;
    float acc[N * R] = {};
    planes_part<FORMAT, N, R>(w, x, rows, row, lane, acc);
#pragma unroll
    for (int k = 0; k < N * R; ++k) {
        float sum = group_sum(acc[k]);
        if (lane == 0) y[int64_t(k / R) * rows + row + k % R] = sum;
    }
}

template <int FORMAT, int N> static int start(const Args &a, cudaStream_t stream) {
    Sixteens x{(const int8_t *)a.x, (const float *)a.x2, (const int *)a.work, a.cols / 32};
    int blocks = (a.rows / 2 + GROUPS - 1) / GROUPS;
    gemv_planes<FORMAT, N, 2><<<blocks, THREADS, 0, stream>>>((const uint8_t *)a.w, x, (float *)a.y, a.rows);
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

extern "C" int launch_planes(const Args *a, void *stream) {
    if (a->cols % 256 || a->rows % 8 || int64_t(a->rows) * a->cols / 32 * 34 >> 32) return BAD_ARGUMENT;
    if (a->format == Q8_0) return choose<Q8_0>(*a, cudaStream_t(stream));
    if (a->format == Q6_K) return choose<Q6_K>(*a, cudaStream_t(stream));
    if (a->format == Q5_K) return choose<Q5_K>(*a, cudaStream_t(stream));
    if (a->format == Q4_K) return choose<Q4_K>(*a, cudaStream_t(stream));
    return BAD_ARGUMENT;
}

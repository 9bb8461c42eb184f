// Two models in one matrix: for 32 weights two f16 scales (A, B), then 32 words of 16 bits with A in the high byte.
// Each model has its own activation vector.
#include "args.h"
#include "device.h"

constexpr int SSQ_BYTES = 68, THREADS = 256, WARPS = THREADS / LANES, ROWS = 2;

// 16 lanes take one block of 32 weights, a word (two columns) each; a warp takes two blocks of each of two rows at
// once.
extern "C" __global__ void __launch_bounds__(THREADS)
ssq_twin(const uint8_t *w, const float *xa, const float *xb, float *ya, float *yb, int rows, int cols) {
    int row = (blockIdx.x * WARPS + threadIdx.x / LANES) * ROWS, lane = threadIdx.x % LANES;
    if (row >= rows) return;
    int blocks = cols / 32, word = lane % 16;
    float a[ROWS] = {}, b[ROWS] = {};
#pragma unroll 4
    for (int k = lane / 16; k < blocks; k += 2) {
        float2 va = *reinterpret_cast<const float2 *>(xa + k * 32 + word * 2);
        float2 vb = *reinterpret_cast<const float2 *>(xb + k * 32 + word * 2);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const uint8_t *block = w + (int64_t(row + r) * blocks + k) * SSQ_BYTES;
            int scales = load_int(block), pair = load_int(block + 4 + word * 4);
            __half2 both;
            memcpy(&both, &scales, 4);
            float2 d = __half22float2(both);
            a[r] += d.x * (float(int8_t(pair >> 8)) * va.x + float(int8_t(pair >> 24)) * va.y);
            b[r] += d.y * (float(int8_t(pair)) * vb.x + float(int8_t(pair >> 16)) * vb.y);
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        float sa = group_sum(a[r]), sb = group_sum(b[r]);
        if (lane == 0) ya[row + r] = sa, yb[row + r] = sb;
    }
}

extern "C" int launch_ssq(const Args *a, void *stream) {
    if (a->cols % 32 || a->rows % ROWS || a->n != 2) return BAD_ARGUMENT;
    int groups = (a->rows / ROWS + WARPS - 1) / WARPS;
    ssq_twin<<<groups, THREADS, 0, cudaStream_t(stream)>>>((const uint8_t *)a->w, (const float *)a->x,
                                                           (const float *)a->x2, (float *)a->y, (float *)a->y2,
                                                           a->rows, a->cols);
    return cudaGetLastError();
}

// Activations to int8 with one float scale for 32 values, before the GEMV, as llama.cpp does it. Three layouts:
// plain planes for the dp4a kernels, with sums of 32 as floats or of 16 as ints, and chunks of 256 values in the order in which the matrix units take them.
#include "args.h"
#include "quantise.h"

// x: [n][cols] floats. q: [n][cols] int8, scale and sum: [n][cols / 32]; sums follow the scales.
extern "C" __global__ void quantise_plain(const float *x, int8_t *q, float *scales, int cols, int n) {
    int lane = threadIdx.x % LANES;
    int64_t block = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) / LANES;
    int64_t blocks = int64_t(n) * (cols / 32);
    if (block >= blocks) return;
    float scale, sum;
    q[block * 32 + lane] = int8_t(quantise_lane(x[block * 32 + lane], scale, sum));
    if (lane == 0) {
        scales[block] = scale;
        scales[blocks + block] = sum;
    }
}

// The same with -32 x the sum of each 16 values, [n][cols / 16], as planes.h takes them.
extern "C" __global__ void quantise_sixteens(const float *x, int8_t *q, float *scales, int *sums, int cols, int n) {
    int lane = threadIdx.x % LANES;
    int64_t block = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) / LANES;
    if (block >= int64_t(n) * (cols / 32)) return;
    float scale, sum;
    int v = quantise_lane(x[block * 32 + lane], scale, sum), sixteen = v;
    q[block * 32 + lane] = int8_t(v);
#pragma unroll
    for (int m = 8; m > 0; m >>= 1) sixteen += shuffle_xor(sixteen, m);
    if (lane == 0) scales[block] = scale;
    if (lane % 16 == 0) sums[block * 2 + lane / 16] = -32 * sixteen;
}

// x: [n][cols] floats. out: [cols / 256] chunks, see packed.h; vectors past n are zero.
extern "C" __global__ void quantise_chunks(const float *x, uint8_t *out, int cols, int n, int width) {
    int lane = threadIdx.x % LANES;
    int block = (blockIdx.x * blockDim.x + threadIdx.x) / LANES;
    int per_column = cols / 32;
    if (block >= width * per_column) return;
    int column = block / per_column, b = block % per_column;
    float v = column < n ? x[int64_t(column) * cols + b * 32 + lane] : 0.0f;
    quantise_to_chunk(v, out, b, column, lane, width);
}

extern "C" int launch_quantise(const Args *a, void *stream) {
    if (a->cols % 256 || a->n < 1 || a->n > 8) return BAD_ARGUMENT;
    int width = a->kind == 1 ? width_of(a->n) : a->n;
    int groups = width * (a->cols / 32), per_block = 4;
    dim3 grid((groups + per_block - 1) / per_block), block(per_block * LANES);
    if (a->kind == 0)
        quantise_plain<<<grid, block, 0, cudaStream_t(stream)>>>((const float *)a->x, (int8_t *)a->y, (float *)a->y2,
                                                                 a->cols, a->n);
    else if (a->kind == 2)
        quantise_sixteens<<<grid, block, 0, cudaStream_t(stream)>>>((const float *)a->x, (int8_t *)a->y, (float *)a->y2,
                                                                    (int *)a->work, a->cols, a->n);
    else
        quantise_chunks<<<grid, block, 0, cudaStream_t(stream)>>>((const float *)a->x, (uint8_t *)a->y, a->cols,
            a->n, width);
    return cudaGetLastError();
}

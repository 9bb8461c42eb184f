// Activations to int8 with one float scale for 32 values, as the packed kernels take them (packed.h).
#pragma once
#include "device.h"
#include "packed.h"

// A group of 32 lanes quantises one block of 32 values. The zero block has scale 0.
// The sum is that of the quantised values: a minimum taken off every weight then cancels in the error too.
__device__ __forceinline__ int quantise_lane(float v, float &scale, float &sum) {
    scale = group_max(fabsf(v)) / 127.0f;
    int q = scale == 0.0f ? 0 : __float2int_rn(v / scale);
    sum = scale * group_sum(float(q));
    return q;
}

// Value `lane` of block b (32 columns) of vector `column` into its chunk; `out`: the chunks of all columns.
__device__ __forceinline__ void quantise_to_chunk(float value, uint8_t *out, int b, int column, int lane, int width) {
    uint8_t *chunk = out + int64_t(b / 8) * chunk_bytes(width);
    int j = b % 8, quarter = lane % 16, phases = phases_of(width);
    int pair = j / (2 * phases) * phases + j % phases, half = j / phases % 2;
    float scale, sum;
    int v = quantise_lane(value, scale, sum);
    chunk[(pair * width + column) * 64 + quarter / 4 * 16 + half * 8 + lane / 16 * 4 + quarter % 4] = uint8_t(v);
    if (lane == 0) {
        float *scales = reinterpret_cast<float *>(chunk + chunk_scales(width));
        scales[(pair * (scale_stride(width) / 2) + column / 2) * 4 + half * 2 + column % 2] = scale;
        scales[(8 + j) * scale_stride(width) + column] = sum;
    }
}

// A plain read and a plain copy: the ceilings that every other kernel is held against.
#include "args.h"
#include "device.h"

// Each thread keeps UNROLL loads of 16 bytes in flight. One word a warp is written, so that the loads cannot be left
// out.
template <int UNROLL> __global__ void __launch_bounds__(1024) stream_read(const uint4 *in, int64_t count,
    uint32_t *out) {
    uint32_t sum = 0;
    int64_t step = int64_t(gridDim.x) * blockDim.x, i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    for (; i + (UNROLL - 1) * step < count; i += UNROLL * step) {
        uint4 v[UNROLL];
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) v[k] = load_once(in + i + k * step);
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) sum ^= v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
    }
    for (; i < count; i += step) {
        uint4 v = load_once(in + i);
        sum ^= v.x ^ v.y ^ v.z ^ v.w;
    }
    int both = int(sum);
    for (int m = LANES / 2; m > 0; m >>= 1) both ^= shuffle_xor(both, m);
    if (threadIdx.x % LANES == 0) out[(int64_t(blockIdx.x) * blockDim.x + threadIdx.x) / LANES] = uint32_t(both);
}

__global__ void __launch_bounds__(1024) stream_copy(const uint4 *in, int64_t count, uint4 *out) {
    int64_t step = int64_t(gridDim.x) * blockDim.x, i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    for (; i + 3 * step < count; i += 4 * step) {
        uint4 v[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) v[k] = load_once(in + i + k * step);
#pragma unroll
        for (int k = 0; k < 4; ++k) out[i + k * step] = v[k];
    }
    for (; i < count; i += step) out[i] = load_once(in + i);
}

// y: one word a warp, whose xor is the xor of all words of w. grid and block must be given.
extern "C" int launch_read(const Args *a, void *stream) {
    if (a->bytes % 16 || a->grid < 1 || a->block < 1 || a->block > 1024) return BAD_ARGUMENT;
    auto in = (const uint4 *)a->w;
    auto out = (uint32_t *)a->y;
    if (a->kind == 4)
        stream_read<4><<<a->grid, a->block, 0, cudaStream_t(stream)>>>(in, a->bytes / 16, out);
    else if (a->kind == 8)
        stream_read<8><<<a->grid, a->block, 0, cudaStream_t(stream)>>>(in, a->bytes / 16, out);
    else if (a->kind == 2)
        stream_read<2><<<a->grid, a->block, 0, cudaStream_t(stream)>>>(in, a->bytes / 16, out);
    else
        return BAD_ARGUMENT;
    return cudaGetLastError();
}

extern "C" int launch_copy(const Args *a, void *stream) {
    if (a->bytes % 16 || a->grid < 1 || a->block < 1 || a->block > 1024) return BAD_ARGUMENT;
    stream_copy<<<a->grid, a->block, 0, cudaStream_t(stream)>>>((const uint4 *)a->w, a->bytes / 16, (uint4 *)a->y);
    return cudaGetLastError();
}

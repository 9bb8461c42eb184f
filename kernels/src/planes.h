// Weights in planes, for dot products of four bytes: what a lane needs of 32 weights are whole words in a row.
//
// A matrix of [rows][chunks of 32] lies as one plane after the other, each [rows][chunks]; with the file's own bytes:
//   Q8_0  32 bytes of weights | 2 of scale
//   Q6_K  16 of low bits | 8 of high bits | 2 of scales, of 16 weights each | 2 of scale for every 8 chunks
//   Q5_K  16 of low bits | 4 of high bits | 16 of scales and minima for every 8 chunks, as the file has them
//   Q4_K  16 of weights | the same 16
// Word j of the eight words of four weights: low bits in nibble j % 2 of word j / 2 of their plane; of Q6_K's high bits
// those 2 (j % 4) and the next of each byte of word j / 4, of Q5_K's bit j of each byte.
//
// Activations: int8, a float scale for 32 values, and -32 x the sum of each 16 of them as ints: Q6_K's offset and the
// minima are products with them. It knows no launch. For cards without matrix units.
#pragma once
#include "args.h"
#include "device.h"

template <int FORMAT> struct Planes;  // where the planes of a matrix begin, and what a lane takes of a chunk

struct Sixteens {
    const int8_t *q;      // [n][cols]
    const float *scales;  // [n][cols / 32]
    const int *sums;      // [n][cols / 16]
    int chunks;           // cols / 32
};

struct Lanes32 {
    uint4 a, b;  // 32 values
    float scale;
    int sum[2];
    __device__ __forceinline__ void load(const Sixteens &x, int n, int chunk) {
        uint32_t at = n * x.chunks + chunk;
        const uint4 *q = reinterpret_cast<const uint4 *>(x.q) + 2 * at;
        a = q[0], b = q[1];
        scale = x.scales[at];
        const int2 two = reinterpret_cast<const int2 *>(x.sums)[at];
        sum[0] = two.x, sum[1] = two.y;
    }
};

__device__ __forceinline__ int dot16(const int *w, const uint4 &x, int sum) {
    return dot4(w[0], int(x.x), dot4(w[1], int(x.y), dot4(w[2], int(x.z), dot4(w[3], int(x.w), sum))));
}

__device__ __forceinline__ void nibbles(const uint4 &low, int (&w)[8]) {
    const uint32_t words[4] = {low.x, low.y, low.z, low.w};
#pragma unroll
    for (int j = 0; j < 8; ++j) w[j] = int(words[j / 2] >> 4 * (j % 2) & 0x0f0f0f0fu);
}

template <> struct Planes<Q8_0> {
    int w[8];
    float d;
    __device__ __forceinline__ void load(const uint8_t *base, uint32_t all, uint32_t at) {
        const uint4 *q = reinterpret_cast<const uint4 *>(base) + 2 * at;
        uint4 low = load_once(q), high = load_once(q + 1);
        w[0] = low.x, w[1] = low.y, w[2] = low.z, w[3] = low.w;
        w[4] = high.x, w[5] = high.y, w[6] = high.z, w[7] = high.w;
        d = load_half(base + all * 32 + at * 2);
    }
    __device__ __forceinline__ void decode(uint32_t) {}
    __device__ __forceinline__ float times(const Lanes32 &x) const {
        return float(dot16(w, x.a, dot16(w + 4, x.b, 0))) * (d * x.scale);
    }
};

template <> struct Planes<Q6_K> {
    uint4 low;
    uint2 high;
    int w[8], scales;
    float d;
    __device__ __forceinline__ void load(const uint8_t *base, uint32_t all, uint32_t at) {
        low = load_once(base + at * 16);
        high = reinterpret_cast<const uint2 *>(base + all * 16)[at];
        scales = reinterpret_cast<const uint16_t *>(base + all * 24)[at];
        d = load_half(base + all * 26 + at / 8 * 2);
    }
    __device__ __forceinline__ void decode(uint32_t) {
        nibbles(low, w);
        const uint32_t words[2] = {high.x, high.y};
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const int up = 4 - 2 * (j % 4);  // two bits to where 16 and 32 are
            const uint32_t bits = words[j / 4];
            w[j] |= int((up >= 0 ? bits << up : bits >> -up) & 0x30303030u);
        }
    }
    __device__ __forceinline__ float times(const Lanes32 &x) const {
        int first = dot16(w, x.a, x.sum[0]), second = dot16(w + 4, x.b, x.sum[1]);
        return float(product_24(first, int8_t(scales)) + product_24(second, int8_t(scales >> 8))) * (d * x.scale);
    }
};

// Scale and minimum of 32 weights from the 16 bytes of 256: six bits each, block b of eight.
__device__ __forceinline__ void scale_and_least(const uint4 &header, int b, float &d, float &least) {
    int at = b % 4 * 8;
    int a = header.y >> at & 255, m = header.z >> at & 255, t = header.w >> at & 255;
    int scale = b < 4 ? a & 63 : (t & 15) | a >> 6 << 4;
    int lowest = b < 4 ? m & 63 : t >> 4 | m >> 6 << 4;
    uint16_t halves[2] = {uint16_t(header.x), uint16_t(header.x >> 16)};
    d = load_half(halves) * float(scale);
    least = load_half(halves + 1) * float(lowest) * (1.0f / 32.0f);
}

template <int HIGH> struct PlanesWithLeast {
    uint4 low, header;
    uint32_t high;
    int w[8];
    float d, least;
    __device__ __forceinline__ void load(const uint8_t *base, uint32_t all, uint32_t at) {
        low = load_once(base + at * 16);
        high = HIGH ? reinterpret_cast<const uint32_t *>(base + all * 16)[at] : 0;
        header = load_once(base + all * (16 + HIGH) + at / 8 * 16);
    }
    __device__ __forceinline__ void decode(uint32_t at) {
        nibbles(low, w);
        if (HIGH) {
#pragma unroll
            for (int j = 0; j < 8; ++j) w[j] |= int((j < 4 ? high << (4 - j) : high >> (j - 4)) & 0x10101010u);
        }
        scale_and_least(header, int(at % 8), d, least);
    }
    __device__ __forceinline__ float times(const Lanes32 &x) const {
        return (float(dot16(w, x.a, dot16(w + 4, x.b, 0))) * d + float(x.sum[0] + x.sum[1]) * least) * x.scale;
    }
};

template <> struct Planes<Q5_K> : PlanesWithLeast<4> {};
template <> struct Planes<Q4_K> : PlanesWithLeast<0> {};

// What one lane of a group of 32 adds to N vectors times R rows from `row` on. acc: [N][R].
template <int FORMAT, int N, int R>
__device__ __forceinline__ void planes_part(const uint8_t *w, const Sixteens &x, int rows, int row, int lane,
    float (&acc)[N * R]) {
    const uint32_t all = rows * x.chunks;  // a matrix is below 4 GiB: offsets of 32 bits take half the registers
    for (int chunk = lane; chunk < x.chunks; chunk += LANES) {
        Planes<FORMAT> p[R];
#pragma unroll
        for (int r = 0; r < R; ++r) p[r].load(w, all, (row + r) * x.chunks + chunk);
#pragma unroll
        for (int r = 0; r < R; ++r) p[r].decode((row + r) * x.chunks + chunk);
#pragma unroll
        for (int n = 0; n < N; ++n) {
            Lanes32 v;
            v.load(x, n, chunk);
#pragma unroll
            for (int r = 0; r < R; ++r) acc[n * R + r] += p[r].times(v);
        }
    }
}

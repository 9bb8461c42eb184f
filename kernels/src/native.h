// What a lane of the kernels on file blocks does: 8 of each 256 weights decoded into two words, once for all vectors.
// On AMD every load of a turn is on its way before the first is waited for (LOADS_FIRST). It knows no launch.
#pragma once
#include "args.h"
#include "device.h"

constexpr int NATIVE_WARPS = 4;  // a block of threads takes every fourth superblock with each of them

struct Decoded {
    int word[2], column[2];  // four weights each, and the column of the first
    float scale[2], least[2];
};

template <int FORMAT> struct Block;

template <> struct Block<Q8_0> {
    static constexpr int BYTES = 272;  // eight blocks of 34
    static constexpr bool HAS_LEAST = false;
    static __device__ __forceinline__ int column(int lane, int k) { return lane / 4 * 32 + lane % 4 * 8 + k * 4; }
    int word[2];
    uint16_t d;  // a half: to turn it into a float is to wait for it
    __device__ __forceinline__ void load(const uint8_t *p, int lane) {
        const uint8_t *block = p + lane / 4 * 34;
        d = *reinterpret_cast<const uint16_t *>(block);
        word[0] = load_int_2(block + 2 + lane % 4 * 8), word[1] = load_int_2(block + 2 + lane % 4 * 8 + 4);
    }
    __device__ __forceinline__ Decoded decode(int lane) const {
        float scale = load_half(&d);
        return {{word[0], word[1]}, {column(lane, 0), column(lane, 1)}, {scale, scale}, {0.0f, 0.0f}};
    }
};

// Adds a signed constant to each byte that holds a value below 64: no carry between bytes.
__device__ __forceinline__ int minus_32(int v) { return int((uint32_t(v) | 0x80808080u) - 0x20202020u) ^ 0x80808080; }

template <> struct Block<Q6_K> {
    static constexpr int BYTES = 210;
    static constexpr bool HAS_LEAST = false;
    static __device__ __forceinline__ int column(int lane, int k) { return lane / 16 * 128 + k * 64 + lane % 16 * 4; }
    int low, high;
    int8_t scale[2];
    uint16_t d;
    __device__ __forceinline__ void load(const uint8_t *p, int lane) {
        int half = lane / 16, at = lane % 16 * 4;
        low = load_int_2(p + half * 64 + at), high = load_int_2(p + 128 + half * 32 + at % 32);
        d = *reinterpret_cast<const uint16_t *>(p + 208);
        const int8_t *scales = reinterpret_cast<const int8_t *>(p + 192);
        scale[0] = scales[column(lane, 0) / 16], scale[1] = scales[column(lane, 1) / 16];
    }
    __device__ __forceinline__ Decoded decode(int lane) const {
        int above = high >> (lane % 16 < 8 ? 0 : 2);
        float of_block = load_half(&d);
        Decoded out;
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            out.word[k] = minus_32(((low >> 4 * k) & 0x0f0f0f0f) | (((above >> 4 * k) << 4) & 0x30303030));
            out.column[k] = column(lane, k);
            out.scale[k] = of_block * float(scale[k]);
            out.least[k] = 0.0f;
        }
        return out;
    }
};

// Scale and minimum of block b of eight, of six bits each, from the twelve bytes of Q5_K and Q4_K.
__device__ __forceinline__ void scale_and_least(const uint32_t (&s)[3], int b, int &scale, int &least) {
    int at = b % 4 * 8;
    int a = s[0] >> at & 255, m = s[1] >> at & 255, t = s[2] >> at & 255;
    scale = b < 4 ? a & 63 : (t & 15) | a >> 6 << 4;
    least = b < 4 ? m & 63 : t >> 4 | m >> 6 << 4;
}

template <> struct Block<Q5_K> {
    static constexpr int BYTES = 176;
    static constexpr bool HAS_LEAST = true;
    static __device__ __forceinline__ int column(int lane, int k) { return (lane / 8 * 2 + k) * 32 + lane % 8 * 4; }
    int low, high;
    uint16_t d, least;
    uint32_t scales[3];
    __device__ __forceinline__ void load(const uint8_t *p, int lane) {
        int at = lane % 8 * 4;
        low = load_int(p + 48 + lane / 8 * 32 + at), high = load_int(p + 16 + at);
        d = reinterpret_cast<const uint16_t *>(p)[0], least = reinterpret_cast<const uint16_t *>(p)[1];
        scales[0] = load_int(p + 4), scales[1] = load_int(p + 8), scales[2] = load_int(p + 12);
    }
    __device__ __forceinline__ Decoded decode(int lane) const {
        int pair = lane / 8;
        float of_scale = load_half(&d), of_least = load_half(&least);
        Decoded out;
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            int scale, m;
            scale_and_least(scales, pair * 2 + k, scale, m);
            out.word[k] = ((low >> 4 * k) & 0x0f0f0f0f) | ((((high >> 2 * pair) >> k) << 4) & 0x10101010);
            out.column[k] = column(lane, k);
            out.scale[k] = of_scale * float(scale);
            out.least[k] = of_least * float(m);
        }
        return out;
    }
};

struct Activations {
    const int8_t *q;
    const float *scales;  // [n][cols / 32], then the sums of the values
    int cols, n;
};

// What one lane of one warp adds to N vectors times R rows from `row` on. acc: [N][R].
template <int FORMAT, int N, int R>
__device__ __forceinline__ void native_part(const uint8_t *w, const Activations &x, int row, int warp, int lane,
    float (&acc)[N * R]) {
    using B = Block<FORMAT>;
    int superblocks = x.cols / 256, blocks = x.cols / 32;
    for (int sb = warp; sb < superblocks; sb += NATIVE_WARPS) {
        B raw[R];
        int v[N][2];
        float s[N][2], sum[N][2];
#pragma unroll
        for (int r = 0; r < R; ++r) raw[r].load(w + (int64_t(row + r) * superblocks + sb) * B::BYTES, lane);
#pragma unroll
        for (int n = 0; n < N; ++n)
#pragma unroll
            for (int k = 0; k < 2; ++k) {
                int column = sb * 256 + B::column(lane, k), block = n * blocks + column / 32;
                v[n][k] = load_int(x.q + int64_t(n) * x.cols + column);
                s[n][k] = x.scales[block];
                sum[n][k] = B::HAS_LEAST && lane % 8 == 0 ? x.scales[x.n * blocks + block] : 0.0f;
            }
        LOADS_FIRST();
        Decoded d[R];
#pragma unroll
        for (int r = 0; r < R; ++r) d[r] = raw[r].decode(lane);
#pragma unroll
        for (int n = 0; n < N; ++n)
#pragma unroll
            for (int k = 0; k < 2; ++k)
#pragma unroll
                for (int r = 0; r < R; ++r) {
                    acc[n * R + r] += d[r].scale[k] * s[n][k] * float(dot4(d[r].word[k], v[n][k], 0));
                    if (B::HAS_LEAST) acc[n * R + r] -= d[r].least[k] * sum[n][k];
                }
    }
}

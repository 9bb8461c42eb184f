"""Stand-ins for what device.h has of a GPU, and a loop over lanes in place of a launch, to test headers."""

DEVICE = """
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#define __device__
#define __forceinline__ inline
#define LOADS_FIRST()
static constexpr int LANES = 32;
struct uint4 { uint32_t x, y, z, w; };
struct uint2 { uint32_t x, y; };
struct int2 { int x, y; };
inline int product_24(int a, int b) { return a * b; }
inline int dot4(int a, int b, int c) {
    for (int i = 0; i < 4; ++i) c += int(int8_t(a >> 8 * i)) * int(int8_t(b >> 8 * i));
    return c;
}
inline uint4 load_once(const void *p) { uint4 v; memcpy(&v, p, 16); return v; }
inline int load_int(const void *p) { int v; memcpy(&v, p, 4); return v; }
inline int load_int_2(const uint8_t *p) { return load_int(p); }
inline float load_half(const void *p) {
    uint16_t bits; memcpy(&bits, p, 2);
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    float v = exponent ? std::ldexp(1.0f + fraction / 1024.0f, exponent - 15) : std::ldexp(fraction / 1024.0f, -14);
    return bits >> 15 ? -v : v;
}
"""

KERNELS = """
#include "planes.h"
namespace file_blocks {
#define scale_and_least scale_and_least_of_words
#include "native.h"
}

template <int F, int N> void run_planes(int rows, Sixteens x, const uint8_t *w, float *y) {
    for (int row = 0; row < rows; row += 2) {
        float sums[N * 2] = {};
        for (int lane = 0; lane < LANES; ++lane) {
            float acc[N * 2] = {};
            planes_part<F, N, 2>(w, x, rows, row, lane, acc);
            for (int k = 0; k < N * 2; ++k) sums[k] += acc[k];
        }
        for (int k = 0; k < N * 2; ++k) y[(k / 2) * rows + row + k % 2] = sums[k];
    }
}

template <int F, int N> void run_native(int rows, file_blocks::Activations x, const uint8_t *w, float *y) {
    for (int row = 0; row < rows; row += 2) {
        float sums[N * 2] = {};
        for (int thread = 0; thread < LANES * file_blocks::NATIVE_WARPS; ++thread) {
            float acc[N * 2] = {};
            file_blocks::native_part<F, N, 2>(w, x, row, thread / LANES, thread % LANES, acc);
            for (int k = 0; k < N * 2; ++k) sums[k] += acc[k];
        }
        for (int k = 0; k < N * 2; ++k) y[(k / 2) * rows + row + k % 2] = sums[k];
    }
}

#define STREAMS(RUN, F) \\
    if (n == 1) { RUN<F, 1>(rows, x, (const uint8_t *)w, (float *)y); return 0; } \\
    if (n == 3) { RUN<F, 3>(rows, x, (const uint8_t *)w, (float *)y); return 0; } \\
    if (n == 8) { RUN<F, 8>(rows, x, (const uint8_t *)w, (float *)y); return 0; }

extern "C" int planes(int format, int n, int rows, int cols, void *w, void *q, void *scales, void *sums, void *y) {
    Sixteens x{(const int8_t *)q, (const float *)scales, (const int *)sums, cols / 32};
    if (format == Q8_0) { STREAMS(run_planes, Q8_0) }
    if (format == Q6_K) { STREAMS(run_planes, Q6_K) }
    if (format == Q5_K) { STREAMS(run_planes, Q5_K) }
    if (format == Q4_K) { STREAMS(run_planes, Q4_K) }
    return 1;
}

extern "C" int native(int format, int n, int rows, int cols, void *w, void *q, void *scales, void *sums, void *y) {
    file_blocks::Activations x{(const int8_t *)q, (const float *)sums, cols, n};
    if (format == Q8_0) { STREAMS(run_native, Q8_0) }
    if (format == Q6_K) { STREAMS(run_native, Q6_K) }
    if (format == Q5_K) { STREAMS(run_native, Q5_K) }
    return 1;
}
"""

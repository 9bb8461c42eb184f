// One warp multiplies a part of a packed tile (16 rows x 256 columns, or half of it) with up to 8 activation vectors on
// the int8 matrix units. It knows nothing of where the tile lies. acc: rows g, g + 8 x columns 2t, 2t + 1.
// Vectors past the width repeat the last one; nobody stores them.
#pragma once
#include "device.h"
#include "packed.h"

#if HAS_MMA
struct Lane {
    int index, g, t;  // of the warp
    int quants;       // B operand: where this lane's vector lies in a block of a chunk, bytes
    int scales;       // C operand: where the pair of vectors of this lane's sums lies, floats
    int column;       // of the B operand

    template <int WIDTH> static __device__ __forceinline__ Lane of(int lane) {
        Lane l;
        l.index = lane, l.g = lane / 4, l.t = lane % 4;
        l.column = min(l.g, WIDTH - 1);
        l.quants = l.column * 32 + l.t * 8;
        l.scales = 2 * min(l.t, scale_stride(WIDTH) / 2 - 1);
        return l;
    }
};

template <int WIDTH> struct Chunk {
    const uint8_t *base;
    __device__ __forceinline__ uint2 quants(int j, const Lane &l) const {
        return *reinterpret_cast<const uint2 *>(base + j * WIDTH * 32 + l.quants);
    }
    __device__ __forceinline__ const float *scales() const {
        return reinterpret_cast<const float *>(base + chunk_scales(WIDTH));
    }
    __device__ __forceinline__ float2 scale(int j, const Lane &l) const {
        return *reinterpret_cast<const float2 *>(scales() + j * scale_stride(WIDTH) + l.scales);
    }
    __device__ __forceinline__ float sum(int j, const Lane &l) const {
        return scales()[(8 + j) * scale_stride(WIDTH) + l.column];
    }
};

// Sums start at 1.5 * 2^23 as an integer: below 2^22 in size, their bits are those of the float 1.5 * 2^23 + sum.
constexpr int MAGIC_BITS = 0x4B400000;
constexpr float MAGIC = 12582912.0f;

__device__ __forceinline__ void mma_s8(int (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint2 b) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b.x), "r"(b.y));
}

__device__ __forceinline__ void mma_u8(int (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint2 b) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b.x), "r"(b.y));
}

__device__ __forceinline__ void mma_s8_16(int (&c)[4], uint32_t a0, uint32_t a1, uint32_t b) {
    asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]) : "r"(a0), "r"(a1), "r"(b));
}

__device__ __forceinline__ void mma_tf32(float (&c)[4], const float (&a)[4], float b0, float b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
          "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
}

__device__ __forceinline__ float2 halves(uint32_t bits) {
    __half2 h;
    memcpy(&h, &bits, 4);
    return __half22float2(h);
}

__device__ __forceinline__ float sum_of(int bits) { return __int_as_float(bits) - MAGIC; }
__device__ __forceinline__ int byte_of(uint32_t word, int i) { return int(int8_t(word >> (8 * i))); }
__device__ __forceinline__ int ubyte_of(uint32_t word, int i) { return int(uint8_t(word >> (8 * i))); }
__device__ __forceinline__ uint32_t word_of(const uint4 &v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }

// A word whose four bytes take their bits from the lower two of three words.
__device__ __forceinline__ uint32_t spare_six(uint32_t a, uint32_t b, uint32_t c) {
    return ((a << 6) & 0xc0c0c0c0u) | ((b << 4) & 0x30303030u) | ((c << 2) & 0x0c0c0c0cu);
}

template <int FORMAT, int SPLIT, int WIDTH> struct Consumer;

template <int SPLIT, int WIDTH> struct Consumer<Q8_0, SPLIT, WIDTH> {
    static __device__ __forceinline__ void run(const uint8_t *tile, const Chunk<WIDTH> &x, float (&acc)[4], const Lane &l, int part) {
        constexpr int BLOCKS = 8 / SPLIT;
        uint32_t d[8];
        const uint4 *scales = reinterpret_cast<const uint4 *>(tile + 4096 + l.g * 32 + part * BLOCKS * 4);
#pragma unroll
        for (int i = 0; i < BLOCKS / 4; ++i) {
            uint4 v = scales[i];
#pragma unroll
            for (int k = 0; k < 4; ++k) d[4 * i + k] = word_of(v, k);
        }
#pragma unroll
        for (int i = 0; i < BLOCKS; ++i) {
            int j = part * BLOCKS + i;
            uint4 a = *reinterpret_cast<const uint4 *>(tile + j * 512 + l.index * 16);
            int c[4] = {MAGIC_BITS, MAGIC_BITS, MAGIC_BITS, MAGIC_BITS};
            mma_s8(c, a.x, a.y, a.z, a.w, x.quants(j, l));
            float2 w = halves(d[i]), s = x.scale(j, l);
            acc[0] += sum_of(c[0]) * (w.x * s.x);
            acc[1] += sum_of(c[1]) * (w.x * s.y);
            acc[2] += sum_of(c[2]) * (w.y * s.x);
            acc[3] += sum_of(c[3]) * (w.y * s.y);
        }
    }
};

template <int SPLIT, int WIDTH> struct Consumer<Q6_K, SPLIT, WIDTH> {
    static __device__ __forceinline__ void run(const uint8_t *tile, const Chunk<WIDTH> &x, float (&acc)[4], const Lane &l, int part) {
        constexpr int BLOCKS = 8 / SPLIT, VECTORS = 6 / SPLIT, WORDS = 24 / SPLIT;
        uint32_t q[WORDS];
#pragma unroll
        for (int i = 0; i < VECTORS; ++i) {
            uint4 v = *reinterpret_cast<const uint4 *>(tile + (part * VECTORS + i) * 512 + l.index * 16);
#pragma unroll
            for (int k = 0; k < 4; ++k) q[4 * i + k] = word_of(v, k);
        }
        uint4 upper = *reinterpret_cast<const uint4 *>(tile + 3072 + l.g * 16);
        uint4 lower = *reinterpret_cast<const uint4 *>(tile + 3072 + (l.g + 8) * 16);
        float inner[4] = {};
#pragma unroll
        for (int i = 0; i < BLOCKS; ++i) {
            int j = part * BLOCKS + i;
            uint32_t p0 = q[3 * i], p1 = q[3 * i + 1], p2 = q[3 * i + 2];
            uint32_t p3 = spare_six(p0, p1, p2);
            uint2 b = x.quants(j, l);
            int c0[4] = {}, c1[4] = {};
            mma_s8_16(c0, p0 & 0xfcfcfcfcu, p1 & 0xfcfcfcfcu, b.x);
            mma_s8_16(c1, p2 & 0xfcfcfcfcu, p3, b.y);
            uint32_t su, sl;
            if (SPLIT == 1) {
                su = word_of(upper, i / 2), sl = word_of(lower, i / 2);
            } else {
                su = part ? (i < 2 ? upper.z : upper.w) : (i < 2 ? upper.x : upper.y);
                sl = part ? (i < 2 ? lower.z : lower.w) : (i < 2 ? lower.x : lower.y);
            }
            int k = i % 2 * 2;
            int u0 = byte_of(su, k), u1 = byte_of(su, k + 1), l0 = byte_of(sl, k), l1 = byte_of(sl, k + 1);
            float2 s = x.scale(j, l);
            inner[0] += float(c0[0] * u0 + c1[0] * u1) * s.x;
            inner[1] += float(c0[1] * u0 + c1[1] * u1) * s.y;
            inner[2] += float(c0[2] * l0 + c1[2] * l1) * s.x;
            inner[3] += float(c0[3] * l0 + c1[3] * l1) * s.y;
        }
        float2 d = halves(*reinterpret_cast<const uint32_t *>(tile + 3328 + l.g * 4));
        d.x *= 0.25f, d.y *= 0.25f;
        acc[0] += d.x * inner[0];
        acc[1] += d.x * inner[1];
        acc[2] += d.y * inner[2];
        acc[3] += d.y * inner[3];
    }
};

template <int SPLIT, int WIDTH> struct Consumer<Q5_K, SPLIT, WIDTH> {
    static __device__ __forceinline__ void half(const uint8_t *tile, const Chunk<WIDTH> &x, float (&inner)[4], const Lane &l, int part,
                                                uint32_t scales_upper, uint32_t scales_lower) {
        uint32_t q[10];
        const uint8_t *base = tile + part * 1280;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            uint4 v = *reinterpret_cast<const uint4 *>(base + i * 512 + l.index * 16);
#pragma unroll
            for (int k = 0; k < 4; ++k) q[4 * i + k] = word_of(v, k);
        }
        uint2 v = *reinterpret_cast<const uint2 *>(base + 1024 + l.index * 8);
        q[8] = v.x, q[9] = v.y;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const uint32_t *p = q + 5 * i;
            uint32_t r[8];
#pragma unroll
            for (int k = 0; k < 5; ++k) r[k] = p[k] & 0xf8f8f8f8u;
            r[5] = ((p[0] << 5) & 0xe0e0e0e0u) | ((p[3] << 2) & 0x18181818u);
            r[6] = ((p[1] << 5) & 0xe0e0e0e0u) | ((p[4] << 2) & 0x18181818u);
            r[7] = ((p[2] << 5) & 0xe0e0e0e0u) | ((p[3] << 4) & 0x10101010u) | ((p[4] << 3) & 0x08080808u);
#pragma unroll
            for (int k = 0; k < 2; ++k) {
                int j = part * 4 + i * 2 + k;
                int c[4] = {MAGIC_BITS, MAGIC_BITS, MAGIC_BITS, MAGIC_BITS};
                mma_u8(c, r[4 * k], r[4 * k + 1], r[4 * k + 2], r[4 * k + 3], x.quants(j, l));
                float u = ubyte_of(scales_upper, i * 2 + k), w = ubyte_of(scales_lower, i * 2 + k);
                float2 s = x.scale(j, l);
                inner[0] += sum_of(c[0]) * (u * s.x);
                inner[1] += sum_of(c[1]) * (u * s.y);
                inner[2] += sum_of(c[2]) * (w * s.x);
                inner[3] += sum_of(c[3]) * (w * s.y);
            }
        }
    }

    // The minima: 8 of them a row, times the sums of the activations, in two parts that tf32 holds.
    static __device__ __forceinline__ void minima(const Chunk<WIDTH> &x, float (&out)[4], const Lane &l, uint4 upper, uint4 lower) {
        int shift = 8 * l.t;
        float a[4] = {float((upper.z >> shift) & 0xfc), float((lower.z >> shift) & 0xfc),
                      float((spare_six(upper.x, upper.y, upper.z) >> shift) & 0xff),
                      float((spare_six(lower.x, lower.y, lower.z) >> shift) & 0xff)};
        float s0 = x.sum(l.t, l), s1 = x.sum(l.t + 4, l);
        float h0 = __uint_as_float(__float_as_uint(s0) & 0xffffe000u), h1 = __uint_as_float(__float_as_uint(s1) & 0xffffe000u);
        mma_tf32(out, a, h0, h1);
        mma_tf32(out, a, s0 - h0, s1 - h1);
    }

    static __device__ __forceinline__ void run(const uint8_t *tile, const Chunk<WIDTH> &x, float (&acc)[4], const Lane &l, int part) {
        uint4 upper = *reinterpret_cast<const uint4 *>(tile + 2560 + l.g * 16);
        uint4 lower = *reinterpret_cast<const uint4 *>(tile + 2560 + (l.g + 8) * 16);
        float inner[4] = {}, least[4] = {};
        if (SPLIT == 1) {
            half(tile, x, inner, l, 0, upper.x & 0xfcfcfcfcu, lower.x & 0xfcfcfcfcu);
            half(tile, x, inner, l, 1, upper.y & 0xfcfcfcfcu, lower.y & 0xfcfcfcfcu);
            minima(x, least, l, upper, lower);
        } else {
            half(tile, x, inner, l, part, (part ? upper.y : upper.x) & 0xfcfcfcfcu, (part ? lower.y : lower.x) & 0xfcfcfcfcu);
            if (part == 0) minima(x, least, l, upper, lower);
        }
        float2 du = halves(upper.w), dl = halves(lower.w);
        constexpr float Q = 1.0f / 32, M = 1.0f / 4;
        acc[0] += du.x * Q * inner[0] - du.y * M * least[0];
        acc[1] += du.x * Q * inner[1] - du.y * M * least[1];
        acc[2] += dl.x * Q * inner[2] - dl.y * M * least[2];
        acc[3] += dl.x * Q * inner[3] - dl.y * M * least[3];
    }
};
#endif

// One warp multiplies a part of a packed tile (16 rows x 256 columns, or half of it) with up to 8 activation vectors on
// the int8 matrix units. It knows nothing of where the tile lies. acc: rows g, g + 8 x columns 2t, 2t + 1.
// Vectors past the width repeat the last one; nobody stores them. With one vector, column 2t + 1 is not even summed up.
#pragma once
#include "device.h"
#include "packed.h"

#if HAS_MMA
struct Lane {
    int index, g, t;  // of the warp
    int quants;       // B operand: where this lane's vector lies in a pair of blocks of a chunk, bytes
    int scales;       // C operand: where the pair of vectors of this lane's sums lies, floats
    int column;       // of the B operand

    template <int WIDTH> static __device__ __forceinline__ Lane of(int lane) {
        Lane l;
        l.index = lane, l.g = lane / 4, l.t = lane % 4;
        l.column = min(l.g, WIDTH - 1);
        l.quants = l.column * 64 + l.t * 16;
        l.scales = 4 * min(l.t, scale_stride(WIDTH) / 2 - 1);
        return l;
    }
};

// Two blocks of 32 columns at a time.
template <int WIDTH> struct Chunk {
    const uint8_t *base;
    __device__ __forceinline__ uint4 quants(int pair, const Lane &l) const {
        return *reinterpret_cast<const uint4 *>(base + pair * WIDTH * 64 + l.quants);
    }
    __device__ __forceinline__ const float *scales() const {
        return reinterpret_cast<const float *>(base + chunk_scales(WIDTH));
    }
    __device__ __forceinline__ float4 scale(int pair, const Lane &l) const {
        return *reinterpret_cast<const float4 *>(scales() + pair * 2 * scale_stride(WIDTH) + l.scales);
    }
    __device__ __forceinline__ float sum(int j, const Lane &l) const {
        return scales()[(8 + j) * scale_stride(WIDTH) + l.column];
    }
};

// Sums start at 1.5 * 2^23 as an integer: below 2^22 in size, their bits are those of the float 1.5 * 2^23 + sum.
constexpr int MAGIC_BITS = 0x4B400000;
constexpr float MAGIC = 12582912.0f;

__device__ __forceinline__ void mma_s8(int (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
        : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(MAGIC_BITS));
}

__device__ __forceinline__ void mma_u8(int (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
        : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(0));
}

__device__ __forceinline__ void mma_s8_16(int (&c)[4], uint32_t a0, uint32_t a1, uint32_t b) {
    asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%7,%7,%7};"
        : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3]) : "r"(a0), "r"(a1), "r"(b), "r"(0));
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

// A signed byte as an int, an unsigned one as a float (in the lowest bits of 2^23), with one permutation each.
__device__ __forceinline__ int byte_of(uint32_t word, int i) {
    int v;
    asm("prmt.b32 %0, %1, 0, %2;" : "=r"(v) : "r"(word), "r"(0x8880 + 0x1111 * i));
    return v;
}
__device__ __forceinline__ float float_of(uint32_t word, int i) {
    return __uint_as_float(__byte_perm(word, 0x4b000000u, 0x7650 + i)) - 8388608.0f;
}
__device__ __forceinline__ uint32_t word_of(const uint4 &v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }

// A word whose four bytes take their bits from the lower two of three words.
__device__ __forceinline__ uint32_t spare_six(uint32_t a, uint32_t b, uint32_t c) {
    return ((a << 6) & 0xc0c0c0c0u) | ((b << 4) & 0x30303030u) | ((c << 2) & 0x0c0c0c0cu);
}

// What a lane needs of a tile, in registers: `load` and `multiply` are apart, so that every load is on its way before the
// first is waited for.
template <int FORMAT> struct Tile;

template <> struct Tile<Q8_0> {
    uint4 q[8], d[2];

    __device__ __forceinline__ void load(const uint8_t *tile, const Lane &l) {
#pragma unroll
        for (int i = 0; i < 8; ++i) q[i] = load_once(tile + i * 512 + l.index * 16);
#pragma unroll
        for (int i = 0; i < 2; ++i) d[i] = load_once(tile + 4096 + l.g * 32 + i * 16);
    }
    template <int WIDTH> __device__ __forceinline__ void multiply(const Chunk<WIDTH> &x, float (&acc)[4], const Lane &l) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            uint4 b = x.quants(i / 2, l);
            float4 s = x.scale(i / 2, l);
            float2 w = halves(word_of(d[i / 4], i % 4));
            int c[4];
            mma_s8(c, q[i].x, q[i].y, q[i].z, q[i].w, i % 2 ? b.z : b.x, i % 2 ? b.w : b.y);
            float s0 = i % 2 ? s.z : s.x, s1 = i % 2 ? s.w : s.y;
            acc[0] += sum_of(c[0]) * (w.x * s0);
            acc[2] += sum_of(c[2]) * (w.y * s0);
            if (WIDTH == 1) continue;
            acc[1] += sum_of(c[1]) * (w.x * s1);
            acc[3] += sum_of(c[3]) * (w.y * s1);
        }
    }
};

template <> struct Tile<Q6_K> {
    uint4 q[6];
    uint4 upper, lower;
    uint32_t d;

    __device__ __forceinline__ void load(const uint8_t *tile, const Lane &l) {
#pragma unroll
        for (int i = 0; i < 6; ++i) q[i] = load_once(tile + i * 512 + l.index * 16);
        upper = load_once(tile + 3072 + l.g * 16), lower = load_once(tile + 3072 + (l.g + 8) * 16);
        d = load_once_4(tile + 3328 + l.g * 4);
    }
    __device__ __forceinline__ uint32_t word(int i) const { return word_of(q[i / 4], i % 4); }

    template <int WIDTH> __device__ __forceinline__ void multiply(const Chunk<WIDTH> &x, float (&acc)[4], const Lane &l) {
        float inner[4] = {};
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            uint4 b = x.quants(i / 2, l);
            float4 s = x.scale(i / 2, l);
            uint32_t p0 = word(3 * i), p1 = word(3 * i + 1), p2 = word(3 * i + 2);
            int c0[4], c1[4];
            mma_s8_16(c0, p0 & 0xfcfcfcfcu, p1 & 0xfcfcfcfcu, i % 2 ? b.z : b.x);
            mma_s8_16(c1, p2 & 0xfcfcfcfcu, spare_six(p0, p1, p2), i % 2 ? b.w : b.y);
            uint32_t su = word_of(upper, i / 2), sl = word_of(lower, i / 2);
            int k = i % 2 * 2;
            int u0 = byte_of(su, k), u1 = byte_of(su, k + 1), l0 = byte_of(sl, k), l1 = byte_of(sl, k + 1);
            float s0 = i % 2 ? s.z : s.x, s1 = i % 2 ? s.w : s.y;
            inner[0] += float(c0[0] * u0 + c1[0] * u1) * s0;
            inner[2] += float(c0[2] * l0 + c1[2] * l1) * s0;
            if (WIDTH == 1) continue;
            inner[1] += float(c0[1] * u0 + c1[1] * u1) * s1;
            inner[3] += float(c0[3] * l0 + c1[3] * l1) * s1;
        }
        float2 f = halves(d);
        f.x *= 0.25f, f.y *= 0.25f;
        acc[0] += f.x * inner[0];
        acc[1] += f.x * inner[1];
        acc[2] += f.y * inner[2];
        acc[3] += f.y * inner[3];
    }
};

template <> struct Tile<Q5_K> {
    uint4 q[4], upper, lower;
    uint2 rest[2];

    __device__ __forceinline__ void load(const uint8_t *tile, const Lane &l) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const uint8_t *base = tile + h * 1280;
            q[2 * h] = load_once(base + l.index * 16), q[2 * h + 1] = load_once(base + 512 + l.index * 16);
            rest[h] = load_once_8(base + 1024 + l.index * 8);
        }
        upper = load_once(tile + 2560 + l.g * 16), lower = load_once(tile + 2560 + (l.g + 8) * 16);
    }
    __device__ __forceinline__ uint32_t word(int h, int i) const {
        return i < 4 ? word_of(q[2 * h], i) : i < 8 ? word_of(q[2 * h + 1], i - 4) : i == 8 ? rest[h].x : rest[h].y;
    }

    template <int WIDTH> __device__ __forceinline__ void half(const Chunk<WIDTH> &x, float (&inner)[4], const Lane &l, int h) {
        uint32_t su = (h ? upper.y : upper.x) & 0xfcfcfcfcu, sl = (h ? lower.y : lower.x) & 0xfcfcfcfcu;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            uint32_t p0 = word(h, 5 * i), p1 = word(h, 5 * i + 1), p2 = word(h, 5 * i + 2);
            uint32_t p3 = word(h, 5 * i + 3), p4 = word(h, 5 * i + 4);
            uint32_t r[8] = {p0 & 0xf8f8f8f8u, p1 & 0xf8f8f8f8u, p2 & 0xf8f8f8f8u, p3 & 0xf8f8f8f8u, p4 & 0xf8f8f8f8u};
            r[5] = ((p0 << 5) & 0xe0e0e0e0u) | ((p3 << 2) & 0x18181818u);
            r[6] = ((p1 << 5) & 0xe0e0e0e0u) | ((p4 << 2) & 0x18181818u);
            r[7] = ((p2 << 5) & 0xe0e0e0e0u) | ((p3 << 4) & 0x10101010u) | ((p4 << 3) & 0x08080808u);
            uint4 b = x.quants(h * 2 + i, l);
            float4 s = x.scale(h * 2 + i, l);
#pragma unroll
            for (int k = 0; k < 2; ++k) {
                int c[4];
                mma_u8(c, r[4 * k], r[4 * k + 1], r[4 * k + 2], r[4 * k + 3], k ? b.z : b.x, k ? b.w : b.y);
                float u = float_of(su, i * 2 + k), w = float_of(sl, i * 2 + k), s0 = k ? s.z : s.x, s1 = k ? s.w : s.y;
                inner[0] += float(c[0]) * (u * s0);
                inner[2] += float(c[2]) * (w * s0);
                if (WIDTH == 1) continue;
                inner[1] += float(c[1]) * (u * s1);
                inner[3] += float(c[3]) * (w * s1);
            }
        }
    }

    // The minima: 8 of them a row, times the sums of the activations, in two parts that tf32 holds.
    template <int WIDTH> __device__ __forceinline__ void minima(const Chunk<WIDTH> &x, float (&out)[4], const Lane &l) const {
        int shift = 8 * l.t;
        float a[4] = {float((upper.z >> shift) & 0xfc), float((lower.z >> shift) & 0xfc),
                      float((spare_six(upper.x, upper.y, upper.z) >> shift) & 0xff),
                      float((spare_six(lower.x, lower.y, lower.z) >> shift) & 0xff)};
        float s0 = x.sum(l.t, l), s1 = x.sum(l.t + 4, l);
        float h0 = __uint_as_float(__float_as_uint(s0) & 0xffffe000u), h1 = __uint_as_float(__float_as_uint(s1) & 0xffffe000u);
        mma_tf32(out, a, h0, h1);
        mma_tf32(out, a, s0 - h0, s1 - h1);
    }

    template <int WIDTH> __device__ __forceinline__ void multiply(const Chunk<WIDTH> &x, float (&acc)[4], const Lane &l) {
        float inner[4] = {}, least[4] = {};
        half(x, inner, l, 0), half(x, inner, l, 1);
        minima(x, least, l);
        float2 du = halves(upper.w), dl = halves(lower.w);
        constexpr float Q = 1.0f / 32, M = 1.0f / 4;
        acc[0] += du.x * Q * inner[0] - du.y * M * least[0];
        acc[1] += du.x * Q * inner[1] - du.y * M * least[1];
        acc[2] += dl.x * Q * inner[2] - dl.y * M * least[2];
        acc[3] += dl.x * Q * inner[3] - dl.y * M * least[3];
    }
};
#endif

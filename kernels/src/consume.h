// One warp multiplies a packed tile (16 rows x 256 columns) with up to 8 activation vectors on the int8 matrix units.
// It knows nothing of where the tile lies.
//
// The units give sums for eight columns whatever the width. With fewer vectors the other columns take other blocks of
// 32: of G = 8 / width blocks one after the other (PHASES), each stands in columns of its own and zeros stand in the
// rest. The four lanes that hold a row's sums then scale a block each, where they would have done the same work four
// times. acc: rows g, g + 8 x two vectors of this lane's phase; `over_phases` adds the phases up.
#pragma once
#include "device.h"
#include "packed.h"

#if HAS_MMA
struct Lane {
    int index, g, t;      // of the warp
    int quants;           // B operand: where this lane's vector lies in a pair of blocks of a chunk, bytes
    int phase_b, phase;   // whose block this lane's B operand holds; whose its sums are
    int column;           // vector of the B operand

    template <int WIDTH> static __device__ __forceinline__ Lane of(int lane) {
        constexpr int COLUMNS = scale_stride(WIDTH);
        Lane l;
        l.index = lane, l.g = lane / 4, l.t = lane % 4;
        l.column = min(l.g % COLUMNS, WIDTH - 1);
        l.quants = l.column * 64 + l.t * 16;
        l.phase_b = l.g / COLUMNS, l.phase = 2 * l.t / COLUMNS;
        return l;
    }
};

// The activations of 256 columns. Pair k G + p holds the blocks 2 k G + p and 2 k G + p + G.
template <int WIDTH> struct Chunk {
    const uint8_t *base;
    __device__ __forceinline__ uint4 quants(int pair, const Lane &l) const {
        uint4 v = make_uint4(0, 0, 0, 0);
        if (phases_of(WIDTH) == 1 || l.phase_b == pair % phases_of(WIDTH))
            v = *reinterpret_cast<const uint4 *>(base + pair * WIDTH * 64 + l.quants);
        return v;
    }
    __device__ __forceinline__ const float *scales() const {
        return reinterpret_cast<const float *>(base + chunk_scales(WIDTH));
    }
    // Of the two blocks of this lane's phase in the k-th 2 G blocks, for its two vectors.
    __device__ __forceinline__ float4 scale(int k, const Lane &l) const {
        return *reinterpret_cast<const float4 *>(scales() + k * 16 + l.t * 4);
    }
    __device__ __forceinline__ float sum(int j, const Lane &l) const {
        return l.phase_b == 0 ? scales()[(8 + j) * scale_stride(WIDTH) + l.column] : 0.0f;
    }
};

template <int WIDTH> __device__ __forceinline__ void over_phases(float (&acc)[4]) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        if (phases_of(WIDTH) == 4) acc[k] += shuffle_xor(acc[k], 1);
        if (phases_of(WIDTH) >= 2) acc[k] += shuffle_xor(acc[k], 2);
    }
}

// c += a b
__device__ __forceinline__ void mma_s8(int (&c)[4], uint4 a, uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void mma_u8(int (&c)[4], uint4 a, uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
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


// A signed byte as an int, an unsigned one as a float (in the lowest bits of 2^23), with one permutation each.
__device__ __forceinline__ int byte_of(uint32_t word, int i) {
    int v;
    asm("prmt.b32 %0, %1, 0, %2;" : "=r"(v) : "r"(word), "r"(0x8880 + 0x1111 * i));
    return v;
}
__device__ __forceinline__ float float_of(uint32_t word, int i) {
    return __uint_as_float(__byte_perm(word, 0x4b000000u, 0x7650 + i)) - 8388608.0f;
}
__device__ __forceinline__ uint32_t word_of(const uint4 &v, int i) {
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

// A word whose four bytes take their bits from the lower two of three words.
__device__ __forceinline__ uint32_t spare_six(uint32_t a, uint32_t b, uint32_t c) {
    return ((a << 6) & 0xc0c0c0c0u) | ((b << 4) & 0x30303030u) | ((c << 2) & 0x0c0c0c0cu);
}

// What a lane needs of a tile, in registers: `load` and `multiply` are apart, so that every load is on its way before
// the first is waited for.
template <int FORMAT, int WIDTH> struct Tile;

template <int WIDTH> struct Tile<Q8_0, WIDTH> {
    static constexpr int PHASES = phases_of(WIDTH), HALVES = 8 / PHASES;  // scales of this lane's phase
    uint4 q[8];
    uint32_t d[HALVES];

    __device__ __forceinline__ void load(const uint8_t *tile, const Lane &l) {
#pragma unroll
        for (int i = 0; i < 8; ++i) q[i] = load_once(tile + i * 512 + l.index * 16);
        const uint8_t *scales = tile + 4096 + l.g * 32;
        if (PHASES == 1) {
            uint4 a = load_once(scales), b = load_once(scales + 16);
            d[0] = a.x, d[1 % HALVES] = a.y, d[2 % HALVES] = a.z, d[3 % HALVES] = a.w;
            d[4 % HALVES] = b.x, d[5 % HALVES] = b.y, d[6 % HALVES] = b.z, d[7 % HALVES] = b.w;
        } else {
#pragma unroll
            for (int i = 0; i < HALVES; ++i) d[i] = load_once_4(scales + (i * PHASES + l.phase) * 4);
        }
    }
    __device__ __forceinline__ void multiply(const Chunk<WIDTH> &x, float (&acc)[4], const Lane &l) const {
#pragma unroll
        for (int k = 0; k < 4 / PHASES; ++k) {
            int c[2][4] = {};
#pragma unroll
            for (int p = 0; p < PHASES; ++p) {
                uint4 b = x.quants(k * PHASES + p, l);
                mma_s8(c[0], q[2 * k * PHASES + p], b.x, b.y);
                mma_s8(c[1], q[2 * k * PHASES + PHASES + p], b.z, b.w);
            }
            float4 s = x.scale(k, l);
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                float2 w = halves(d[2 * k + h]);
                float s0 = h ? s.z : s.x, s1 = h ? s.w : s.y;
                acc[0] += float(c[h][0]) * (w.x * s0);
                acc[2] += float(c[h][2]) * (w.y * s0);
                if (WIDTH == 1) continue;
                acc[1] += float(c[h][1]) * (w.x * s1);
                acc[3] += float(c[h][3]) * (w.y * s1);
            }
        }
    }
};

template <int WIDTH> struct Tile<Q6_K, WIDTH> {
    static constexpr int PHASES = phases_of(WIDTH);
    uint4 q[6], upper, lower;
    uint32_t d;

    __device__ __forceinline__ void load(const uint8_t *tile, const Lane &l) {
#pragma unroll
        for (int i = 0; i < 6; ++i) q[i] = load_once(tile + i * 512 + l.index * 16);
        upper = load_once(tile + 3072 + l.g * 16), lower = load_once(tile + 3072 + (l.g + 8) * 16);
        d = load_once_4(tile + 3328 + l.g * 4);
    }
    __device__ __forceinline__ uint32_t word(int i) const { return word_of(q[i / 4], i % 4); }

    // Columns 32 j.. in two halves of 16, which have scales of their own.
    __device__ __forceinline__ void add(int (&c0)[4], int (&c1)[4], int j, uint32_t b0, uint32_t b1) const {
        uint32_t p0 = word(3 * j), p1 = word(3 * j + 1), p2 = word(3 * j + 2);
        mma_s8_16(c0, p0 & 0xfcfcfcfcu, p1 & 0xfcfcfcfcu, b0);
        mma_s8_16(c1, p2 & 0xfcfcfcfcu, spare_six(p0, p1, p2), b1);
    }
    // The word with the scales of block `first` + this lane's phase, and where in it they begin.
    static __device__ __forceinline__ uint32_t scales_of(const uint4 &v, int first, const Lane &l) {
        if (PHASES < 4) return word_of(v, first / 2);
        return l.phase < 2 ? word_of(v, first / 2) : word_of(v, first / 2 + 1);
    }
    static __device__ __forceinline__ int byte_in(int first, const Lane &l) {
        return PHASES == 1 ? first % 2 * 2 : l.phase % 2 * 2;
    }

    __device__ __forceinline__ void multiply(const Chunk<WIDTH> &x, float (&acc)[4], const Lane &l) const {
        float inner[4] = {};
#pragma unroll
        for (int k = 0; k < 4 / PHASES; ++k) {
            int c0[2][4] = {}, c1[2][4] = {};
#pragma unroll
            for (int p = 0; p < PHASES; ++p) {
                uint4 b = x.quants(k * PHASES + p, l);
                add(c0[0], c1[0], 2 * k * PHASES + p, b.x, b.y);
                add(c0[1], c1[1], 2 * k * PHASES + PHASES + p, b.z, b.w);
            }
            float4 s = x.scale(k, l);
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                int first = (2 * k + h) * PHASES, at = byte_in(first, l);
                uint32_t su = scales_of(upper, first, l), sl = scales_of(lower, first, l);
                int u0 = byte_of(su, at), u1 = byte_of(su, at + 1), l0 = byte_of(sl, at), l1 = byte_of(sl, at + 1);
                float s0 = h ? s.z : s.x, s1 = h ? s.w : s.y;
                inner[0] += float(c0[h][0] * u0 + c1[h][0] * u1) * s0;
                inner[2] += float(c0[h][2] * l0 + c1[h][2] * l1) * s0;
                if (WIDTH == 1) continue;
                inner[1] += float(c0[h][1] * u0 + c1[h][1] * u1) * s1;
                inner[3] += float(c0[h][3] * l0 + c1[h][3] * l1) * s1;
            }
        }
        float2 f = halves(d);
        f.x *= 0.25f, f.y *= 0.25f;
        acc[0] += f.x * inner[0];
        acc[1] += f.x * inner[1];
        acc[2] += f.y * inner[2];
        acc[3] += f.y * inner[3];
    }
};

// What Q5_K and Q4_K have in common: a scale and a minimum for each 32 columns. `upper` and `lower` hold those of rows g
// and g + 8. VALUES times the value is what `values` of a format gives.
template <int WIDTH> struct Superblock {
    static constexpr int PHASES = phases_of(WIDTH);
    uint4 upper, lower;

    __device__ __forceinline__ void load_scales(const uint8_t *rows, const Lane &l) {
        upper = load_once(rows + l.g * 16), lower = load_once(rows + (l.g + 8) * 16);
    }

    // The minima: 8 of them a row, times the sums of the activations, in two parts that tf32 holds.
    __device__ __forceinline__ void minima(const Chunk<WIDTH> &x, float (&out)[4], const Lane &l) const {
        int shift = 8 * l.t;
        float a[4] = {float((upper.z >> shift) & 0xfc), float((lower.z >> shift) & 0xfc),
                      float((spare_six(upper.x, upper.y, upper.z) >> shift) & 0xff),
                      float((spare_six(lower.x, lower.y, lower.z) >> shift) & 0xff)};
        float s0 = x.sum(l.t, l), s1 = x.sum(l.t + 4, l);
        float h0 = __uint_as_float(__float_as_uint(s0) & 0xffffe000u);
        float h1 = __uint_as_float(__float_as_uint(s1) & 0xffffe000u);
        mma_tf32(out, a, h0, h1);
        mma_tf32(out, a, s0 - h0, s1 - h1);
    }

    template <int VALUES, class Format>
    __device__ __forceinline__ void multiply_by(const Format &tile, const Chunk<WIDTH> &x, float (&acc)[4],
                                                const Lane &l) const {
        float inner[4] = {}, least[4] = {};
#pragma unroll
        for (int k = 0; k < 4 / PHASES; ++k) {
            int c[2][4] = {};
#pragma unroll
            for (int p = 0; p < PHASES; ++p) {
                uint4 b = x.quants(k * PHASES + p, l);
                mma_u8(c[0], tile.values(2 * k * PHASES + p), b.x, b.y);
                mma_u8(c[1], tile.values(2 * k * PHASES + PHASES + p), b.z, b.w);
            }
            float4 s = x.scale(k, l);
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                int first = (2 * k + h) * PHASES, at = first % 4 + l.phase;
                uint32_t su = (first < 4 ? upper.x : upper.y) & 0xfcfcfcfcu;
                uint32_t sl = (first < 4 ? lower.x : lower.y) & 0xfcfcfcfcu;
                float u = float_of(su, at), w = float_of(sl, at), s0 = h ? s.z : s.x, s1 = h ? s.w : s.y;
                inner[0] += float(c[h][0]) * (u * s0);
                inner[2] += float(c[h][2]) * (w * s0);
                if (WIDTH == 1) continue;
                inner[1] += float(c[h][1]) * (u * s1);
                inner[3] += float(c[h][3]) * (w * s1);
            }
        }
        minima(x, least, l);
        float2 du = halves(upper.w), dl = halves(lower.w);
        constexpr float Q = 1.0f / (4 * VALUES), M = 1.0f / 4;
        acc[0] += du.x * Q * inner[0] - du.y * M * least[0];
        acc[1] += du.x * Q * inner[1] - du.y * M * least[1];
        acc[2] += dl.x * Q * inner[2] - dl.y * M * least[2];
        acc[3] += dl.x * Q * inner[3] - dl.y * M * least[3];
    }
};

template <int WIDTH> struct Tile<Q5_K, WIDTH> : Superblock<WIDTH> {
    uint4 q[4];
    uint2 rest[2];

    __device__ __forceinline__ void load(const uint8_t *tile, const Lane &l) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const uint8_t *base = tile + h * 1280;
            q[2 * h] = load_once(base + l.index * 16), q[2 * h + 1] = load_once(base + 512 + l.index * 16);
            rest[h] = load_once_8(base + 1024 + l.index * 8);
        }
        this->load_scales(tile + 2560, l);
    }
    __device__ __forceinline__ uint32_t word(int h, int i) const {
        return i < 4 ? word_of(q[2 * h], i) : i < 8 ? word_of(q[2 * h + 1], i - 4) : i == 8 ? rest[h].x : rest[h].y;
    }
    // Columns 32 j.., eight times each value.
    __device__ __forceinline__ uint4 values(int j) const {
        int h = j / 4, first = j / 2 % 2 * 5;
        uint32_t p0 = word(h, first), p1 = word(h, first + 1), p2 = word(h, first + 2);
        uint32_t p3 = word(h, first + 3), p4 = word(h, first + 4);
        if (j % 2 == 0) return make_uint4(p0 & 0xf8f8f8f8u, p1 & 0xf8f8f8f8u, p2 & 0xf8f8f8f8u, p3 & 0xf8f8f8f8u);
        return make_uint4(p4 & 0xf8f8f8f8u, ((p0 << 5) & 0xe0e0e0e0u) | ((p3 << 2) & 0x18181818u),
                          ((p1 << 5) & 0xe0e0e0e0u) | ((p4 << 2) & 0x18181818u),
                          ((p2 << 5) & 0xe0e0e0e0u) | ((p3 << 4) & 0x10101010u) | ((p4 << 3) & 0x08080808u));
    }
    __device__ __forceinline__ void multiply(const Chunk<WIDTH> &x, float (&acc)[4], const Lane &l) const {
        this->template multiply_by<8>(*this, x, acc, l);
    }
};

template <int WIDTH> struct Tile<Q4_K, WIDTH> : Superblock<WIDTH> {
    uint4 q[4];

    __device__ __forceinline__ void load(const uint8_t *tile, const Lane &l) {
#pragma unroll
        for (int i = 0; i < 4; ++i) q[i] = load_once(tile + i * 512 + l.index * 16);
        this->load_scales(tile + 2048, l);
    }
    // Columns 32 j...
    __device__ __forceinline__ uint4 values(int j) const {
        const uint4 &v = q[j / 2];
        const int shift = j % 2 * 4;
        return make_uint4((v.x >> shift) & 0x0f0f0f0fu, (v.y >> shift) & 0x0f0f0f0fu, (v.z >> shift) & 0x0f0f0f0fu,
                          (v.w >> shift) & 0x0f0f0f0fu);
    }
    __device__ __forceinline__ void multiply(const Chunk<WIDTH> &x, float (&acc)[4], const Lane &l) const {
        this->template multiply_by<1>(*this, x, acc, l);
    }
};
#endif

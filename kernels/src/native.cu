// GEMV over the blocks as they lie in the file (Q8_0, Q6_K, Q5_K), with N int8 activation vectors and dp4a.
// A lane decodes 8 of each 256 weights into two words, once for all vectors.
#include "args.h"
#include "device.h"

constexpr int THREADS = 128, WARPS = THREADS / LANES;

struct Decoded {
    int word[2], column[2];  // four weights each, and the column of the first
    float scale[2], least[2];
};

template <int FORMAT> struct Block;

template <> struct Block<Q8_0> {
    static constexpr int BYTES = 272;  // eight blocks of 34
    static constexpr bool HAS_LEAST = false;
    static __device__ __forceinline__ Decoded decode(const uint8_t *p, int lane) {
        const uint8_t *block = p + lane / 4 * 34;
        Decoded d;
        d.scale[0] = d.scale[1] = load_half(block);
        d.least[0] = d.least[1] = 0.0f;
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            int at = lane % 4 * 8 + k * 4;
            d.word[k] = load_int_2(block + 2 + at);
            d.column[k] = lane / 4 * 32 + at;
        }
        return d;
    }
};

// Adds a signed constant to each byte that holds a value below 64: no carry between bytes.
__device__ __forceinline__ int minus_32(int v) { return int((uint32_t(v) | 0x80808080u) - 0x20202020u) ^ 0x80808080; }

template <> struct Block<Q6_K> {
    static constexpr int BYTES = 210;
    static constexpr bool HAS_LEAST = false;
    static __device__ __forceinline__ Decoded decode(const uint8_t *p, int lane) {
        int half = lane / 16, at = lane % 16 * 4;
        int low = load_int_2(p + half * 64 + at), high = load_int_2(p + 128 + half * 32 + at % 32);
        high >>= at < 32 ? 0 : 2;
        float d = load_half(p + 208);
        const int8_t *scales = reinterpret_cast<const int8_t *>(p + 192);
        Decoded out;
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            out.word[k] = minus_32(((low >> 4 * k) & 0x0f0f0f0f) | (((high >> 4 * k) << 4) & 0x30303030));
            out.column[k] = half * 128 + k * 64 + at;
            out.scale[k] = d * float(scales[out.column[k] / 16]);
            out.least[k] = 0.0f;
        }
        return out;
    }
};

template <> struct Block<Q5_K> {
    static constexpr int BYTES = 176;
    static constexpr bool HAS_LEAST = true;
    static __device__ __forceinline__ Decoded decode(const uint8_t *p, int lane) {
        int pair = lane / 8, at = lane % 8 * 4;
        int low = load_int(p + 48 + pair * 32 + at), high = load_int(p + 16 + at) >> (2 * pair);
        float d = load_half(p), least = load_half(p + 2);
        const uint8_t *s = p + 4;
        Decoded out;
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            int b = pair * 2 + k;
            int scale = b < 4 ? s[b] & 63 : (s[b + 4] & 15) | (s[b - 4] >> 6) << 4;
            int m = b < 4 ? s[b + 4] & 63 : (s[b + 4] >> 4) | (s[b] >> 6) << 4;
            out.word[k] = ((low >> 4 * k) & 0x0f0f0f0f) | (((high >> k) << 4) & 0x10101010);
            out.column[k] = b * 32 + at;
            out.scale[k] = d * float(scale);
            out.least[k] = least * float(m);
        }
        return out;
    }
};

struct Activations {
    const int8_t *q;
    const float *scales;  // [n][cols / 32], then the sums of the values
    int cols, n;
};

template <int FORMAT, int N, int R>
__global__ void __launch_bounds__(THREADS) gemv_native(const uint8_t *w, Activations x, float *y, int rows) {
    __shared__ float shared[WARPS][N * R];
    int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES, row = blockIdx.x * R;
    int superblocks = x.cols / 256, blocks = x.cols / 32;
    float acc[N * R] = {};
    for (int sb = warp; sb < superblocks; sb += WARPS) {
        Decoded d[R];
#pragma unroll
        for (int r = 0; r < R; ++r)
            d[r] = Block<FORMAT>::decode(w + (int64_t(row + r) * superblocks + sb) * Block<FORMAT>::BYTES, lane);
#pragma unroll
        for (int n = 0; n < N; ++n) {
#pragma unroll
            for (int k = 0; k < 2; ++k) {
                int column = sb * 256 + d[0].column[k], block = n * blocks + column / 32;
                int v = load_int(x.q + int64_t(n) * x.cols + column);
                float s = x.scales[block];
                float sum = Block<FORMAT>::HAS_LEAST && lane % 8 == 0 ? x.scales[x.n * blocks + block] : 0.0f;
#pragma unroll
                for (int r = 0; r < R; ++r) {
                    acc[n * R + r] += d[r].scale[k] * s * float(dot4(d[r].word[k], v, 0));
                    if (Block<FORMAT>::HAS_LEAST) acc[n * R + r] -= d[r].least[k] * sum;
                }
            }
        }
    }
#pragma unroll
    for (int k = 0; k < N * R; ++k) {
        float sum = group_sum(acc[k]);
        if (lane == 0) shared[warp][k] = sum;
    }
    __syncthreads();
    int k = threadIdx.x;
    if (k < N * R) y[int64_t(k / R) * rows + row + k % R] = shared[0][k] + shared[1][k] + shared[2][k] + shared[3][k];
}

template <int FORMAT, int N> static int start(const Args &a, cudaStream_t stream) {
    Activations x{(const int8_t *)a.x, (const float *)a.x2, a.cols, a.n};
    gemv_native<FORMAT, N, 2><<<a.rows / 2, THREADS, 0, stream>>>((const uint8_t *)a.w, x, (float *)a.y, a.rows);
    return cudaGetLastError();
}

template <int FORMAT> static int choose(const Args &a, cudaStream_t stream) {
    switch (a.n) {
    case 1: return start<FORMAT, 1>(a, stream);
    case 2: return start<FORMAT, 2>(a, stream);
    case 3: return start<FORMAT, 3>(a, stream);
    case 4: return start<FORMAT, 4>(a, stream);
    case 5: return start<FORMAT, 5>(a, stream);
    case 6: return start<FORMAT, 6>(a, stream);
    case 7: return start<FORMAT, 7>(a, stream);
    case 8: return start<FORMAT, 8>(a, stream);
    default: return BAD_ARGUMENT;
    }
}

extern "C" int launch_native(const Args *a, void *stream) {
    if (a->cols % 256 || a->rows % 2) return BAD_ARGUMENT;
    if (a->format == Q8_0) return choose<Q8_0>(*a, cudaStream_t(stream));
    if (a->format == Q6_K) return choose<Q6_K>(*a, cudaStream_t(stream));
    if (a->format == Q5_K) return choose<Q5_K>(*a, cudaStream_t(stream));
    return BAD_ARGUMENT;
}

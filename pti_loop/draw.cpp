// One draw from a row of logits: a pass for the maximum, a pass for the weights, and a walk through one block; and the
// last two again in float64 where float32 cannot tell.
// Plain loops over fixed lengths, so that a compiler makes vector code of them for whatever processor it knows.
#include <cmath>
#include <cstdint>
#include <cstring>

#ifdef PTI_CLONES  // the same function again for processors with AVX2 and FMA, chosen when the library is loaded
#define PTI_VERSIONS __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define PTI_VERSIONS
#endif
#define PTI_INLINE inline __attribute__((always_inline))

namespace {

constexpr int BLOCK = 256, LANES = 32;

// exp(z) for z <= 0, raised to exp(-80) below it. Polynomial: Cephes, expf.c (Moshier). Within 6 * 2^-24 of exp.
PTI_INLINE float weight(float z) {
    z = z < -80.0f ? -80.0f : z;
    const float shifted = z * 1.44269504f + 12582912.0f;  // rounds to a whole number in the low bits
    const float whole = shifted - 12582912.0f;
    const float part = z - whole * 0.693359375f - whole * -2.12194440e-4f;
    float value = part * 1.9875691500e-4f + 1.3981999507e-3f;
    value = value * part + 8.3334519073e-3f;
    value = value * part + 4.1665795894e-2f;
    value = value * part + 1.6666665459e-1f;
    value = value * part + 5.0000001201e-1f;
    value = value * part * part + part + 1.0f;
    uint32_t bits, power;
    std::memcpy(&bits, &value, 4);
    std::memcpy(&power, &shifted, 4);
    bits += power << 23;
    std::memcpy(&value, &bits, 4);
    return value;
}

// The same in float64, raised to exp(-700) below it; Taylor's series of exp over half of log(2) to either side of 0.
PTI_INLINE double weight(double z) {
    constexpr double OVER[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880,
                               1.0 / 40320,      1.0 / 5040,      1.0 / 720,      1.0 / 120,     1.0 / 24,
                               1.0 / 6,          0.5,             1.0,            1.0};
    z = z < -700.0 ? -700.0 : z;
    const double shifted = z * 1.4426950408889634 + 6755399441055744.0;
    const double whole = shifted - 6755399441055744.0;
    const double part = z - whole * 6.93147180369123816490e-01 - whole * 1.90821492927058770002e-10;
    double value = OVER[0];
    for (int i = 1; i < 14; i++) value = value * part + OVER[i];
    uint64_t bits, power;
    std::memcpy(&bits, &value, 8);
    std::memcpy(&power, &shifted, 8);
    bits += power << 52;
    std::memcpy(&value, &bits, 8);
    return value;
}

PTI_INLINE float greatest(const float *logits, int n) {
    float top[LANES];
    int i = 0;
    for (int lane = 0; lane < LANES; lane++) top[lane] = -INFINITY;
    for (; i + LANES <= n; i += LANES)
        for (int lane = 0; lane < LANES; lane++) top[lane] = logits[i + lane] > top[lane] ? logits[i + lane] : top[lane];
    for (; i < n; i++) top[0] = logits[i] > top[0] ? logits[i] : top[0];
    for (int lane = 1; lane < LANES; lane++) top[0] = top[lane] > top[0] ? top[lane] : top[0];
    return top[0];
}

// The token whose share of the weights holds `u`, or -1 where it lies within `slack` of a boundary.
template <typename Real>
PTI_INLINE int search(const float *logits, int n, float top, Real scale, double u, double slack, double *ends,
                      double *squares) {
    Real weights[BLOCK];
    double total = 0, squared = 0;
    int blocks = 0;
    for (int start = 0; start < n; start += BLOCK, blocks++) {
        const int length = n - start < BLOCK ? n - start : BLOCK;
        if (length == BLOCK) {  // a length that the compiler knows
            for (int i = 0; i < BLOCK; i++) weights[i] = weight((Real(logits[start + i]) - Real(top)) * scale);
        } else {
            for (int i = 0; i < length; i++) weights[i] = weight((Real(logits[start + i]) - Real(top)) * scale);
            for (int i = length; i < BLOCK; i++) weights[i] = 0;
        }
        Real sums[LANES] = {}, squares_of[LANES] = {};
        for (int i = 0; i < BLOCK; i += LANES)
            for (int lane = 0; lane < LANES; lane++) {
                sums[lane] += weights[i + lane];
                squares_of[lane] += weights[i + lane] * weights[i + lane];
            }
        for (int lane = 0; lane < LANES; lane++) {
            total += double(sums[lane]);
            squared += double(squares_of[lane]);
        }
        ends[blocks] = total;
    }
    *squares = squared / (total * total);
    const double target = u * total, near = slack * total;
    int block = 0;
    while (block < blocks - 1 && ends[block] <= target) block++;
    double before = block ? ends[block - 1] : 0.0;
    for (int i = block * BLOCK; i < n; i++) {
        const double after = before + double(weight((Real(logits[i]) - Real(top)) * scale));
        if (after > target) return target - before > near && after - target > near ? i : -1;
        before = after;
    }
    return -1;
}

constexpr double SLACK = 1e-12;  // what float64 leaves, with a thousand blocks added to each other

}  // namespace

// The token at `u` of the cumulative distribution of exp((logit - greatest) * scale) in order of ids: by float32, which
// moves a boundary by up to `slack`, a share of all weights, and where that could decide by float64. -1 where neither
// can tell. `ends` has room for one number a block; `squares` becomes the sum of squared probabilities.
extern "C" PTI_VERSIONS int pti_draw(const float *logits, int n, double scale, double u, double slack, double *ends,
                                     double *squares) {
    const float top = greatest(logits, n);
    const int token = search(logits, n, top, float(scale), u, slack, ends, squares);
    return token < 0 ? search(logits, n, top, scale, u, SLACK, ends, squares) : token;
}

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

// exp(z) for z <= 0 is 2^whole exp(part), with part within half of log(2) of 0: there Taylor's series of degree 7 is
// within 2^-27 of exp, that of degree 13 within 2^-57. log(2) is subtracted in two parts, the first of so few bits that
// its multiples are exact. Below exp(-80) and exp(-700) a weight is raised to them.
PTI_INLINE float weight(float z) {
    constexpr float OVER[] = {1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f};
    z = z < -80.0f ? -80.0f : z;
    const float shifted = z * 1.44269504f + 12582912.0f;  // 1.5 * 2^23: a whole number is in the low bits
    const float whole = shifted - 12582912.0f;
    const float part = z - whole * 0.693145751953125f - whole * 1.4286068203094173e-06f;
    float value = OVER[0];
    for (int i = 1; i < 8; i++) value = value * part + OVER[i];
    uint32_t bits, power;
    std::memcpy(&bits, &value, 4);
    std::memcpy(&power, &shifted, 4);
    bits += power << 23;
    std::memcpy(&value, &bits, 4);
    return value;
}

PTI_INLINE double weight(double z) {
    constexpr double OVER[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880,
                               1.0 / 40320,      1.0 / 5040,      1.0 / 720,      1.0 / 120,     1.0 / 24,
                               1.0 / 6,          0.5,             1.0,            1.0};
    z = z < -700.0 ? -700.0 : z;
    const double shifted = z * 1.4426950408889634 + 6755399441055744.0;  // 1.5 * 2^52
    const double whole = shifted - 6755399441055744.0;
    const double part = z - whole * 0.693147180485539138317108154296875 - whole * 7.440617110012397e-11;
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

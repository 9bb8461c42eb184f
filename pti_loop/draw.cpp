// One draw from a row of logits: a pass for the maximum, a pass for the weights, and a walk through one block; and the
// last two again in float64 where float32 cannot tell.
// Plain loops over fixed lengths, so that a compiler makes vector code of them for whatever processor it knows.
#include <cmath>
#include <cstdint>
#include <cstring>

#ifdef PTI_CLONES  // the same function again for processors with wider vectors, chosen when the library is loaded
#define PTI_VERSIONS __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PTI_VERSIONS
#endif
#define PTI_INLINE inline __attribute__((always_inline))

namespace {

constexpr int BLOCK = 256, LANES = 32, FEW = 8;
constexpr double LOG2_E = 1.4426950408889634;
constexpr double SLACK = 1e-12;  // what float64 leaves, with a thousand blocks added to each other

template <typename Real> constexpr Real LEAST;  // of the logarithms of weights, to base 2
template <> constexpr float LEAST<float> = -62;
template <> constexpr double LEAST<double> = -1000;

// 2^t for t <= 0 is 2^whole 2^part, with part within half of 0. There the polynomial of degree 5 with the least relative
// error is within 1.3 2^-24 of it, and Taylor's series of degree 13 within 2^-57. Below 2^-62 and 2^-1000 a weight is
// raised to them: that changes no sum, and the square of a smaller float32 would be a denormal number, which some
// processors take a hundred times as long for.
PTI_INLINE float weight(float t) {
    constexpr float OVER[] = {1.3276472454890609e-03f, 9.675540961325169e-03f, 5.550713092088699e-02f,
                              2.4022120237350464e-01f, 6.931469440460205e-01f, 1.0000001192092896f};
    t = t < LEAST<float> ? LEAST<float> : t;
    const float shifted = t + 12582912.0f;  // 1.5 * 2^23: a whole number is in the low bits
    const float part = t - (shifted - 12582912.0f);
    float value = OVER[0];
    for (int i = 1; i < 6; i++) value = value * part + OVER[i];
    uint32_t bits, power;
    std::memcpy(&bits, &value, 4);
    std::memcpy(&power, &shifted, 4);
    bits += power << 23;
    std::memcpy(&value, &bits, 4);
    return value;
}

PTI_INLINE double weight(double t) {
    constexpr double OVER[] = {1.3691488853904124e-12, 2.5678435993488196e-11, 4.44553827187081e-10,
                               7.054911620801121e-09,  1.0178086009239696e-07, 1.3215486790144305e-06,
                               1.5252733804059838e-05, 1.5403530393381606e-04, 1.3333558146428441e-03,
                               9.618129107628477e-03,  5.5504108664821576e-02, 2.402265069591007e-01,
                               6.931471805599453e-01,  1.0};
    t = t < LEAST<double> ? LEAST<double> : t;
    const double shifted = t + 6755399441055744.0;  // 1.5 * 2^52
    const double part = t - (shifted - 6755399441055744.0);
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

// Sums of a block's weights and of their squares, over lanes and then over these.
template <typename Real>
PTI_INLINE void add(const Real *weights, double *sum, double *squares) {
    Real sums[LANES] = {}, squares_of[LANES] = {};
    for (int i = 0; i < BLOCK; i += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            sums[lane] += weights[i + lane];
            squares_of[lane] += weights[i + lane] * weights[i + lane];
        }
    // One by one 32 of them would take longer than all of the weights.
    for (int lane = 0; lane < FEW; lane++) {
        sums[lane] = (sums[lane] + sums[lane + FEW]) + (sums[lane + 2 * FEW] + sums[lane + 3 * FEW]);
        squares_of[lane] = (squares_of[lane] + squares_of[lane + FEW]) +
                           (squares_of[lane + 2 * FEW] + squares_of[lane + 3 * FEW]);
    }
    for (int lane = 0; lane < FEW; lane++) {
        *sum += double(sums[lane]);
        *squares += double(squares_of[lane]);
    }
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
        add(weights, &total, &squared);
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

}  // namespace

// The token at `u` of the cumulative distribution of exp((logit - greatest) * scale) in order of ids: by float32, which
// moves a boundary by up to `slack`, a share of all weights, and where that could decide by float64. -1 where neither
// can tell. `ends` has room for one number a block; `squares` becomes the sum of squared probabilities.
extern "C" PTI_VERSIONS int pti_draw(const float *logits, int n, double scale, double u, double slack, double *ends,
                                     double *squares) {
    const float top = greatest(logits, n);
    scale *= LOG2_E;
    const int token = search(logits, n, top, float(scale), u, slack, ends, squares);
    return token < 0 ? search(logits, n, top, scale, u, SLACK, ends, squares) : token;
}

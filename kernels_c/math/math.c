/* math.c - sin, cos, tan and remainders of arrays.  Most elements take a short path; large arguments of sin, cos and
 * tan are reduced with more bits of pi. */
#include "dmlk_float_math.h"

#include <float.h>

#include "cpu.h"

const struct dmlk_limitsf dmlk_limitsf = {
    .exp_low = -104, .exp_high = 89, .expm1_low = -20, .sigmoid = 60, .silu_low = -128, .tanh = 10, .exp2 = 160, .half_exp = 91,
    .erf = 3.925f, .gelu = 14.6f, .minus_0 = -0.0f};

/* 2/pi in words of 32 bits, the first after the binary point; enough bits for every FLOAT32. */
static const uint32_t two_over_pi[] = {0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041,
                                        0xfe5163ab};

/* Reduces x: x * 2/pi modulo 4, from the 24 bits of x and those 96 bits of 2/pi that matter for its exponent. */
static dmlk_circular reduce_large(double x) {
    const uint64_t bits = dmlk_double_bits(fabs(x));
    const uint64_t mantissa = ((bits >> 29) & 0x7fffff) | 0x800000; /* x = mantissa 2^shift */
    const int shift = (int)(bits >> 52) - 1023 - 23;
    /* Bits of 2/pi before `first` give multiples of 4: mantissa * 2^shift * 2^-(first) >= 4. */
    const int first = shift > 2 ? shift - 2 : 0, word = first / 32, offset = first % 32;
    uint32_t part[3];
    for (int i = 0; i < 3; i++) {
        const uint64_t pair = (uint64_t)two_over_pi[word + i] << 32 | two_over_pi[word + i + 1];
        part[i] = (uint32_t)(pair >> (32 - offset));
    }
    /* mantissa * part, a fraction of 96 bits without the bits above it, times 2^(shift - first). */
    const uint64_t low = mantissa * part[2], middle = mantissa * part[1] + (low >> 32);
    const uint64_t high = mantissa * part[0] + (middle >> 32);
    uint64_t top = high << 32 | (middle & 0xffffffff); /* 64 bits below the point, before the shift */
    const uint32_t rest = (uint32_t)low;
    const int left = shift - first; /* 0 to 2 */
    const uint64_t whole = left ? (high >> (32 - left)) & 3 : 0;
    uint64_t n = ((high >> 32) << left) + whole;
    top = left ? top << left | rest >> (32 - left) : top;
    const int64_t fraction = (int64_t)top; /* from -1/2 to 1/2 */
    n += top >> 63;
    double r = (double)fraction * (1.57079632679489661923 * 0x1p-64);
    if (x < 0) {
        n = 0 - n;
        r = -r;
    }
    return (dmlk_circular){r, n};
}

/* Whether x is finite and exactly a FLOAT32. */
static bool is_float(double x) { return fabs(x) <= (double)FLT_MAX && (double)(float)x == x; }

/* Large values are handled separately, so that the loop over the others has no branch.  Large values of FLOAT64
 * tensors that are not exactly FLOAT32s are left to the C library. */
#define EACH_CIRCULAR(function)                                                                   \
    DMLK_EACH_ISA(function##_each, (double *values, int64_t count), (values, count)) {            \
        double large[DMLK_MATH_CHUNK];                                                            \
        int64_t at[DMLK_MATH_CHUNK], larges = 0;                                                  \
        int64_t any = 0;                                                                          \
        for (int64_t i = 0; i < count; i++) {                                                     \
            any |= fabs(values[i]) >= DMLK_CIRCULAR_LIMIT;                                        \
        }                                                                                         \
        for (int64_t i = 0; any && i < count; i++) {                                              \
            if (fabs(values[i]) >= DMLK_CIRCULAR_LIMIT) {                                         \
                large[larges] = values[i];                                                        \
                at[larges++] = i;                                                                 \
                values[i] = 0;                                                                    \
            }                                                                                     \
        }                                                                                         \
        for (int64_t i = 0; i < count; i++) {                                                     \
            values[i] = dmlk_##function##_of(dmlk_reduce_circular(values[i]));                    \
        }                                                                                         \
        for (int64_t i = 0; i < larges; i++) {                                                    \
            const double x = large[i];                                                            \
            values[at[i]] = is_float(x) ? dmlk_##function##_of(reduce_large(x)) : function(x);     \
        }                                                                                         \
    }                                                                                             \
    void dmlk_##function##_each(double *values, int64_t count) { function##_each(values, count); }

/* The same for FLOAT32: large values are computed in double. */
#define EACH_CIRCULARF(function)                                                                  \
    DMLK_EACH_ISA(function##_eachf, (float *values, int64_t count), (values, count)) {            \
        double large[DMLK_MATH_CHUNK];                                                            \
        int64_t at[DMLK_MATH_CHUNK], larges = 0;                                                  \
        int32_t any = 0;                                                                          \
        for (int64_t i = 0; i < count; i++) {                                                     \
            any |= fabsf(values[i]) >= DMLK_CIRCULAR_LIMITF;                                      \
        }                                                                                         \
        for (int64_t i = 0; any && i < count; i++) {                                              \
            if (fabsf(values[i]) >= DMLK_CIRCULAR_LIMITF) {                                       \
                large[larges] = (double)values[i];                                                \
                at[larges++] = i;                                                                 \
                values[i] = 0;                                                                    \
            }                                                                                     \
        }                                                                                         \
        for (int64_t i = 0; i < count; i++) {                                                     \
            values[i] = dmlk_##function##_off(dmlk_reduce_circularf(values[i]));                  \
        }                                                                                         \
        dmlk_##function##_each(large, larges);                                                    \
        for (int64_t i = 0; i < larges; i++) {                                                    \
            values[at[i]] = (float)large[i];                                                      \
        }                                                                                         \
    }                                                                                             \
    void dmlk_##function##_eachf(float *values, int64_t count) { function##_eachf(values, count); }

EACH_CIRCULAR(sin)
EACH_CIRCULAR(cos)
EACH_CIRCULAR(tan)
EACH_CIRCULARF(sin)
EACH_CIRCULARF(cos)
EACH_CIRCULARF(tan)

/* Quotients of FLOAT32s below this fit an int32_t; their distance from a whole number, if not 0, exceeds their
 * rounding error; and their whole parts times the 24 bits of the divisor are exact in double. */
#define EASY_QUOTIENT 0x1p28

DMLK_EACH_ISA(fmod_each, (double *values, const double *by, int64_t count), (values, by, count)) {
    int64_t any = 0;
    for (int64_t i = 0; i < count; i++) {
        const double ratio = fabs(values[i]) / fabs(by[i]);
        any |= !(ratio < EASY_QUOTIENT) | (fabs(by[i]) == (double)INFINITY); /* (a NaN, as of 0 / 0, counts) */
    }
    for (int64_t i = 0; any && i < count; i++) {
        values[i] = fmod(values[i], by[i]);
    }
    for (int64_t i = 0; !any && i < count; i++) {
        const double a = values[i], b = by[i];
        values[i] = dmlk_signed(a - (double)(int32_t)(a / b) * b, a);
    }
}

void dmlk_fmod_each(double *values, const double *by, int64_t count) { fmod_each(values, by, count); }

DMLK_EACH_ISA(modulus_each, (double *values, const double *by, int64_t count), (values, by, count)) {
    fmod_each(values, by, count);
    for (int64_t i = 0; i < count; i++) {
        const double r = values[i], b = by[i];
        const double y = (r < 0) != (b < 0) ? r + b : r;
        values[i] = r == 0 ? dmlk_signed(0, b) : y;
    }
}

void dmlk_modulus_each(double *values, const double *by, int64_t count) { modulus_each(values, by, count); }

/* math.c - sin, cos, tan and remainders of arrays.  Most elements take a short path; large arguments of sin, cos and
 * tan are reduced with more bits of pi.  Of the C library only fmod is used, whose results are exact. */
#include "dmlk_float_math.h"

#include <float.h>

#include "cpu.h"

typedef unsigned __int128 wide;
typedef __int128 signed_wide;

const struct dmlk_limitsf dmlk_limitsf = {
    .exp_low = -104, .exp_high = 89, .expm1_low = -20, .sigmoid = 60, .silu_low = -128, .tanh = 10, .exp2 = 160, .half_exp = 91,
    .erf = 3.925f, .gelu = 14.6f, .minus_0 = -0.0f};

/* 2/pi in words of 64 bits, the second after the binary point; enough bits for every double. */
static const uint64_t two_over_pi[] = {
    0, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
    0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41,
    0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d, 0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab};

/* Reduces a finite |x| >= DMLK_CIRCULAR_LIMIT: x * 2/pi modulo 4, from the 53 bits of x and those 192 bits of 2/pi that
 * matter for its exponent. */
static dmlk_circular reduce_large(double x) {
    const uint64_t bits = dmlk_double_bits(fabs(x));
    const uint64_t mantissa = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52; /* |x| = mantissa 2^shift */
    const int shift = (int)(bits >> 52) - 1023 - 52;
    /* Bits of 2/pi before `first`, an index into the table, give multiples of 4. */
    const int first = 64 + shift - 2, word = first / 64, offset = first % 64;
    uint64_t part[3];
    for (int i = 0; i < 3; i++) {
        const wide pair = (wide)two_over_pi[word + i] << 64 | two_over_pi[word + i + 1];
        part[i] = (uint64_t)(pair >> (64 - offset));
    }
    /* mantissa * part modulo 2^192; its first two bits are before the point. */
    const wide low = (wide)mantissa * part[2], middle = (wide)mantissa * part[1] + (low >> 64);
    const uint64_t high = mantissa * part[0] + (uint64_t)(middle >> 64);
    const wide fraction = (wide)high << 66 | (wide)(uint64_t)middle << 2 | (uint64_t)low >> 62;
    uint64_t n = (high >> 62) + (uint64_t)(fraction >> 127); /* rounded to nearest */
    double r = (double)(signed_wide)fraction * (1.57079632679489661923 * 0x1p-128); /* from -pi/4 to pi/4 */
    if (x < 0) {
        n = 0 - n;
        r = -r;
    }
    return (dmlk_circular){r, n};
}

/* Large values are handled separately, so that the loop over the others has no branch. */
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
            values[at[i]] = fabs(x) <= DBL_MAX ? dmlk_##function##_of(reduce_large(x)) : (double)NAN; \
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

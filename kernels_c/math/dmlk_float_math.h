/* dmlk_float_math.h - elementary functions of FLOAT32 in FLOAT32, several times as fast as those in double.
 *
 * Results differ from the exact ones by less than 2 units in the last place (test_float_math.c states how much of
 * each); denormals and special values are those of C.  As in dmlk_math.h there are only operations that every CPU rounds
 * alike, no branches, no tables and no calls.  Where a rounding error of an argument would be multiplied, as of exp, the
 * argument is kept in two parts. */
#ifndef DMLK_FLOAT_MATH_H
#define DMLK_FLOAT_MATH_H

#include "dmlk_math.h"

/* condition ? a : b, of which both are computed: compilers make branches of nested conditions, and of these masks. */
DMLK_INLINE float dmlk_choosef(bool condition, float a, float b) {
    const uint32_t mask = 0 - (uint32_t)condition;
    return dmlk_bits_float((dmlk_float_bits(a) & mask) | (dmlk_float_bits(b) & ~mask));
}

/* The smaller one of x, which is positive or a NaN, and of a positive limit: integers need no branch.  A NaN becomes the
 * limit. */
DMLK_INLINE float dmlk_at_mostf(float x, float limit) {
    const int32_t a = (int32_t)dmlk_float_bits(x), b = (int32_t)dmlk_float_bits(limit);
    return dmlk_bits_float((uint32_t)(a < b ? a : b));
}

/* The larger one of x and of a negative limit; a NaN of negative sign becomes the limit. */
DMLK_INLINE float dmlk_at_leastf(float x, float limit) {
    const uint32_t a = dmlk_float_bits(x), b = dmlk_float_bits(limit);
    return dmlk_bits_float(a < b ? a : b);
}

/* y, or the NaN that x is. */
DMLK_INLINE float dmlk_or_nanf(float y, float x) { return x == x ? y : x; }

/* x where `sign` is negative, otherwise 0. */
DMLK_INLINE float dmlk_where_negativef(float x, float sign) {
    return dmlk_bits_float(dmlk_float_bits(x) & (uint32_t)((int32_t)dmlk_float_bits(sign) >> 31));
}

/* --- exponential, as in double --- */

#define DMLK_ROUNDINGF 0x1.8p23f

typedef struct dmlk_exponentialf {
    int32_t n;
    float less1; /* exp(r) - 1 */
} dmlk_exponentialf;

/* Of x + low, where |x| < 2^9 and |low| is not more than a unit in the last place of x. */
DMLK_INLINE dmlk_exponentialf dmlk_reduce_expf(float x, float low) {
    const float shifted = x * 1.44269504f + DMLK_ROUNDINGF, n = shifted - DMLK_ROUNDINGF;
    const float r = (x - n * 0x1.62e4p-1f) - (n * 0x1.7f7d1cp-20f - low), z = r * r;
    const float q01 = 0.49999994f + r * 0.166665196f, q23 = 0.0416684076f + r * 0.00836889911f;
    const float q = q01 + z * (q23 + z * 0.00138142193f);
    return (dmlk_exponentialf){(int32_t)(dmlk_float_bits(shifted) - dmlk_float_bits(DMLK_ROUNDINGF)), r + z * q};
}

/* x 2^n, where both and the result are normal and not 0. */
DMLK_INLINE float dmlk_scalef(float x, int32_t n) {
    return dmlk_bits_float(dmlk_float_bits(x) + ((uint32_t)n << 23));
}

/* x 2^n for n from -250 to 250: in two steps, as 2^n or the result may be denormal or infinite. */
DMLK_INLINE float dmlk_scale_widelyf(float x, int32_t n) {
    const int32_t half = n >> 1;
    return x * dmlk_scalef(1, half) * dmlk_scalef(1, n - half);
}

/* exp(x + low) for x from -170 to 170. */
DMLK_INLINE float dmlk_exp_of_partsf(float x, float low) {
    const dmlk_exponentialf e = dmlk_reduce_expf(x, low);
    return dmlk_scale_widelyf(1 + e.less1, e.n);
}

/* Beyond these results are 0 or infinite. */
#define DMLK_EXP_LOWF (-104.0f)
#define DMLK_EXP_HIGHF 89.0f

DMLK_INLINE float dmlk_expf(float x) {
    return dmlk_or_nanf(dmlk_exp_of_partsf(dmlk_at_mostf(dmlk_at_leastf(x, DMLK_EXP_LOWF), DMLK_EXP_HIGHF), 0), x);
}

/* exp(x - most) for x <= most, with what their difference loses.  Differences below -120 would do, but are rounded where
 * `most` is large; there differences that are not 0 are much larger. */
DMLK_INLINE float dmlk_exp_of_differencef(float x, float most) {
    const float least = (most - 120) - fabsf(most) * 0x1p-20f, a = least > x ? least : x; /* a NaN stays */
    const float difference = a - most, back = difference - a, lost = (a - (difference - back)) - (most + back);
    return dmlk_exp_of_partsf(dmlk_at_leastf(difference, DMLK_EXP_LOWF), lost);
}

/* exp(x) - 1, accurate near 0. */
DMLK_INLINE float dmlk_expm1f(float x) {
    const dmlk_exponentialf e = dmlk_reduce_expf(dmlk_at_mostf(dmlk_at_leastf(x, -20), DMLK_EXP_HIGHF), 0);
    const float half = dmlk_scalef(0.5f, e.n), y = 2 * (half * e.less1 + (half - 0.5f)); /* 2^n may be infinite */
    return dmlk_or_nanf(dmlk_choosef(fabsf(x) < 0x1p-25f, x, y), x);
}

/* factor / (1 + exp(-x)), where the factor is 1 or x.  For x < 0 it is factor exp(x) / (1 + exp(x)): the power of 2 of
 * exp(x) is applied last, as it may be denormal. */
DMLK_INLINE float dmlk_logisticf(float factor, float x) {
    const dmlk_exponentialf e = dmlk_reduce_expf(-dmlk_at_mostf(fabsf(x), 128), 0);
    const int32_t negative = (int32_t)dmlk_float_bits(x) >> 31;
    const float power = dmlk_scalef(1, e.n > -126 ? e.n : -126), exponential = power + power * e.less1;
    const float sum = 1 + exponential, lost = exponential - (sum - 1);
    const float y = (factor + dmlk_where_negativef(factor * e.less1, x)) / sum;
    return dmlk_or_nanf(dmlk_scale_widelyf(y - y * lost, e.n & negative), x);
}

DMLK_INLINE float dmlk_sigmoidf(float x) { return dmlk_logisticf(1, x); }

/* -infinity gives NaN, as -infinity times 0. */
DMLK_INLINE float dmlk_siluf(float x) {
    const float a = dmlk_at_leastf(x, -128), y = dmlk_signedf(dmlk_logisticf(a, a), x);
    return dmlk_choosef(fabsf(x) < INFINITY, y, dmlk_choosef(x > 0, x, NAN));
}

DMLK_INLINE float dmlk_tanhf(float x) {
    const float a = fabsf(x), z = x * x;
    float p = -0.00571703678f;
    p = p * z + 0.0206505787f;
    p = p * z - 0.0537434965f;
    p = p * z + 0.133314908f;
    p = p * z - 0.333332837f;
    const float small = a + a * (z * p);
    const dmlk_exponentialf e = dmlk_reduce_expf(2 * dmlk_at_mostf(a, 10), 0);
    const float power = dmlk_scalef(1, e.n);
    const float large = 1 - 2 / (power * e.less1 + (power + 1));
    return dmlk_or_nanf(dmlk_signedf(dmlk_choosef(a < 0.625f, small, large), x), x);
}

/* exp(|x|) / 2 for finite results; infinite beyond. */
DMLK_INLINE float dmlk_half_expf(float x) {
    const dmlk_exponentialf e = dmlk_reduce_expf(dmlk_at_mostf(fabsf(x), 91), 0);
    return dmlk_scale_widelyf(1 + e.less1, e.n - 1);
}

DMLK_INLINE float dmlk_coshf(float x) {
    const float half = dmlk_half_expf(x);
    return dmlk_or_nanf(half + 0.25f / half, x);
}

DMLK_INLINE float dmlk_sinhf(float x) {
    const float a = fabsf(x), z = x * x, half = dmlk_half_expf(x);
    const float p01 = 0.166666672f + z * 0.00833335053f, p23 = 0.000198360663f + z * 2.81743951e-06f;
    const float small = a + a * (z * (p01 + z * z * p23));
    return dmlk_or_nanf(dmlk_signedf(dmlk_choosef(a < 1, small, half - 0.25f / half), x), x);
}

/* log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)); log(1 + y) = y - y^2 / 2 + ... of s = y / (2 + y), as below. */
DMLK_INLINE float dmlk_softplusf(float x) {
    const float y = dmlk_exp_of_partsf(-dmlk_at_mostf(fabsf(x), 104), 0);
    const float s = y / (2 + y), z = s * s, square = 0.5f * y * y;
    const float p12 = 0.39998877f + z * 0.286168844f, p34 = 0.214276582f + z * 0.243009329f;
    const float p = 0.666666746f + z * (p12 + z * z * p34);
    return dmlk_or_nanf(dmlk_where_negativef(x, -x) + (y - (square - s * (square + z * p))), x);
}

/* --- logarithm, as in double --- */

DMLK_INLINE float dmlk_logf(float x) {
    const uint32_t half = 0x3f3504f3; /* sqrt(1/2) */
    const bool is_denormal = x < 0x1p-126f;
    const uint32_t above = dmlk_float_bits(dmlk_choosef(is_denormal, x * 0x1p23f, x)) - half;
    const float n = (float)((int32_t)above >> 23) - dmlk_choosef(is_denormal, 23, 0);
    const float f = dmlk_bits_float((above & 0x7fffff) + half) - 1, s = f / (2 + f), z = s * s, square = 0.5f * f * f;
    float p = 0.235822722f;
    p = p * z + 0.285373032f;
    p = p * z + 0.400003344f;
    p = p * z + 0.666666627f;
    const float y = n * 0x1.62e4p-1f + (f - (square - (s * (square + z * p) + n * 0x1.7f7d1cp-20f)));
    const float outside = dmlk_choosef(x == 0, -INFINITY, dmlk_choosef(x < 0, NAN, x)); /* or infinity, or NaN */
    return dmlk_choosef(x > 0 && x < INFINITY, y, outside);
}

/* --- error function ---
 *
 * erf(x) = x + x P(x^2) up to 1; beyond, 1 - exp(Q(x)). */

DMLK_INLINE float dmlk_erff(float x) {
    const float a = fabsf(x), z = x * x;
    float p = 7.85385419e-05f;
    p = p * z - 0.000801019138f;
    p = p * z + 0.00518832728f;
    p = p * z - 0.026853811f;
    p = p * z + 0.112835854f;
    p = p * z - 0.37612626f;
    p = p * z + 0.128379166f;
    const float b = dmlk_choosef(a > 4, 4, a); /* where the result is 1 */
    float q = 0.0001855749f;
    q = q * b - 0.00293961563f;
    q = q * b + 0.0218053516f;
    q = q * b - 0.103037432f;
    q = q * b - 0.638225615f;
    q = q * b - 1.12704003f;
    q = q * b - 0.000353708921f;
    const dmlk_exponentialf e = dmlk_reduce_expf(q, 0);
    const float power = dmlk_scalef(1, e.n);
    const float large = (1 - power) - power * e.less1;
    return dmlk_signedf(dmlk_choosef(a <= 1, a + a * p, large), x);
}

/* --- circular functions ---
 *
 * x = n pi/2 + r with |r| <= pi/4, the difference in double.  For |x| <= DMLK_CIRCULAR_LIMITF, see math.c. */

#define DMLK_CIRCULAR_LIMITF 0x1p17f

typedef struct dmlk_circularf {
    float r, low; /* in two parts */
    uint32_t n;   /* only the low two bits are used */
} dmlk_circularf;

DMLK_INLINE dmlk_circularf dmlk_reduce_circularf(float x) {
    const float shifted = x * 0.636619772f + DMLK_ROUNDINGF, n = shifted - DMLK_ROUNDINGF;
    const double r = ((double)x - (double)n * 0x1.921fb5444p0) - (double)n * 0x1.68c234c4c6629p-39;
    return (dmlk_circularf){(float)r, (float)(r - (double)(float)r), dmlk_float_bits(shifted)};
}

DMLK_INLINE float dmlk_sin_reducedf(float r) {
    const float z = r * r;
    float p = -0.000195169778f;
    p = p * z + 0.00833217613f;
    p = p * z - 0.166666552f;
    return dmlk_choosef(r == 0, r, r + r * (z * p)); /* -0 stays */
}

DMLK_INLINE float dmlk_cos_reducedf(float r) {
    const float z = r * r;
    float p = 2.44380917e-05f;
    p = p * z - 0.00138873642f;
    p = p * z + 0.0416666456f;
    return 1 - (0.5f * z - z * z * p);
}

/* Sine or cosine, for odd n the other one, with the sign changed by bit 1 of `sign`. */
DMLK_INLINE float dmlk_circular_off(float even, float odd, uint32_t n, uint32_t sign) {
    const float y = dmlk_choosef((n & 1) != 0, odd, even);
    return dmlk_bits_float(dmlk_float_bits(y) ^ (sign & 2) << 30);
}

DMLK_INLINE float dmlk_sin_off(dmlk_circularf at) {
    return dmlk_circular_off(dmlk_sin_reducedf(at.r), dmlk_cos_reducedf(at.r), at.n, at.n);
}

DMLK_INLINE float dmlk_cos_off(dmlk_circularf at) {
    return dmlk_circular_off(dmlk_cos_reducedf(at.r), dmlk_sin_reducedf(at.r), at.n, at.n + 1);
}

DMLK_INLINE float dmlk_tan_off(dmlk_circularf at) {
    const float z = at.r * at.r;
    float p = 0.00947595667f;
    p = p * z + 0.00295705395f;
    p = p * z + 0.024539046f;
    p = p * z + 0.053378243f;
    p = p * z + 0.133392364f;
    p = p * z + 0.333331376f;
    const float above = at.r * (z * p), t = at.r + above; /* tan has the derivative 1 + tan^2 */
    const float tangent = at.r + (above + at.low * (1 + t * t));
    return dmlk_choosef((at.n & 1) != 0, -1 / tangent, dmlk_choosef(at.r == 0, at.r, tangent));
}

/* Loops over `count` <= DMLK_MATH_CHUNK values of any size; optimized for few large ones. */
void dmlk_sin_eachf(float *values, int64_t count);
void dmlk_cos_eachf(float *values, int64_t count);
void dmlk_tan_eachf(float *values, int64_t count);

/* --- inverse circular functions ---
 *
 * asin(x) = x + x^3 P(x^2) up to 1/2; beyond, asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)). */

#define DMLK_HALF_PIF 0x1.921fb6p0f
#define DMLK_HALF_PI_LOWF (-0x1.777a5cp-25f) /* what is missing there */

DMLK_INLINE float dmlk_asin_halff(float s, float z) {
    float p = 0.0375651866f;
    p = p * z + 0.0144026158f;
    p = p * z + 0.0318176076f;
    p = p * z + 0.0445157215f;
    p = p * z + 0.0750051066f;
    p = p * z + 0.166666597f;
    return s * (z * p);
}

DMLK_INLINE float dmlk_asinf(float x) {
    const float a = fabsf(x);
    const bool is_small = a < 0.5f;
    const float z = dmlk_choosef(is_small, a * a, 0.5f * (1 - a)), s = dmlk_choosef(is_small, a, sqrtf(z));
    const float y = dmlk_asin_halff(s, z);
    const float large = DMLK_HALF_PIF - (2 * s + (2 * y - DMLK_HALF_PI_LOWF));
    return dmlk_signedf(dmlk_choosef(is_small, s + y, large), x);
}

DMLK_INLINE float dmlk_acosf(float x) {
    const float a = fabsf(x);
    const bool is_small = a < 0.5f;
    const float z = dmlk_choosef(is_small, a * a, 0.5f * (1 - a)), s = dmlk_choosef(is_small, a, sqrtf(z));
    const float y = dmlk_asin_halff(s, z), near_1 = 2 * (s + y);
    const float near_0 = DMLK_HALF_PIF - (x - (DMLK_HALF_PI_LOWF - dmlk_signedf(y, x)));
    const float near_minus_1 = 2 * DMLK_HALF_PIF - (near_1 - 2 * DMLK_HALF_PI_LOWF);
    return dmlk_choosef(is_small, near_0, dmlk_choosef(x < 0, near_minus_1, near_1));
}

/* atan(a) = pi/4 + atan((a - 1) / (a + 1)) from tan(pi/8), pi/2 - atan(1 / a) from tan(3 pi/8). */
DMLK_INLINE float dmlk_atanf(float x) {
    const float a = fabsf(x);
    const bool is_middle = a > 0.414213562f, is_large = a > 2.41421356f;
    const float over = dmlk_choosef(is_large, -1, dmlk_choosef(is_middle, a - 1, a));
    const float under = dmlk_choosef(is_large, a, dmlk_choosef(is_middle, a + 1, 1));
    const float u = over / under, z = u * u;
    float p = -0.0608344525f;
    p = p * z + 0.105959982f;
    p = p * z - 0.142438486f;
    p = p * z + 0.199984893f;
    p = p * z - 0.333333164f;
    const float part = dmlk_choosef(is_large, 1, dmlk_choosef(is_middle, 0.5f, 0));
    const float high = part * DMLK_HALF_PIF, low = part * DMLK_HALF_PI_LOWF;
    return dmlk_signedf(high + (u + (u * (z * p) + low)), x);
}

#endif

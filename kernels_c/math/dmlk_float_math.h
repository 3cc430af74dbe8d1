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

/* 2^n, for n from -126 to 127. */
DMLK_INLINE float dmlk_power_of_2f(int32_t n) { return dmlk_bits_float((uint32_t)(n + 127) << 23); }

/* --- exponential, as in double --- */

#define DMLK_ROUNDINGF 0x1.8p23f

typedef struct dmlk_exponentialf {
    int32_t n;
    float less1; /* exp(r) - 1 */
} dmlk_exponentialf;

/* Of x + low, where |x| < 2^9 and |low| is not more than a unit in the last place of x. */
DMLK_INLINE dmlk_exponentialf dmlk_reduce_expf(float x, float low) {
    const float shifted = x * 1.44269504f + DMLK_ROUNDINGF, n = shifted - DMLK_ROUNDINGF;
    const float r = (x - n * 0x1.62e4p-1f) - (n * 0x1.7f7d1cp-20f - low);
    float q = 0.00138142193f;
    q = q * r + 0.00836889911f;
    q = q * r + 0.0416684076f;
    q = q * r + 0.166665196f;
    q = q * r + 0.49999994f;
    return (dmlk_exponentialf){(int32_t)(dmlk_float_bits(shifted) - dmlk_float_bits(DMLK_ROUNDINGF)), r + r * r * q};
}

/* exp(x + low) for x below 89; the power of 2 is applied in two steps, as it or the result may be denormal. */
DMLK_INLINE float dmlk_exp_of_partsf(float x, float low) {
    const dmlk_exponentialf e = dmlk_reduce_expf(x, low);
    const int32_t half = e.n >> 1;
    const float y = (1 + e.less1) * dmlk_power_of_2f(half) * dmlk_power_of_2f(e.n - half);
    return dmlk_choosef(x < -104, 0, y);
}

DMLK_INLINE float dmlk_expf(float x) {
    const float y = dmlk_exp_of_partsf(x, 0);
    return dmlk_choosef(x > 89, INFINITY, y);
}

/* exp(x) - 1 for x <= 0, accurate near 0. */
DMLK_INLINE float dmlk_expm1_negativef(float x) {
    const dmlk_exponentialf e = dmlk_reduce_expf(dmlk_choosef(x < -20, -20, x), 0);
    const float power = dmlk_power_of_2f(e.n), y = power * e.less1 + (power - 1);
    return dmlk_choosef(x == 0, x, y);
}

DMLK_INLINE float dmlk_sigmoidf(float x) {
    const float e = dmlk_exp_of_partsf(-fabsf(x), 0), sum = 1 + e, lost = e - (sum - 1);
    const float y = dmlk_choosef(x < 0, e, 1) / sum;
    return y - y * lost;
}

DMLK_INLINE float dmlk_tanhf(float x) {
    const float a = fabsf(x), z = x * x;
    float p = -0.00571703678f;
    p = p * z + 0.0206505787f;
    p = p * z - 0.0537434965f;
    p = p * z + 0.133314908f;
    p = p * z - 0.333332837f;
    const float small = a + a * (z * p);
    const dmlk_exponentialf e = dmlk_reduce_expf(2 * dmlk_choosef(a > 10, 10, a), 0);
    const float power = dmlk_power_of_2f(e.n);
    const float large = 1 - 2 / (power * e.less1 + (power + 1));
    return dmlk_signedf(dmlk_choosef(a < 0.625f, small, large), x);
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
    const float power = dmlk_power_of_2f(e.n);
    const float large = (1 - power) - power * e.less1;
    return dmlk_signedf(dmlk_choosef(a <= 1, a + a * p, large), x);
}

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

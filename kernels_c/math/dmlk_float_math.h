/* dmlk_float_math.h - elementary functions of FLOAT32, computed in FLOAT32: several times as fast as those in double.
 *
 * The error is below 2 units in the last place; below 1 for powers, 3 for silu, sigmoid and tanh, 4 for GELU and 5
 * for erf (test_float_math.c states the error of each function).  Denormals and special values are those of C.  As in
 * dmlk_math.h there are no branches and no tables, and only operations that every CPU rounds alike, including fused
 * multiply-adds.  Where the rounding error of an intermediate value would be amplified, as in pow and tan, the value
 * has two parts.
 *
 * dmlk_easy_<function> gives the same bits as dmlk_<function>, without the operations that only special arguments
 * need.  It is valid where a number that increases with the argument, mostly dmlk_sizef, is at most
 * DMLK_EASY_<function>. */
#ifndef DMLK_FLOAT_MATH_H
#define DMLK_FLOAT_MATH_H

#include "dmlk_math.h"

/* fmaf is a b + c, rounded once.  On CPUs without an instruction for it, vectorized loops call dmlk_fmaf_of_4, which
 * replaces four calls of the C library's fmaf; this is the name by which compilers find it. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define DMLK_FMAF_OF_4 1
typedef float dmlk_floats_of_4 __attribute__((vector_size(16)));
dmlk_floats_of_4 dmlk_fmaf_of_4(dmlk_floats_of_4 a, dmlk_floats_of_4 b, dmlk_floats_of_4 c) __asm__("_ZGVbN4vvv_fmaf");
__attribute__((simd("notinbranch"))) float fmaf(float a, float b, float c);
#endif

/* condition ? a : b, where both are computed.  Compilers would make branches of nested conditions; they make masks of
 * this. */
DMLK_INLINE float dmlk_choosef(bool condition, float a, float b) {
    const uint32_t mask = 0 - (uint32_t)condition;
    return dmlk_bits_float((dmlk_float_bits(a) & mask) | (dmlk_float_bits(b) & ~mask));
}

/* The bits of |x|, which increase with it; those of NaN are the largest. */
DMLK_INLINE uint32_t dmlk_sizef(float x) { return dmlk_float_bits(x) & 0x7fffffff; }

/* x >= 0 with the sign of `sign`. */
DMLK_INLINE float dmlk_positive_signedf(float x, float sign) {
    return dmlk_bits_float(dmlk_float_bits(x) | (dmlk_float_bits(sign) & UINT32_C(1) << 31));
}

/* A NaN stays a NaN.  With a limit that compilers do not know, each is one instruction. */
DMLK_INLINE float dmlk_at_mostf(float x, float limit) { return x > limit ? limit : x; }
DMLK_INLINE float dmlk_at_leastf(float x, float limit) { return x < limit ? limit : x; }

extern const struct dmlk_limitsf {
    float exp_low, exp_high; /* beyond these, exp is 0 or infinite */
    float expm1_low;         /* from here down, expm1 is -1 */
    float sigmoid;           /* from here on, sigmoid is 1 */
    float silu_low;          /* from here down, silu is -0 */
    float tanh;              /* from here on, tanh is 1 */
    float exp2;              /* beyond it, and below its negative, exp2 is infinite or 0 */
    float half_exp;          /* from here on, exp(x) / 2 is infinite */
    float erf;               /* from here on, erf is 1 */
    float gelu;              /* from this |x| on, the tail is 0 */
    float minus_0;
} dmlk_limitsf;

/* x where `sign` is negative, otherwise 0. */
DMLK_INLINE float dmlk_where_negativef(float x, float sign) {
    return dmlk_bits_float(dmlk_float_bits(x) & (uint32_t)((int32_t)dmlk_float_bits(sign) >> 31));
}

/* --- exponential, as in dmlk_math.h --- */

#define DMLK_ROUNDINGF 0x1.8p23f

typedef struct dmlk_exponentialf {
    uint32_t n; /* n + bias in the low 9 bits */
    float r;
} dmlk_exponentialf;

#define DMLK_EXP_LN2F 0x1.62e4p-1f /* its products with whole numbers up to 2^8 are exact */
#define DMLK_EXP_LN2_LOWF 0x1.7f7d1cp-20f

/* For |x| < 2^15; `rounding` is DMLK_ROUNDINGF + bias. */
DMLK_INLINE dmlk_exponentialf dmlk_reduce_exp_byf(float x, float rounding) {
    const float shifted = fmaf(x, 1.44269504f, rounding), n = shifted - rounding;
    const float r = fmaf(n, -DMLK_EXP_LN2_LOWF, fmaf(n, -DMLK_EXP_LN2F, x));
    return (dmlk_exponentialf){dmlk_float_bits(shifted), r};
}

DMLK_INLINE dmlk_exponentialf dmlk_reduce_expf(float x, float bias) { return dmlk_reduce_exp_byf(x, DMLK_ROUNDINGF + bias); }

/* exp(r) - 1 */
DMLK_INLINE float dmlk_less1f(dmlk_exponentialf e) {
    const float r = e.r, z = r * r;
    const float q01 = fmaf(r, 0.166665196f, 0.49999994f), q23 = fmaf(r, 0.00836889911f, 0.0416684076f);
    return fmaf(z, fmaf(z, fmaf(z, 0.00138142193f, q23), q01), r);
}

/* 2^n, if it is a normal number; the bias is DMLK_BIASF. */
DMLK_INLINE float dmlk_powerf(dmlk_exponentialf e) { return dmlk_bits_float(e.n << 23); }

/* 2^n for n from -250 to 250 as a product of two numbers, as 2^n or the result may be denormal or infinite; the bias
 * is DMLK_WIDELYF. */
typedef struct dmlk_powersf {
    float half, rest;
} dmlk_powersf;

#define DMLK_BIASF 127.0f
#define DMLK_WIDELYF 254.0f

DMLK_INLINE dmlk_powersf dmlk_wide_powersf(dmlk_exponentialf e) {
    const uint32_t half = e.n >> 1;
    return (dmlk_powersf){dmlk_bits_float(half << 23), dmlk_bits_float((e.n - half) << 23)};
}

DMLK_INLINE float dmlk_scale_widelyf(float x, dmlk_powersf by) { return x * by.half * by.rest; }

/* exp(x) 2^more for x from -170 to 170.  `easy`: the result and 2^n are normal numbers; products with powers of 2 are
 * then exact, and the bits the same. */
DMLK_INLINE float dmlk_exp_of_sizef(float x, float more, bool easy) {
    const dmlk_exponentialf e = dmlk_reduce_expf(x, (easy ? DMLK_BIASF : DMLK_WIDELYF) + more);
    const float power = dmlk_powerf(e), less1 = dmlk_less1f(e);
    return easy ? fmaf(power, less1, power) : dmlk_scale_widelyf(1 + less1, dmlk_wide_powersf(e));
}

/* factor exp(-x^2 / 2) for |x| < 18, by the same polynomial, but as a polynomial of -2 r = x^2 + 2 n log(2). */
DMLK_INLINE float dmlk_bell_timesf(float factor, float x, bool easy) {
    const float bias = DMLK_ROUNDINGF + (easy ? DMLK_BIASF : DMLK_WIDELYF);
    const float shifted = fmaf(x * x, -0.5f * 1.44269504f, bias), n = shifted - bias;
    const float r = fmaf(n, 2 * DMLK_EXP_LN2_LOWF, fmaf(x, x, n * (2 * DMLK_EXP_LN2F)));
    float p = 0.00138142193f * 0x1p-6f;
    p = fmaf(p, r, -0.00836889911f * 0x1p-5f);
    p = fmaf(p, r, 0.0416684076f * 0x1p-4f);
    p = fmaf(p, r, -0.166665196f * 0x1p-3f);
    p = fmaf(p, r, 0.49999994f * 0x1p-2f);
    const dmlk_exponentialf e = {dmlk_float_bits(shifted), 0};
    const float scaled = easy ? factor * dmlk_powerf(e) : factor, y = fmaf(scaled, r * fmaf(p, r, -0.5f), scaled);
    return easy ? y : dmlk_scale_widelyf(y, dmlk_wide_powersf(e));
}

#define DMLK_EASY_EXPF 0x42a00000u /* 80: exp(x), exp(-x) and results computed from them are normal numbers */

DMLK_INLINE float dmlk_easy_expf(float x) { return dmlk_exp_of_sizef(x, 0, true); }

DMLK_INLINE float dmlk_expf(float x) {
    return dmlk_exp_of_sizef(dmlk_at_mostf(dmlk_at_leastf(x, dmlk_limitsf.exp_low), dmlk_limitsf.exp_high), 0, false);
}

/* Exponentials relative to the exponential of the largest number of a group.  Subtracting the largest number first
 * would round; therefore each number itself is reduced, and its power of 2 is divided by that of the largest number.
 * If that number is beyond +-DMLK_LARGEF, it is subtracted first: differences that matter are then exact. */
#define DMLK_LARGEF 0x1p14f

typedef struct dmlk_relativef {
    float shift, low, rounding; /* of dmlk_reduce_exp_byf */
} dmlk_relativef;

DMLK_INLINE dmlk_relativef dmlk_relative_tof(float most) {
    const float shift = fabsf(most) <= DMLK_LARGEF ? 0 : most, rest = most - shift;
    const float n = fmaf(rest, 1.44269504f, DMLK_ROUNDINGF) - DMLK_ROUNDINGF;
    return (dmlk_relativef){shift, rest + dmlk_limitsf.exp_low, DMLK_ROUNDINGF + (127 + 25 - n)};
}

/* For x <= most: exp(x - most) times a number from 2^24 to 2^26 that is the same for the whole group. */
DMLK_INLINE float dmlk_exp_relativef(float x, dmlk_relativef to) {
    const dmlk_exponentialf e = dmlk_reduce_exp_byf(dmlk_at_leastf(x - to.shift, to.low), to.rounding);
    const float power = dmlk_powerf(e);
    return fmaf(power, dmlk_less1f(e), power);
}

/* If all |x| of a group are at most this, its exponentials are those of dmlk_easy_expf times a power of 2, bit by
 * bit. */
#define DMLK_SIMPLE_EXPF 40.0f

/* exp(x) - 1, accurate near 0. */
DMLK_INLINE float dmlk_expm1f(float x) {
    const float a = dmlk_at_mostf(dmlk_at_leastf(x, dmlk_limitsf.expm1_low), dmlk_limitsf.exp_high);
    const dmlk_exponentialf e = dmlk_reduce_expf(a, DMLK_BIASF - 1);
    const float half = dmlk_powerf(e), y = 2 * fmaf(half, dmlk_less1f(e), half - 0.5f); /* 2^n may be infinite */
    return dmlk_choosef(fabsf(x) < 0x1p-25f, x, y);
}

/* exp(x) = 2^n (c + r) / (c - r) with c = r coth(r / 2), a function of r^2.  exp(x) / (1 + exp(x)) is then t / (t + c
 * - r) with t = 2^n (c + r), which takes one division and is accurate in the tail.  All terms are scaled by 2^24, so
 * that 2^n is normal where the result is denormal. */
DMLK_INLINE float dmlk_easy_sigmoidf(float a) {
    const float bias = DMLK_ROUNDINGF + DMLK_BIASF + 24, shifted = fmaf(a, 1.44269504f, bias), n = shifted - bias;
    const float r = fmaf(n, -DMLK_EXP_LN2_LOWF, fmaf(n, -DMLK_EXP_LN2F, a)), z = r * r;
    const float c = fmaf(fmaf(z, -0.00276392088f * 0x1p24f, 0.166665835f * 0x1p24f), z, 0x1p25f);
    const float t = dmlk_bits_float(dmlk_float_bits(shifted) << 23) * fmaf(c, 0x1p-24f, r);
    return t / (t + fmaf(r, -0x1p24f, c));
}

#define DMLK_EASY_SIGMOIDF 0x42700000u /* 60 */
DMLK_INLINE float dmlk_sigmoidf(float x) {
    return dmlk_easy_sigmoidf(dmlk_at_mostf(dmlk_at_leastf(x, dmlk_limitsf.exp_low), dmlk_limitsf.sigmoid));
}

/* x sigmoid(x).  The power of 2 of exp(x) is applied last, as it may be denormal.  -infinity gives NaN, as -infinity
 * times 0 does. */
DMLK_INLINE float dmlk_silu_of_sizef(float x, bool easy) {
    const float a = fabsf(x), factor = easy ? x : dmlk_at_leastf(x, dmlk_limitsf.silu_low);
    const float most = easy ? a : dmlk_at_mostf(a, -dmlk_limitsf.silu_low);
    const dmlk_exponentialf e = dmlk_reduce_expf(-most, easy ? DMLK_BIASF : DMLK_WIDELYF);
    const dmlk_powersf by = easy ? (dmlk_powersf){dmlk_powerf(e), 1} : dmlk_wide_powersf(e);
    const float exponential = easy ? fmaf(by.half, dmlk_less1f(e), by.half) : dmlk_scale_widelyf(1 + dmlk_less1f(e), by);
    const float sum = 1 + exponential, lost = exponential - (sum - 1);
    const float y = fmaf(factor, dmlk_where_negativef(dmlk_less1f(e), x), factor) / sum, z = fmaf(-y, lost, y);
    const float scaled = dmlk_scale_widelyf(z, (dmlk_powersf){x < 0 ? by.half : 1, x < 0 ? by.rest : 1});
    return dmlk_signedf(scaled, x);
}

DMLK_INLINE float dmlk_easy_siluf(float x) { return dmlk_silu_of_sizef(x, true); }
DMLK_INLINE float dmlk_siluf(float x) {
    return dmlk_choosef(fabsf(x) < INFINITY, dmlk_silu_of_sizef(x, false), x + fabsf(x));
}

/* (exp(2 x) - 1) / (exp(2 x) + 1) with exp(2 x) = power (c + r) / (c - r), where c = r coth(r).  Signs are chosen so
 * that -0 gives -0. */
DMLK_INLINE float dmlk_easy_tanhf(float a) {
    const float bias = DMLK_ROUNDINGF + DMLK_BIASF, shifted = fmaf(a, 2.88539008f, bias), n = shifted - bias;
    const float r = fmaf(n, -0.34657359f, a), z = r * r;
    const float c = fmaf(fmaf(z, -0.0221113671f, 0.33333167f), z, 1);
    const float power = dmlk_bits_float(dmlk_float_bits(shifted) << 23), more = 1 + power, less = 1 - power;
    return fmaf(-less, c, more * r) / fmaf(-less, r, more * c);
}

#define DMLK_EASY_TANHF 0x42200000u /* 40 */
DMLK_INLINE float dmlk_tanhf(float x) {
    return dmlk_easy_tanhf(dmlk_at_mostf(dmlk_at_leastf(x, -dmlk_limitsf.tanh), dmlk_limitsf.tanh));
}

/* exp(|x|) / 2, or infinity where that overflows. */
DMLK_INLINE float dmlk_half_expf(float x, bool easy) {
    const float a = easy ? fabsf(x) : dmlk_at_mostf(fabsf(x), dmlk_limitsf.half_exp);
    return dmlk_exp_of_sizef(a, -1, easy);
}

DMLK_INLINE float dmlk_cosh_of_sizef(float x, bool easy) {
    const float half = dmlk_half_expf(x, easy);
    return half + 0.25f / half;
}

DMLK_INLINE float dmlk_easy_coshf(float x) { return dmlk_cosh_of_sizef(x, true); }
DMLK_INLINE float dmlk_coshf(float x) { return dmlk_cosh_of_sizef(x, false); }

/* sinh(n log(2)) cosh(r) + cosh(n log(2)) sinh(r), with x = n log(2) + r: needs no quotient and no sign to restore.
 * The terms that are rounded more than once are small.  Signs are chosen so that -0 gives -0. */
DMLK_INLINE float dmlk_easy_sinhf(float x) {
    const dmlk_exponentialf e = dmlk_reduce_expf(x, DMLK_BIASF - 1);
    const float r = e.r, z = r * r, power = dmlk_powerf(e), inverse = dmlk_bits_float((252u << 23) - dmlk_float_bits(power));
    const float cosh_n = inverse + power, minus_sinh_n = inverse - power;
    const float sinh_less_r = r * z * fmaf(z, 0.00836654007f, 0.166665435f);
    const float cosh_less_1 = z * fmaf(z, fmaf(z, 0.00139357627f, 0.0416664556f), 0.5f);
    return fmaf(cosh_n, r, fmaf(cosh_n, sinh_less_r, -minus_sinh_n * cosh_less_1)) - minus_sinh_n;
}

DMLK_INLINE float dmlk_sinhf(float x) {
    const float large = dmlk_signedf(dmlk_half_expf(x, false), x);
    return dmlk_choosef(dmlk_sizef(x) <= DMLK_EASY_EXPF, dmlk_easy_sinhf(x), large);
}

/* log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)), and with s = y / (2 + y),
 * log(1 + y) = y - y^2 / 2 + s (y^2 / 2 + s^2 P(s^2)). */
DMLK_INLINE float dmlk_softplusf(float x) {
    const float y = dmlk_exp_of_sizef(-dmlk_at_mostf(fabsf(x), -dmlk_limitsf.exp_low), 0, false);
    const float s = y / (2 + y), z = s * s, square = 0.5f * y * y;
    const float p12 = fmaf(z, 0.286168844f, 0.39998877f), p34 = fmaf(z, 0.243009329f, 0.214276582f);
    const float p = fmaf(z, fmaf(z * z, p34, p12), 0.666666746f);
    return dmlk_where_negativef(x, -x) + (y - fmaf(-s, fmaf(z, p, square), square));
}

/* --- logarithm ---
 *
 * x = 2^n m with 3/4 <= m < 1.5; log(m) = f - f^2 / 2 + f^3 Q(f) with f = m - 1: no quotient, unlike in dmlk_math.h. */

DMLK_INLINE float dmlk_log1p_cubef(float f) { /* Q */
    const float z = f * f;
    float even = 0.104798824f, odd = -0.0451799594f;
    even = fmaf(even, z, 0.14478527f);
    odd = fmaf(odd, z, -0.131693885f);
    even = fmaf(even, z, 0.199907184f);
    odd = fmaf(odd, z, -0.166464478f);
    even = fmaf(even, z, 0.333334535f);
    odd = fmaf(odd, z, -0.250001162f);
    return fmaf(odd, f, even);
}

/* 2^23 n, for a normal positive number. */
DMLK_INLINE uint32_t dmlk_power_of_logf(float x) { return (dmlk_float_bits(x) - 0x3f400000) & 0xff800000; }

#define DMLK_LN2F 0x1.62e43p-1f /* its error is below 2^-28 */

/* The distance of x's bits from those of the least positive normal number: at most DMLK_NORMALF if x is positive and
 * normal. */
#define DMLK_NORMALF 0x7effffffu
DMLK_INLINE uint32_t dmlk_normalityf(float x) { return dmlk_float_bits(x) - 0x00800000; }

/* log(x) + more 2^-23 log(2), for a normal x > 0. */
DMLK_INLINE float dmlk_log_of_normalf(float x, uint32_t more) {
    const uint32_t power = dmlk_power_of_logf(x);
    const float f = dmlk_bits_float(dmlk_float_bits(x) - power) - 1;
    return fmaf((float)(int32_t)(power + more), 0x1p-23f * DMLK_LN2F, fmaf(f * f, fmaf(f, dmlk_log1p_cubef(f), -0.5f), f));
}

DMLK_INLINE float dmlk_easy_logf(float x) { return dmlk_log_of_normalf(x, 0); }

DMLK_INLINE float dmlk_logf(float x) {
    const bool is_denormal = x < 0x1p-126f;
    const float y = dmlk_log_of_normalf(dmlk_choosef(is_denormal, x * 0x1p23f, x), is_denormal ? 0u - (23u << 23) : 0);
    const float outside = dmlk_choosef(x == 0, -INFINITY, dmlk_choosef(x < 0, NAN, x)); /* or infinity, or NaN */
    return dmlk_choosef(x > 0 && x < INFINITY, y, outside);
}

/* --- power ---
 *
 * 2^(y log2(x)), where the logarithm and the product have two parts each. */

typedef struct dmlk_partsf {
    float high, low;
} dmlk_partsf;

/* log2(x) - less for a normal x > 0, to 2^-34: x = 2^n m with sqrt(1/2) <= m < sqrt(2), log2(m) = s Q(s^2) with
 * s = (m - 1) / (m + 1).  s, s^2 and the two largest coefficients need two parts. */
DMLK_INLINE dmlk_partsf dmlk_log2_of_partsf(float x, float less) {
    const uint32_t least = 0x3f3504f3, above = dmlk_float_bits(x) - least; /* sqrt(1/2) */
    const float n = (float)((int32_t)above >> 23) - less, m = dmlk_bits_float((above & 0x7fffff) + least);
    const float f = m - 1, d = m + 1, d_low = m - (d - 1), inverse = 1 / d;
    const float s = f * inverse, s_low = fmaf(-s, d_low, fmaf(-s, d, f)) * inverse;
    const float z = s * s, z_low = fmaf(2 * s, s_low, fmaf(s, s, -z));
    const float c0 = 0x1.715476p+1f, c0_low = 0x1.4ae0cp-25f, c1 = 0x1.ec709ep-1f;
    const float q1 = z * c1, q1_low = fmaf(z_low, c1, fmaf(z, c1, -q1));
    const float square = z * fmaf(2, z_low, z); /* z_low may be four units */
    const float rest = fmaf(square, fmaf(z, fmaf(z, 0x1.5899e4p-2f, 0x1.a5cfdp-2f), 0x1.2776ep-1f), c0_low);
    const float q = c0 + q1, q_low = ((c0 - q) + q1) + (q1_low + rest);
    const float p = s * q, p_low = fmaf(s_low, q, fmaf(s, q_low, fmaf(s, q, -p)));
    const float high = n + p;
    return (dmlk_partsf){high, ((n - high) + p) + p_low};
}

/* 2^(x + low) for x from -180 to 180 and |low| up to 1.  `easy`: for x from -125 to 125, as 2^r / 2 times 2^(n + 1).
 * Both biases are even, so that ties are rounded alike; products with powers of 2 are exact, and the bits the same. */
DMLK_INLINE float dmlk_exp2_of_partsf(float x, float low, bool easy) {
    const float one = easy ? 0.5f : 1, bias = DMLK_ROUNDINGF + (easy ? DMLK_BIASF + 1 : DMLK_WIDELYF), shifted = x + bias;
    const float most = x - (shifted - bias), r = most + low, z = r * r;
    const float p01 = fmaf(r, one * 0.055503592f, one * 0.24022648f), p23 = fmaf(r, one * 0.001339118f, one * 0.009618521f);
    const float p = fmaf(z, fmaf(z, one * 0.00015323944f, p23), p01);
    const float y = one + fmaf(most, one * 0.6931472f, fmaf(z, p, low * (one * 0.6931472f)));
    const dmlk_exponentialf e = {dmlk_float_bits(shifted), 0};
    return easy ? y * dmlk_powerf(e) : dmlk_scale_widelyf(y, dmlk_wide_powersf(e));
}

DMLK_INLINE float dmlk_limited_exp2f(float x) {
    return dmlk_at_mostf(dmlk_at_leastf(x, -dmlk_limitsf.exp2), dmlk_limitsf.exp2);
}

/* At most DMLK_NORMALF where x is normal and |y| <= 2^14. */
DMLK_INLINE uint32_t dmlk_size_of_powerf(float x, float y) {
    const uint32_t a = dmlk_normalityf(x), b = dmlk_sizef(y) + (DMLK_NORMALF - 0x46800000);
    return a > b ? a : b;
}

/* x^y, from log2(x); `easy` as above. */
DMLK_INLINE float dmlk_power_of_partsf(dmlk_partsf logarithm, float y, bool easy) {
    const float high = y * logarithm.high, low = fmaf(y, logarithm.low, fmaf(y, logarithm.high, -high));
    return dmlk_exp2_of_partsf(easy ? high : dmlk_limited_exp2f(high), low, easy);
}

DMLK_INLINE float dmlk_easy_powf(float x, float y) { return dmlk_power_of_partsf(dmlk_log2_of_partsf(x, 0), y, false); }

/* For an exponent y: x^y is from 2^-125 to 2^125 if x is from 2^-reach to 2^reach.  0: there may be no such x. */
DMLK_INLINE uint32_t dmlk_reach_of_powerf(float y) {
    const float a = fabsf(y), most = 125;
    return a < 1 ? 125 : a <= most ? (uint32_t)(most / a) : 0;
}

/* The distance of x's bits from those of 2^-reach (for smaller x it wraps around and is larger): at most
 * dmlk_most_of_constant_powf where dmlk_power_of_partsf may be easy. */
DMLK_INLINE uint32_t dmlk_size_of_constant_powf(float x, float y) {
    return dmlk_float_bits(x) - ((127 - dmlk_reach_of_powerf(y)) << 23);
}

DMLK_INLINE int64_t dmlk_most_of_constant_powf(float y) {
    const uint32_t reach = dmlk_reach_of_powerf(y);
    return reach > 0 ? (int64_t)reach << 24 : -1;
}

/* Like C's pow: 1 for an exponent of 0 or a base of 1, whatever the other operand is. */
DMLK_INLINE float dmlk_powf(float x, float y) {
    const float a = fabsf(x);
    const bool is_denormal = a < 0x1p-126f, is_whole = dmlk_floorf(y) == y, is_odd = is_whole && dmlk_floorf(0.5f * y) != 0.5f * y;
    const dmlk_partsf l = dmlk_log2_of_partsf(dmlk_choosef(is_denormal, a * 0x1p23f, a), dmlk_choosef(is_denormal, 23, 0));
    const bool is_number = a > 0 && a < INFINITY;
    const float logarithm = dmlk_choosef(is_number, l.high, dmlk_choosef(a == 0, -INFINITY, a));
    const float high = y * logarithm, x2 = dmlk_limited_exp2f(high);
    const float low = fmaf(y, l.low, fmaf(y, l.high, -high));
    float r = dmlk_exp2_of_partsf(x2, dmlk_choosef(x2 == high, low, 0), false);
    r = dmlk_choosef(a == 1, 1, r); /* 0 times infinity */
    r = dmlk_choosef(x < 0 && !is_whole && a < INFINITY, NAN, r);
    r = dmlk_choosef(is_odd, dmlk_signedf(r, x), r);
    return dmlk_choosef(x == 1 || y == 0, 1, r);
}

/* --- inverse hyperbolic functions --- */

/* log(1 + y + low) for y >= 0; with `is_large`, log(32 y). */
DMLK_INLINE float dmlk_log_of_partsf(float y, float low, bool is_large) {
    const float one = dmlk_choosef(is_large, 0, 1);
    const uint32_t power = dmlk_power_of_logf(y + one), more = is_large ? 5u << 23 : 0;
    const float part = dmlk_bits_float(0x3f800000 - power), f = fmaf(y, part, fmaf(one, part, -1));
    const float inverse = fmaf(f, fmaf(f, 0.75f, -1), 1); /* nearly 1 / (1 + f) */
    const float z = f * f, rest = fmaf(-0.5f, z, fmaf(f * z, dmlk_log1p_cubef(f), low * part * inverse));
    return fmaf((float)(int32_t)(power + more), 0x1p-23f * DMLK_LN2F, f + rest);
}

#define DMLK_SQUARED_LIMITF 0x1p13f /* beyond it, a^2 + 1 and a^2 - 1 are rounded to a^2 */

/* About 1 / (2 x) for x > 0: to one digit, which is enough to correct another result. */
DMLK_INLINE float dmlk_half_inversef(float x) { return dmlk_bits_float(0x7e800000 - dmlk_float_bits(x)); }

/* log(a + sqrt(a^2 + 1)), where sqrt(a^2 + 1) = 1 + t + `more`, as (1 + t)^2 - 1 = t^2 + 2 t. */
DMLK_INLINE float dmlk_asinh_of_sizef(float x, bool is_large) {
    const float a = fabsf(x), root = sqrtf(fmaf(a, a, 1)), t = root - 1, sum = a + t;
    const float more = fmaf(-t, t, fmaf(a, a, -2 * t)) * dmlk_half_inversef(root);
    const float y = dmlk_choosef(is_large, a * 0x1p-4f, sum);
    return dmlk_positive_signedf(dmlk_log_of_partsf(y, dmlk_choosef(is_large, 0, (t - (sum - a)) + more), is_large), x);
}

#define DMLK_EASY_ASINHF (0x46000000u - 1) /* 2^13 */
DMLK_INLINE float dmlk_easy_asinhf(float x) { return dmlk_asinh_of_sizef(x, false); }

DMLK_INLINE float dmlk_asinhf(float x) {
    const float z = dmlk_asinh_of_sizef(x, fabsf(x) >= DMLK_SQUARED_LIMITF);
    return dmlk_choosef(fabsf(x) < INFINITY, z, x);
}

/* log(x + sqrt(x^2 - 1)), computed from t = x - 1, which is exact. */
DMLK_INLINE float dmlk_acosh_of_sizef(float x, bool is_large) {
    const float t = x - 1, square = fmaf(t, t, 2 * t), root = sqrtf(square), sum = root + t;
    const float lost = fmaf(-root, root, square) + fmaf(t, t, fmaf(2, t, -square));
    const float more = lost * dmlk_half_inversef(root);
    const float y = dmlk_choosef(is_large, x * 0x1p-4f, sum);
    return dmlk_log_of_partsf(y, dmlk_choosef(is_large, 0, (t - (sum - root)) + more), is_large);
}

/* A limit of dmlk_above_1f, the distance of x's bits from those of 1. */
#define DMLK_EASY_ACOSHF (DMLK_EASY_ASINHF - 0x3f800000)
DMLK_INLINE uint32_t dmlk_above_1f(float x) { return dmlk_float_bits(x) - 0x3f800000; }
DMLK_INLINE float dmlk_easy_acoshf(float x) { return dmlk_acosh_of_sizef(x, false); }

DMLK_INLINE float dmlk_acoshf(float x) {
    const float z = dmlk_acosh_of_sizef(x, x >= DMLK_SQUARED_LIMITF);
    return dmlk_choosef(x >= 1 && x < INFINITY, z, dmlk_choosef(x < 1, NAN, x));
}

/* log((1 + a) / (1 - a)) / 2 = n log(2) / 2 + atanh(s), where s = (1 + a - 2^n (1 - a)) / (1 + a + 2^n (1 - a)).  The
 * bits of 1 + a and 1 - a approximate their logarithms well enough for n.  The rounding errors of sums and quotient
 * are added to `low`. */
#define DMLK_EASY_ATANHF (0x3f800000u - 1) /* 1 */

DMLK_INLINE float dmlk_easy_atanhf(float x) {
    const float a = fabsf(x), more = 1 + a, less = 1 - a, more_low = a - (more - 1), less_low = (1 - less) - a;
    const uint32_t powers = (dmlk_float_bits(more) - dmlk_float_bits(less) + 0x400000) & 0xff800000;
    const float n = (float)(int32_t)powers, power = dmlk_bits_float(powers + 0x3f800000);
    const float over = fmaf(-power, less, more), over_low = fmaf(-power, less_low, more_low);
    const float under = fmaf(power, less, more), under_low = fmaf(power, less, more - under) + fmaf(power, less_low, more_low);
    const float inverse = 1 / under, s = over * inverse, z = s * s;
    const float low = inverse * (fmaf(-s, under, over) + fmaf(-s, under_low, over_low));
    const float p01 = fmaf(z, 0.20000582f, 0.333333307f), p23 = fmaf(z, 0.121516062f, 0.142463229f);
    const float p = fmaf(z * z, p23, p01);
    const float y = fmaf(n, 0x1p-24f * DMLK_LN2F, s + fmaf(s * z, p, low));
    return dmlk_positive_signedf(y, x);
}

DMLK_INLINE float dmlk_atanhf(float x) {
    const float outside = dmlk_signedf(dmlk_choosef(fabsf(x) == 1, INFINITY, NAN), x);
    return dmlk_choosef(fabsf(x) < 1, dmlk_easy_atanhf(x), outside);
}

/* --- error function ---
 *
 * erf(x) = 2 t / (1 + t^2) with t = erf(x) / (1 + sqrt(1 - erf(x)^2)) = x P(x^2) / Q(x^2): errors of t vanish where the
 * result is almost 1. */

DMLK_INLINE float dmlk_erff(float x) {
    const float a = dmlk_at_mostf(dmlk_at_leastf(x, -dmlk_limitsf.erf), dmlk_limitsf.erf), z = a * a;
    float p = -4.4853e-06f;
    p = fmaf(p, z, 0.000419695629f);
    p = fmaf(p, z, 0.0131229116f);
    p = fmaf(p, z, 0.105931707f);
    p = fmaf(p, z, 0.740492821f);
    float q = 0.00298894104f;
    q = fmaf(q, z, 0.0469392277f);
    q = fmaf(q, z, 0.207476884f);
    q = fmaf(q, z, 1.31248939f);
    const float u = a * p;
    return (u + u) * q / fmaf(u, u, q * q);
}

/* x Phi(x) = max(x, 0) - |x| Phi(-|x|), where |x| Phi(-|x|) = exp(-x^2 / 2) s P(s) with s = |x| / (|x| + 2.5).
 * -infinity gives NaN, as -infinity times 0 does.  p is -P: compilers could move a minus sign into the bell, which
 * would change the sign of 0. */
DMLK_INLINE float dmlk_gelu_of_sizef(float x, bool easy) {
    const float a = fabsf(x), b = easy ? a : dmlk_at_mostf(a, dmlk_limitsf.gelu);
    const float s = b / (b + 2.5f);
    float p = 0.0787510127f;
    p = fmaf(p, s, -0.275945485f);
    p = fmaf(p, s, 0.307714969f);
    p = fmaf(p, s, -0.133508489f);
    p = fmaf(p, s, 0.147695854f);
    p = fmaf(p, s, -0.0554972887f);
    p = fmaf(p, s, -0.291943759f);
    p = fmaf(p, s, -0.169602051f);
    p = fmaf(p, s, 1.24339211f);
    p = fmaf(p, s, -1.25f);
    return fmaf(dmlk_bell_timesf(s, b, easy), p, dmlk_at_leastf(x, dmlk_limitsf.minus_0));
}

#define DMLK_EASY_GELUF 0x41400000u /* 12 */

DMLK_INLINE float dmlk_easy_geluf(float x) { return dmlk_gelu_of_sizef(x, true); }
DMLK_INLINE float dmlk_geluf(float x) {
    return dmlk_choosef(fabsf(x) < INFINITY, dmlk_gelu_of_sizef(x, false), x + fabsf(x));
}

/* --- circular functions ---
 *
 * x = n pi/2 + r with |r| <= pi/4, with pi/2 in three parts.  For |x| <= DMLK_CIRCULAR_LIMITF, see math.c. */

#define DMLK_CIRCULAR_LIMITF 0x1p15f
/* All three are positive, so that the remainder of -0 is -0. */
#define DMLK_QUARTER1F 0x1.921fb4p+0f
#define DMLK_QUARTER2F 0x1.4442d0p-24f
#define DMLK_QUARTER3F 0x1.846988p-48f

typedef struct dmlk_circularf {
    float n, r; /* r: x - n DMLK_QUARTER1F, exactly */
    uint32_t quarter; /* only the low two bits are used */
} dmlk_circularf;

DMLK_INLINE dmlk_circularf dmlk_reduce_circularf(float x) {
    const float shifted = fmaf(x, 0.636619772f, DMLK_ROUNDINGF), n = shifted - DMLK_ROUNDINGF;
    return (dmlk_circularf){n, fmaf(n, -DMLK_QUARTER1F, x), dmlk_float_bits(shifted)};
}

DMLK_INLINE float dmlk_rest_of_circlef(dmlk_circularf at) {
    return fmaf(at.n, -DMLK_QUARTER3F, fmaf(at.n, -DMLK_QUARTER2F, at.r));
}

DMLK_INLINE float dmlk_sin_reducedf(float r) {
    const float z = r * r;
    float p = -0.000195169778f;
    p = fmaf(p, z, 0.00833217613f);
    p = fmaf(p, z, -0.166666552f);
    return r == 0 ? r : fmaf(r, z * p, r); /* -0 gives -0 */
}

DMLK_INLINE float dmlk_cos_reducedf(float r) {
    const float z = r * r;
    float p = 2.44380917e-05f;
    p = fmaf(p, z, -0.00138873642f);
    p = fmaf(p, z, 0.0416666456f);
    return fmaf(-z, fmaf(-z, p, 0.5f), 1);
}

/* `even` or, in an odd quarter, `odd`; negated if bit 1 of `sign` is set. */
DMLK_INLINE float dmlk_circular_off(float even, float odd, uint32_t quarter, uint32_t sign) {
    const float y = (quarter & 1) != 0 ? odd : even;
    return dmlk_bits_float(dmlk_float_bits(y) ^ (sign & 2) << 30);
}

DMLK_INLINE float dmlk_sin_off(dmlk_circularf at) {
    const float r = dmlk_rest_of_circlef(at);
    return dmlk_circular_off(dmlk_sin_reducedf(r), dmlk_cos_reducedf(r), at.quarter, at.quarter);
}

DMLK_INLINE float dmlk_cos_off(dmlk_circularf at) {
    const float r = dmlk_rest_of_circlef(at);
    return dmlk_circular_off(dmlk_cos_reducedf(r), dmlk_sin_reducedf(r), at.quarter, at.quarter + 1);
}

/* r in two parts, as tan is steep.  For n up to DMLK_TAN_QUARTERSF, the second part of pi/2 is so short that its
 * products with n are exact, and so the rounding error of r can be computed exactly. */
#define DMLK_TAN_QUARTERSF 2608.0f
#define DMLK_TAN_QUARTER2F 0x1.444p-24f
#define DMLK_TAN_QUARTER3F 0x1.68c234p-39f

DMLK_INLINE dmlk_partsf dmlk_near_rest_of_circlef(dmlk_circularf at) {
    const float r = fmaf(at.n, -DMLK_TAN_QUARTER2F, at.r);
    return (dmlk_partsf){r, -fmaf(at.n, DMLK_TAN_QUARTER3F, fmaf(at.n, DMLK_TAN_QUARTER2F, r - at.r))};
}

DMLK_INLINE dmlk_partsf dmlk_far_rest_of_circlef(dmlk_circularf at) {
    const float part = at.n * DMLK_QUARTER2F, rest = fmaf(at.n, DMLK_QUARTER2F, -part);
    const float r = at.r - part, back = r - at.r, lost = (at.r - (r - back)) - (part + back);
    return (dmlk_partsf){r, lost - fmaf(at.n, DMLK_QUARTER3F, rest)};
}

/* Signs are chosen so that -0 gives -0. */
DMLK_INLINE float dmlk_tan_reducedf(dmlk_partsf parts, uint32_t quarter) {
    const float r = parts.high, z = r * r;
    float p = 0.00979567412f;
    p = fmaf(p, z, 0.00239719986f);
    p = fmaf(p, z, 0.0248995405f);
    p = fmaf(p, z, 0.0532746129f);
    p = fmaf(p, z, 0.133405045f);
    p = fmaf(p, z, 0.333330899f);
    const float tangent = r + fmaf(r * z, p, parts.low * fmaf(z, 1.6f, 1)); /* times about tan's derivative */
    return (quarter & 1) != 0 ? -1 / tangent : tangent;
}

DMLK_INLINE float dmlk_tan_off(dmlk_circularf at) {
    const dmlk_partsf near = dmlk_near_rest_of_circlef(at), far = dmlk_far_rest_of_circlef(at);
    const bool is_near = fabsf(at.n) <= DMLK_TAN_QUARTERSF;
    const dmlk_partsf r = {dmlk_choosef(is_near, near.high, far.high), dmlk_choosef(is_near, near.low, far.low)};
    return dmlk_tan_reducedf(r, at.quarter);
}

/* These do not handle large arguments. */
#define DMLK_EASY_CIRCULARF (0x47000000u - 1) /* DMLK_CIRCULAR_LIMITF */
#define DMLK_EASY_TANF 0x45800000u            /* 2^12: about DMLK_TAN_QUARTERSF quarters */
DMLK_INLINE float dmlk_easy_sinf(float x) { return dmlk_sin_off(dmlk_reduce_circularf(x)); }
DMLK_INLINE float dmlk_easy_cosf(float x) { return dmlk_cos_off(dmlk_reduce_circularf(x)); }
DMLK_INLINE float dmlk_easy_tanf(float x) {
    const dmlk_circularf at = dmlk_reduce_circularf(x);
    return dmlk_tan_reducedf(dmlk_near_rest_of_circlef(at), at.quarter);
}

/* These replace `count` <= DMLK_MATH_CHUNK values of any size by their results; fast if few of them are large. */
void dmlk_sin_eachf(float *values, int64_t count);
void dmlk_cos_eachf(float *values, int64_t count);
void dmlk_tan_eachf(float *values, int64_t count);

/* --- inverse circular functions ---
 *
 * asin(x) = x + x^3 P(x^2) for x up to 1/2; otherwise asin(x) = pi/2 - 2 asin(s) with s^2 = (1 - x) / 2.  Up to 1/2, s is
 * |x|: the root of a rounded square is the number itself, except for very small numbers. */

#define DMLK_HALF_PIF 0x1.921fb6p0f
#define DMLK_HALF_PI_LOWF (-0x1.777a5cp-25f) /* pi/2 - DMLK_HALF_PIF */

/* The smaller of a^2 and (1 - a) / 2. */
DMLK_INLINE float dmlk_asin_squaref(float a) {
    const float small = a * a, large = fmaf(-0.5f, a, 0.5f);
    return large < small ? large : small;
}

DMLK_INLINE float dmlk_asin_ratiof(float z) { /* P */
    float p = 0.0375651866f;
    p = fmaf(p, z, 0.0144026158f);
    p = fmaf(p, z, 0.0318176076f);
    p = fmaf(p, z, 0.0445157215f);
    p = fmaf(p, z, 0.0750051066f);
    return fmaf(p, z, 0.166666597f);
}

DMLK_INLINE float dmlk_asinf(float x) {
    const float a = fabsf(x), z = dmlk_asin_squaref(a), s = sqrtf(z), y = s * z * dmlk_asin_ratiof(z);
    const float large = DMLK_HALF_PIF - fmaf(2, s, fmaf(2, y, -DMLK_HALF_PI_LOWF));
    return dmlk_positive_signedf(a < 0.5f ? a + y : large, x);
}

/* pi/2 - asin(x); from 1/2 on, 2 asin(s); from -1/2 down, pi - 2 asin(s). */
DMLK_INLINE float dmlk_acosf(float x) {
    const float a = fabsf(x), z = dmlk_asin_squaref(a), s = sqrtf(z);
    const float y = dmlk_positive_signedf(fmaf(s * z, dmlk_asin_ratiof(z), s), x);
    const bool is_small = a < 0.5f;
    const float base = is_small ? DMLK_HALF_PIF : dmlk_where_negativef(2 * DMLK_HALF_PIF, x);
    return fmaf(is_small ? -1 : 2, y, base);
}

/* For a > 1, atan(a) = pi/2 - atan(1 / a).  The dividend is slightly above 1, which makes up for most of the rounding
 * error of pi/2. */
DMLK_INLINE float dmlk_atanf(float x) {
    const float a = fabsf(x);
    const bool is_large = a > 1;
    const float u = dmlk_choosef(is_large, -0x1.000002p0f, a) / dmlk_choosef(is_large, a, 1), z = u * u;
    float p = 0.00292020338f;
    p = fmaf(p, z, -0.0163660031f);
    p = fmaf(p, z, 0.0432087593f);
    p = fmaf(p, z, -0.0755195171f);
    p = fmaf(p, z, 0.106658801f);
    p = fmaf(p, z, -0.142110229f);
    p = fmaf(p, z, 0.199937686f);
    p = fmaf(p, z, -0.333331525f);
    return dmlk_positive_signedf(dmlk_choosef(is_large, DMLK_HALF_PIF, 0) + fmaf(u * z, p, u), x);
}

#endif

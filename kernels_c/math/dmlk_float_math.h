/* dmlk_float_math.h - elementary functions of FLOAT32 in FLOAT32, several times as fast as those in double.
 *
 * Results differ from the exact ones by less than 2 units in the last place, powers 1, sigmoid and tanh 3, GELU 4, erf 5
 * (test_float_math.c states how much of each); denormals and special values are those of C.  As in dmlk_math.h there are
 * only operations that every CPU rounds alike, fused multiply-adds among them, no branches and no tables.  Where a
 * rounding error of an argument would be multiplied, as of exp, the argument is kept in two parts.
 *
 * dmlk_easy_<function> gives the same bits as dmlk_<function>, without what only special arguments need. */
#ifndef DMLK_FLOAT_MATH_H
#define DMLK_FLOAT_MATH_H

#include "dmlk_math.h"

/* a b + c, rounded once.  CPUs without an instruction for it call dmlk_fmaf_of_4 in loops, a replacement of the C
 * library's fmaf for four at a time; compilers look for it under this name. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define DMLK_FMAF_OF_4 1
typedef float dmlk_floats_of_4 __attribute__((vector_size(16)));
dmlk_floats_of_4 dmlk_fmaf_of_4(dmlk_floats_of_4 a, dmlk_floats_of_4 b, dmlk_floats_of_4 c) __asm__("_ZGVbN4vvv_fmaf");
__attribute__((simd("notinbranch"))) float fmaf(float a, float b, float c);
#endif

/* condition ? a : b, of which both are computed: compilers make branches of nested conditions, and of these masks. */
DMLK_INLINE float dmlk_choosef(bool condition, float a, float b) {
    const uint32_t mask = 0 - (uint32_t)condition;
    return dmlk_bits_float((dmlk_float_bits(a) & mask) | (dmlk_float_bits(b) & ~mask));
}

/* A NaN stays: with limits that compilers do not know these are instructions. */
DMLK_INLINE float dmlk_at_mostf(float x, float limit) { return x > limit ? limit : x; }
DMLK_INLINE float dmlk_at_leastf(float x, float limit) { return x < limit ? limit : x; }

extern const struct dmlk_limitsf {
    float exp_low, exp_high; /* results beyond are 0 or infinite */
    float expm1_low;         /* where expm1 is -1 */
    float sigmoid;           /* where sigmoid is 1 */
    float silu_low;
    float tanh;              /* where tanh is 1 */
    float exp2;              /* beyond it, and below its negative, results are infinite or 0 */
    float half_exp;
    float erf;               /* where erf is 1 */
    float gelu;              /* of |x|, where the tail is 0 */
} dmlk_limitsf;

/* x where `sign` is negative, otherwise 0. */
DMLK_INLINE float dmlk_where_negativef(float x, float sign) {
    return dmlk_bits_float(dmlk_float_bits(x) & (uint32_t)((int32_t)dmlk_float_bits(sign) >> 31));
}

/* --- exponential, as in double --- */

#define DMLK_ROUNDINGF 0x1.8p23f

typedef struct dmlk_exponentialf {
    uint32_t n;  /* and `bias`, in the low 9 bits */
    float less1; /* exp(r) - 1 */
} dmlk_exponentialf;

/* Of x + low, where |x| < 2^15 and |low| is not more than a unit in the last place of x; -0 is none.  `rounding` is
 * DMLK_ROUNDINGF + bias. */
DMLK_INLINE dmlk_exponentialf dmlk_reduce_exp_byf(float x, float low, float rounding) {
    const float shifted = fmaf(x, 1.44269504f, rounding), n = shifted - rounding;
    const float r = fmaf(n, -0x1.7f7d1cp-20f, fmaf(n, -0x1.62e4p-1f, x) + low), z = r * r;
    const float q01 = fmaf(r, 0.166665196f, 0.49999994f), q23 = fmaf(r, 0.00836889911f, 0.0416684076f);
    const float q = fmaf(z, fmaf(z, 0.00138142193f, q23), q01);
    return (dmlk_exponentialf){dmlk_float_bits(shifted), fmaf(z, q, r)};
}

DMLK_INLINE dmlk_exponentialf dmlk_reduce_expf(float x, float low, float bias) {
    return dmlk_reduce_exp_byf(x, low, DMLK_ROUNDINGF + bias);
}

/* 2^n, if it is normal; the bias is 127. */
DMLK_INLINE float dmlk_powerf(dmlk_exponentialf e) { return dmlk_bits_float(e.n << 23); }

/* 2^n for n from -250 to 250 as a product of two, as it or the result may be denormal or infinite; the bias is 254. */
typedef struct dmlk_powersf {
    float half, rest;
} dmlk_powersf;

#define DMLK_WIDELYF 254.0f

/* `easy`: it and the result are normal; then one factor is 1. */
DMLK_INLINE dmlk_powersf dmlk_wide_powersf(dmlk_exponentialf e, bool easy) {
    const uint32_t half = e.n >> 1;
    return easy ? (dmlk_powersf){dmlk_bits_float((e.n - 127) << 23), 1}
                : (dmlk_powersf){dmlk_bits_float(half << 23), dmlk_bits_float((e.n - half) << 23)};
}

DMLK_INLINE float dmlk_scale_widelyf(float x, dmlk_powersf by) { return x * by.half * by.rest; }

/* exp(x + low) for x from -170 to 170. */
DMLK_INLINE float dmlk_exp_of_partsf(float x, float low, bool easy) {
    const dmlk_exponentialf e = dmlk_reduce_expf(x, low, DMLK_WIDELYF);
    return dmlk_scale_widelyf(1 + e.less1, dmlk_wide_powersf(e, easy));
}

#define DMLK_EASY_EXPF 80.0f /* for |x| up to this, exp and what is made of it are normal numbers */

DMLK_INLINE bool dmlk_is_easy_expf(float x) { return fabsf(x) <= DMLK_EASY_EXPF; }
DMLK_INLINE float dmlk_easy_expf(float x) { return dmlk_exp_of_partsf(x, -0.0f, true); }

DMLK_INLINE float dmlk_expf(float x) {
    return dmlk_exp_of_partsf(dmlk_at_mostf(dmlk_at_leastf(x, dmlk_limitsf.exp_low), dmlk_limitsf.exp_high), -0.0f, false);
}

/* Exponentials relative to that of the largest number of a group.  A difference of the two would be rounded; therefore
 * numbers are reduced themselves, and powers of 2 are relative to the largest one's.  Beyond DMLK_LARGEF differences that
 * are not small are exact, and taken first. */
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
    const dmlk_exponentialf e = dmlk_reduce_exp_byf(dmlk_at_leastf(x - to.shift, to.low), -0.0f, to.rounding);
    const float power = dmlk_powerf(e);
    return fmaf(power, e.less1, power);
}

/* The same as exp(x), for |x| up to this; then e from one is that of the other times a power of 2, bit by bit. */
#define DMLK_SIMPLE_EXPF 40.0f

DMLK_INLINE float dmlk_exp_simplef(float x) {
    const dmlk_exponentialf e = dmlk_reduce_expf(x, -0.0f, 127);
    const float power = dmlk_powerf(e);
    return fmaf(power, e.less1, power);
}

/* exp(x) - 1, accurate near 0. */
DMLK_INLINE float dmlk_expm1f(float x) {
    const float a = dmlk_at_mostf(dmlk_at_leastf(x, dmlk_limitsf.expm1_low), dmlk_limitsf.exp_high);
    const dmlk_exponentialf e = dmlk_reduce_expf(a, -0.0f, 126);
    const float half = dmlk_powerf(e), y = 2 * fmaf(half, e.less1, half - 0.5f); /* 2^n may be infinite */
    return dmlk_choosef(fabsf(x) < 0x1p-25f, x, y);
}

/* exp(x) = 2^n (c + r) / (c - r) with c = r coth(r / 2), a function of r^2.  exp(x) / (1 + exp(x)) is then t / (t + c - r)
 * with t = 2^n (c + r), which has one division and is accurate in the tail.  All are 2^24 times as large, so that 2^n is
 * normal where the result is denormal. */
DMLK_INLINE float dmlk_sigmoidf(float x) {
    const float a = dmlk_at_mostf(dmlk_at_leastf(x, dmlk_limitsf.exp_low), dmlk_limitsf.sigmoid);
    const float bias = DMLK_ROUNDINGF + 127 + 24, shifted = fmaf(a, 1.44269504f, bias), n = shifted - bias;
    const float r = fmaf(n, -0x1.7f7d1cp-20f, fmaf(n, -0x1.62e4p-1f, a)), z = r * r;
    const float c = fmaf(fmaf(z, -0.00276392088f * 0x1p24f, 0.166665835f * 0x1p24f), z, 0x1p25f);
    const float t = dmlk_bits_float(dmlk_float_bits(shifted) << 23) * fmaf(c, 0x1p-24f, r);
    return t / (t + fmaf(r, -0x1p24f, c));
}

/* x sigmoid(x), where the power of 2 of exp(x) is applied last, as it may be denormal.  -infinity gives NaN, as
 * -infinity times 0. */
DMLK_INLINE float dmlk_silu_of_sizef(float x, bool easy) {
    const float a = fabsf(x), factor = easy ? x : dmlk_at_leastf(x, dmlk_limitsf.silu_low);
    const float most = easy ? a : dmlk_at_mostf(a, -dmlk_limitsf.silu_low);
    const dmlk_exponentialf e = dmlk_reduce_expf(-most, -0.0f, DMLK_WIDELYF);
    const dmlk_powersf by = dmlk_wide_powersf(e, easy);
    const float exponential = dmlk_scale_widelyf(1 + e.less1, by);
    const float sum = 1 + exponential, lost = exponential - (sum - 1);
    const float y = fmaf(factor, dmlk_where_negativef(e.less1, x), factor) / sum, z = fmaf(-y, lost, y);
    const float scaled = dmlk_scale_widelyf(z, (dmlk_powersf){x < 0 ? by.half : 1, x < 0 ? by.rest : 1});
    return dmlk_signedf(scaled, x);
}

DMLK_INLINE float dmlk_easy_siluf(float x) { return dmlk_silu_of_sizef(x, true); } /* dmlk_is_easy_expf */
DMLK_INLINE float dmlk_siluf(float x) {
    return dmlk_choosef(fabsf(x) < INFINITY, dmlk_silu_of_sizef(x, false), x + fabsf(x));
}

/* (exp(2 x) - 1) / (exp(2 x) + 1) with exp(2 x) = power (c + r) / (c - r), where c = r coth(r).  Signs are such that -0
 * stays. */
DMLK_INLINE float dmlk_tanhf(float x) {
    const float a = dmlk_at_mostf(dmlk_at_leastf(x, -dmlk_limitsf.tanh), dmlk_limitsf.tanh);
    const float bias = DMLK_ROUNDINGF + 127, shifted = fmaf(a, 2.88539008f, bias), n = shifted - bias;
    const float r = fmaf(n, -0.34657359f, a), z = r * r;
    const float c = fmaf(fmaf(z, -0.0221113671f, 0.33333167f), z, 1);
    const float power = dmlk_bits_float(dmlk_float_bits(shifted) << 23), more = 1 + power, less = 1 - power;
    return fmaf(-less, c, more * r) / fmaf(-less, r, more * c);
}

/* exp(|x|) / 2 for finite results; infinite beyond. */
DMLK_INLINE float dmlk_half_expf(float x, bool easy) {
    const float a = easy ? fabsf(x) : dmlk_at_mostf(fabsf(x), dmlk_limitsf.half_exp);
    const dmlk_exponentialf e = dmlk_reduce_expf(a, -0.0f, DMLK_WIDELYF - 1);
    return dmlk_scale_widelyf(1 + e.less1, dmlk_wide_powersf(e, easy));
}

DMLK_INLINE float dmlk_cosh_of_sizef(float x, bool easy) {
    const float half = dmlk_half_expf(x, easy);
    return half + 0.25f / half;
}

DMLK_INLINE float dmlk_easy_coshf(float x) { return dmlk_cosh_of_sizef(x, true); } /* dmlk_is_easy_expf */
DMLK_INLINE float dmlk_coshf(float x) { return dmlk_cosh_of_sizef(x, false); }

DMLK_INLINE float dmlk_sinh_of_sizef(float x, bool easy) {
    const float a = fabsf(x), z = x * x, half = dmlk_half_expf(x, easy);
    const float p01 = fmaf(z, 0.00833335053f, 0.166666672f), p23 = fmaf(z, 2.81743951e-06f, 0.000198360663f);
    const float small = fmaf(a, z * fmaf(z * z, p23, p01), a);
    return dmlk_signedf(a < 1 ? small : half - 0.25f / half, x);
}

DMLK_INLINE float dmlk_easy_sinhf(float x) { return dmlk_sinh_of_sizef(x, true); } /* dmlk_is_easy_expf */
DMLK_INLINE float dmlk_sinhf(float x) { return dmlk_sinh_of_sizef(x, false); }

/* log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)); log(1 + y) = y - y^2 / 2 + ... of s = y / (2 + y), as below. */
DMLK_INLINE float dmlk_softplusf(float x) {
    const float y = dmlk_exp_of_partsf(-dmlk_at_mostf(fabsf(x), -dmlk_limitsf.exp_low), -0.0f, false);
    const float s = y / (2 + y), z = s * s, square = 0.5f * y * y;
    const float p12 = fmaf(z, 0.286168844f, 0.39998877f), p34 = fmaf(z, 0.243009329f, 0.214276582f);
    const float p = fmaf(z, fmaf(z * z, p34, p12), 0.666666746f);
    return dmlk_where_negativef(x, -x) + (y - fmaf(-s, fmaf(z, p, square), square));
}

/* --- logarithm ---
 *
 * log(1 + f) = f - f^2 / 2 + f^3 Q(f): without the quotient of the one in double. */

/* log(1 + f) - f + low, for f from -0.293 to 0.5. */
DMLK_INLINE float dmlk_log1p_restf(float f, float low) {
    const float z = f * f;
    const float q01 = fmaf(f, -0.250001653f, 0.333333399f), q23 = fmaf(f, -0.166552966f, 0.199996049f);
    const float q45 = fmaf(f, -0.127277786f, 0.142762387f), q67 = fmaf(f, -0.0911619122f, 0.117006614f);
    const float q48 = fmaf(z, fmaf(z, 0.0376729244f, q67), q45);
    const float q = fmaf(z * z, q48, fmaf(z, q23, q01));
    return fmaf(-0.5f, z, fmaf(f * z, q, low));
}

#define DMLK_LN2F 0x1.62e4p-1f /* times whole numbers up to 2^8 it is exact */
#define DMLK_LN2_LOWF 0x1.7f7d1cp-20f

/* Positive, and neither denormal nor infinite nor NaN. */
DMLK_INLINE bool dmlk_is_normalf(float x) { return dmlk_float_bits(x) - 0x00800000 < 0x7f000000; }

/* Of a normal x > 0, which is 2^exponent times. */
DMLK_INLINE float dmlk_log_of_normalf(float x, float exponent) {
    const uint32_t least = 0x3f400000; /* 0.75, of numbers from there to 1.5 */
    const uint32_t above = dmlk_float_bits(x) - least;
    const float n = (float)((int32_t)above >> 23) + exponent;
    const float f = dmlk_bits_float((above & 0x7fffff) + least) - 1;
    return fmaf(n, DMLK_LN2F, f + dmlk_log1p_restf(f, n * DMLK_LN2_LOWF));
}

DMLK_INLINE float dmlk_easy_logf(float x) { return dmlk_log_of_normalf(x, 0); } /* dmlk_is_normalf */

DMLK_INLINE float dmlk_logf(float x) {
    const bool is_denormal = x < 0x1p-126f;
    const float y = dmlk_log_of_normalf(dmlk_choosef(is_denormal, x * 0x1p23f, x), dmlk_choosef(is_denormal, -23, 0));
    const float outside = dmlk_choosef(x == 0, -INFINITY, dmlk_choosef(x < 0, NAN, x)); /* or infinity, or NaN */
    return dmlk_choosef(x > 0 && x < INFINITY, y, outside);
}

/* --- power ---
 *
 * 2^(y log2(x)), with the logarithm and the product in two parts. */

typedef struct dmlk_partsf {
    float high, low;
} dmlk_partsf;

/* log2(x) of a normal x > 0, which is 2^exponent times, to 2^-34: x = 2^n m with sqrt(1/2) <= m < sqrt(2), log2(m) = s Q(s^2)
 * with s = (m - 1) / (m + 1), of which s, s^2 and the two largest coefficients need two parts. */
DMLK_INLINE dmlk_partsf dmlk_log2_of_partsf(float x, float exponent) {
    const uint32_t least = 0x3f3504f3, above = dmlk_float_bits(x) - least; /* sqrt(1/2) */
    const float n = exponent + (float)((int32_t)above >> 23), m = dmlk_bits_float((above & 0x7fffff) + least);
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

/* 2^(x + low) for x from -180 to 180 and |low| up to 1. */
DMLK_INLINE float dmlk_exp2_of_partsf(float x, float low) {
    const float bias = DMLK_ROUNDINGF + DMLK_WIDELYF, shifted = x + bias, n = shifted - bias;
    const float most = x - n, r = most + low, z = r * r;
    const float p01 = fmaf(r, 0.055503592f, 0.24022648f), p23 = fmaf(r, 0.001339118f, 0.009618521f);
    const float p = fmaf(z, fmaf(z, 0.00015323944f, p23), p01);
    const float y = 1 + fmaf(most, 0.6931472f, fmaf(z, p, low * 0.6931472f));
    return dmlk_scale_widelyf(y, dmlk_wide_powersf((dmlk_exponentialf){dmlk_float_bits(shifted), 0}, false));
}

DMLK_INLINE float dmlk_limited_exp2f(float x) {
    return dmlk_at_mostf(dmlk_at_leastf(x, -dmlk_limitsf.exp2), dmlk_limitsf.exp2);
}

DMLK_INLINE bool dmlk_is_easy_powf(float x, float y) { return dmlk_is_normalf(x) & (fabsf(y) <= 0x1p14f); }

DMLK_INLINE float dmlk_easy_powf(float x, float y) {
    const dmlk_partsf logarithm = dmlk_log2_of_partsf(x, 0);
    const float high = y * logarithm.high, low = fmaf(y, logarithm.low, fmaf(y, logarithm.high, -high));
    return dmlk_exp2_of_partsf(dmlk_limited_exp2f(high), low);
}

/* As C's pow: 1 for an exponent of 0 or a base of 1, whatever the other operand is. */
DMLK_INLINE float dmlk_powf(float x, float y) {
    const float a = fabsf(x);
    const bool is_denormal = a < 0x1p-126f, is_whole = dmlk_floorf(y) == y, is_odd = is_whole && dmlk_floorf(0.5f * y) != 0.5f * y;
    const dmlk_partsf l = dmlk_log2_of_partsf(dmlk_choosef(is_denormal, a * 0x1p23f, a), dmlk_choosef(is_denormal, -23, 0));
    const bool is_number = a > 0 && a < INFINITY;
    const float logarithm = dmlk_choosef(is_number, l.high, dmlk_choosef(a == 0, -INFINITY, a));
    const float high = y * logarithm, x2 = dmlk_limited_exp2f(high);
    const float low = fmaf(y, l.low, fmaf(y, l.high, -high));
    float r = dmlk_exp2_of_partsf(x2, dmlk_choosef(x2 == high, low, 0));
    r = dmlk_choosef(a == 1, 1, r); /* 0 times infinity */
    r = dmlk_choosef(x < 0 && !is_whole && a < INFINITY, NAN, r);
    r = dmlk_choosef(is_odd, dmlk_signedf(r, x), r);
    return dmlk_choosef(x == 1 || y == 0, 1, r);
}

/* --- inverse hyperbolic functions --- */

/* log(1 + y + low) + more log(2), or where `one` is 0 without the 1; y >= 0, and from 1/2 up if one is 0. */
DMLK_INLINE float dmlk_log_of_partsf(float y, float low, float one, float more) {
    const uint32_t least = 0x3f400000, above = dmlk_float_bits(y + one) - least; /* as dmlk_logf */
    const float n = (float)((int32_t)above >> 23), part = dmlk_bits_float((127u << 23) - (above & 0xff800000)); /* 2^-n */
    const float f = fmaf(y, part, fmaf(one, part, -1)), inverse = fmaf(f, fmaf(f, 0.75f, -1), 1); /* nearly 1 / (1 + f) */
    const float logarithm = f + dmlk_log1p_restf(f, fmaf(low * part, inverse, (n + more) * DMLK_LN2_LOWF));
    return fmaf(n + more, DMLK_LN2F, logarithm);
}

#define DMLK_SQUARED_LIMITF 0x1p13f /* beyond, a^2 + 1 and a^2 - 1 are a^2 to the last bit */

/* About 1 / x for x > 0: one digit, which is enough to divide what another result lacks. */
DMLK_INLINE float dmlk_nearly_inversef(float x) { return dmlk_bits_float(0x7f000000 - dmlk_float_bits(x)); }

/* log(a + sqrt(a^2 + 1)), where sqrt(a^2 + 1) = 1 + t + `more`, as (1 + t)^2 - 1 = t^2 + 2 t. */
DMLK_INLINE float dmlk_asinh_of_sizef(float x, bool is_large) {
    const float a = fabsf(x), root = sqrtf(fmaf(a, a, 1)), t = root - 1, sum = a + t;
    const float more = fmaf(-t, t, fmaf(a, a, -2 * t)) * (0.5f * dmlk_nearly_inversef(root));
    const float y = dmlk_choosef(is_large, a * 0x1p-4f, sum);
    const float low = dmlk_choosef(is_large, 0, (t - (sum - a)) + more);
    const float z = dmlk_log_of_partsf(y, low, dmlk_choosef(is_large, 0, 1), dmlk_choosef(is_large, 5, 0));
    return dmlk_signedf(z, x);
}

DMLK_INLINE bool dmlk_is_easy_asinhf(float x) { return fabsf(x) < DMLK_SQUARED_LIMITF; }
DMLK_INLINE float dmlk_easy_asinhf(float x) { return dmlk_asinh_of_sizef(x, false); }

DMLK_INLINE float dmlk_asinhf(float x) {
    const float z = dmlk_asinh_of_sizef(x, fabsf(x) >= DMLK_SQUARED_LIMITF);
    return dmlk_choosef(fabsf(x) < INFINITY, z, x);
}

/* log(x + sqrt(x^2 - 1)), of t = x - 1, which is exact. */
DMLK_INLINE float dmlk_acosh_of_sizef(float x, bool is_large) {
    const float t = x - 1, square = fmaf(t, t, 2 * t), root = sqrtf(square), sum = root + t;
    const float lost = fmaf(-root, root, square) + fmaf(t, t, fmaf(2, t, -square));
    const float more = lost * (0.5f * dmlk_nearly_inversef(root));
    const float y = dmlk_choosef(is_large, x * 0x1p-4f, sum);
    const float low = dmlk_choosef(is_large, 0, (t - (sum - root)) + more);
    return dmlk_log_of_partsf(y, low, dmlk_choosef(is_large, 0, 1), dmlk_choosef(is_large, 5, 0));
}

DMLK_INLINE float dmlk_acoshf(float x) {
    const float z = dmlk_acosh_of_sizef(x, x >= DMLK_SQUARED_LIMITF);
    return dmlk_choosef(x >= 1 && x < INFINITY, z, dmlk_choosef(x < 1, NAN, x));
}

/* log((1 + a) / (1 - a)) / 2 = n log(2) / 2 + atanh(s), where s = (1 + a - 2^n (1 - a)) / (1 + a + 2^n (1 - a)): the
 * bits of 1 + a and 1 - a tell their logarithms well enough for n.  What sums and quotient lose goes into `low`. */
DMLK_INLINE float dmlk_easy_atanhf(float x) { /* |x| < 1 */
    const float a = fabsf(x), more = 1 + a, less = 1 - a, more_low = a - (more - 1), less_low = (1 - less) - a;
    const uint32_t powers = dmlk_float_bits(more) - dmlk_float_bits(less) + 0x400000;
    const float n = (float)((int32_t)powers >> 23), power = dmlk_bits_float((powers & 0xff800000) + (127u << 23));
    const float over = fmaf(-power, less, more), over_low = fmaf(-power, less_low, more_low);
    const float under = fmaf(power, less, more), under_low = fmaf(power, less, more - under) + fmaf(power, less_low, more_low);
    const float inverse = 1 / under, s = over * inverse, z = s * s;
    const float low = inverse * (fmaf(-s, under, over) + fmaf(-s, under_low, over_low));
    const float p01 = fmaf(z, 0.20000582f, 0.333333307f), p23 = fmaf(z, 0.121516062f, 0.142463229f);
    const float p = fmaf(z * z, p23, p01);
    const float y = fmaf(n, 0.5f * DMLK_LN2F, s + fmaf(s * z, p, fmaf(n, 0.5f * DMLK_LN2_LOWF, low)));
    return dmlk_signedf(y, x);
}

DMLK_INLINE float dmlk_atanhf(float x) {
    const float outside = dmlk_signedf(dmlk_choosef(fabsf(x) == 1, INFINITY, NAN), x);
    return dmlk_choosef(fabsf(x) < 1, dmlk_easy_atanhf(x), outside);
}

/* --- error function ---
 *
 * 2 t / (1 + t^2) with t = erf(x) / (1 + sqrt(1 - erf(x)^2)), of which t = x P(x^2) / Q(x^2): errors of t vanish where the result is
 * almost 1. */

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

/* x Phi(x) = max(x, 0) - |x| Phi(-|x|), where |x| Phi(-|x|) = exp(-x^2 / 2) s P(2 s - 1) with s = |x| / (|x| + 3.5).
 * -infinity gives NaN, as -infinity times 0. */
DMLK_INLINE float dmlk_gelu_of_sizef(float x, bool easy) {
    const float a = fabsf(x), b = easy ? a : dmlk_at_mostf(a, dmlk_limitsf.gelu), square = b * b;
    const float s = b / (b + 3.5f), t = 2 * s - 1;
    float p = 0.00010400686f;
    p = fmaf(p, t, 0.000410398177f);
    p = fmaf(p, t, -0.000492997176f);
    p = fmaf(p, t, -0.00316477101f);
    p = fmaf(p, t, 0.00649433769f);
    p = fmaf(p, t, 0.017402973f);
    p = fmaf(p, t, -0.116053507f);
    p = fmaf(p, t, 0.315425485f);
    p = fmaf(p, t, -0.565561712f);
    p = fmaf(p, t, 0.744416058f);
    const dmlk_exponentialf e = dmlk_reduce_expf(-0.5f * square, -0.5f * fmaf(b, b, -square), DMLK_WIDELYF);
    const float tail = dmlk_scale_widelyf(fmaf(s * p, e.less1, s * p), dmlk_wide_powersf(e, easy));
    return dmlk_signedf((x > 0 ? x : 0) - tail, x);
}

DMLK_INLINE bool dmlk_is_easy_geluf(float x) { return fabsf(x) <= 12; }
DMLK_INLINE float dmlk_easy_geluf(float x) { return dmlk_gelu_of_sizef(x, true); }
DMLK_INLINE float dmlk_geluf(float x) {
    return dmlk_choosef(fabsf(x) < INFINITY, dmlk_gelu_of_sizef(x, false), x + fabsf(x));
}

/* --- circular functions ---
 *
 * x = n pi/2 + r with |r| <= pi/4, with pi/2 in three parts.  For |x| <= DMLK_CIRCULAR_LIMITF, see math.c. */

#define DMLK_CIRCULAR_LIMITF 0x1p15f
/* All positive, which makes the remainder of -0 -0. */
#define DMLK_QUARTER1F 0x1.921fb4p+0f
#define DMLK_QUARTER2F 0x1.4442d0p-24f
#define DMLK_QUARTER3F 0x1.846988p-48f

typedef struct dmlk_circularf {
    float n, r; /* r: x without n times the first part, which is exact */
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
    return r == 0 ? r : fmaf(r, z * p, r); /* -0 stays */
}

DMLK_INLINE float dmlk_cos_reducedf(float r) {
    const float z = r * r;
    float p = 2.44380917e-05f;
    p = fmaf(p, z, -0.00138873642f);
    p = fmaf(p, z, 0.0416666456f);
    return 1 - z * fmaf(-z, p, 0.5f);
}

/* Sine or cosine, for odd quarters the other one, with the sign changed by bit 1 of `sign`. */
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

/* With r in two parts, as tan is steep. */
DMLK_INLINE float dmlk_tan_off(dmlk_circularf at) {
    const float part = at.n * DMLK_QUARTER2F, rest = fmaf(at.n, DMLK_QUARTER2F, -part);
    const float r = at.r - part, back = r - at.r, lost = (at.r - (r - back)) - (part + back);
    const float low = lost - fmaf(at.n, DMLK_QUARTER3F, rest), z = r * r;
    float p = 0.00947595667f;
    p = fmaf(p, z, 0.00295705395f);
    p = fmaf(p, z, 0.024539046f);
    p = fmaf(p, z, 0.053378243f);
    p = fmaf(p, z, 0.133392364f);
    p = fmaf(p, z, 0.333331376f);
    const float cube = r * z, t = fmaf(cube, p, r); /* tan has the derivative 1 + tan^2 */
    const float tangent = r + fmaf(cube, p, low * fmaf(t, t, 1));
    return dmlk_choosef((at.quarter & 1) != 0, -1 / tangent, dmlk_choosef(r == 0, r, tangent));
}

/* Without the large ones. */
DMLK_INLINE bool dmlk_is_easy_circularf(float x) { return fabsf(x) < DMLK_CIRCULAR_LIMITF; }
DMLK_INLINE float dmlk_easy_sinf(float x) { return dmlk_sin_off(dmlk_reduce_circularf(x)); }
DMLK_INLINE float dmlk_easy_cosf(float x) { return dmlk_cos_off(dmlk_reduce_circularf(x)); }
DMLK_INLINE float dmlk_easy_tanf(float x) { return dmlk_tan_off(dmlk_reduce_circularf(x)); }

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
    p = fmaf(p, z, 0.0144026158f);
    p = fmaf(p, z, 0.0318176076f);
    p = fmaf(p, z, 0.0445157215f);
    p = fmaf(p, z, 0.0750051066f);
    p = fmaf(p, z, 0.166666597f);
    return s * (z * p);
}

DMLK_INLINE float dmlk_asinf(float x) {
    const float a = fabsf(x);
    const bool is_small = a < 0.5f;
    const float z = dmlk_choosef(is_small, a * a, 0.5f * (1 - a)), s = dmlk_choosef(is_small, a, sqrtf(z));
    const float y = dmlk_asin_halff(s, z);
    const float large = DMLK_HALF_PIF - fmaf(2, s, fmaf(2, y, -DMLK_HALF_PI_LOWF));
    return dmlk_signedf(dmlk_choosef(is_small, s + y, large), x);
}

/* pi/2 - asin(x), 2 asin(s) or, near -1, pi - 2 asin(s). */
DMLK_INLINE float dmlk_acosf(float x) {
    const float a = fabsf(x);
    const bool is_small = a < 0.5f;
    const float z = dmlk_choosef(is_small, a * a, 0.5f * (1 - a)), s = dmlk_choosef(is_small, a, sqrtf(z));
    const float y = dmlk_asin_halff(s, z);
    const float base = dmlk_choosef(is_small, DMLK_HALF_PIF, dmlk_where_negativef(2 * DMLK_HALF_PIF, x));
    const float factor = dmlk_choosef(is_small, dmlk_signedf(1, -x), dmlk_signedf(2, x));
    return base + fmaf(factor, s, fmaf(factor, y, base * (DMLK_HALF_PI_LOWF / DMLK_HALF_PIF)));
}

/* atan(a) = pi/4 + atan((a - 1) / (a + 1)) from tan(pi/8), pi/2 - atan(1 / a) from tan(3 pi/8). */
DMLK_INLINE float dmlk_atanf(float x) {
    const float a = fabsf(x);
    const bool is_middle = a > 0.414213562f, is_large = a > 2.41421356f;
    const float over = dmlk_choosef(is_large, -1, dmlk_choosef(is_middle, a - 1, a));
    const float under = dmlk_choosef(is_large, a, dmlk_choosef(is_middle, a + 1, 1));
    const float u = over / under, z = u * u;
    float p = -0.0608344525f;
    p = fmaf(p, z, 0.105959982f);
    p = fmaf(p, z, -0.142438486f);
    p = fmaf(p, z, 0.199984893f);
    p = fmaf(p, z, -0.333333164f);
    const float part = dmlk_choosef(is_large, 1, dmlk_choosef(is_middle, 0.5f, 0));
    const float high = part * DMLK_HALF_PIF, low = part * DMLK_HALF_PI_LOWF;
    return dmlk_signedf(high + (u + (u * (z * p) + low)), x);
}

#endif

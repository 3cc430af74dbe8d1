/* dmlk_math.h - elementary functions for vectorized loops: no branches, no tables, no calls.
 *
 * Arguments are doubles with FLOAT32 or FLOAT16 values, or slightly more precision; results have a relative error
 * of about 2^-44, so that a result rounded to FLOAT32 is correctly rounded except for about one argument in a
 * million, whose result is the other one of the two neighbours.  Only additions, multiplications, divisions, square
 * roots and integer operations on the bits are used, each rounded once: every CPU gives the same bits.  (Not precise
 * enough for results in FLOAT64.)
 *
 * Special values are those of C: infinities, NaN, signed zeros.  Polynomials are near-minimax fits. */
#ifndef DMLK_MATH_H
#define DMLK_MATH_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "element.h"

/* Inlined even in files that compilers consider too large: a call would prevent the vectorization of its loop. */
#ifdef __GNUC__
#define DMLK_INLINE static inline __attribute__((always_inline))
#else
#define DMLK_INLINE static inline
#endif

/* |x| with the sign of `sign`. */
DMLK_INLINE double dmlk_signed(double x, double sign) {
    const uint64_t top = UINT64_C(1) << 63;
    return dmlk_bits_double((dmlk_double_bits(x) & ~top) | (dmlk_double_bits(sign) & top));
}

DMLK_INLINE float dmlk_signedf(float x, float sign) {
    const uint32_t top = UINT32_C(1) << 31;
    return dmlk_bits_float((dmlk_float_bits(x) & ~top) | (dmlk_float_bits(sign) & top));
}

#define T double
#define FN(name) name
#define BIG 0x1p52
#include "rounding.inc"

#define T float
#define FN(name) name##f
#define BIG 0x1p23f
#include "rounding.inc"

/* Adding this to a double below 2^51 rounds it to an integer, which is then in the low bits of the sum. */
#define DMLK_ROUNDING 0x1.8p52

/* --- exponential ---
 *
 * x = n ln(2) + r with |r| <= ln(2)/2, exp(x) = 2^n exp(r). */

typedef struct dmlk_exponential {
    double power; /* 2^n */
    double less1; /* exp(r) - 1 */
} dmlk_exponential;

DMLK_INLINE dmlk_exponential dmlk_reduce_exp(double x) {
    const double shifted = x * 1.4426950408889634 + DMLK_ROUNDING, n = shifted - DMLK_ROUNDING;
    const double r = (x - n * 0x1.62e42fefap-1) - n * 0x1.cf79abc9e3b3ap-40;
    double q = 2.7613806861538288093e-7;
    q = q * r + 2.7625115578287629342e-6;
    q = q * r + 0.000024801536388690767814;
    q = q * r + 0.00019841208732536383125;
    q = q * r + 0.0013888888905881542497;
    q = q * r + 0.0083333333537293971516;
    q = q * r + 0.041666666666651355025;
    q = q * r + 0.16666666666648288149;
    q = q * r + 0.5;
    const double power = dmlk_bits_double((dmlk_double_bits(shifted) << 52) + (UINT64_C(1023) << 52));
    return (dmlk_exponential){power, r + r * r * q};
}

/* Between these bounds 2^n is normal; beyond them, every FLOAT32 result is 0 or infinite. */
#define DMLK_EXP_LOW (-708.0)
#define DMLK_EXP_HIGH 709.0

DMLK_INLINE double dmlk_clamp_exp(double x) {
    x = x < DMLK_EXP_LOW ? DMLK_EXP_LOW : x; /* a NaN stays a NaN */
    return x > DMLK_EXP_HIGH ? DMLK_EXP_HIGH : x;
}

DMLK_INLINE double dmlk_exp(double x) {
    const dmlk_exponential e = dmlk_reduce_exp(dmlk_clamp_exp(x));
    const double y = e.power + e.power * e.less1;
    return x > DMLK_EXP_HIGH ? (double)INFINITY : x < DMLK_EXP_LOW ? 0 : y;
}

/* exp(x) - 1, accurate near 0. */
DMLK_INLINE double dmlk_expm1(double x) {
    const dmlk_exponential e = dmlk_reduce_exp(dmlk_clamp_exp(x));
    const double y = e.power * e.less1 + (e.power - 1);
    return x > DMLK_EXP_HIGH ? (double)INFINITY : x == 0 ? x : y;
}

DMLK_INLINE double dmlk_sigmoid(double x) { return 1 / (1 + dmlk_exp(-x)); }

DMLK_INLINE double dmlk_silu(double x) { return x / (1 + dmlk_exp(-x)); }

/* --- logarithm ---
 *
 * x = 2^n m with sqrt(1/2) <= m < sqrt(2), s = (m - 1) / (m + 1), log(m) = 2 s + s^3 P(s^2). */

/* log(x 2^scale) for a normal x > 0. */
DMLK_INLINE double dmlk_log_scaled(double x, double scale) {
    const uint64_t half = UINT64_C(0x3fe6a09e667f3bcd); /* sqrt(1/2) */
    const uint64_t above = dmlk_double_bits(x) - half + (UINT64_C(1023) << 52);
    /* n + 1023 as a double: in the low bits of 2^52. */
    const double n = dmlk_bits_double((above >> 52) | (UINT64_C(1075) << 52)) - (0x1p52 + 1023) + scale;
    const double m = dmlk_bits_double((above & ((UINT64_C(1) << 52) - 1)) + half);
    const double f = m - 1, s = f / (m + 1), z = s * s;
    double p = 0.14616721179861815749;
    p = p * z + 0.15331699633543858719;
    p = p * z + 0.18182889786191042483;
    p = p * z + 0.22222211125722808938;
    p = p * z + 0.28571428626031066765;
    p = p * z + 0.39999999999899381939;
    p = p * z + 0.66666666666666696905;
    return n * 0x1.62e42fefap-1 + (2 * s + (s * z * p + n * 0x1.cf79abc9e3b3ap-40));
}

DMLK_INLINE double dmlk_log_normal(double x) { return dmlk_log_scaled(x, 0); }

/* `y` is the result for normal x > 0. */
DMLK_INLINE double dmlk_log_special(double x, double y) {
    y = x == 0 ? -(double)INFINITY : x < 0 ? (double)NAN : y;
    return x < (double)INFINITY ? y : x; /* infinity and NaN */
}

DMLK_INLINE double dmlk_log(double x) { return dmlk_log_special(x, dmlk_log_normal(x)); }

/* log(1 + x), accurate near 0. */
DMLK_INLINE double dmlk_log1p(double x) {
    const double u = 1 + x, lost = x - (u - 1);
    const double y = dmlk_log_normal(u) + lost / u;
    return x == 0 ? x : dmlk_log_special(u, y);
}

/* log(1 + exp(x)) without overflow. */
DMLK_INLINE double dmlk_softplus(double x) { return dmlk_log1p(dmlk_exp(-fabs(x))) + (x > 0 ? x : x < 0 ? 0 : x); }

/* --- hyperbolic functions and their inverses --- */

DMLK_INLINE double dmlk_tanh(double x) {
    const double a = fabs(x);
    const double e = dmlk_expm1(2 * (a > 40 ? 40 : a));
    return dmlk_signed(e / (e + 2), x);
}

DMLK_INLINE double dmlk_sinh(double x) {
    const double a = fabs(x);
    const double e = dmlk_expm1(a > 700 ? 700 : a);
    return dmlk_signed(0.5 * (e + e / (e + 1)), x);
}

DMLK_INLINE double dmlk_cosh(double x) {
    const double a = fabs(x);
    const double e = dmlk_exp(a > 700 ? 700 : a);
    return 0.5 * (e + 1 / e);
}

DMLK_INLINE double dmlk_asinh(double x) {
    const double a = fabs(x), square = a * a;
    const double t = a > 1e100 ? a : a + square / (1 + sqrt(square + 1));
    return dmlk_signed(dmlk_log1p(t), x);
}

DMLK_INLINE double dmlk_acosh(double x) {
    const double t = x - 1;
    return dmlk_log1p(x < 1 ? (double)NAN : x > 1e100 ? x : t + sqrt(t * (x + 1)));
}

DMLK_INLINE double dmlk_atanh(double x) {
    const double a = fabs(x);
    return dmlk_signed(0.5 * dmlk_log1p(2 * a / (1 - a)), x);
}

/* --- circular functions ---
 *
 * x = n pi/2 + r with |r| <= pi/4, for |x| <= DMLK_CIRCULAR_LIMIT.  For larger arguments, n has too many bits for the
 * three parts of pi/2: see math.c. */

#define DMLK_CIRCULAR_LIMIT 0x1p25

typedef struct dmlk_circular {
    double r;
    uint64_t n; /* only the low two bits are used */
} dmlk_circular;

DMLK_INLINE dmlk_circular dmlk_reduce_circular(double x) {
    const double shifted = x * 0.63661977236758134308 + DMLK_ROUNDING, n = shifted - DMLK_ROUNDING;
    const double r = ((x - n * 0x1.921fb54p0) - n * 0x1.10b461p-30) - n * 0x1.a62633145c06ep-58;
    return (dmlk_circular){r, dmlk_double_bits(shifted)};
}

DMLK_INLINE double dmlk_sin_reduced(double r) {
    const double z = r * r;
    double p = 1.5918101230274120348e-10;
    p = p * z - 2.5051131455427947391e-8;
    p = p * z + 2.755731610068302914e-6;
    p = p * z - 0.00019841269836754970014;
    p = p * z + 0.0083333333333309461029;
    p = p * z - 0.16666666666666664621;
    return r * (1 + z * p);
}

DMLK_INLINE double dmlk_cos_reduced(double r) {
    const double z = r * r;
    double p = 2.0700565397369931549e-9;
    p = p * z - 2.7556369316750492893e-7;
    p = p * z + 0.000024801585209738397527;
    p = p * z - 0.0013888888887276055267;
    p = p * z + 0.041666666664676617;
    return 1 - 0.5 * z + z * z * p;
}

DMLK_INLINE double dmlk_sin_of(dmlk_circular at) {
    const double y = at.n & 1 ? dmlk_cos_reduced(at.r) : dmlk_sin_reduced(at.r);
    return at.n & 2 ? -y : y;
}

DMLK_INLINE double dmlk_cos_of(dmlk_circular at) {
    const double y = at.n & 1 ? dmlk_sin_reduced(at.r) : dmlk_cos_reduced(at.r);
    return (at.n + 1) & 2 ? -y : y;
}

DMLK_INLINE double dmlk_tan_of(dmlk_circular at) {
    const double s = dmlk_sin_reduced(at.r), c = dmlk_cos_reduced(at.r);
    return at.n & 1 ? -c / s : s / c;
}

/* These replace `count` <= DMLK_MATH_CHUNK values by their results; fast if few of them are large. */
#define DMLK_MATH_CHUNK 256 /* values */
void dmlk_sin_each(double *values, int64_t count);
void dmlk_cos_each(double *values, int64_t count);
void dmlk_tan_each(double *values, int64_t count);

/* x^y, correctly rounded but for a few; whole powers are exact. */
double dmlk_exact_pow(double x, double y);

/* Exact remainders of values[i] divided by by[i], with the sign of the value (C's fmod) or of the divisor. */
void dmlk_fmod_each(double *values, const double *by, int64_t count);
void dmlk_modulus_each(double *values, const double *by, int64_t count);

/* --- their inverses --- */

DMLK_INLINE double dmlk_atan_positive(double a) {
    const double inverse = 1 / a;
    const double t = a > 1 ? inverse : a;                                   /* atan(a) = pi/2 - atan(1/a) */
    const double u = t > 0.41421356237309504880 ? (t - 1) / (t + 1) : t; /* atan(t) = pi/4 + atan(u) */
    const double z = u * u;
    double p = 0.022747352471342214218;
    p = p * z - 0.044831026218406114109;
    p = p * z + 0.057362617450565889139;
    p = p * z - 0.066496022096694954006;
    p = p * z + 0.076910540710295894563;
    p = p * z - 0.090908524969848742039;
    p = p * z + 0.11111109634672652437;
    p = p * z - 0.14285714266067950499;
    p = p * z + 0.19999999999898239404;
    p = p * z - 0.33333333333333246088;
    double y = u + u * z * p;
    y = t > 0.41421356237309504880 ? 0.78539816339744830962 + y : y;
    return a > 1 ? 1.57079632679489661923 - y : y;
}

DMLK_INLINE double dmlk_atan(double x) { return dmlk_signed(dmlk_atan_positive(fabs(x)), x); }

DMLK_INLINE double dmlk_asin(double x) {
    const double a = fabs(x);
    return dmlk_signed(dmlk_atan_positive(a / sqrt((1 - a) * (1 + a))), x);
}

DMLK_INLINE double dmlk_acos(double x) { return 2 * dmlk_atan_positive(sqrt((1 - x) / (1 + x))); }

/* The angle of the point (x, y). */
DMLK_INLINE double dmlk_atan2(double y, double x) {
    const double a = fabs(y), b = fabs(x);
    const double ratio = a == b ? (a == 0 ? 0 : 1) : a / b; /* (the quotient of two zeros or two infinities is NaN) */
    const double angle = dmlk_atan_positive(a != a || b != b ? (double)NAN : ratio);
    const uint64_t is_left = dmlk_double_bits(x) >> 63;
    return dmlk_signed(is_left ? 3.14159265358979323846 - angle : angle, y);
}

/* --- error function ---
 *
 * erf(x) = x P(x^2) up to 1; beyond, erfc(x) = exp(-x^2) Q(t) / (x + 1) with t = (x - 3) / (x + 3). */

DMLK_INLINE double dmlk_erf_small(double x) {
    const double z = x * x;
    double p = -1.0469110332151208431e-7;
    p = p * z + 1.530637316364108433e-6;
    p = p * z - 0.000014795031400662044644;
    p = p * z + 0.00012046261269779797407;
    p = p * z - 0.00085479337365196331564;
    p = p * z + 0.0052239671935438997183;
    p = p * z - 0.026866169050599323908;
    p = p * z + 0.11283791658548712804;
    p = p * z - 0.37612638902808613566;
    p = p * z + 1.128379167095493825;
    return x * p;
}

DMLK_INLINE double dmlk_erfc_large(double a) {
    a = a > 27 ? 27 : a; /* where exp(-a^2) is 0 */
    const double t = (a - 3) / (a + 3);
    double q = -4.6547852432125038257e-7;
    q = q * t + 1.6787761293016088966e-6;
    q = q * t + 6.4983446822516237194e-7;
    q = q * t - 9.2176347114843998387e-6;
    q = q * t - 1.612771667838665047e-6;
    q = q * t + 0.000056221954089118053398;
    q = q * t - 0.000020546190472923285498;
    q = q * t - 0.00036730980844716682636;
    q = q * t + 0.00064581585733881550352;
    q = q * t + 0.0016185714467723677237;
    q = q * t - 0.0097506895873656933438;
    q = q * t + 0.021957763882618642229;
    q = q * t - 0.023803913091639129516;
    q = q * t - 0.010235388895716846648;
    q = q * t + 0.09902075367911315728;
    q = q * t - 0.23092733308383432494;
    q = q * t + 0.7160046047255607616;
    return dmlk_exp(-a * a) * q / (a + 1);
}

DMLK_INLINE double dmlk_erf(double x) {
    const double a = fabs(x);
    return a <= 1 ? dmlk_erf_small(x) : dmlk_signed(1 - dmlk_erfc_large(a), x);
}

DMLK_INLINE double dmlk_erfc(double x) {
    const double a = fabs(x), far = dmlk_erfc_large(a);
    return a <= 1 ? 1 - dmlk_erf_small(x) : x < 0 ? 2 - far : far;
}

DMLK_INLINE double dmlk_gelu(double x) { return x * 0.5 * dmlk_erfc(-x * 0.70710678118654752440); } /* 1 + erf(y) = erfc(-y) */

/* --- power --- */

/* Like C's pow: 1 for an exponent of 0 or a base of 1, whatever the other operand is. */
DMLK_INLINE double dmlk_pow(double x, double y) {
    const double a = fabs(x), sign = dmlk_signed(1, x);
    const bool is_whole = dmlk_floor(y) == y, is_odd = is_whole && dmlk_floor(0.5 * y) != 0.5 * y;
    double r = dmlk_exp(y * dmlk_log(a));
    r = a == 1 && fabs(y) == (double)INFINITY ? 1 : r; /* infinity times 0 */
    r = x < 0 && !is_whole && a < (double)INFINITY ? (double)NAN : r;
    r = is_odd ? r * sign : r;
    return x == 1 || y == 0 ? 1 : r;
}

#endif

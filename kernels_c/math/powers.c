/* powers.c - powers whose whole results are exact.  C's powl would do where it has 64 bits or more, but it has 53, 64 or
 * 113, as the machine and its C library have it; these are the same bits everywhere.
 *
 * Where the exponent is whole and not negative, and the power of the base's odd part fits 127 bits, it is computed as an
 * integer and rounded once; other whole exponents up to 256 multiply pairs of doubles, with an error before rounding of about
 * 2^-94.  Otherwise exp(y log(x)) in pairs of doubles: the error before rounding is about 2^-80. */
#include "dmlk_math.h"

#include <stdlib.h>

typedef unsigned __int128 wide;

/* high + low, where high is that sum rounded to a double. */
typedef struct pair {
    double high, low;
} pair;

/* a + b with |a| >= |b|. */
static pair joined(double a, double b) {
    const double high = a + b;
    return (pair){high, b - (high - a)};
}

static pair sum(pair a, pair b) {
    const double high = a.high + b.high, of_b = high - a.high;
    const double rest = (a.high - (high - of_b)) + (b.high - of_b);
    return joined(high, rest + (a.low + b.low));
}

static pair product(pair a, pair b) {
    const double high = a.high * b.high;
    return joined(high, fma(a.high, b.high, -high) + (a.high * b.low + a.low * b.high));
}

static pair quotient(pair a, pair b) {
    const double high = a.high / b.high;
    const double rest = fma(-high, b.high, a.high) + (a.low - high * b.low);
    return joined(high, rest / b.high);
}

static pair exactly(double x) { return (pair){x, 0}; }

static const pair log_2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};

/* x = 2^e m with sqrt(1/2) <= m < sqrt(2); log(m) = 2 (s + s^3 / 3 + s^5 / 5 + ...) with s = (m - 1) / (m + 1). */
static pair log_of(double x) {
    enum { TERMS = 17 }; /* s^2 is below 0.0295: the next term is below 2^-86 */
    int e;
    double m = frexp(x, &e);
    if (m < 0.70710678118654752440) {
        m *= 2;
        e--;
    }
    const pair s = quotient(exactly(m - 1), sum(exactly(m), exactly(1))), square = product(s, s);
    pair series = exactly(0);
    for (int k = TERMS - 1; k >= 0; k--) {
        series = sum(quotient(exactly(1), exactly(2 * k + 1)), product(square, series));
    }
    const pair of_m = product(s, series);
    return sum(product(exactly(e), log_2), (pair){2 * of_m.high, 2 * of_m.low});
}

/* x = n log(2) + r with |r| <= log(2) / 2; exp(r) = 1 + r (1 + r / 2 (1 + r / 3 (...))). */
static double exp_of(pair x) {
    enum { TERMS = 22 }; /* the next is below 2^-100 */
    if (x.high > 710 || x.high < -746) {
        return x.high > 0 ? (double)INFINITY : 0;
    }
    const double n = rint(x.high / log_2.high);
    const pair r = sum(x, product(exactly(-n), log_2));
    pair series = exactly(1);
    for (int k = TERMS; k > 0; k--) {
        series = sum(exactly(1), product(r, quotient(series, exactly(k))));
    }
    return ldexp(series.high, (int)n);
}

/* x^y for a finite x > 0 and a whole y from 0 to 2048, if the power of the odd part of x fits 127 bits. */
static bool find_whole(double x, double y, double *result) {
    int e;
    uint64_t odd = (uint64_t)(frexp(x, &e) * 0x1p53);
    const int zeros = __builtin_ctzll(odd);
    odd >>= zeros;
    const int bits = 64 - __builtin_clzll(odd), count = (int)y;
    wide power = 1;
    for (int i = 0; i < count && odd > 1; i++) {
        if (power >> (127 - bits) != 0) {
            return false;
        }
        power *= odd;
    }
    *result = ldexp((double)power, (e - 53 + zeros) * count);
    return true;
}

/* x^y for a finite x > 0 and a whole y, |y| <= 256: that of x's mantissa, which is from 2^-256 to 1, and then the exponent.  Each
 * product adds a relative error of at most 2^-102, and squaring doubles that of its operand. */
static double by_products(double x, int y) {
    int e;
    pair factor = exactly(frexp(x, &e)), power = exactly(1);
    for (int rest = abs(y); rest > 0; rest /= 2) {
        if (rest % 2) {
            power = product(power, factor);
        }
        factor = product(factor, factor);
    }
    return ldexp(y < 0 ? quotient(exactly(1), power).high : power.high, e * y);
}

/* |x|^y, where neither is NaN. */
static double positive_power(double x, double y) {
    double result;
    if (x == 1 || y == 0) {
        return 1;
    }
    if (x == 0 || x > 0x1.fffffffffffffp1023 || fabs(y) > 0x1.fffffffffffffp1023) {
        return (x > 1) == (y > 0) ? (double)INFINITY : 0;
    }
    if (y > 0 && y <= 2048 && floor(y) == y && find_whole(x, y, &result)) {
        return result;
    }
    if (fabs(y) <= 256 && floor(y) == y) {
        return by_products(x, (int)y);
    }
    if (y == 0.5) {
        return sqrt(x);
    }
    return exp_of(product(log_of(x), exactly(y)));
}

double dmlk_exact_pow(double x, double y) {
    if (x == 1 || y == 0) {
        return 1;
    }
    if (x != x || y != y) {
        return (double)NAN;
    }
    const bool is_negative = dmlk_signed(1, x) < 0, is_odd = fabs(fmod(y, 2)) == 1;
    const double size = positive_power(fabs(x), y);
    if (is_negative && x != 0 && fabs(x) <= 0x1.fffffffffffffp1023 && floor(y) != y) {
        return (double)NAN; /* (infinite exponents are even numbers) */
    }
    return is_negative && is_odd ? -size : size;
}

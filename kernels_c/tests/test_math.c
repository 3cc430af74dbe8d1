/* Elementary functions, compared with those of the C library, whose error is about a unit in the last place of a
 * double. */
#include "dmlk_math.h"
#include "element.h"
#include "test.h"

typedef double unary(double x);

static double each(void (*loop)(double *values, int64_t count), double x) {
    double values[3] = {0.5, x, 0.5};
    loop(values, 3);
    CHECK(values[0] == values[2]); /* neighbours of a large number */
    return values[1];
}

/* (musl's acosh is no NaN below -1) */
static double library_acosh(double x) { return x < 1 ? (double)NAN : acosh(x); }

static double sin_of(double x) { return each(dmlk_sin_each, x); }
static double cos_of(double x) { return each(dmlk_cos_each, x); }
static double tan_of(double x) { return each(dmlk_tan_each, x); }

#define WITH(name) {#name, dmlk_##name, name}
static const struct function {
    const char *name;
    unary *ours, *theirs;
} functions[] = {
    WITH(exp),   WITH(expm1), WITH(log),   WITH(log1p), WITH(tanh), WITH(sinh), WITH(cosh), WITH(asinh),
    {"acosh", dmlk_acosh, library_acosh}, WITH(atanh), WITH(atan),  WITH(asin),  WITH(acos), WITH(erf),  WITH(erfc),
    {"sin", sin_of, sin},     {"cos", cos_of, cos},     {"tan", tan_of, tan},
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The units in the last place between two floats; a NaN is only close to a NaN. */
static int64_t distance(float a, float b) {
    int32_t i, j;
    memcpy(&i, &a, sizeof i);
    memcpy(&j, &b, sizeof j);
    if (isnan(a) || isnan(b)) {
        return isnan(a) && isnan(b) ? 0 : INT64_MAX;
    }
    if (signbit(a) != signbit(b)) {
        return a == b ? 1 : INT64_MAX; /* zeros have their sign */
    }
    return llabs((int64_t)i - j);
}

static int64_t off(const char *name, double x, double ours, double theirs) {
    const int64_t units = distance((float)ours, (float)theirs);
    if (units > 1 || ((ours == 0 || theirs == 0) && units)) {
        fprintf(stderr, "%s(%a) is %a, not %a\n", name, x, ours, theirs);
        test_failures++;
    }
    return units;
}

TEST(every_float16_is_rounded_as_the_library_does) {
    for (int f = 0; f < FUNCTIONS; f++) {
        for (uint32_t h = 0; h < 65536; h++) {
            const double x = (double)dmlk_float16_to_float((uint16_t)h);
            const double ours = functions[f].ours(x), theirs = functions[f].theirs(x);
            const uint16_t a = dmlk_double_to_float16(ours), b = dmlk_double_to_float16(theirs);
            const bool are_nan = isnan(ours) && isnan(theirs);
            if (a != b && !are_nan) {
                fprintf(stderr, "%s(%a) is %a, not %a\n", functions[f].name, x, ours, theirs);
                test_failures++;
            }
        }
    }
}

/* Every 20,011th float, of every sign and exponent, and as many near 1. */
TEST(floats_are_correctly_rounded_but_for_a_few) {
    for (int f = 0; f < FUNCTIONS; f++) {
        int64_t wrong = 0, tried = 0;
        for (uint64_t bits = (uint64_t)f; bits < UINT64_C(1) << 32; bits += 20011) {
            const float near = 1 - 2 * (float)bits * 0x1p-32f;
            const double values[] = {(double)float_of((uint32_t)bits), (double)near};
            for (int i = 0; i < 2; i++) {
                wrong += off(functions[f].name, values[i], functions[f].ours(values[i]), functions[f].theirs(values[i]));
                tried++;
            }
        }
        CHECK(wrong <= tried / 10000);
    }
}

TEST(powers) {
    static const double special[] = {0.0, -0.0, 1, -1, 2, -2, 3, 0.5, -0.5, 0x1p-149, -0x1p-149, 3e38, -3e38, 5, 16777215,
                                     (double)INFINITY, -(double)INFINITY, (double)NAN};
    enum { SPECIAL = sizeof special / sizeof special[0] };
    for (int i = 0; i < SPECIAL * SPECIAL; i++) {
        const double x = special[i / SPECIAL], y = special[i % SPECIAL];
        off("pow", x, dmlk_pow(x, y), pow(x, y));
        off("atan2", x, dmlk_atan2(x, y), atan2(x, y));
    }
    int64_t wrong = 0;
    for (int i = 0; i < 200000; i++) {
        const double x = (double)float_of((uint32_t)random_bits()), y = (double)random_between(-4000, 4000) / 64;
        wrong += off("pow", x, dmlk_pow(x, y), pow(x, y));
        wrong += off("atan2", x, dmlk_atan2(x, y), atan2(x, y));
    }
    CHECK(wrong <= 40);
}

static bool is_same(double a, double b) { return a == b ? signbit(a) == signbit(b) : isnan(a) && isnan(b); }

static double any_float(void) { return (double)float_of((uint32_t)random_bits()); }

/* The power of an integer, by long multiplication, rounded once: to nearest, ties to even. */
static double rounded_power(uint64_t base, int exponent) {
    uint32_t digits[16] = {1}; /* 512 bits */
    for (int i = 0; i < exponent; i++) {
        unsigned __int128 carry = 0;
        for (int k = 0; k < 16; k++) {
            carry += (unsigned __int128)digits[k] * base;
            digits[k] = (uint32_t)carry;
            carry >>= 32;
        }
    }
    int top = 511;
    while (!(digits[top / 32] >> top % 32 & 1)) {
        top--;
    }
    double result = 0;
    for (int bit = top; bit >= 0 && bit > top - 53; bit--) {
        result = 2 * result + (digits[bit / 32] >> bit % 32 & 1);
    }
    const int half = top - 53;
    bool is_more = false;
    for (int bit = half - 1; bit >= 0; bit--) {
        is_more = is_more || (digits[bit / 32] >> bit % 32 & 1);
    }
    if (half >= 0 && (digits[half / 32] >> half % 32 & 1) && (is_more || fmod(result, 2) == 1)) {
        result++;
    }
    return ldexp(result, top > 52 ? top - 52 : 0);
}

/* Above 2^53, too, where neighbours are whole numbers apart: 3^34 lies half-way between two. */
TEST(whole_powers_are_rounded_once) {
    static const double special[] = {0.0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, 4.5, -4.5, 1e300, -1e300, 0x1p-1074,
                                     (double)INFINITY, -(double)INFINITY, (double)NAN};
    enum { SPECIAL = sizeof special / sizeof special[0] };
    for (uint64_t base = 1; base < 400; base++) {
        for (int exponent = 0; exponent < 60 && pow((double)base, exponent) < 0x1p500; exponent++) {
            const double expected = rounded_power(base, exponent);
            CHECK(dmlk_exact_pow((double)base, exponent) == expected);
            CHECK(dmlk_exact_pow(-(double)base, exponent) == (exponent % 2 ? -expected : expected));
            CHECK(dmlk_exact_pow(ldexp((double)base, -7), exponent) == ldexp(expected, -7 * exponent));
        }
    }
    CHECK(dmlk_exact_pow(3, 34) == 16677181699666568.0);
    CHECK(dmlk_exact_pow(9, 0.5) == 3 && dmlk_exact_pow(8, 1.0 / 3) == 2 && dmlk_exact_pow(16, -0.25) == 0.5);
    for (int i = 0; i < SPECIAL * SPECIAL; i++) {
        const double x = special[i / SPECIAL], y = special[i % SPECIAL];
        const double ours = dmlk_exact_pow(x, y), theirs = pow(x, y);
        if (!is_same(ours, theirs)) {
            fprintf(stderr, "exact_pow(%a, %a) is %a, not %a\n", x, y, ours, theirs);
            test_failures++;
        }
    }
    for (int e = -1060; e <= 1020; e += 4) { /* exact, up to the ends of the range */
        CHECK(dmlk_exact_pow(ldexp(1, e), -1) == ldexp(1, -e) && dmlk_exact_pow(ldexp(1, e), -2) == ldexp(1, -2 * e));
        CHECK(dmlk_exact_pow(ldexp(3, e), 0.5) == sqrt(ldexp(3, e)));
    }
    int64_t wrong = 0, far = 0;
    for (int i = 0; i < 200000; i++) { /* -1 is a division; others differ from x87's 64 bits where those round twice */
        const double x = any_float();
        wrong += !is_same(dmlk_exact_pow(x, -1), 1 / x);
        const int y = (int)random_between(-300, 300);
        const double ours = dmlk_exact_pow(x, y);
        const long double theirs = powl(x, y);
        far += !is_same(ours, (double)theirs) && fabsl(ours - theirs) > 0x1.01p-53L * fabsl(theirs) + 0x1p-1074L;
    }
    CHECK_EQUAL(wrong, 0);
    CHECK_EQUAL(far, 0);
    for (int i = 0; i < 200000; i++) {
        const double x = fabs(any_float()), y = (double)random_between(-4000, 4000) / 64;
        const double ours = dmlk_exact_pow(x, y), theirs = pow(x, y);
        wrong += !is_same(ours, theirs) && fabs(ours - theirs) > 0x1p-52 * fabs(theirs) + 0x1p-1074;
    }
    CHECK_EQUAL(wrong, 0);
}

/* Every float16 as one operand of atan2, with a few others as the second. */
TEST(every_float16_has_its_angle) {
    static const double others[] = {0.0, -0.0, 1, -1, 0x1p-24, -0x1p-24, 65504, -65504, 0.333251953125, -1.7763671875, 3,
                                    (double)INFINITY, -(double)INFINITY, (double)NAN};
    int64_t wrong = 0;
    for (uint32_t h = 0; h < 65536; h++) {
        const double x = (double)dmlk_float16_to_float((uint16_t)h);
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
            const double ours[] = {dmlk_atan2(x, others[i]), dmlk_atan2(others[i], x)};
            const double theirs[] = {atan2(x, others[i]), atan2(others[i], x)};
            for (int k = 0; k < 2; k++) {
                const bool are_nan = isnan(ours[k]) && isnan(theirs[k]);
                const uint16_t a = dmlk_double_to_float16(ours[k]), b = dmlk_double_to_float16(theirs[k]);
                wrong += a != b && !are_nan;
                off("atan2", x, ours[k], theirs[k]);
            }
        }
    }
    CHECK_EQUAL(wrong, 0);
}

/* The floats nearest to multiples of pi/2 need the most bits of pi. */
TEST(large_angles) {
    static const double hard[] = {0x1p25,        0x1.000002p25, 0x1.4c8d7cp26,  0x1.33333p31, 0x1.b951f1p40,
                                  0x1.fffffep49, 0x1.2a3b4cp63, 0x1.6ac5b2p90,  0x1.fffffep127,
                                  /* no floats: */
                                  0x1.0000001p25, 0x1.123456789abcdp60, 0x1.fffffefp127, 0x1p128, 0x1.5p200, 0x1.8p300,
                                  0x1.6ac5b262ca1ffp849, 0x1.fffffffffffffp1023};
    for (size_t i = 0; i < sizeof hard / sizeof hard[0]; i++) {
        for (int sign = -1; sign < 2; sign += 2) {
            const double x = sign * hard[i];
            off("sin", x, sin_of(x), sin(x));
            off("cos", x, cos_of(x), cos(x));
            off("tan", x, tan_of(x), tan(x));
            CHECK(isnan(sin_of(sign * (double)INFINITY)));
        }
    }
}

static double floored(double x, double by) {
    const double r = fmod(x, by);
    return r == 0 ? copysign(0, by) : (r < 0) != (by < 0) ? r + by : r;
}

/* A float of any sign from 1 to 2. */
static double float_near_1(void) { return (double)float_of(((uint32_t)random_bits() & 0x807fffff) | 0x3f800000); }

/* Remainders are exact, whatever the size of the quotient: in pieces with only easy quotients, and in others. */
TEST(remainders) {
    static const double special[] = {0.0, -0.0, 1, -1, 0x1p-149, -0x1p-149, 0x1.fffffep127, -3, 7, 0x1p24,
                                     (double)INFINITY, -(double)INFINITY, (double)NAN};
    enum { SPECIAL = sizeof special / sizeof special[0], COUNT = 64 };
    for (int round = 0; round < 4000; round++) {
        double x[COUNT], y[COUNT], truncated[COUNT], modulus[COUNT];
        for (int i = 0; i < COUNT; i++) {
            y[i] = round % 4 == 0 ? any_float() : float_near_1();
            x[i] = round % 4 == 0 ? any_float() : float_near_1() * (double)(INT64_C(1) << random_between(0, round % 8 == 3 ? 50 : 26));
            if (round % 4 == 1) { /* small multiples and their neighbours */
                y[i] = (double)random_between(1, 1000);
                x[i] = (y[i] * (double)random_between(-1000, 1000)) * (1 + (double)random_between(-1, 1) * 0x1p-23);
                x[i] = (double)(float)x[i];
            }
            if (round % 4 == 2) {
                x[i] = i < SPECIAL ? special[i] : x[i];
                y[i] = special[round / 4 % SPECIAL];
            }
            truncated[i] = modulus[i] = x[i];
        }
        dmlk_fmod_each(truncated, y, COUNT);
        dmlk_modulus_each(modulus, y, COUNT);
        int wrong = 0;
        for (int i = 0; i < COUNT; i++) {
            wrong += !is_same(truncated[i], fmod(x[i], y[i])) || !is_same(modulus[i], floored(x[i], y[i]));
        }
        CHECK_EQUAL(wrong, 0);
    }
}

int main(void) {
    RUN(every_float16_is_rounded_as_the_library_does);
    RUN(floats_are_correctly_rounded_but_for_a_few);
    RUN(powers);
    RUN(whole_powers_are_rounded_once);
    RUN(every_float16_has_its_angle);
    RUN(large_angles);
    RUN(remainders);
    return RESULT();
}

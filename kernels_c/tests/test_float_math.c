/* Functions computed in FLOAT32, compared with those of the C library in double.  Tries every 4,001st float or, with
 * the argument --every, each of the 2^32 floats, which takes minutes.  The bounds are the errors that --every found,
 * rounded up. */
#include "dmlk_float_math.h"
#include "element.h"
#include "test.h"

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static float of_each(void (*loop)(float *values, int64_t count), float x) {
    float values[3] = {0.5f, x, 0.5f};
    loop(values, 3);
    CHECK(values[0] == values[2]); /* neighbours of a large number */
    return values[1];
}
static float sin_of(float x) { return of_each(dmlk_sin_eachf, x); }
static float cos_of(float x) { return of_each(dmlk_cos_eachf, x); }
static float tan_of(float x) { return of_each(dmlk_tan_eachf, x); }

static double silu(double x) { return x / (1 + exp(-x)); }
static double softplus(double x) { return log1p(exp(-fabs(x))) + (x > 0 ? x : x < 0 ? 0 : x); }

static double gelu(double x) { return x * 0.5 * erfc(-x * sqrt(0.5)); }

#define WITH(name, bound) {#name, dmlk_##name##f, name, bound}
static const struct function {
    const char *name;
    float (*ours)(float x);
    double (*theirs)(double x);
    double bound; /* of the error, in units in the last place of the exact result */
} functions[] = {
    WITH(exp, 1.1), WITH(log, 1), WITH(sigmoid, 2.5), WITH(tanh, 3), WITH(erf, 4.5), WITH(asin, 2), WITH(acos, 1.3), WITH(atan, 1.6),
    WITH(expm1, 2), WITH(sinh, 1.4), WITH(cosh, 2), WITH(silu, 2.2), WITH(softplus, 2),
    WITH(gelu, 4), WITH(asinh, 1), WITH(acosh, 1), WITH(atanh, 1),
    {"sin", sin_of, sin, 2}, {"cos", cos_of, cos, 2}, {"tan", tan_of, tan, 2},
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

/* The distance between floats near x, which is finite; denormals are 2^-149 apart. */
static double unit(double x) {
    int exponent;
    frexp(x, &exponent);
    return ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}

/* The error in units in the last place; 0 if both are NaN, or the same zero or infinity. */
static double error_of(float ours, double theirs) {
    const float rounded = (float)theirs;
    if (isnan(ours) || isnan(theirs)) {
        return isnan(ours) && isnan(theirs) ? 0 : (double)INFINITY;
    }
    if (signbit(ours) != signbit(rounded)) {
        return (double)INFINITY; /* zeros have their sign */
    }
    if (isinf(ours) || isinf(rounded)) {
        return ours == rounded ? 0 : (double)INFINITY;
    }
    return fabs((double)ours - theirs) / unit(theirs);
}

static uint64_t step = 4001;

TEST(errors_are_small) {
    for (int f = 0; f < FUNCTIONS; f++) {
        const struct function *function = &functions[f];
        double worst = 0;
        float at = 0;
        for (uint64_t bits = step == 1 ? 0 : (uint64_t)f; bits < UINT64_C(1) << 32; bits += step) {
            const float x = dmlk_bits_float((uint32_t)bits);
            const double error = error_of(function->ours(x), function->theirs((double)x));
            at = error > worst ? x : at;
            worst = error > worst ? error : worst;
        }
        printf("       %-8s at most %.3f units, of %a\n", function->name, worst, (double)at);
        CHECK(worst <= function->bound);
    }
}

/* Rounded to FLOAT16, each result is the nearest FLOAT16 or, if the exact result is almost half-way between two, the
 * other. */
TEST(every_float16) {
    for (int f = 0; f < FUNCTIONS; f++) {
        int wrong = 0;
        for (uint32_t h = 0; h < 65536; h++) {
            const float x = dmlk_float16_to_float((uint16_t)h), ours = functions[f].ours(x);
            const double theirs = functions[f].theirs((double)x);
            const uint16_t a = dmlk_float_to_float16(ours), b = dmlk_double_to_float16(theirs);
            const bool are_nan = isnan(ours) && isnan(theirs);
            wrong += a != b && !are_nan;
            CHECK(are_nan || a == b || abs(a - b) == 1);
        }
        CHECK(wrong <= 65536 / 1000);
    }
}

TEST(special_values) {
    static const float special[] = {0.0f, -0.0f, 1, -1, INFINITY, -INFINITY, NAN, 0x1p-149f, -0x1p-149f, 0x1.fffffep127f,
                                    -0x1.fffffep127f, 0x1p-126f, -0x1p-126f};
    for (int f = 0; f < FUNCTIONS; f++) {
        for (size_t i = 0; i < sizeof special / sizeof special[0]; i++) {
            const double error = error_of(functions[f].ours(special[i]), functions[f].theirs((double)special[i]));
            if (error > functions[f].bound) {
                fprintf(stderr, "%s(%a) is %a\n", functions[f].name, (double)special[i], (double)functions[f].ours(special[i]));
                test_failures++;
            }
        }
    }
}

/* --- the easy forms, without special arguments --- */

TEST(easy_functions_give_the_same_bits) {
    static const struct {
        uint32_t (*size)(float x);
        uint32_t most;
        float (*easy)(float x);
        float (*full)(float x);
    } pairs[] = {{dmlk_normalityf, DMLK_NORMALF, dmlk_easy_logf, dmlk_logf},
                 {dmlk_sizef, DMLK_EASY_ASINHF, dmlk_easy_asinhf, dmlk_asinhf},
                 {dmlk_above_1f, DMLK_EASY_ACOSHF, dmlk_easy_acoshf, dmlk_acoshf},
                 {dmlk_sizef, DMLK_EASY_ATANHF, dmlk_easy_atanhf, dmlk_atanhf},
                 {dmlk_sizef, DMLK_EASY_EXPF, dmlk_easy_expf, dmlk_expf},
                 {dmlk_sizef, DMLK_EASY_EXPF, dmlk_easy_sinhf, dmlk_sinhf},
                 {dmlk_sizef, DMLK_EASY_EXPF, dmlk_easy_coshf, dmlk_coshf},
                 {dmlk_sizef, DMLK_EASY_EXPF, dmlk_easy_siluf, dmlk_siluf},
                 {dmlk_sizef, DMLK_EASY_SIGMOIDF, dmlk_easy_sigmoidf, dmlk_sigmoidf},
                 {dmlk_sizef, DMLK_EASY_TANHF, dmlk_easy_tanhf, dmlk_tanhf},
                 {dmlk_sizef, DMLK_EASY_GELUF, dmlk_easy_geluf, dmlk_geluf},
                 {dmlk_sizef, DMLK_EASY_CIRCULARF, dmlk_easy_sinf, sin_of},
                 {dmlk_sizef, DMLK_EASY_CIRCULARF, dmlk_easy_cosf, cos_of},
                 {dmlk_sizef, DMLK_EASY_TANF, dmlk_easy_tanf, tan_of}};
    for (size_t f = 0; f < sizeof pairs / sizeof pairs[0]; f++) {
        int64_t wrong = 0, easy = 0;
        for (uint64_t bits = step == 1 ? 0 : f; bits < UINT64_C(1) << 32; bits += step) {
            const float x = dmlk_bits_float((uint32_t)bits);
            const bool is_easy = pairs[f].size(x) <= pairs[f].most;
            easy += is_easy;
            wrong += is_easy && dmlk_float_bits(pairs[f].easy(x)) != dmlk_float_bits(pairs[f].full(x));
        }
        CHECK_EQUAL(wrong, 0);
        CHECK(easy > 1000);
    }
}

/* --- powers --- */

/* A random exponent.  Most powers of random numbers are 0 or infinite: so the exponent is one that makes the result a
 * number, or a small one of any magnitude, or a whole number. */
static float random_exponent(uint64_t *state, float x) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    const double from_minus_1 = (double)(int32_t)(*state >> 32) * 0x1p-31;
    switch (*state >> 20 & 3) {
    case 0: return (float)(from_minus_1 * 150 / log2((double)x));
    case 1: return (float)rint(from_minus_1 * 20);
    default: return (float)ldexp(from_minus_1, (int)(*state >> 24 & 31) - 12);
    }
}

static bool is_easy(float x, float y) { return dmlk_size_of_constant_powf(x, y) <= dmlk_most_of_constant_powf(y); }

/* The bits of a power with a constant exponent, computed as in rows. */
static uint32_t constant_power(float x, float y) {
    return dmlk_float_bits(is_easy(x, y) ? dmlk_power_of_partsf(dmlk_log2_of_partsf(x, 0), y, true) : dmlk_powf(x, y));
}

TEST(powers) {
    uint64_t state = 1;
    double worst = 0;
    int64_t wrong = 0, easy = 0;
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += step == 1 ? 16 : step) {
        const uint32_t near_1 = 0x3f800000 + ((uint32_t)bits & 0x3fffff) - 0x200000;
        const float x = dmlk_bits_float(bits & 0x400 ? near_1 : (uint32_t)bits), y = random_exponent(&state, x);
        const float ours = dmlk_powf(x, y);
        wrong += dmlk_size_of_powerf(x, y) <= DMLK_NORMALF && dmlk_float_bits(dmlk_easy_powf(x, y)) != dmlk_float_bits(ours);
        wrong += constant_power(x, y) != dmlk_float_bits(ours);
        easy += is_easy(x, y);
        const double error = error_of(ours, pow((double)x, (double)y));
        worst = error > worst ? error : worst;
    }
    printf("       pow      at most %.3f units\n", worst);
    CHECK(worst <= 1);
    CHECK_EQUAL(wrong, 0);
    CHECK(easy > 100000);
}

TEST(special_powers) {
    static const float special[] = {0.0f, -0.0f, 1, -1, 2, -2, 3, -3, 0.5f, -0.5f, 1.5f, -1.5f, INFINITY, -INFINITY, NAN,
                                    0x1p-149f, -0x1p-149f, 0x1p-130f, 0x1p-126f, 0x1.fffffep127f, -0x1.fffffep127f,
                                    0x1.fffffep-1f, 0x1.000002p0f, 0x1p24f, 0x1p24f + 2, 0x1p24f - 1, -0x1p23f - 1, 1e9f,
                                    0x1p125f, 0x1p-125f, 125, -125, 0x1.f40002p6f};
    enum { COUNT = sizeof special / sizeof special[0] };
    for (int i = 0; i < COUNT * COUNT; i++) {
        const float x = special[i / COUNT], y = special[i % COUNT], ours = dmlk_powf(x, y);
        CHECK_EQUAL(constant_power(x, y), dmlk_float_bits(ours));
        if (error_of(ours, pow((double)x, (double)y)) > 1) {
            fprintf(stderr, "pow(%a, %a) is %a\n", (double)x, (double)y, (double)ours);
            test_failures++;
        }
    }
}

#ifdef DMLK_FMAF_OF_4
/* A random float, whose last bits are often 0, so that sums are half-way between floats. */
static float random_float(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    const uint32_t zeros = (uint32_t)(*state >> 8) % 24;
    return dmlk_bits_float((uint32_t)(*state >> 32) >> zeros << zeros);
}

TEST(fused_multiply_adds) {
    uint64_t state = 1;
    int64_t wrong = 0;
    for (int n = 0; n < 1000000; n++) {
        dmlk_floats_of_4 a, b, c;
        for (int i = 0; i < 4; i++) {
            const float near = (float)ldexp((double)random_float(&state), (int)(state >> 40) % 64 - 32);
            a[i] = random_float(&state), b[i] = random_float(&state);
            c[i] = n % 2 ? random_float(&state) : n % 4 ? a[i] * b[i] * (near > 0 ? 0x1p24f : -0x1p-20f) : near;
        }
        const dmlk_floats_of_4 ours = dmlk_fmaf_of_4(a, b, c);
        for (int i = 0; i < 4; i++) {
            const float theirs = fmaf(a[i], b[i], c[i]);
            wrong += !(isnan(theirs) ? isnan(ours[i]) : dmlk_float_bits(ours[i]) == dmlk_float_bits(theirs));
        }
    }
    CHECK_EQUAL(wrong, 0);
}
#endif

typedef float of_float(float x);
typedef double of_double(double x);

static bool is_same(double a, double b) { return a == b ? signbit(a) == signbit(b) : isnan(a) && isnan(b); }

static float roundedf(float x) { return dmlk_awayf(x, dmlk_truncf(x)); }
static double rounded(double x) { return dmlk_away(x, dmlk_trunc(x)); }

TEST(whole_numbers) {
    static of_float *const ours[] = {dmlk_floorf, dmlk_ceilf, dmlk_truncf, dmlk_rintf, roundedf};
    static of_float *const theirs[] = {floorf, ceilf, truncf, rintf, roundf};
    static of_double *const ours_double[] = {dmlk_floor, dmlk_ceil, dmlk_trunc, dmlk_rint, rounded};
    static of_double *const theirs_double[] = {floor, ceil, trunc, rint, round};
    for (int f = 0; f < 5; f++) {
        int64_t wrong = 0;
        for (uint64_t bits = step == 1 ? 0 : (uint64_t)f; bits < UINT64_C(1) << 32; bits += step) {
            const float x = dmlk_bits_float((uint32_t)bits);
            const double y = dmlk_bits_double(bits << 32 | (bits * 0x9e3779b9 & 0xffffffff)), half = floor(y) + 0.5;
            wrong += !is_same((double)ours[f](x), (double)theirs[f](x));
            wrong += !is_same(ours_double[f](y), theirs_double[f](y));
            wrong += !is_same(ours_double[f](half), theirs_double[f](half));
            wrong += !is_same((double)ours[f]((float)half), (double)theirs[f]((float)half));
        }
        CHECK_EQUAL(wrong, 0);
    }
}

int main(int count, char **arguments) {
    step = count > 1 && strcmp(arguments[1], "--every") == 0 ? 1 : step;
    RUN(errors_are_small);
    RUN(every_float16);
    RUN(special_values);
    RUN(whole_numbers);
    RUN(easy_functions_give_the_same_bits);
    RUN(powers);
    RUN(special_powers);
#ifdef DMLK_FMAF_OF_4
    RUN(fused_multiply_adds);
#endif
    return RESULT();
}

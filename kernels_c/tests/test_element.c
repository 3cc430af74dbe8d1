/* Conversions between float16 and wider floats, and from floats to integers. */
#include <math.h>

#include "element.h"
#include "test.h"
#include "promoted.h"

/* The definition: sign, exponent, fraction. */
static double half_value(uint16_t half) {
    const int exponent = half >> 10 & 31, fraction = half & 1023;
    double value = exponent == 31   ? (fraction ? (double)NAN : (double)INFINITY)
                   : exponent == 0 ? ldexp(fraction, -24)
                                   : ldexp(1024 + fraction, exponent - 25);
    return half & 0x8000 ? -value : value;
}

TEST(every_half_becomes_its_value) {
    for (uint32_t h = 0; h < 65536; h++) {
        const double expected = half_value((uint16_t)h), given = (double)dmlk_float16_to_float((uint16_t)h);
        CHECK(isnan(expected) ? isnan(given) : given == expected && signbit(given) == signbit(expected));
    }
}

TEST(every_half_survives_the_round_trip) {
    for (uint32_t h = 0; h < 65536; h++) {
        const bool nan = (h & 0x7fff) > 0x7c00;
        const uint32_t expected = nan ? h | 0x200 : h; /* a NaN becomes quiet */
        CHECK_EQUAL(dmlk_float_to_float16(dmlk_float16_to_float((uint16_t)h)), expected);
        CHECK_EQUAL(dmlk_double_to_float16((double)dmlk_float16_to_float((uint16_t)h)), expected);
    }
}

/* A number between two neighbouring FLOAT16s becomes the nearer one, or the even one if it is half-way. */
TEST(rounds_to_nearest_even) {
    for (uint16_t h = 0; h < 0x7c00; h++) {
        const double low = half_value(h), high = h == 0x7bff ? 65536 : half_value((uint16_t)(h + 1));
        const double middle = (low + high) / 2;
        const uint16_t even = (uint16_t)(h + (h & 1));
        CHECK_EQUAL(dmlk_float_to_float16((float)middle), even);
        CHECK_EQUAL(dmlk_double_to_float16(middle), even);
        CHECK_EQUAL(dmlk_double_to_float16(nextafter(middle, 0)), h);
        CHECK_EQUAL(dmlk_double_to_float16(nextafter(middle, 1e9)), h + 1);
        CHECK_EQUAL(dmlk_float_to_float16(nextafterf((float)middle, 0)), h);
        CHECK_EQUAL(dmlk_float_to_float16(nextafterf(-(float)middle, -1e9f)), (h + 1) | 0x8000);
    }
}

TEST(overflow_is_infinity) {
    CHECK_EQUAL(dmlk_float_to_float16(65519.996f), 0x7bff);
    CHECK_EQUAL(dmlk_float_to_float16(65520.0f), 0x7c00);
    CHECK_EQUAL(dmlk_float_to_float16(-3e38f), 0xfc00);
    CHECK_EQUAL(dmlk_double_to_float16(1e300), 0x7c00);
    CHECK_EQUAL(dmlk_double_to_float16((double)-INFINITY), 0xfc00);
    CHECK_EQUAL(dmlk_double_to_float16(-1e-300), 0x8000);
}

static int64_t truncated(uint32_t type, double x) {
    dmlk_promoted wide = {.f = {x}};
    int64_t bits = 0;
    dmlk_store_promoted(type, (uint8_t *)&bits, 1, 1, DMLK_KIND_FLOAT, &wide);
    dmlk_load_promoted(type, (const uint8_t *)&bits, 1, 1, &wide);
    return wide.i[0];
}

TEST(float_to_integer_truncates_and_saturates) {
    CHECK_EQUAL(truncated(DMLK_INT8, -1.9), -1);
    CHECK_EQUAL(truncated(DMLK_INT8, 127.9), 127);
    CHECK_EQUAL(truncated(DMLK_INT8, -128.9), -128);
    CHECK_EQUAL(truncated(DMLK_INT8, 1e9), 127);
    CHECK_EQUAL(truncated(DMLK_UINT8, -0.9), 0);
    CHECK_EQUAL(truncated(DMLK_UINT8, -5), 0);
    CHECK_EQUAL(truncated(DMLK_UINT8, 256), 255);
    CHECK_EQUAL(truncated(DMLK_UINT32, 4294967295.5), UINT32_MAX);
    CHECK_EQUAL(truncated(DMLK_INT32, -2147483649.0), INT32_MIN);
    CHECK_EQUAL(truncated(DMLK_INT64, 9223372036854775808.0), INT64_MAX);
    CHECK_EQUAL(truncated(DMLK_INT64, -1e30), INT64_MIN);
    CHECK_EQUAL((uint64_t)truncated(DMLK_UINT64, (double)INFINITY) == UINT64_MAX, true);
    CHECK_EQUAL(truncated(DMLK_INT16, (double)NAN), 0);
    CHECK_EQUAL(truncated(DMLK_UINT64, (double)NAN), 0);
}

int main(void) {
    RUN(every_half_becomes_its_value);
    RUN(every_half_survives_the_round_trip);
    RUN(rounds_to_nearest_even);
    RUN(overflow_is_infinity);
    RUN(float_to_integer_truncates_and_saturates);
    return RESULT();
}

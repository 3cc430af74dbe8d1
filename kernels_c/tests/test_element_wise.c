/* The kernels that handle one element at a time, on any layout, against their definitions. */
#include <math.h>

#include "device.h"
#include "element.h"
#include "element_wise.h"
#include "promoted.h"

#define ROUNDS 60

static const enum dmlk_type all_types[] = {DMLK_FLOAT32, DMLK_FLOAT16, DMLK_UINT32, DMLK_UINT16, DMLK_UINT8, DMLK_INT32,
                                           DMLK_INT16,   DMLK_INT8,    DMLK_FLOAT64, DMLK_UINT64, DMLK_INT64};
#define TYPES ((int64_t)(sizeof all_types / sizeof all_types[0]))

static enum dmlk_type random_type(void) { return all_types[random_between(0, TYPES - 1)]; }

/* A device with `inputs` random tensors of type `in` and one of type `out`, all of the same sizes. */
static const dmlk_view *begin(device *d, const char *kernel, uint32_t inputs, enum dmlk_type in, enum dmlk_type out) {
    int64_t sizes[DMLK_MAX_RANK];
    const uint32_t rank = random_sizes(sizes);
    return device_random(d, kernel, inputs, in, out, rank, sizes, 100);
}

TEST(copy) {
    for (int round = 0; round < ROUNDS; round++) {
        const enum dmlk_type type = random_type();
        device d;
        begin(&d, "copy", 1, type, type);
        device_compare(&d, NULL, 0, first_input);
    }
}

TEST(copy_needs_equal_widths) {
    device d;
    begin(&d, "copy", 1, DMLK_INT32, DMLK_INT16);
    device_constants(&d, NULL, 0, 0);
    CHECK_EQUAL(device_dispatch(&d), DMLK_NOT_IMPLEMENTED);
    CHECK(gaps_untouched(&d.views[1]));
    device_end(&d);
}

TEST(cast_every_pair_of_types) {
    for (int64_t in = 0; in < TYPES; in++) {
        for (int64_t out = 0; out < TYPES; out++) {
            device d;
            begin(&d, "cast", 1, all_types[in], all_types[out]);
            device_compare(&d, NULL, 0, first_input); /* 0 .. 100 exist in every type */
        }
    }
}

/* Fills in values that casts treat differently: NaNs, infinities, zeros, denormals, limits of integers and their
 * neighbours, halves, ties. */
static void fill_edges(const dmlk_view *view) {
    static const double edges[] = {0,      1,      2,       127,     128,      255,      256,       32767,
                                   32768,  65504,  65520,   65535,   16777217, 0x1p31,   0x1p32,    0x1p63,
                                   0x1p64, 0x1p-24, 0x1p-149, 0x1p-126, 0x1p-1074, 1e30, 2147483647, INFINITY};
    for (uint64_t i = 0; i < view->byte_size / (uint64_t)dmlk_type_bytes(view->type); i++) {
        uint8_t *at = view->base + i * (uint64_t)dmlk_type_bytes(view->type);
        const double edge = edges[random_between(0, (int64_t)(sizeof edges / sizeof *edges) - 1)];
        const double near = edge * (double)(float)(1 + (double)random_between(-2, 2) * 0x1p-23);
        dmlk_promoted x = {.f = {(random_between(0, 1) ? -1 : 1) * (near + (double)random_between(-2, 2) / 2)}};
        const uint64_t bits = random_bits();
        if (random_between(0, 2) == 0) {
            memcpy(at, &bits, (size_t)dmlk_type_bytes(view->type));
        } else {
            dmlk_store_promoted(view->type, at, 1, 1, DMLK_KIND_FLOAT, &x);
        }
    }
}

/* Against the definition, one element at a time. */
TEST(cast_any_bits) {
    for (int64_t pair = 0; pair < 3 * TYPES * TYPES; pair++) {
        const enum dmlk_type in_type = all_types[pair % TYPES], out_type = all_types[pair / TYPES % TYPES];
        device d;
        begin(&d, "cast", 1, in_type, out_type);
        const dmlk_view *in = &d.views[0], *out = &d.views[1];
        fill_edges(in);
        device_constants(&d, NULL, 0, 0);
        CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
        int64_t index[DMLK_MAX_RANK] = {0}, wrong = 0;
        do {
            dmlk_promoted x;
            uint64_t expected = 0, given = 0;
            dmlk_load_promoted(in_type, element_at(in, index), 1, 1, &x);
            dmlk_store_promoted(out_type, (uint8_t *)&expected, 1, 1, dmlk_type_kind(in_type), &x);
            memcpy(&given, element_at(out, index), (size_t)dmlk_type_bytes(out_type));
            const bool copied = in_type == out_type; /* NaNs, too */
            wrong += !copied ? given != expected
                             : memcmp(element_at(in, index), &given, (size_t)dmlk_type_bytes(out_type)) != 0;
        } while (next_index(out->rank, out->sizes, index));
        CHECK_EQUAL(wrong, 0);
        CHECK(gaps_untouched(out));
        device_end(&d);
    }
}

static double sum(double a, double b) { return a + b; }

TEST(add) {
    const dmlk_element_wise k = {0};
    for (int round = 0; round < ROUNDS; round++) {
        const enum dmlk_type type = random_type();
        device d;
        begin(&d, "add", 2, type, type);
        fill_random(&d.views[1], 0, 27); /* sums stay below 128 */
        device_compare(&d, &k, sizeof k, sum);
    }
    device d;
    begin(&d, "add", 2, DMLK_FLOAT16, DMLK_FLOAT32);
    device_compare(&d, &k, sizeof k, sum);
}

static double exclusive_or(double a, double b) { return (double)((int64_t)a ^ (int64_t)b); }

TEST(bit_xor) {
    const dmlk_element_wise k = {0};
    static const enum dmlk_type types[] = {DMLK_UINT8, DMLK_INT16, DMLK_UINT32, DMLK_INT64};
    for (int round = 0; round < ROUNDS; round++) {
        device d;
        begin(&d, "bit_xor", 2, types[round % 4], types[round % 4]);
        device_compare(&d, &k, sizeof k, exclusive_or);
    }
}

/* Integer sums wrap; XOR of a NaN with 0 keeps every bit. */
TEST(binary_edge_values) {
    const int64_t sizes[] = {2};
    device d;
    device_begin(&d, "add");
    int32_t *a = (int32_t *)device_tensor(&d, DMLK_INT32, 1, sizes, NULL)->base;
    int32_t *b = (int32_t *)device_tensor(&d, DMLK_INT32, 1, sizes, NULL)->base;
    int32_t *out = (int32_t *)device_tensor(&d, DMLK_INT32, 1, sizes, NULL)->base;
    a[0] = INT32_MAX, b[0] = 1;
    a[1] = INT32_MIN, b[1] = -1;
    const dmlk_element_wise k = {0};
    device_constants(&d, &k, sizeof k, 0);
    CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
    CHECK_EQUAL(out[0], INT32_MIN);
    CHECK_EQUAL(out[1], INT32_MAX);
    device_end(&d);
}

static double bits_set(double a, double b) {
    (void)b;
    int64_t bits = (int64_t)a, count = 0;
    for (; bits != 0; bits &= bits - 1) {
        count++;
    }
    return (double)count;
}

TEST(bit_count) {
    const dmlk_element_wise k = {0};
    static const enum dmlk_type types[] = {DMLK_UINT8, DMLK_INT16, DMLK_UINT32, DMLK_INT64};
    for (int round = 0; round < ROUNDS; round++) {
        device d;
        begin(&d, "bit_count", 1, types[round % 4], round & 4 ? DMLK_UINT8 : DMLK_UINT32);
        device_compare(&d, &k, sizeof k, bits_set);
    }
}

TEST(bit_count_of_all_ones) {
    const dmlk_element_wise k = {0};
    for (int64_t t = 0; t < TYPES; t++) {
        const int64_t sizes[] = {5};
        device d;
        device_begin(&d, "bit_count");
        const dmlk_view *in = device_tensor(&d, all_types[t], 1, sizes, NULL);
        const dmlk_view *out = device_tensor(&d, DMLK_UINT8, 1, sizes, NULL);
        memset(in->base, 0xff, in->byte_size);
        device_constants(&d, &k, sizeof k, 0);
        CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
        CHECK_EQUAL(out->base[4], dmlk_type_bits(all_types[t]));
        device_end(&d);
    }
}

/* Runs a unary function on one float and returns the result. */
static float unary(const char *name, dmlk_element_wise k, float x) {
    const int64_t sizes[] = {1};
    device d;
    device_begin(&d, name);
    *(float *)device_tensor(&d, DMLK_FLOAT32, 1, sizes, NULL)->base = x;
    const dmlk_view *out = device_tensor(&d, DMLK_FLOAT32, 1, sizes, NULL);
    device_constants(&d, &k, sizeof k, 0);
    CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
    const float result = *(float *)out->base;
    device_end(&d);
    return result;
}

#define CHECK_UNARY(name, x, expected, ...)                                                                 \
    do {                                                                                                    \
        const float given_ = unary(name, (dmlk_element_wise){__VA_ARGS__}, x);              \
        const float expected_ = (float)(expected);                                                          \
        CHECK(given_ == expected_ || (isnan(given_) && isnan(expected_)));                                  \
    } while (0)

/* For functions that are computed in FLOAT32: the result is within two floats of the expected one. */
#define CHECK_NEAR(name, x, expected, ...)                                                       \
    do {                                                                                         \
        const float given_ = unary(name, (dmlk_element_wise){__VA_ARGS__}, x);                   \
        const float expected_ = (float)(expected), next_ = nextafterf(expected_, 2 * expected_); \
        CHECK(fabsf(given_ - expected_) <= 2 * fabsf(next_ - expected_));                        \
    } while (0)

TEST(activations) {
    CHECK_NEAR("elu", -2, 1.5 * expm1(-2), .alpha = 1.5f);
    CHECK_UNARY("elu", 3, 3, .alpha = 1.5f);
    CHECK_UNARY("celu", -2, 2 * expm1(-1), .alpha = 2);
    CHECK_UNARY("hard_sigmoid", 7, 1, .alpha = 0.5f, .beta = 0.25f);
    CHECK_UNARY("hard_sigmoid", 1, 0.75, .alpha = 0.5f, .beta = 0.25f);
    CHECK_UNARY("leaky_relu", -4, -1, .alpha = 0.25f);
    CHECK_UNARY("linear", -4, 1, .alpha = 0.25f, .beta = 2);
    CHECK_UNARY("parametric_softplus", 1, 3 * log1p(exp(2)), .alpha = 3, .beta = 2);
    CHECK_UNARY("relu", -1, 0);
    CHECK_UNARY("relu", NAN, 0);
    CHECK_NEAR("scaled_elu", -1, 2 * (1.5 * expm1(-1)), .alpha = 1.5f, .gamma = 2);
    CHECK_UNARY("scaled_tanh", 1, 3 * tanh(0.5), .alpha = 3, .beta = 0.5f);
    CHECK_NEAR("sigmoid", 1, 1 / (1 + exp(-1)));
    CHECK_UNARY("sigmoid", -INFINITY, 0);
    CHECK_UNARY("softplus", 1000, 1000, .alpha = 2);
    CHECK_NEAR("softplus_1", -2, log1p(exp(-2)));
    CHECK_NEAR("celu_1", -2, expm1(-2));
    CHECK_UNARY("celu_1", NAN, 0);
    CHECK_NEAR("swish_1", -2, -2 / (1 + exp(2)));
    CHECK_UNARY("swish_1", -INFINITY, NAN);
    CHECK_NEAR("softsign", -3, -0.75);
    CHECK_UNARY("tanh", NAN, NAN);
    CHECK_UNARY("thresholded_relu", 1, 0, .alpha = 1);
    CHECK_UNARY("thresholded_relu", NAN, 0, .alpha = 1);
    CHECK_UNARY("shrink", -3, -2.5, .alpha = 1, .beta = 0.5f);
    CHECK_UNARY("shrink", 1, 0, .alpha = 1, .beta = 0.5f);
    CHECK_UNARY("gelu", 2, 1 + erf(2 / sqrt(2)));
    CHECK_UNARY("identity", 2, 5.5, .has_scale_bias = 1, .scale = 2, .bias = 1.5f);
}

static uint64_t bits_of(float x) { return dmlk_float_bits(x); }

TEST(clip) {
    const uint64_t low = bits_of(-1), high = bits_of(2);
    CHECK_UNARY("clip", -5, -1, .min_bits = low, .max_bits = high);
    CHECK_UNARY("clip", 5, 2, .min_bits = low, .max_bits = high);
    CHECK_UNARY("clip", 0.5, 0.5, .min_bits = low, .max_bits = high);
    CHECK_UNARY("clip", NAN, -1, .min_bits = low, .max_bits = high);
    CHECK_UNARY("clip1", NAN, 2, .min_bits = low, .max_bits = high);
    CHECK_UNARY("clip", 0, -1, .min_bits = high, .max_bits = low);
    CHECK_UNARY("clip1", 0, 2, .min_bits = high, .max_bits = low);
}

/* Bounds of 64-bit integers are exact: beyond 2^53, neighbours are the same double. */
TEST(clip_of_64_bit_integers) {
    const int64_t sizes[] = {3}, big = INT64_C(1) << 60;
    static const char *const functions[] = {"clip", "clip1"};
    for (int i = 0; i < 2; i++) {
        device d;
        device_begin(&d, functions[i]);
        int64_t *in = (int64_t *)device_tensor(&d, DMLK_INT64, 1, sizes, NULL)->base;
        int64_t *out = (int64_t *)device_tensor(&d, DMLK_INT64, 1, sizes, NULL)->base;
        in[0] = big, in[1] = big + 1, in[2] = big + 5;
        const dmlk_element_wise k = {
            .min_bits = (uint64_t)big + 1, .max_bits = (uint64_t)big + 3};
        device_constants(&d, &k, sizeof k, 0);
        CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
        CHECK_EQUAL(out[0], big + 1);
        CHECK_EQUAL(out[1], big + 1);
        CHECK_EQUAL(out[2], big + 3);
        device_end(&d);
    }
}

static double clipped(double a, double b) {
    (void)b;
    return a < 20 ? 20 : a > 70 ? 70 : a;
}

TEST(clip_every_type_and_layout) {
    for (int round = 0; round < ROUNDS; round++) {
        const enum dmlk_type type = random_type();
        dmlk_element_wise k = {0};
        const int64_t zero[1] = {0};
        dmlk_view bound = {.type = type, .rank = 1, .sizes = {1}, .base = (uint8_t *)&k.min_bits};
        set_element(&bound, zero, 20);
        bound.base = (uint8_t *)&k.max_bits;
        set_element(&bound, zero, 70);
        device d;
        begin(&d, "clip", 1, type, type);
        device_compare(&d, &k, sizeof k, clipped);
    }
}

static double scaled(double a, double b) {
    (void)b;
    const double whole = trunc(a * 2.5 - 20);
    return whole - 256 * floor(whole / 256);
}

TEST(scale_and_bias_of_integers_wrap) {
    const dmlk_element_wise k = {
        .has_scale_bias = 1, .scale = 2.5f, .bias = -20};
    for (int round = 0; round < ROUNDS; round++) {
        device d;
        begin(&d, "identity", 1, DMLK_UINT8, DMLK_UINT8);
        device_compare(&d, &k, sizeof k, scaled);
    }
}

/* Runs a unary function on one INT32 and returns the result. */
static int32_t unary_integer(const char *name, dmlk_element_wise k, int32_t x) {
    const int64_t sizes[] = {1};
    device d;
    device_begin(&d, name);
    *(int32_t *)device_tensor(&d, DMLK_INT32, 1, sizes, NULL)->base = x;
    const dmlk_view *out = device_tensor(&d, DMLK_INT32, 1, sizes, NULL);
    device_constants(&d, &k, sizeof k, 0);
    CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
    const int32_t result = *(int32_t *)out->base;
    device_end(&d);
    return result;
}

TEST(functions_of_integers) {
    const dmlk_element_wise none = {0}, shrink = {.min_bits = 2, .max_bits = 3};
    CHECK_EQUAL(unary_integer("relu", none, -7), 0);
    CHECK_EQUAL(unary_integer("relu", none, INT32_MAX), INT32_MAX);
    CHECK_EQUAL(unary_integer("shrink", shrink, -7), -4);
    CHECK_EQUAL(unary_integer("shrink", shrink, -2), 0);
    CHECK_EQUAL(unary_integer("shrink", shrink, 2), 0);
    const dmlk_element_wise clip = {.has_scale_bias = 1, .scale = 2.5f, .min_bits = 0, .max_bits = 100};
    CHECK_EQUAL(unary_integer("clip", clip, 3), 7); /* 7.5 */
    CHECK_EQUAL(unary_integer("clip", clip, 50), 100);
    CHECK_EQUAL(unary_integer("clip", clip, -1), 0);
    /* Bounds that exclude each other: the one applied last wins. */
    const dmlk_element_wise crossed = {.min_bits = 9, .max_bits = (uint32_t)-9};
    CHECK_EQUAL(unary_integer("clip", crossed, 0), -9);
    CHECK_EQUAL(unary_integer("clip1", crossed, 0), 9);
    CHECK_EQUAL(unary_integer("clip1", crossed, 100), 9);
    const dmlk_element_wise twice = {.has_scale_bias = 1, .scale = 2};
    CHECK_EQUAL(unary_integer("identity", twice, INT32_MIN), 0);
    CHECK_EQUAL(unary_integer("identity", twice, 16777217), 33554432); /* in FLOAT32 */
}

/* Input and output are the same memory, as when ADD accumulates. */
TEST(in_place) {
    const int64_t sizes[] = {40, 30}, strides[] = {1, 41};
    device d;
    device_begin(&d, "add");
    const dmlk_view *a = device_tensor(&d, DMLK_INT32, 2, sizes, strides);
    const dmlk_view *b = device_tensor(&d, DMLK_INT32, 2, sizes, NULL);
    device_tensor(&d, DMLK_INT32, 2, sizes, strides);
    fill_random(a, 0, 100);
    fill_random(b, 0, 100);
    d.descriptors[2] = d.descriptors[0];
    int32_t before[1230];
    memcpy(before, a->base, a->byte_size);
    const dmlk_element_wise k = {0};
    device_constants(&d, &k, sizeof k, 0);
    CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
    int64_t index[DMLK_MAX_RANK] = {0};
    do {
        const int32_t old = before[index[0] + index[1] * 41];
        CHECK_EQUAL(get_element(a, index), old + get_element(b, index));
    } while (next_index(2, sizes, index));
    device_end(&d);
}

int main(void) {
    RUN(copy);
    RUN(copy_needs_equal_widths);
    RUN(cast_every_pair_of_types);
    RUN(cast_any_bits);
    RUN(add);
    RUN(bit_xor);
    RUN(binary_edge_values);
    RUN(bit_count);
    RUN(bit_count_of_all_ones);
    RUN(activations);
    RUN(clip);
    RUN(clip_of_64_bit_integers);
    RUN(clip_every_type_and_layout);
    RUN(scale_and_bias_of_integers_wrap);
    RUN(functions_of_integers);
    RUN(in_place);
    return RESULT();
}

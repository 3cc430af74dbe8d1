/* Which NaN kernels store: kernels that compute always store the same one; casts and copies store the one they read. */
#include <math.h>

#include "device.h"
#include "element.h"
#include "element_wise.h"
#include "gemm.h"
#include "packets.h"
#include "reduce.h"

static const enum dmlk_type types[] = {DMLK_FLOAT32, DMLK_FLOAT16, DMLK_FLOAT64};
static const struct {
    uint64_t infinity, quiet; /* bits of infinity, and of the NaN */
} bits_of[] = {[DMLK_FLOAT32] = {0x7f800000, 0x7fc00000},
               [DMLK_FLOAT16] = {0x7c00, 0x7e00},
               [DMLK_FLOAT64] = {0x7ff0000000000000, 0x7ff8000000000000}};

static uint64_t read_bits(const dmlk_view *view, const int64_t *index) {
    uint64_t bits = 0;
    memcpy(&bits, element_at(view, index), (size_t)dmlk_type_bytes(view->type));
    return bits;
}

/* NaNs of any sign and payload, quiet and signalling, infinities, and numbers. */
static void fill(const dmlk_view *view, int64_t one_of) {
    const uint64_t infinity = bits_of[view->type].infinity, sign = infinity + (infinity & (0 - infinity));
    int64_t index[DMLK_MAX_RANK] = {0};
    do {
        const bool special = random_between(1, one_of) == 1;
        const uint64_t random = random_bits();
        const uint64_t payload = random_between(0, 5) == 0 ? 0 : random & (infinity ^ (sign - 1));
        const uint64_t bits = infinity | (random & sign) | payload;
        set_element(view, index, (double)random_between(-8, 8) / 2);
        if (special) {
            memcpy(element_at(view, index), &bits, (size_t)dmlk_type_bytes(view->type));
        }
    } while (next_index(view->rank, view->sizes, index));
}

/* Runs the kernel; all NaNs in the last view must be the same.  Returns their number. */
static int64_t count_nans(device *d, const void *constants, uint32_t size) {
    const dmlk_view *out = &d->views[d->tensor_count - 1];
    const uint64_t infinity = bits_of[out->type].infinity, sign = infinity + (infinity & (0 - infinity));
    int64_t index[DMLK_MAX_RANK] = {0}, nans = 0, wrong = 0;
    device_constants(d, constants, size, 0);
    CHECK_EQUAL(device_dispatch(d), DMLK_OK);
    do {
        const uint64_t bits = read_bits(out, index);
        const bool nan = (bits & (sign - 1)) > infinity;
        nans += nan;
        wrong += nan && bits != bits_of[out->type].quiet;
    } while (next_index(out->rank, out->sizes, index));
    CHECK_EQUAL(wrong, 0);
    CHECK(gaps_untouched(out));
    device_end(d);
    return nans;
}

/* Starts a packet with `inputs` inputs of type `in`, where about every third element is not a number. */
static void begin(device *d, const char *kernel, uint32_t inputs, enum dmlk_type in, enum dmlk_type out) {
    int64_t sizes[DMLK_MAX_RANK];
    const uint32_t rank = random_sizes(sizes);
    device_random(d, kernel, inputs, in, out, rank, sizes, 1);
    for (uint32_t k = 0; k < inputs; k++) {
        fill(&d->views[k], 3);
    }
}

TEST(sums) {
    const dmlk_element_wise k = {0};
    int64_t nans = 0;
    for (int round = 0; round < 60; round++) {
        const enum dmlk_type in = types[round % 3], out = round % 6 == 1 ? DMLK_FLOAT32 : in;
        device d;
        begin(&d, "add", 2, in, out);
        nans += count_nans(&d, &k, sizeof k);
    }
    CHECK(nans > 0);
}

static float parameter(void) {
    static const float some[] = {0, 1, -2.5f, INFINITY, NAN};
    return some[random_between(0, 4)];
}

/* Every function of the table with one or two inputs and a float result. */
TEST(functions) {
    static const char *const numbers[] = {"relu", "thresholded_relu", "hard_sigmoid",
                                          "celu", "celu_1",           "sign"}; /* of any input */
    for (uint32_t number = 0; number < dmlk_kernel_count(); number++) {
        const struct element_wise_function *function = element_wise_function(number);
        CHECK(function != NULL || strcmp(dmlk_kernel_family(number), "element_wise") != 0);
        if (function == NULL || !function->is_scaled) { /* of bits */
            continue;
        }
        const char *name = function->name;
        int64_t nans = 0;
        for (int round = 0; round < 48; round++) {
            const enum dmlk_type in = types[round % 3], out = round % 12 == 0 ? DMLK_FLOAT16 : in;
            const dmlk_element_wise k = {.has_scale_bias = round % 2 == 1,
                                         .scale = round % 4 == 1 ? parameter() : 2,
                                         .bias = parameter(),
                                         .alpha = round % 4 == 0 ? parameter() : 1,
                                         .beta = round % 4 == 0 ? parameter() : 1,
                                         .gamma = 1,
                                         .min_bits = bits_of[in].infinity | (round % 3 == 1), /* NaN or infinity */
                                         .max_bits = bits_of[in].infinity | 3};
            device d;
            begin(&d, name, function->inputs, in, out);
            nans += count_nans(&d, &k, sizeof k);
        }
        bool never = false;
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
            never = never || strcmp(name, numbers[i]) == 0;
        }
        CHECK(never == (nans == 0));
    }
}

TEST(reductions) {
    static const char *const functions[] = {"reduce_average", "reduce_l1",  "reduce_l2",       "reduce_log_sum",
                                            "reduce_max",     "reduce_min", "reduce_multiply", "reduce_log_sum_exp",
                                            "reduce_sum",     "reduce_sum_square"};
    for (size_t function = 0; function < sizeof functions / sizeof functions[0]; function++) {
        int64_t nans = 0;
        for (int round = 0; round < 30; round++) {
            int64_t sizes[3] = {random_between(1, 5), random_between(1, 60), random_between(1, 40)};
            int64_t strides[3], out_sizes[3];
            const dmlk_reduce k = {.axes_mask = (uint32_t)random_between(0, 7)};
            for (int axis = 0; axis < 3; axis++) {
                out_sizes[axis] = k.axes_mask >> axis & 1 ? 1 : sizes[axis];
            }
            device d;
            device_begin(&d, functions[function]);
            random_strides(3, sizes, true, strides);
            fill(device_tensor(&d, types[round % 3], 3, sizes, strides), round % 2 == 0 ? 2 : 100);
            random_strides(3, out_sizes, false, strides);
            device_tensor(&d, types[round % 3], 3, out_sizes, strides);
            nans += count_nans(&d, &k, sizeof k);
        }
        CHECK(nans > 0);
    }
}

/* The bits of a FLOAT64 NaN must not be used as a power of 2. */
TEST(log_sum_exp_of_any_nan) {
    const int64_t sizes[] = {3}, one[] = {1}, at[] = {1};
    for (int round = 0; round < 100; round++) {
        const uint64_t nan = bits_of[DMLK_FLOAT64].quiet | random_bits() >> 13;
        const dmlk_reduce k = {.axes_mask = 1};
        device d;
        device_begin(&d, "reduce_log_sum_exp");
        const dmlk_view *in = device_tensor(&d, DMLK_FLOAT64, 1, sizes, NULL);
        fill_random(in, 0, 1);
        memcpy(element_at(in, at), &nan, sizeof nan);
        device_tensor(&d, DMLK_FLOAT64, 1, one, NULL);
        CHECK_EQUAL(count_nans(&d, &k, sizeof k), 1);
    }
}

TEST(products) {
    static const int64_t shapes[][3] = {{1, 70, 9}, {3, 5, 4}, {33, 20, 50}, {8, 300, 48}};
    int64_t nans = 0;
    for (int round = 0; round < 32; round++) {
        const int64_t *s = shapes[round % 4];
        const enum dmlk_type type = types[round / 4 % 2];
        const dmlk_gemm k = {.alpha = 0.5f, .beta = round < 16 ? 2 : 0};
        const int64_t a[] = {s[0], s[1]}, b[] = {s[1], s[2]}, out[] = {s[0], s[2]};
        int64_t strides[2];
        device d;
        device_begin(&d, "gemm");
        random_strides(2, a, true, strides);
        fill(device_tensor(&d, type, 2, a, strides), 4 * s[1]);
        random_strides(2, b, true, strides);
        fill(device_tensor(&d, type, 2, b, strides), 4 * s[1]);
        random_strides(2, out, true, strides);
        fill(device_tensor(&d, type, 2, out, strides), 3);
        random_strides(2, out, false, strides);
        device_tensor(&d, type, 2, out, strides);
        nans += count_nans(&d, &k, sizeof k);
    }
    CHECK(nans > 0);
}

/* A NaN keeps its sign and as much of its payload as fits; a signalling NaN becomes quiet. */
TEST(casts) {
    static const struct {
        enum dmlk_type from, to;
        uint64_t bits, expected;
    } cases[] = {
        {DMLK_FLOAT16, DMLK_FLOAT32, 0xfc01, 0xffc02000},
        {DMLK_FLOAT16, DMLK_FLOAT64, 0x7e03, 0x7ff80c0000000000},
        {DMLK_FLOAT32, DMLK_FLOAT16, 0xffc02fff, 0xfe01},
        {DMLK_FLOAT32, DMLK_FLOAT16, 0x7f800001, 0x7e00},
        {DMLK_FLOAT32, DMLK_FLOAT64, 0xff800001, 0xfff8000020000000},
        {DMLK_FLOAT64, DMLK_FLOAT16, 0xfff4040000000001, 0xff01},
        {DMLK_FLOAT64, DMLK_FLOAT32, 0x7ff0000020000000, 0x7fc00001},
        {DMLK_FLOAT32, DMLK_FLOAT32, 0xff800001, 0xff800001},
    };
    const int64_t sizes[] = {2, 37}, gaps[] = {100, 2};
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const int64_t *strides = i % 2 == 0 ? NULL : gaps;
        int64_t index[2] = {0}, wrong = 0;
        device d;
        device_begin(&d, "cast");
        const dmlk_view *in = device_tensor(&d, cases[i / 2].from, 2, sizes, strides);
        const dmlk_view *out = device_tensor(&d, cases[i / 2].to, 2, sizes, strides);
        do {
            memcpy(element_at(in, index), &cases[i / 2].bits, (size_t)dmlk_type_bytes(in->type));
        } while (next_index(2, sizes, index));
        device_constants(&d, NULL, 0, 0);
        CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
        do {
            wrong += read_bits(out, index) != cases[i / 2].expected;
        } while (next_index(2, sizes, index));
        CHECK_EQUAL(wrong, 0);
        device_end(&d);
    }
}

int main(void) {
    RUN(sums);
    RUN(functions);
    RUN(reductions);
    RUN(log_sum_exp_of_any_nan);
    RUN(products);
    RUN(casts);
    return RESULT();
}

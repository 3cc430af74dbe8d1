/* reduce, on any layout and any axes, against its definition. */
#include <math.h>

#include "device.h"
#include "element.h"
#include "reduce.h"

/* The numbers of the kernels for the definition below. */
enum function { OF_ARGMAX, OF_ARGMIN, OF_AVERAGE, OF_L1, OF_L2, OF_LOG_SUM, OF_LOG_SUM_EXP, OF_MAX, OF_MIN, OF_MULTIPLY,
                OF_SUM, OF_SUM_SQUARE };
static const char *const names[] = {"reduce_argmax",      "reduce_argmin", "reduce_average",  "reduce_l1",
                                    "reduce_l2",          "reduce_log_sum", "reduce_log_sum_exp", "reduce_max",
                                    "reduce_min",         "reduce_multiply", "reduce_sum",    "reduce_sum_square"};

typedef struct reduction {
    uint32_t function, axes_mask, last_index;
} reduction;

static void set_constants(device *d, const reduction *k) {
    const dmlk_reduce constants = {.axes_mask = k->axes_mask, .last_index = k->last_index};
    device_constants(d, &constants, sizeof constants, 0);
}

/* The definition, for one output: reduces all inputs whose coordinates differ from the output's only along reduced
 * axes. */
static double expected(const dmlk_view *in, const reduction *k, const int64_t *output) {
    int64_t index[DMLK_MAX_RANK] = {0}, position = 0, place = 0;
    double result = 0, best = 0, count = 0;
    const bool product = k->function == OF_MULTIPLY;
    const bool largest = k->function == OF_ARGMAX || k->function == OF_MAX;
    result = product ? 1 : 0;
    do {
        bool belongs = true;
        for (uint32_t d = 0; d < in->rank; d++) {
            belongs &= (k->axes_mask >> d & 1) || index[d] == output[d];
        }
        if (!belongs) {
            continue;
        }
        const double x = get_element(in, index);
        const bool better = largest ? x > best : x < best;
        if (position == 0 || better || (k->last_index && x == best)) {
            best = x;
            place = position;
        }
        position++;
        count++;
        switch (k->function) {
        case OF_L1: result += fabs(x); break;
        case OF_L2:
        case OF_SUM_SQUARE: result += x * x; break;
        case OF_LOG_SUM_EXP: result += exp(x); break;
        case OF_MULTIPLY: result *= x; break;
        default: result += x;
        }
    } while (next_index(in->rank, in->sizes, index));
    switch (k->function) {
    case OF_ARGMAX:
    case OF_ARGMIN: return (double)place;
    case OF_MAX:
    case OF_MIN: return best;
    case OF_AVERAGE: return result / count;
    case OF_L2: return sqrt(result);
    case OF_LOG_SUM:
    case OF_LOG_SUM_EXP: return log(result);
    default: return result;
    }
}

static void check_reduce(const reduction *k, enum dmlk_type in_type, enum dmlk_type out_type, int64_t low,
                         int64_t high) {
    int64_t sizes[DMLK_MAX_RANK], out_sizes[DMLK_MAX_RANK], strides[DMLK_MAX_RANK];
    const uint32_t rank = random_sizes(sizes);
    reduction constants = *k;
    constants.axes_mask &= (1u << rank) - 1;
    device d;
    device_begin(&d, names[k->function]);
    random_strides(rank, sizes, true, strides);
    const dmlk_view *in = device_tensor(&d, in_type, rank, sizes, strides);
    fill_random(in, low, high);
    for (uint32_t i = 0; i < rank; i++) {
        out_sizes[i] = constants.axes_mask >> i & 1 ? 1 : sizes[i];
    }
    random_strides(rank, out_sizes, false, strides);
    const dmlk_view *out = device_tensor(&d, out_type, rank, out_sizes, strides);
    set_constants(&d, &constants);
    CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
    int64_t index[DMLK_MAX_RANK] = {0}, wrong = 0, checked = 0;
    do {
        const double given = get_element(out, index), want = expected(in, &constants, index);
        /* sums of squares of 1..9 fit; products are kept to 0 and 1 */
        const double tolerance = dmlk_type_kind(out_type) == DMLK_KIND_FLOAT ? fabs(want) * 1e-6 : 0;
        wrong += !(fabs(given - want) <= tolerance);
    } while (next_index(rank, out_sizes, index) && ++checked < 40);
    CHECK_EQUAL(wrong, 0);
    CHECK(gaps_untouched(out));
    device_end(&d);
}

TEST(floats) {
    for (int round = 0; round < 240; round++) {
        const reduction k = {.function = (uint32_t)(round % 12), .axes_mask = (uint32_t)random_bits()};
        const bool index = k.function <= OF_ARGMIN;
        const int64_t high = k.function == OF_MULTIPLY ? 1 : 9;
        check_reduce(&k, DMLK_FLOAT32, index ? DMLK_UINT32 : DMLK_FLOAT32, 1, high);
    }
}

TEST(integers) {
    static const uint32_t functions[] = {OF_ARGMAX, OF_ARGMIN, OF_L1,  OF_MAX,
                                         OF_MIN,    OF_SUM,    OF_SUM_SQUARE};
    static const enum dmlk_type types[] = {DMLK_INT32, DMLK_UINT32, DMLK_INT64, DMLK_UINT64};
    for (int round = 0; round < 140; round++) {
        const reduction k = {.function = functions[round % 7],
                               .axes_mask = (uint32_t)random_bits(),
                               .last_index = random_bits() & 1};
        const enum dmlk_type type = types[random_between(0, 3)];
        const bool is_signed = dmlk_type_kind(type) == DMLK_KIND_SIGNED;
        check_reduce(&k, type, k.function <= OF_ARGMIN ? DMLK_INT64 : type, is_signed ? -9 : 0, 9);
    }
}

/* Reduces n floats to one element of type out_type, which is returned. */
static double reduce_floats(reduction k, int64_t n, const float *x, enum dmlk_type out_type) {
    const int64_t sizes[] = {n}, one[] = {1}, zero[] = {0};
    k.axes_mask = 1;
    device d;
    device_begin(&d, names[k.function]);
    memcpy(device_tensor(&d, DMLK_FLOAT32, 1, sizes, NULL)->base, x, (size_t)n * sizeof *x);
    const dmlk_view *out = device_tensor(&d, out_type, 1, one, NULL);
    set_constants(&d, &k);
    CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
    const double result = get_element(out, zero);
    device_end(&d);
    return result;
}

TEST(a_number_wins_over_a_nan) {
    const float x[] = {NAN, 2, NAN, 5, -1}, nans[] = {NAN, NAN};
    CHECK_EQUAL(reduce_floats((reduction){.function = OF_MAX}, 5, x, DMLK_FLOAT32), 5);
    CHECK_EQUAL(reduce_floats((reduction){.function = OF_MIN}, 5, x, DMLK_FLOAT32), -1);
    CHECK_EQUAL(reduce_floats((reduction){.function = OF_ARGMAX}, 5, x, DMLK_UINT32), 3);
    CHECK_EQUAL(reduce_floats((reduction){.function = OF_ARGMIN}, 5, x, DMLK_INT64), 4);
    CHECK_EQUAL(reduce_floats((reduction){.function = OF_ARGMIN}, 2, nans, DMLK_INT64), 0);
    CHECK_EQUAL(reduce_floats((reduction){.function = OF_ARGMAX, .last_index = 1}, 2, nans, DMLK_INT64), 0);
    CHECK(isnan(reduce_floats((reduction){.function = OF_MAX}, 2, nans, DMLK_FLOAT32)));
    CHECK(isnan(reduce_floats((reduction){.function = OF_SUM}, 5, x, DMLK_FLOAT32)));
}

TEST(ties) {
    const float x[] = {1, 7, 3, 7, 0, 0};
    CHECK_EQUAL(reduce_floats((reduction){.function = OF_ARGMAX}, 6, x, DMLK_UINT32), 1);
    CHECK_EQUAL(reduce_floats((reduction){.function = OF_ARGMAX, .last_index = 1}, 6, x, DMLK_UINT32), 3);
    CHECK_EQUAL(reduce_floats((reduction){.function = OF_ARGMIN}, 6, x, DMLK_UINT32), 4);
    CHECK_EQUAL(reduce_floats((reduction){.function = OF_ARGMIN, .last_index = 1}, 6, x, DMLK_UINT32), 5);
}

/* Long enough for several pieces and for all partial results. */
TEST(long_rows) {
    enum { N = 1003 };
    float x[N];
    double sum = 0, shifted = 0;
    for (int i = 0; i < N; i++) {
        x[i] = (float)(i * 37 % 101) - 50;
        sum += (double)x[i];
        shifted += exp((double)x[i] - 50);
    }
    const int first = 30, last = first + 9 * 101; /* 37 * 30 % 101 = 100 */
    CHECK_EQUAL(reduce_floats((reduction){.function = OF_ARGMAX}, N, x, DMLK_UINT32), first);
    CHECK_EQUAL(reduce_floats((reduction){.function = OF_ARGMAX, .last_index = 1}, N, x, DMLK_UINT32), last);
    CHECK_EQUAL(reduce_floats((reduction){.function = OF_MIN}, N, x, DMLK_FLOAT32), -50);
    CHECK_EQUAL(reduce_floats((reduction){.function = OF_SUM}, N, x, DMLK_FLOAT32), sum);
    const double given = reduce_floats((reduction){.function = OF_LOG_SUM_EXP}, N, x, DMLK_FLOAT32);
    CHECK(fabs(given - (50 + log(shifted))) < 1e-5);
}

/* Zeros are equal as values, so the place is that of the first; but +0.0 is the larger value, whatever the order. */
TEST(zeros) {
    const float x[] = {-0.0f, 0.0f, -0.0f};
    CHECK_EQUAL(reduce_floats((reduction){.function = OF_ARGMAX}, 3, x, DMLK_UINT32), 0);
    CHECK_EQUAL(reduce_floats((reduction){.function = OF_ARGMIN, .last_index = 1}, 3, x, DMLK_UINT32), 2);
    CHECK(!signbit(reduce_floats((reduction){.function = OF_MAX}, 3, x, DMLK_FLOAT32)));
    CHECK(signbit(reduce_floats((reduction){.function = OF_MIN}, 3, x, DMLK_FLOAT32)));
    CHECK(signbit(reduce_floats((reduction){.function = OF_MAX}, 1, x, DMLK_FLOAT32)));
}

TEST(sums_do_not_lose_small_terms_nor_overflow) {
    const float x[] = {1e8f, 1, -1e8f, 1}, big[] = {800, 800}, none[] = {-INFINITY, -INFINITY};
    CHECK_EQUAL(reduce_floats((reduction){.function = OF_SUM}, 4, x, DMLK_FLOAT32), 2);
    const double given = reduce_floats((reduction){.function = OF_LOG_SUM_EXP}, 2, big, DMLK_FLOAT32);
    CHECK(fabs(given - 800.693147) < 1e-3);
    const reduction log_sum_exp = {.function = OF_LOG_SUM_EXP};
    CHECK(reduce_floats(log_sum_exp, 2, none, DMLK_FLOAT32) == (double)-INFINITY);
}

/* Reduces the first of two rows, whose segments are combined. */
TEST(several_segments) {
    const int64_t sizes[] = {2, 200000}, one[] = {2, 1};
    static const uint32_t functions[] = {OF_SUM, OF_MAX, OF_ARGMAX, OF_MULTIPLY};
    static const double results[] = {200000 + 6, 7, 150000, 7};
    for (int i = 0; i < 4; i++) {
        for (int type = 0; type < 2; type++) {
            const uint32_t in_type = type ? DMLK_INT32 : DMLK_FLOAT32;
            device d;
            device_begin(&d, names[functions[i]]);
            const dmlk_view *in = device_tensor(&d, in_type, 2, sizes, NULL);
            const dmlk_view *out = device_tensor(&d, functions[i] == OF_ARGMAX ? DMLK_UINT32 : in_type, 2, one, NULL);
            fill_random(in, 1, 1);
            const int64_t at[] = {0, 150000}, first[] = {0, 0};
            set_element(in, at, 7);
            const reduction k = {.function = functions[i], .axes_mask = 2};
            set_constants(&d, &k);
            CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
            CHECK(get_element(out, first) == results[i]);
            device_end(&d);
        }
    }
}

TEST(integers_wrap) {
    const int64_t sizes[] = {2}, one[] = {1};
    static const uint32_t functions[] = {OF_SUM, OF_MULTIPLY, OF_L1,
                                         OF_SUM_SQUARE};
    for (int i = 0; i < 4; i++) {
        device d;
        device_begin(&d, names[functions[i]]);
        int32_t *in = (int32_t *)device_tensor(&d, DMLK_INT32, 1, sizes, NULL)->base;
        const int32_t *out = (const int32_t *)device_tensor(&d, DMLK_INT32, 1, one, NULL)->base;
        in[0] = in[1] = INT32_MIN;
        const reduction k = {.function = functions[i], .axes_mask = 1};
        set_constants(&d, &k);
        CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
        CHECK_EQUAL(*out, 0);
        device_end(&d);
    }
}

TEST(sizes_and_axes_must_fit) {
    static const int64_t sizes[] = {2, 3}, out_sizes[][2] = {{2, 3}, {1, 1}, {2, 1}};
    static const uint32_t masks[] = {2, 2, 2 | 4};
    for (int i = 0; i < 3; i++) {
        device d;
        device_begin(&d, "reduce_sum");
        device_tensor(&d, DMLK_FLOAT32, 2, sizes, NULL);
        device_tensor(&d, DMLK_FLOAT32, 2, out_sizes[i], NULL);
        const reduction k = {.function = OF_SUM, .axes_mask = masks[i]};
        set_constants(&d, &k);
        CHECK_EQUAL(device_dispatch(&d), DMLK_BAD_PACKET);
        device_end(&d);
    }
}

int main(void) {
    RUN(floats);
    RUN(integers);
    RUN(a_number_wins_over_a_nan);
    RUN(ties);
    RUN(long_rows);
    RUN(zeros);
    RUN(sums_do_not_lose_small_terms_nor_overflow);
    RUN(several_segments);
    RUN(integers_wrap);
    RUN(sizes_and_axes_must_fit);
    return RESULT();
}

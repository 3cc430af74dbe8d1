/* average_pooling, in any layout, against its definition. */
#include <math.h>

#include "device.h"
#include "element.h"
#include "pooling.h"

/* The definition, for one output: sums the places of its window in row-major order. */
static float expected(const dmlk_view *in, const dmlk_pooling *k, const int64_t *output) {
    int64_t place[3] = {0}, sizes[3];
    float sum = 0;
    int64_t count = 0;
    for (uint32_t d = 0; d < k->spatial; d++) {
        sizes[d] = k->window[d];
    }
    do {
        int64_t index[5] = {output[0], output[1]};
        bool inside = true, padded = true;
        for (uint32_t d = 0; d < k->spatial; d++) {
            index[2 + d] = output[2 + d] * k->strides[d] + place[d] * k->dilations[d] - k->start_padding[d];
            inside = inside && index[2 + d] >= 0 && index[2 + d] < in->sizes[2 + d];
            padded = padded && index[2 + d] < in->sizes[2 + d] + k->end_padding[d];
        }
        sum += inside ? (float)get_element(in, index) : 0;
        count += k->include_padding ? padded : inside;
    } while (next_index(k->spatial, sizes, place));
    return count > 0 ? sum / (float)count : 0;
}

TEST(any_window_in_any_layout) {
    static const enum dmlk_type types[] = {DMLK_FLOAT16, DMLK_FLOAT32};
    for (uint32_t round = 0; round < 600; round++) {
        dmlk_pooling k = {.spatial = (uint32_t)random_between(1, 3), .include_padding = round % 2};
        int64_t in_sizes[5] = {random_between(1, 2), random_between(1, 4)}, out_sizes[5] = {in_sizes[0], in_sizes[1]};
        int64_t strides[5];
        for (uint32_t d = 0; d < k.spatial; d++) {
            const bool is_long = k.spatial == 1 && round % 10 < 3;
            k.window[d] = (uint32_t)random_between(1, is_long ? 50 : 4);
            k.strides[d] = (uint32_t)random_between(1, 4);
            k.dilations[d] = (uint32_t)random_between(1, 3);
            k.start_padding[d] = (uint32_t)random_between(0, 5);
            k.end_padding[d] = (uint32_t)random_between(0, 5);
            in_sizes[2 + d] = random_between(1, is_long ? 700 : 7);
            out_sizes[2 + d] = random_between(1, is_long ? 400 : 5);
        }
        const uint32_t rank = k.spatial + 2;
        device d;
        device_begin(&d, "average_pooling");
        random_strides(rank, in_sizes, true, strides);
        const dmlk_view *in = device_tensor(&d, types[round % 2], rank, in_sizes, strides);
        fill_random(in, -9, 9);
        random_strides(rank, out_sizes, false, strides);
        const dmlk_view *out = device_tensor(&d, types[round % 2], rank, out_sizes, strides);
        device_constants(&d, &k, sizeof k, 0);
        CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
        int64_t index[5] = {0}, wrong = 0;
        do {
            float want = expected(in, &k, index);
            want = out->type == DMLK_FLOAT16 ? dmlk_float16_to_float(dmlk_float_to_float16(want)) : want;
            wrong += (float)get_element(out, index) != want;
        } while (next_index(rank, out_sizes, index));
        CHECK_EQUAL(wrong, 0);
        CHECK(gaps_untouched(out));
        device_end(&d);
    }
}

static int dispatch(const dmlk_pooling *k, const int64_t *in, const int64_t *out, enum dmlk_type type) {
    device d;
    device_begin(&d, "average_pooling");
    fill_random(device_tensor(&d, type, 4, in, NULL), 0, 1);
    device_tensor(&d, type, 4, out, NULL);
    device_constants(&d, k, sizeof *k, 0);
    const int status = device_dispatch(&d);
    device_end(&d);
    return status;
}

TEST(invalid_windows_are_refused) {
    const dmlk_pooling good = {.spatial = 2, .window = {2, 2}, .strides = {1, 1}, .dilations = {1, 1}};
    const int64_t in[] = {1, 2, 3, 4}, out[] = {1, 2, 2, 3}, channels[] = {1, 1, 2, 3};
    CHECK_EQUAL(dispatch(&good, in, out, DMLK_FLOAT32), DMLK_OK);
    CHECK_EQUAL(dispatch(&good, in, channels, DMLK_FLOAT32), DMLK_BAD_PACKET);
    CHECK_EQUAL(dispatch(&good, in, out, DMLK_INT32), DMLK_NOT_IMPLEMENTED);
    for (int field = 0; field < 5; field++) {
        dmlk_pooling k = good;
        uint32_t *const fields[] = {&k.spatial, &k.window[1], &k.strides[0], &k.dilations[1], &k.spatial};
        *fields[field] = field == 4 ? 3 : 0;
        CHECK_EQUAL(dispatch(&k, in, out, DMLK_FLOAT32), DMLK_BAD_PACKET);
    }
}

/* The mean of NaNs of any kind is DMLK_NAN_BITS. */
TEST(one_nan) {
    const dmlk_pooling k = {.spatial = 1, .window = {2}, .strides = {1}, .dilations = {1}};
    const int64_t in_sizes[] = {1, 1, 3}, out_sizes[] = {1, 1, 2};
    for (int round = 0; round < 50; round++) {
        device d;
        device_begin(&d, "average_pooling");
        const dmlk_view *in = device_tensor(&d, DMLK_FLOAT32, 3, in_sizes, NULL);
        const uint32_t bits[] = {0x3f800000, 0x7f800001u | (uint32_t)random_bits(), 0xff800000};
        memcpy(in->base, bits, sizeof bits);
        const dmlk_view *out = device_tensor(&d, DMLK_FLOAT32, 3, out_sizes, NULL);
        device_constants(&d, &k, sizeof k, 0);
        CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
        for (int i = 0; i < 2; i++) {
            CHECK_EQUAL(((const uint32_t *)out->base)[i], DMLK_NAN_BITS);
        }
        device_end(&d);
    }
}

/* More places than 64 bits can count. */
TEST(the_padding_of_the_largest_window_counts) {
    const uint32_t most = UINT32_MAX;
    const dmlk_pooling k = {.spatial = 3,
                            .window = {most, most, most},
                            .strides = {1, 1, 1},
                            .dilations = {1, 1, 1},
                            .start_padding = {most - 1, most - 1, most - 1},
                            .include_padding = 1};
    const int64_t sizes[] = {1, 1, 1, 1, 1}, index[5] = {0};
    device d;
    device_begin(&d, "average_pooling");
    set_element(device_tensor(&d, DMLK_FLOAT32, 5, sizes, NULL), index, 3e38);
    const dmlk_view *out = device_tensor(&d, DMLK_FLOAT32, 5, sizes, NULL);
    device_constants(&d, &k, sizeof k, 0);
    CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
    const float places = 0x1p96f; /* (2^32 - 1)^3, rounded */
    CHECK(get_element(out, index) == (double)(3e38f / places));
    device_end(&d);
}

int main(void) {
    RUN(any_window_in_any_layout);
    RUN(invalid_windows_are_refused);
    RUN(one_nan);
    RUN(the_padding_of_the_largest_window_counts);
    return RESULT();
}

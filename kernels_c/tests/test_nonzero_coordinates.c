/* nonzero_coordinates, on any layout, against its definition. */
#include <math.h>

#include "device.h"
#include "element.h"
#include "nonzero_coordinates.h"

static void check_nonzero(enum dmlk_type type, uint32_t flags) {
    int64_t sizes[DMLK_MAX_RANK], strides[DMLK_MAX_RANK], table_strides[2], elements = 1;
    const int64_t one[] = {1}, zero[] = {0};
    const uint32_t rank = random_sizes(sizes);
    for (uint32_t i = 0; i < rank; i++) {
        elements *= sizes[i];
    }
    const dmlk_nonzero_coordinates k = {.columns = (uint32_t)random_between(1, rank)};
    const int64_t table_sizes[] = {elements, k.columns};
    device d;
    device_begin(&d, "nonzero_coordinates");
    random_strides(rank, sizes, true, strides);
    const dmlk_view *in = device_tensor(&d, type, rank, sizes, strides);
    fill_random(in, 0, random_between(0, 3));
    const dmlk_view *count = device_tensor(&d, DMLK_UINT32, 1, one, NULL);
    random_strides(2, table_sizes, false, table_strides);
    const dmlk_view *table = device_tensor(&d, DMLK_UINT32, 2, table_sizes, table_strides);
    device_constants(&d, &k, sizeof k, flags);
    CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
    int64_t index[DMLK_MAX_RANK] = {0}, row = 0, wrong = 0;
    do {
        for (uint32_t c = 0; get_element(in, index) != 0 && c < k.columns; c++) {
            const int64_t cell[] = {row, c};
            wrong += (int64_t)get_element(table, cell) != index[rank - k.columns + c];
        }
        row += get_element(in, index) != 0;
    } while (next_index(rank, sizes, index));
    CHECK_EQUAL(wrong, 0);
    CHECK_EQUAL(get_element(count, zero), row);
    CHECK_EQUAL(d.fault.partial_tensor, 2);
    CHECK_EQUAL(d.fault.partial_dimension, 0);
    CHECK_EQUAL(d.fault.partial_count, row);
    for (; row < elements; row++) {
        const int64_t cell[] = {row, k.columns - 1};
        wrong += *(uint32_t *)element_at(table, cell) != (flags & DMLK_FLAG_POISON ? 0xCBCBCBCB : 0xEEEEEEEE);
    }
    CHECK_EQUAL(wrong, 0);
    CHECK(gaps_untouched(table));
    device_end(&d);
}

TEST(every_type_and_layout) {
    static const enum dmlk_type types[] = {DMLK_FLOAT32, DMLK_FLOAT16, DMLK_INT32,  DMLK_INT16,
                                           DMLK_INT8,    DMLK_UINT32,  DMLK_UINT16, DMLK_UINT8,
                                           DMLK_FLOAT64, DMLK_INT64};
    for (int round = 0; round < 200; round++) {
        check_nonzero(types[round % 10], round % 3 == 0 ? DMLK_FLAG_POISON : 0);
    }
}

/* Checks so many rows that they bypass the caches, of a packed input or of one whose last axes are swapped. */
static void check_many(uint32_t columns, bool swapped) {
    const int64_t sizes[] = {3, 5, 400, 301}, one[] = {1}, elements = 3 * 5 * 400 * 301;
    const int64_t table_sizes[] = {elements, columns};
    const int64_t strides[] = {5 * 400 * 301, 400 * 301, swapped ? 1 : 301, swapped ? 400 : 1};
    device d;
    device_begin(&d, "nonzero_coordinates");
    const dmlk_view *in = device_tensor(&d, DMLK_UINT8, 4, sizes, strides);
    for (int64_t i = 0; i < elements; i++) {
        in->base[i] = (random_bits() & 31) != 0;
    }
    const uint32_t *count = (const uint32_t *)device_tensor(&d, DMLK_UINT32, 1, one, NULL)->base;
    const uint32_t *to = (const uint32_t *)device_tensor(&d, DMLK_UINT32, 2, table_sizes, NULL)->base;
    const dmlk_nonzero_coordinates k = {.columns = columns};
    device_constants(&d, &k, sizeof k, 0);
    CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
    int64_t index[DMLK_MAX_RANK] = {0}, rows = 0, wrong = 0;
    do {
        int64_t at = 0;
        for (uint32_t i = 0; i < 4; i++) {
            at += index[i] * strides[i];
        }
        for (uint32_t c = 0; in->base[at] != 0 && c < columns; c++) {
            wrong += to[rows * columns + c] != index[4 - columns + c];
        }
        rows += in->base[at] != 0;
    } while (next_index(4, sizes, index));
    CHECK_EQUAL(wrong, 0);
    CHECK_EQUAL(*count, rows);
    CHECK(rows * columns * 4 >= 16 << 20);
    device_end(&d);
}

TEST(many_rows) {
    check_many(4, false);
    check_many(4, true);
    check_many(3, false);
}

TEST(negative_zero_is_zero_and_nan_is_not) {
    const int64_t sizes[] = {4}, one[] = {1}, table_sizes[] = {4, 1};
    device d;
    device_begin(&d, "nonzero_coordinates");
    float *in = (float *)device_tensor(&d, DMLK_FLOAT32, 1, sizes, NULL)->base;
    const uint32_t *count = (const uint32_t *)device_tensor(&d, DMLK_UINT32, 1, one, NULL)->base;
    const uint32_t *table = (const uint32_t *)device_tensor(&d, DMLK_UINT32, 2, table_sizes, NULL)->base;
    in[0] = -0.0f, in[1] = NAN, in[2] = 0, in[3] = 1e-45f;
    const dmlk_nonzero_coordinates k = {.columns = 1};
    device_constants(&d, &k, sizeof k, 0);
    CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
    CHECK_EQUAL(*count, 2);
    CHECK_EQUAL(table[0], 1);
    CHECK_EQUAL(table[1], 3);
    device_end(&d);
}

TEST(a_table_too_small_is_refused) {
    const int64_t sizes[] = {4}, one[] = {1}, table_sizes[] = {3, 1};
    device d;
    device_begin(&d, "nonzero_coordinates");
    fill_random(device_tensor(&d, DMLK_INT8, 1, sizes, NULL), 0, 0);
    device_tensor(&d, DMLK_UINT32, 1, one, NULL);
    device_tensor(&d, DMLK_UINT32, 2, table_sizes, NULL);
    const dmlk_nonzero_coordinates k = {.columns = 1};
    device_constants(&d, &k, sizeof k, 0);
    CHECK_EQUAL(device_dispatch(&d), DMLK_BAD_PACKET);
    device_end(&d);
}

int main(void) {
    RUN(every_type_and_layout);
    RUN(many_rows);
    RUN(negative_zero_is_zero_and_nan_is_not);
    RUN(a_table_too_small_is_refused);
    return RESULT();
}

/* Element-wise kernels whose operands have different layouts: tiles, transposed blocks, streamed rows. */
#include "transpose.h"

#include "device.h"
#include "element.h"
#include "element_wise.h"

static const enum dmlk_type types[] = {DMLK_UINT8, DMLK_INT16, DMLK_FLOAT32, DMLK_UINT64};

/* Blocks of any size, in memory of exactly that size; bytes between the rows of the result do not change. */
TEST(blocks) {
    for (int round = 0; round < 1000; round++) {
        const int64_t bytes = 1 << round % 4, rows = random_between(1, 70), columns = random_between(1, 70);
        const int64_t from_stride = bytes * (round % 8 < 6 ? 1 : random_between(2, 3));
        const int64_t from_step = from_stride * rows + bytes * random_between(0, 5);
        const int64_t to_step = bytes * (columns + random_between(0, 5));
        const size_t from_size = (size_t)((columns - 1) * from_step + (rows - 1) * from_stride + bytes);
        const size_t to_size = (size_t)((rows - 1) * to_step + columns * bytes);
        uint8_t *from = malloc(from_size), *to = malloc(to_size), *expected = malloc(to_size);
        for (size_t i = 0; i < from_size; i++) {
            from[i] = (uint8_t)random_bits();
        }
        memset(to, DEVICE_UNTOUCHED, to_size);
        memset(expected, DEVICE_UNTOUCHED, to_size);
        for (int64_t j = 0; j < rows; j++) {
            for (int64_t i = 0; i < columns; i++) {
                memcpy(expected + j * to_step + i * bytes, from + i * from_step + j * from_stride, (size_t)bytes);
            }
        }
        if (round / 4 % 2 == 0) {
            dmlk_transpose(bytes, from, from_step, from_stride, to, to_step, rows, columns);
        } else {
            dmlk_transpose_to_memory(bytes, from, from_step, from_stride, to, to_step, rows, columns);
        }
        CHECK(memcmp(to, expected, to_size) == 0);
        free(from);
        free(to);
        free(expected);
    }
}

/* Up to 8 dimensions, two or three of them long, for several tiles and parts of tiles. */
static uint32_t long_sizes(int64_t *sizes) {
    const uint32_t rank = (uint32_t)random_between(2, DMLK_MAX_RANK);
    for (uint32_t d = 0; d < rank; d++) {
        sizes[d] = d < 2 ? random_between(3, 150) : d == 2 ? random_between(1, 40) : random_between(1, 2);
    }
    for (uint32_t d = 0; d < rank; d++) {
        const uint32_t other = (uint32_t)random_between(0, rank - 1);
        const int64_t size = sizes[d];
        sizes[d] = sizes[other];
        sizes[other] = size;
    }
    return rank;
}

static void begin(device *d, const char *kernel, uint32_t inputs, enum dmlk_type in, enum dmlk_type out) {
    int64_t sizes[DMLK_MAX_RANK];
    const uint32_t rank = long_sizes(sizes);
    device_random(d, kernel, inputs, in, out, rank, sizes, 63);
}

static double sum(double a, double b) { return a + b; }

TEST(copies) {
    for (int round = 0; round < 40; round++) {
        device d;
        begin(&d, "copy", 1, types[round % 4], types[round % 4]);
        device_compare(&d, NULL, 0, first_input);
    }
}

TEST(casts) {
    for (int round = 0; round < 32; round++) {
        device d;
        begin(&d, "cast", 1, types[round % 4], types[round / 4 % 4]);
        device_compare(&d, NULL, 0, first_input);
    }
}

TEST(operands_in_three_orders) {
    const dmlk_element_wise k = {0};
    for (int round = 0; round < 24; round++) {
        device d;
        begin(&d, "add", 2, types[round % 4], types[round % 4]);
        device_compare(&d, &k, sizeof k, sum);
    }
}

/* The output is the second input; the first is transposed, but not into the output. */
TEST(in_place_beside_another_order) {
    const dmlk_element_wise k = {0};
    const int64_t sizes[] = {90, 70}, turned[] = {1, 90};
    for (int round = 0; round < 4; round++) {
        device d;
        device_begin(&d, "add");
        fill_random(device_tensor(&d, types[round], 2, sizes, turned), 0, 63);
        const dmlk_view *b = device_tensor(&d, types[round], 2, sizes, NULL);
        fill_random(b, 0, 63);
        uint8_t *before = malloc(b->byte_size);
        memcpy(before, b->base, b->byte_size);
        device_tensor(&d, types[round], 2, sizes, NULL);
        d.descriptors[2] = d.descriptors[1];
        device_constants(&d, &k, sizeof k, 0);
        CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
        dmlk_view old = *b;
        old.base = before;
        int64_t index[DMLK_MAX_RANK] = {0}, wrong = 0;
        do {
            wrong += get_element(b, index) != get_element(&d.views[0], index) + get_element(&old, index);
        } while (next_index(2, sizes, index));
        CHECK_EQUAL(wrong, 0);
        free(before);
        device_end(&d);
    }
}

/* Every order of four axes, as each sorts and splits the loops from tile to tile in another way. */
TEST(every_permutation) {
    const int64_t sizes[] = {8, 3, 20, 70};
    for (uint32_t code = 0; code < 256; code++) {
        const uint32_t order[] = {code >> 6, code >> 4 & 3, code >> 2 & 3, code & 3};
        int64_t strides[4] = {0}, stride = 1;
        for (int k = 4; k-- > 0;) {
            strides[order[k]] = stride;
            stride *= sizes[order[k]];
        }
        if ((1u << order[0] | 1u << order[1] | 1u << order[2] | 1u << order[3]) != 15) {
            continue;
        }
        device d;
        device_begin(&d, "copy");
        fill_random(device_tensor(&d, DMLK_INT16, 4, sizes, code % 2 ? strides : NULL), 0, INT16_MAX);
        device_tensor(&d, DMLK_INT16, 4, sizes, code % 2 ? NULL : strides);
        device_compare(&d, NULL, 0, first_input);
    }
}

/* Checks a tensor large enough to bypass the caches, with rows that start anywhere in a cache line.  The digits of
 * `order` are the order of the axes; there is a gap after the first of them. */
static void check_streamed(uint32_t order, bool turn_input) {
    static const int64_t sizes[] = {7, 37, 79, 103};
    const uint32_t digits[] = {order / 1000, order / 100 % 10, order / 10 % 10, order % 10};
    int64_t turned[4], stride = 1;
    for (int k = 4; k-- > 0;) {
        turned[digits[k]] = stride;
        stride = stride * sizes[digits[k]] + (k == 1);
    }
    device d;
    device_begin(&d, "copy");
    const dmlk_view *in = device_tensor(&d, DMLK_INT64, 4, sizes, turn_input ? turned : NULL);
    const dmlk_view *out = device_tensor(&d, DMLK_INT64, 4, sizes, turn_input ? NULL : turned);
    CHECK(out->byte_size > 1 << 24);
    for (uint64_t i = 0; i < in->byte_size / 8; i++) {
        ((int64_t *)in->base)[i] = (int64_t)random_bits();
    }
    device_constants(&d, NULL, 0, 0);
    CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
    int64_t index[DMLK_MAX_RANK] = {0}, wrong = 0;
    do {
        wrong += memcmp(element_at(out, index), element_at(in, index), 8) != 0;
    } while (next_index(4, sizes, index));
    CHECK_EQUAL(wrong, 0);
    int64_t gaps = 0, untouched = 0;
    for (int64_t i = 0; !turn_input && i + 1 < sizes[digits[0]]; i++) {
        const uint8_t *gap = out->base + ((i + 1) * turned[digits[0]] - 1) * 8;
        gaps++;
        untouched += gap[0] == DEVICE_UNTOUCHED && memcmp(gap, gap + 1, 7) == 0;
    }
    CHECK_EQUAL(untouched, gaps);
    device_end(&d);
}

TEST(streamed) {
    static const uint32_t orders[] = {132, 213, 1203, 3120};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        check_streamed(orders[i], i % 2 == 0);
    }
}

int main(void) {
    RUN(blocks);
    RUN(copies);
    RUN(casts);
    RUN(operands_in_three_orders);
    RUN(in_place_beside_another_order);
    RUN(every_permutation);
    RUN(streamed);
    return RESULT();
}

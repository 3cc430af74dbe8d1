/* Packed pieces of rows, and outputs that bypass the caches: tensors that are too large for the device of other
 * tests. */
#include "element.h"
#include "gather.h"
#include "float16.h"
#include "nonzero.h"
#include "staged_rows.h"
#include "nontemporal.h"
#include "test.h"

TEST(copies_of_any_length_and_place) {
    for (int round = 0; round < 400; round++) {
        _Alignas(64) uint8_t from[3200], to[3200];
        const bool whole = round % 2 == 0; /* lines */
        const size_t begin = whole ? 64 : (size_t)random_between(0, 130), in = (size_t)random_between(0, 130);
        const size_t bytes = (size_t)(whole ? 64 * random_between(0, 45) : random_between(0, 2800));
        for (size_t i = 0; i < sizeof from; i++) {
            from[i] = (uint8_t)random_bits();
            to[i] = 0xEE;
        }
        dmlk_stream_copy(to + begin, from + in, bytes);
        dmlk_streamed();
        CHECK(memcmp(to + begin, from + in, bytes) == 0);
        size_t wrong = 0;
        for (size_t i = 0; i < sizeof to; i++) {
            wrong += (i < begin || i >= begin + bytes) && to[i] != 0xEE;
        }
        CHECK_EQUAL(wrong, 0);
    }
}

TEST(halves) {
    enum { N = 65536 };
    uint16_t *halves = malloc(N * sizeof *halves), *back = malloc(N * sizeof *back);
    float *floats = malloc(N * sizeof *floats);
    for (int i = 0; i < N; i++) {
        halves[i] = (uint16_t)i;
    }
    int64_t wrong = 0;
    dmlk_widen_float16(halves + 1, N - 1, floats + 1); /* some are left for the end */
    for (int i = 1; i < N; i++) {
        const uint32_t plain = dmlk_float_bits(dmlk_float16_to_float(halves[i])), given = dmlk_float_bits(floats[i]);
        wrong += given != plain;
    }
    CHECK_EQUAL(wrong, 0);
    for (int round = 0; round < 32; round++) {
        for (int i = 0; i < N; i++) { /* any bits, and what halves are rounded from, ties among them */
            const uint32_t near = dmlk_float_bits(dmlk_float16_to_float((uint16_t)i)) + (uint32_t)random_between(-2, 2);
            const uint32_t bits[] = {(uint32_t)random_bits(), near, near + 0x1000u, near + 0x800u};
            floats[i] = dmlk_bits_float(bits[round % 4]);
        }
        dmlk_narrow_floats(floats, N - round, back);
        for (int i = 0; i < N - round; i++) {
            wrong += back[i] != dmlk_float_to_float16(floats[i]);
            wrong += back[i] != dmlk_double_to_float16((double)floats[i]);
        }
        CHECK_EQUAL(wrong, 0);
    }
    free(halves);
    free(back);
    free(floats);
}

/* The bytes between elements, and those after the last one, do not change. */
TEST(gathered_and_scattered) {
    for (int round = 0; round < 2000; round++) {
        const int64_t bytes = 1 << round % 4, count = random_between(1, 300);
        const int64_t step = bytes * random_between(1, 5);
        const size_t apart = (size_t)((count - 1) * step + bytes), packed = (size_t)(count * bytes);
        uint8_t *from = malloc(apart), *to = malloc(packed), *back = malloc(apart), *copy = malloc(apart + 1);
        for (size_t i = 0; i < apart; i++) {
            from[i] = (uint8_t)random_bits();
        }
        memset(back, 0xEE, apart);
        memset(copy, 0xEE, apart + 1);
        dmlk_gather(from, step, bytes, count, to);
        dmlk_scatter(to, bytes, count, back, step);
        dmlk_copy_apart(from, copy, step, bytes, (int64_t)apart / bytes);
        int64_t wrong = copy[apart] != 0xEE;
        for (int64_t i = 0; i < count; i++) {
            wrong += memcmp(to + i * bytes, from + i * step, (size_t)bytes) != 0;
        }
        for (size_t i = 0; i < apart; i++) {
            const uint8_t expected = (int64_t)i % step < bytes ? from[i] : 0xEE;
            wrong += back[i] != expected || copy[i] != expected;
        }
        dmlk_gather(from, 0, bytes, count, to);
        for (int64_t i = 0; i < count; i++) {
            wrong += memcmp(to + i * bytes, from, (size_t)bytes) != 0;
        }
        CHECK_EQUAL(wrong, 0);
        free(from);
        free(to);
        free(back);
        free(copy);
    }
}

static void copy_floats(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context) {
    (void)strides, (void)context;
    memcpy(at[1], at[0], (size_t)count * sizeof(float));
}

/* Copies FLOAT16s as floats, with any strides; the last copies bypass the caches. */
TEST(rows_of_halves) {
    static const uint32_t types[][2] = {
        {DMLK_FLOAT16, DMLK_FLOAT32}, {DMLK_FLOAT32, DMLK_FLOAT16}, {DMLK_FLOAT16, DMLK_FLOAT16}};
    for (int round = 0; round < 36; round++) {
        const int64_t count = round < 30 ? random_between(1, 2000) : (INT64_C(9) << 20) + 3;
        const int64_t strides[] = {round < 30 ? random_between(0, 3) : 1, round < 33 ? random_between(1, 3) : 1};
        dmlk_view views[2];
        for (int k = 0; k < 2; k++) {
            const size_t elements = (size_t)((count - 1) * strides[k] + 1);
            const size_t size = elements * (size_t)dmlk_type_bytes(types[round % 3][k]);
            views[k] = (dmlk_view){.type = types[round % 3][k], .rank = 1, .sizes = {count}, .strides = {strides[k]}};
            views[k].base = malloc(size);
            memset(views[k].base, 0xEE, size);
            for (size_t i = 0; k == 0 && i < size; i++) {
                views[k].base[i] = (uint8_t)(i * 37 + i / 251 * 11);
            }
        }
        CHECK_EQUAL(dmlk_float_rows((const dmlk_view *[]){&views[0], &views[1]}, 2, copy_floats, NULL), DMLK_OK);
        int64_t wrong = 0;
        for (int64_t i = 0; i < count; i++) {
            const uint8_t *in = views[0].base, *out = views[1].base;
            const bool half_in = views[0].type == DMLK_FLOAT16, half_out = views[1].type == DMLK_FLOAT16;
            const int64_t from = i * strides[0], to = i * strides[1];
            const float x = half_in ? dmlk_float16_to_float(((const uint16_t *)in)[from]) : ((const float *)in)[from];
            const uint16_t narrow = dmlk_float_to_float16(x);
            wrong += half_out ? ((const uint16_t *)out)[to] != narrow
                              : dmlk_float_bits(((const float *)out)[to]) != dmlk_float_bits(x);
        }
        CHECK_EQUAL(wrong, 0);
        free(views[0].base);
        free(views[1].base);
    }
}

/* 3 a + b, so that swapped operands are detected. */
static void row(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context) {
    (void)context;
    const uint16_t *a = (const uint16_t *)at[0];
    const uint8_t *b = at[1];
    uint32_t *out = (uint32_t *)at[2];
    for (int64_t i = 0; i < count; i++) {
        out[i * strides[2]] = 3u * a[i * strides[0]] + b[i * strides[1]];
    }
}

/* Operand k has a stride of strides[k] elements along a row; rows are columns * strides[k] + 1 elements apart. */
static void check_rows(int64_t rows, int64_t columns, const int64_t *strides) {
    static const uint32_t types[] = {DMLK_UINT16, DMLK_UINT8, DMLK_UINT32}, bytes[] = {2, 1, 4};
    dmlk_view views[3];
    for (int k = 0; k < 3; k++) {
        const int64_t elements = rows * columns * (strides[k] > 1 ? strides[k] : 1) + 1;
        views[k] = (dmlk_view){.type = types[k], .rank = 2, .sizes = {rows, columns}};
        views[k].strides[0] = columns * strides[k] + 1;
        views[k].strides[1] = strides[k];
        views[k].base = malloc((size_t)(elements + rows) * bytes[k]);
        memset(views[k].base, 0xEE, (size_t)(elements + rows) * bytes[k]);
        for (int64_t i = 0; k < 2 && i < elements + rows; i++) {
            views[k].base[i * bytes[k]] = (uint8_t)random_bits();
        }
    }
    CHECK_EQUAL(dmlk_staged_rows((const dmlk_view *[]){&views[0], &views[1], &views[2]}, 3, row, NULL), DMLK_OK);
    int64_t wrong = 0;
    for (int64_t y = 0; y < rows; y++) {
        for (int64_t x = 0; x < columns; x++) {
            const uint32_t a = ((const uint16_t *)views[0].base)[y * views[0].strides[0] + x * strides[0]];
            const uint32_t b = views[1].base[y * views[1].strides[0] + x * strides[1]];
            const uint32_t *out = (const uint32_t *)views[2].base + y * views[2].strides[0];
            wrong += out[x * strides[2]] != 3 * a + b;
            wrong += strides[2] > 1 && out[x * strides[2] + 1] != 0xEEEEEEEE; /* the gap */
        }
        const uint32_t *end = (const uint32_t *)views[2].base + y * views[2].strides[0] + columns * strides[2];
        wrong += *end != 0xEEEEEEEE;
    }
    CHECK_EQUAL(wrong, 0);
    for (int k = 0; k < 3; k++) {
        free(views[k].base);
    }
}

static void low_bytes(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context) {
    (void)context;
    for (int64_t i = 0; i < count; i++) {
        at[1][i * strides[1]] = (uint8_t)((const uint32_t *)at[0])[i * strides[0]];
    }
}

/* A streamed output with smaller elements than its input, not aligned to a cache line. */
TEST(narrow_output) {
    const int64_t count = (INT64_C(1) << 24) + 5, before = 3;
    uint32_t *in = malloc((size_t)count * sizeof *in);
    uint8_t *out = malloc((size_t)(count + 2 * before));
    memset(out, 0xEE, (size_t)(count + 2 * before));
    for (int64_t i = 0; i < count; i++) {
        in[i] = (uint32_t)i * 2654435761u;
    }
    const dmlk_view views[] = {
        {.type = DMLK_UINT32, .rank = 1, .sizes = {count}, .strides = {1}, .base = (uint8_t *)in},
        {.type = DMLK_UINT8, .rank = 1, .sizes = {count}, .strides = {1}, .base = out + before}};
    CHECK_EQUAL(dmlk_staged_rows((const dmlk_view *[]){&views[0], &views[1]}, 2, low_bytes, NULL), DMLK_OK);
    int64_t wrong = 0;
    for (int64_t i = 0; i < count; i++) {
        wrong += out[before + i] != (uint8_t)in[i];
    }
    for (int64_t i = 0; i < before; i++) {
        wrong += out[i] != 0xEE || out[before + count + i] != 0xEE;
    }
    CHECK_EQUAL(wrong, 0);
    free(in);
    free(out);
}

TEST(rows_of_any_strides) {
    for (int round = 0; round < 60; round++) {
        const int64_t strides[] = {random_between(0, 3), random_between(0, 3), random_between(1, 3)};
        check_rows(random_between(1, 5), random_between(1, 2000), strides);
        const int64_t same = random_between(1, 5);
        check_rows(random_between(1, 5), random_between(1, 2000), (const int64_t[]){same, same, same});
    }
    check_rows(2, (INT64_C(1) << 21) + 77, (const int64_t[]){1, 1, 1}); /* more than 16 MiB: streamed */
    check_rows(1000, 4299, (const int64_t[]){1, 1, 1}); /* each row begins elsewhere in a line */
    check_rows(2, (INT64_C(1) << 21) + 77, (const int64_t[]){2, 0, 1});
    check_rows(3000, 1403, (const int64_t[]){1, 3, 1});
    check_rows(20000, 213, (const int64_t[]){1, 1, 1}); /* too short to be streamed */
}

/* Checks a list where one in `one_of` elements is not zero; by its strides, the table consists of rows, of columns,
 * or has gaps. */
static void check_list(const int64_t *sizes, const int64_t *strides, int64_t row_stride, int64_t column_stride,
                       int64_t width, int64_t one_of) {
    dmlk_view in = {.type = DMLK_UINT8, .rank = 3};
    int64_t last = 0, elements = sizes[0] * sizes[1] * sizes[2];
    for (int d = 0; d < 3; d++) {
        in.sizes[d] = sizes[d];
        in.strides[d] = strides[d];
        last += (sizes[d] - 1) * strides[d];
    }
    in.base = malloc((size_t)last + 1);
    for (int64_t i = 0; i <= last; i++) {
        in.base[i] = random_between(1, one_of) == 1;
    }
    const int64_t cells = (elements - 1) * row_stride + (width - 1) * column_stride + 1;
    dmlk_nonzero_table table = {.columns = width, .row_stride = row_stride, .column_stride = column_stride};
    table.base = malloc((size_t)cells * 4);
    memset(table.base, 0xEE, (size_t)cells * 4);
    dmlk_iter iter;
    CHECK_EQUAL(dmlk_iter_init(&iter, DMLK_LOGICAL_ORDER, (const dmlk_view *[]){&in}, 1), DMLK_OK);
    const int64_t rows = dmlk_list_nonzero(&in, &iter, &table);
    int64_t expected = 0, wrong = 0;
    for (int64_t i = 0; i < elements; i++) {
        const int64_t index[] = {i / (sizes[1] * sizes[2]), i / sizes[2] % sizes[1], i % sizes[2]};
        if (in.base[index[0] * strides[0] + index[1] * strides[1] + index[2] * strides[2]] != 0) {
            for (int64_t c = 0; c < width; c++) {
                wrong += table.base[expected * row_stride + c * column_stride] != (uint32_t)index[3 - width + c];
            }
            expected++;
        }
    }
    CHECK_EQUAL(rows, expected);
    CHECK_EQUAL(wrong, 0);
    if (row_stride >= width && expected < elements) {
        CHECK_EQUAL(table.base[expected * row_stride], 0xEEEEEEEE); /* rows past the count are left alone */
    }
    free(in.base);
    free(table.base);
}

TEST(coordinates_of_many_elements) {
    const int64_t sizes[][3] = {{3, 173, 1517}, {601, 1, 1103}, {1, 1, 700001}, {90000, 4, 2}, {1, 1024, 1024}};
    for (int i = 0; i < 5; i++) {
        const int64_t *s = sizes[i], elements = s[0] * s[1] * s[2];
        const int64_t packed[] = {s[1] * s[2], s[2], 1}, swapped[] = {1, s[0] * s[2] + 3, s[0]};
        const int64_t second[] = {2 * s[1] * s[2], 2 * s[2], 2};
        for (int64_t width = 1; width <= 3; width++) {
            check_list(s, packed, width, 1, width, 2);
            check_list(s, swapped, 1, elements, width, 3);
            check_list(s, second, width + 1, 1, width, 40);
        }
    }
    /* past the caches */
    const int64_t large[] = {7, 1201, 501}, strides[] = {1201 * 501, 501, 1};
    check_list(large, strides, 3, 1, 3, 1);
    check_list(large, strides, 1, 7 * 1201 * 501, 3, 2);
}

int main(void) {
    RUN(copies_of_any_length_and_place);
    RUN(halves);
    RUN(gathered_and_scattered);
    RUN(rows_of_halves);
    RUN(narrow_output);
    RUN(rows_of_any_strides);
    RUN(coordinates_of_many_elements);
    return RESULT();
}

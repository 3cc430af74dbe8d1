/* The statistics of a tensor's values, compared with their definition, for every type and any layout. */
#include <math.h>

#include "device.h"
#include "element.h"

static const enum dmlk_type types[] = {DMLK_FLOAT32, DMLK_FLOAT16, DMLK_UINT32, DMLK_UINT16, DMLK_UINT8, DMLK_INT32,
                                       DMLK_INT16,   DMLK_INT8,    DMLK_FLOAT64, DMLK_UINT64, DMLK_INT64};
#define TYPES ((int)(sizeof types / sizeof types[0]))

#define BIT(class) (1u << DMLK_VALUE_##class)

/* Fills the memory with random elements, some of which are limits, zeros, infinities and NaNs. */
static void fill_special(const dmlk_view *view) {
    const uint32_t bits = dmlk_type_bits(view->type), bytes = bits / 8;
    const bool is_float = dmlk_type_kind(view->type) == DMLK_KIND_FLOAT;
    const uint64_t sign = UINT64_C(1) << (bits - 1), all = sign | (sign - 1);
    const uint64_t infinity = bits == 16 ? 0x7c00 : bits == 32 ? 0x7f800000 : 0x7ff0000000000000;
    const uint64_t special[] = {0, sign, all, sign - 1, infinity, infinity | sign, infinity - 1, (infinity - 1) | sign,
                                infinity + 1, 1};
    const int64_t rare = random_between(0, 2) == 0 ? 1 : random_between(2, 300);
    for (uint64_t at = 0; at + bytes <= view->byte_size; at += bytes) {
        uint64_t x = random_bits() >> (64 - bits);
        if (is_float && (x & infinity) == infinity) {
            x ^= infinity & (0 - infinity); /* nothing special */
        }
        x = random_between(1, rare) == 1 ? special[random_between(0, 9)] : x;
        memcpy(view->base + at, &x, bytes);
    }
}

static dmlk_number read_number(const dmlk_view *view, const int64_t *index) {
    const uint8_t *at = element_at(view, index);
    uint64_t bits = 0;
    const uint32_t width = dmlk_type_bits(view->type);
    memcpy(&bits, at, width / 8);
    switch (dmlk_type_kind(view->type)) {
    case DMLK_KIND_FLOAT: return (dmlk_number){.f = get_element(view, index)};
    case DMLK_KIND_SIGNED: return (dmlk_number){.i = (int64_t)(bits << (64 - width)) >> (64 - width)};
    default: return (dmlk_number){.u = bits};
    }
}

static bool is_less(enum dmlk_kind kind, dmlk_number a, dmlk_number b) {
    return kind == DMLK_KIND_FLOAT    ? a.f < b.f || (a.f == 0 && b.f == 0 && signbit(a.f) && !signbit(b.f))
           : kind == DMLK_KIND_SIGNED ? a.i < b.i
                                      : a.u < b.u;
}

/* The classes of a number, as bits. */
static uint32_t classes_of(uint32_t type, dmlk_number x) {
    const uint32_t bits = dmlk_type_bits(type);
    const double largest = bits == 16 ? 65504 : bits == 32 ? (double)0x1.fffffep127f : 0x1.fffffffffffffp1023;
    const int64_t top = (int64_t)(UINT64_MAX >> (65 - bits));
    switch (dmlk_type_kind(type)) {
    case DMLK_KIND_FLOAT:
        return (isnan(x.f) ? BIT(NAN) : 0) | (isinf(x.f) ? BIT(INFINITY) : 0) | (x.f == 0 ? BIT(ZERO) : 0) |
               (x.f == -largest ? BIT(LOWEST) : 0) | (x.f == largest ? BIT(HIGHEST) : 0);
    case DMLK_KIND_SIGNED:
        return (x.i == 0 ? BIT(ZERO) : 0) | (x.i == -top - 1 ? BIT(LOWEST) : 0) | (x.i == top ? BIT(HIGHEST) : 0);
    default:
        return (x.u == 0 ? BIT(ZERO) | BIT(LOWEST) : 0) | (x.u == UINT64_MAX >> (64 - bits) ? BIT(HIGHEST) : 0);
    }
}

static dmlk_values define_values(const dmlk_view *view) {
    const enum dmlk_kind kind = dmlk_type_kind(view->type);
    dmlk_values v = {.firsts = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};
    int64_t index[DMLK_MAX_RANK] = {0};
    do {
        const dmlk_number x = read_number(view, index);
        const uint32_t classes = classes_of(view->type, x);
        for (int class = 0; class < DMLK_VALUE_CLASSES; class++) {
            if (classes >> class & 1) {
                v.firsts[class] = v.counts[class]++ == 0 ? v.count : v.firsts[class];
            }
        }
        if (!(classes & (BIT(NAN) | BIT(INFINITY)))) {
            v.min = !v.has_finite || is_less(kind, x, v.min) ? x : v.min;
            v.max = !v.has_finite || is_less(kind, v.max, x) ? x : v.max;
            v.has_finite = 1;
        }
        v.count++;
    } while (next_index(view->rank, view->sizes, index));
    return v;
}

static void expect_values(const dmlk_view *view) {
    const dmlk_values expected = define_values(view);
    dmlk_values v;
    CHECK_EQUAL(dmlk_scan_values(view, &v), DMLK_OK);
    CHECK_EQUAL(v.count, expected.count);
    for (int class = 0; class < DMLK_VALUE_CLASSES; class++) {
        CHECK_EQUAL(v.counts[class], expected.counts[class]);
        CHECK_EQUAL(v.firsts[class], expected.firsts[class]);
    }
    CHECK_EQUAL(v.has_finite, expected.has_finite);
    CHECK_EQUAL(v.min.u, expected.min.u); /* -0.0 is less than 0.0 */
    CHECK_EQUAL(v.max.u, expected.max.u);
}

static void any_layout(device *d, enum dmlk_type type, bool input) {
    int64_t sizes[DMLK_MAX_RANK], strides[DMLK_MAX_RANK];
    const uint32_t rank = random_sizes(sizes);
    random_strides(rank, sizes, input, strides);
    device_begin(d, "copy");
    fill_special(device_tensor(d, type, rank, sizes, strides));
}

TEST(values_of_every_type_and_layout) {
    for (int round = 0; round < 60 * TYPES; round++) {
        device d;
        any_layout(&d, types[round % TYPES], true);
        expect_values(&d.views[0]);
        device_end(&d);
    }
}

TEST(elements_by_number) {
    for (int round = 0; round < 10 * TYPES; round++) {
        device d;
        any_layout(&d, types[round % TYPES], true);
        int64_t index[DMLK_MAX_RANK] = {0};
        uint64_t number = 0;
        do {
            const dmlk_number y = read_number(&d.views[0], index);
            dmlk_number x;
            CHECK_EQUAL(dmlk_read_element(&d.views[0], number++, &x), DMLK_OK);
            CHECK(x.u == y.u || (isnan(x.f) && isnan(y.f)));
        } while (next_index(d.views[0].rank, d.views[0].sizes, index));
        dmlk_number unused;
        CHECK_EQUAL(dmlk_read_element(&d.views[0], number, &unused), DMLK_OUT_OF_RANGE);
        CHECK_EQUAL(dmlk_read_element(&d.views[0], UINT64_MAX, &unused), DMLK_OUT_OF_RANGE);
        device_end(&d);
    }
}

TEST(nothing_finite) {
    for (int round = 0; round < 2; round++) {
        float x[] = {NAN, INFINITY, -INFINITY};
        const dmlk_view view = {
            .base = (uint8_t *)x, .byte_size = 12, .type = DMLK_FLOAT32, .rank = 1, .sizes = {3}, .strides = {1}};
        dmlk_values v;
        x[2] = round == 0 ? -INFINITY : 0;
        CHECK_EQUAL(dmlk_scan_values(&view, &v), DMLK_OK);
        CHECK_EQUAL(v.has_finite, round);
        CHECK_EQUAL(v.counts[DMLK_VALUE_INFINITY], 2 - round);
        CHECK_EQUAL(v.firsts[DMLK_VALUE_INFINITY], 1);
        CHECK_EQUAL(v.counts[DMLK_VALUE_NAN], 1);
    }
}

TEST(many_of_a_class) {
    for (int round = 0; round < TYPES; round++) {
        device d;
        device_begin(&d, "copy");
        const dmlk_view *view = device_tensor(&d, types[round], 1, (const int64_t[]){1000}, NULL);
        memset(view->base, 0, view->byte_size);
        expect_values(view);
        memset(view->base, 0xFF, view->byte_size);
        expect_values(view);
        device_end(&d);
    }
}

/* Repeated elements take no time. */
TEST(repeated_elements) {
    float x[] = {1, NAN, -7};
    const int64_t big = INT64_C(1) << 30;
    const dmlk_view view = {.base = (uint8_t *)x,
                            .byte_size = sizeof x,
                            .type = DMLK_FLOAT32,
                            .rank = 3,
                            .sizes = {big, 3, big / 2},
                            .strides = {0, 1, 0}};
    dmlk_values v;
    CHECK_EQUAL(dmlk_scan_values(&view, &v), DMLK_OK);
    CHECK_EQUAL(v.count, 3 * big * (big / 2));
    CHECK_EQUAL(v.counts[DMLK_VALUE_NAN], big * (big / 2));
    CHECK_EQUAL(v.firsts[DMLK_VALUE_NAN], big / 2);
    CHECK(v.min.f == -7 && v.max.f == 1);
}

TEST(bad_views_are_refused) {
    uint64_t memory[4] = {0};
    const dmlk_view good = {.base = (uint8_t *)memory,
                            .byte_size = 12,
                            .type = DMLK_FLOAT32,
                            .rank = 2,
                            .sizes = {1, 3},
                            .strides = {9, 1}};
    dmlk_values v;
    CHECK_EQUAL(dmlk_scan_values(&good, &v), DMLK_OK);
#define REFUSED(status, change)                          \
    do {                                                 \
        dmlk_view view = good;                           \
        view.change;                                     \
        CHECK_EQUAL(dmlk_scan_values(&view, &v), status); \
    } while (0)
    REFUSED(DMLK_BAD_PACKET, rank = 0);
    REFUSED(DMLK_BAD_PACKET, rank = 9);
    REFUSED(DMLK_BAD_PACKET, type = 0);
    REFUSED(DMLK_BAD_PACKET, type = 99);
    REFUSED(DMLK_BAD_PACKET, sizes[1] = 0);
    REFUSED(DMLK_BAD_PACKET, sizes[1] = -3);
    REFUSED(DMLK_BAD_PACKET, strides[1] = -1);
    REFUSED(DMLK_NOT_IMPLEMENTED, type = DMLK_INT4);
    REFUSED(DMLK_BAD_ADDRESS, base = NULL);
    REFUSED(DMLK_BAD_ADDRESS, base += 2);
    REFUSED(DMLK_OUT_OF_RANGE, sizes[1] = 4);
    REFUSED(DMLK_OUT_OF_RANGE, byte_size = 11);
    REFUSED(DMLK_OUT_OF_RANGE, sizes[0] = 2);
    REFUSED(DMLK_OUT_OF_RANGE, strides[1] = INT64_MAX);
#undef REFUSED
}

/* --- where NaNs and infinities first appear --- */

#define NO_NUMBER (BIT(NAN) | BIT(INFINITY))

static bool is_finite(const dmlk_view *view, const int64_t *index) {
    return !(classes_of(view->type, read_number(view, index)) & NO_NUMBER);
}

/* The elements that are found, one after the other, are exactly those of the definition. */
TEST(born_element_by_element) {
    int64_t born = 0;
    for (int round = 0; round < 200; round++) {
        int64_t sizes[DMLK_MAX_RANK], strides[DMLK_MAX_RANK];
        const enum dmlk_type type = round % 3 == 0 ? DMLK_FLOAT16 : round % 3 == 1 ? DMLK_FLOAT32 : DMLK_FLOAT64;
        const uint32_t rank = random_sizes(sizes), classes = round % 2 ? NO_NUMBER : BIT(NAN);
        device d;
        device_begin(&d, "copy");
        for (int k = 0; k < 3; k++) {
            random_strides(rank, sizes, k < 2, strides);
            fill_special(device_tensor(&d, k == 1 ? DMLK_INT8 : type, rank, sizes, strides));
        }
        dmlk_source sources[2];
        for (int k = 0; k < 2; k++) {
            const dmlk_view one = {.type = d.views[k].type, .rank = 1, .sizes = {1}, .strides = {1}};
            sources[k] = (dmlk_source){d.views[k], one};
        }
        int64_t index[DMLK_MAX_RANK] = {0};
        uint64_t found, number = 0;
        CHECK_EQUAL(dmlk_find_born(&d.views[2], classes, sources, 2, 0, &found), DMLK_OK);
        do {
            const bool expected = (classes_of(type, read_number(&d.views[2], index)) & classes) != 0 &&
                                  is_finite(&d.views[0], index);
            CHECK_EQUAL(found == number, expected);
            if (found == number) {
                born++;
                CHECK_EQUAL(dmlk_find_born(&d.views[2], classes, sources, 2, number + 1, &found), DMLK_OK);
            }
            number++;
        } while (next_index(rank, sizes, index));
        CHECK_EQUAL(found, UINT64_MAX);
        device_end(&d);
    }
    CHECK(born > 1000);
}

static bool row_finite(const dmlk_view *matrix, int64_t row) {
    bool finite = true;
    for (int64_t i = 0; i < matrix->sizes[1]; i++) {
        finite = finite && is_finite(matrix, (const int64_t[]){row, i});
    }
    return finite;
}

/* out = a b, b given by columns: an element is made from a row of each. */
TEST(born_from_rows) {
    for (int round = 0; round < 100; round++) {
        const int64_t m = random_between(1, 5), n = random_between(1, 5), k = random_between(1, 7);
        const int64_t sizes[][2] = {{m, k}, {n, k}, {m, n}};
        device d;
        device_begin(&d, "gemm");
        for (int i = 0; i < 3; i++) {
            int64_t strides[2];
            random_strides(2, sizes[i], false, strides);
            fill_special(device_tensor(&d, DMLK_FLOAT32, 2, sizes[i], strides));
        }
        const dmlk_view *a = &d.views[0], *b = &d.views[1], *out = &d.views[2];
        dmlk_source sources[] = {{*a, *a}, {*b, *b}};
        for (int i = 0; i < 2; i++) {
            dmlk_source *source = &sources[i];
            source->outer.sizes[0] = m;
            source->outer.sizes[1] = n;
            source->outer.strides[i] = source->outer.strides[0];
            source->outer.strides[1 - i] = 0;
            source->inner.rank = 1;
            source->inner.sizes[0] = k;
            source->inner.strides[0] = i == 0 ? a->strides[1] : b->strides[1];
        }
        uint64_t found, number = 0;
        CHECK_EQUAL(dmlk_find_born(out, NO_NUMBER, sources, 2, 0, &found), DMLK_OK);
        for (int64_t i = 0; i < m && number <= found; i++) {
            for (int64_t j = 0; j < n && number <= found; j++, number++) {
                const bool expected =
                    !is_finite(out, (const int64_t[]){i, j}) && row_finite(a, i) && row_finite(b, j);
                CHECK_EQUAL(found == number, expected);
            }
        }
        CHECK(number == found + 1 || found == UINT64_MAX);
        device_end(&d);
    }
}

TEST(bad_sources_are_refused) {
    float x[6] = {0}, y[2] = {NAN, NAN};
    const dmlk_view out = {
        .base = (uint8_t *)y, .byte_size = 8, .type = DMLK_FLOAT32, .rank = 1, .sizes = {2}, .strides = {1}};
    dmlk_view outer = out, inner = out;
    outer.base = (uint8_t *)x;
    outer.byte_size = sizeof x;
    outer.strides[0] = 3;
    inner.sizes[0] = 3;
    const dmlk_source good = {outer, inner};
    uint64_t index;
    CHECK_EQUAL(dmlk_find_born(&out, BIT(NAN), &good, 1, 0, &index), DMLK_OK);
    CHECK_EQUAL(index, 0);
    CHECK_EQUAL(dmlk_find_born(&out, BIT(NAN), &good, 1, 2, &index), DMLK_OK);
    CHECK_EQUAL(index, UINT64_MAX);
    CHECK_EQUAL(dmlk_find_born(&out, BIT(INFINITY), NULL, 0, 0, &index), DMLK_OK);
    CHECK_EQUAL(index, UINT64_MAX);
#define REFUSED(status, change)                                                            \
    do {                                                                                   \
        dmlk_source source = good;                                                         \
        source.change;                                                                     \
        CHECK_EQUAL(dmlk_find_born(&out, BIT(NAN), &source, 1, 0, &index), status);        \
    } while (0)
    REFUSED(DMLK_BAD_PACKET, outer.sizes[0] = 1);
    REFUSED(DMLK_BAD_PACKET, outer.rank = 2);
    REFUSED(DMLK_BAD_PACKET, inner.type = DMLK_UINT32);
    REFUSED(DMLK_BAD_PACKET, inner.rank = 0);
    REFUSED(DMLK_BAD_ADDRESS, outer.base = NULL);
    REFUSED(DMLK_OUT_OF_RANGE, inner.sizes[0] = 4);
    REFUSED(DMLK_OUT_OF_RANGE, outer.strides[0] = 4);
    REFUSED(DMLK_OUT_OF_RANGE, outer.byte_size = 20);
#undef REFUSED
}

int main(void) {
    RUN(values_of_every_type_and_layout);
    RUN(elements_by_number);
    RUN(nothing_finite);
    RUN(many_of_a_class);
    RUN(repeated_elements);
    RUN(bad_views_are_refused);
    RUN(born_element_by_element);
    RUN(born_from_rows);
    RUN(bad_sources_are_refused);
    return RESULT();
}

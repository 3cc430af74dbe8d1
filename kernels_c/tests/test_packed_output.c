/* Packed outputs that are written piece by piece, from inputs in memory of exactly their size. */
#include "packed_output.h"
#include "test.h"

#define UNTOUCHED 0xEE
#define MAX_BYTES (1 << 16) /* of an output */
#define LARGE (INT64_C(1) << 25) /* bytes of a tensor that bypasses the caches */

/* Pieces of rows, each with its own input; element (row, i) of a piece is at at + row * step + i * stride. */
struct rows {
    dmlk_piece pieces[DMLK_MOST_PIECES];
    uint8_t *inputs[DMLK_MOST_PIECES];
    int count;
    int64_t rows, elements, bytes; /* elements: of a row */
};

static int64_t any_length(void) {
    const int64_t most[] = {3, 20, 90, 700};
    return random_between(1, most[random_bits() % 4]);
}

static void make_piece(struct rows *all, int k) {
    const bool is_constant = random_bits() % 4 == 0;
    const int64_t count = any_length(), stride = is_constant ? 0 : random_between(-4, 5), bytes = all->bytes;
    const int64_t step = is_constant ? 0 : random_between(-3, 2 * count) * bytes;
    const int64_t row = (count - 1) * stride * bytes, column = (all->rows - 1) * step;
    const int64_t low = (row < 0 ? row : 0) + (column < 0 ? column : 0);
    const int64_t size = (row < 0 ? -row : row) + (column < 0 ? -column : column) + bytes;
    all->inputs[k] = malloc((size_t)size);
    for (int64_t i = 0; i < size; i++) {
        all->inputs[k][i] = (uint8_t)random_bits();
    }
    all->pieces[k] = (dmlk_piece){all->inputs[k] - low, step, stride, count};
    all->elements += count;
}

static void make_rows(struct rows *all) {
    *all = (struct rows){.count = (int)random_between(1, random_bits() % 2 == 0 ? 3 : DMLK_MOST_PIECES)};
    all->rows = random_between(1, 40);
    all->bytes = 1 << random_bits() % 4;
    for (int k = 0; k < all->count; k++) {
        make_piece(all, k);
    }
    all->rows = all->rows * all->elements * all->bytes < MAX_BYTES ? all->rows : 1;
}

static void write_expected(const struct rows *all, uint8_t *to) {
    for (int64_t r = 0; r < all->rows; r++) {
        for (const dmlk_piece *p = all->pieces; p < all->pieces + all->count; p++) {
            for (int64_t i = 0; i < p->count; i++, to += all->bytes) {
                memcpy(to, p->at + r * p->step + i * p->stride * all->bytes, (size_t)all->bytes);
            }
        }
    }
}

/* Writes from a random element of a tensor on; a large tensor bypasses the caches. */
static void check_rows(bool is_large) {
    static const enum dmlk_type types[9] = {[1] = DMLK_UINT8, [2] = DMLK_UINT16, [4] = DMLK_UINT32, [8] = DMLK_UINT64};
    struct rows all;
    make_rows(&all);
    const int64_t bytes = all.bytes, first = random_between(0, 70), size = all.rows * all.elements * bytes;
    const size_t whole = (size_t)(first * bytes + size);
    uint8_t *found = aligned_alloc(8, (whole + 7) / 8 * 8), *expected = malloc(whole);
    const dmlk_view out = {.base = found,
                           .type = types[bytes],
                           .rank = 1,
                           .sizes = {is_large ? LARGE / bytes : (int64_t)whole / bytes},
                           .strides = {1}};
    dmlk_packed_output o;
    memset(found, UNTOUCHED, whole);
    memset(expected, UNTOUCHED, whole);
    write_expected(&all, expected + first * bytes);
    dmlk_packed_begin(&o, &out, first);
    dmlk_packed_rows(&o, all.pieces, all.count, all.rows);
    dmlk_packed_end(&o);
    CHECK(memcmp(found, expected, whole) == 0);
    for (int k = 0; k < all.count; k++) {
        free(all.inputs[k]);
    }
    free(found);
    free(expected);
}

TEST(rows_of_pieces) {
    for (int round = 0; round < 3000; round++) {
        check_rows(false);
    }
}

TEST(rows_of_pieces_past_the_caches) {
    for (int round = 0; round < 3000; round++) {
        check_rows(true);
    }
}

int main(void) {
    RUN(rows_of_pieces);
    RUN(rows_of_pieces_past_the_caches);
    return RESULT();
}

#include "followers.h"

#include <string.h>

#include "ahead.h"
#include "promoted.h"

#define PIECE 2048 /* elements; a piece stays in the first-level cache from one function to the next */
#define AHEAD 4    /* rows between the row of a function and the prefetched one */

/* Prefetches a row of each tensor but the product's output: CPUs do not prefetch short rows that are far apart. */
static void fetch(const dmlk_followers *followers, int64_t from, int64_t count) {
    for (uint32_t i = 0; i < followers->count; i++) {
        const dmlk_follower *f = &followers->each[i];
        for (uint32_t k = 0; k < f->operands; k++) {
            if (f->base[k] == followers->base || (int32_t)k == f->number) {
                continue;
            }
            const uint8_t *at = f->base[k] + from * f->bytes[k];
            for (int64_t byte = 0; byte < count * f->bytes[k]; byte += DMLK_LINE) {
                dmlk_fetch_line(at + byte);
            }
        }
    }
}

static void run_piece(const dmlk_followers *followers, int64_t from, int64_t count, int64_t stride) {
    for (uint32_t i = 0; i < followers->count; i++) {
        const dmlk_follower *f = &followers->each[i];
        uint8_t *at[4];
        int64_t strides[4];
        for (uint32_t k = 0; k < f->operands; k++) {
            const bool is_number = (int32_t)k == f->number;
            at[k] = f->base[k] + (is_number ? 0 : from * f->bytes[k]);
            strides[k] = is_number ? 1 : stride;
        }
        f->row(at, strides, count, f->context);
    }
}

static bool has_numbers(const dmlk_followers *followers) {
    bool found = false;
    for (uint32_t i = 0; i < followers->count; i++) {
        found = found || followers->each[i].number >= 0;
    }
    return found;
}

void dmlk_follow_number(dmlk_follower *follower, uint32_t k, const uint8_t *at) {
    follower->number = (int32_t)k;
    follower->base[k] = follower->numbers;
    for (int64_t i = 0; i < DMLK_REPEATED; i++) {
        memcpy(follower->numbers + i * follower->bytes[k], at, (size_t)follower->bytes[k]);
    }
}

void dmlk_follow(const dmlk_followers *followers, const uint8_t *at, int64_t rows, int64_t row_stride, int64_t columns,
                 int64_t column_stride) {
    if (followers == NULL) {
        return;
    }
    if (columns == 1 || (rows > 1 && row_stride < column_stride)) { /* rows of the transposed matrix */
        const int64_t count = rows, stride = row_stride;
        rows = columns;
        row_stride = column_stride;
        columns = count;
        column_stride = stride;
    }
    if (columns * column_stride == row_stride) {
        columns *= rows;
        rows = 1;
    }
    const int64_t from = (at - followers->base) / followers->bytes;
    const int64_t piece = has_numbers(followers) ? DMLK_REPEATED : PIECE;
    for (int64_t row = 0; row < rows; row++) {
        if (column_stride == 1 && row + AHEAD < rows) {
            fetch(followers, from + (row + AHEAD) * row_stride, dmlk_min(piece, columns));
        }
        for (int64_t column = 0; column < columns; column += piece) {
            run_piece(followers, from + row * row_stride + column * column_stride, dmlk_min(piece, columns - column),
                      column_stride);
        }
    }
}

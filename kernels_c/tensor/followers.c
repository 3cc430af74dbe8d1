#include "followers.h"

#include <math.h>
#include <string.h>

#include "ahead.h"
#include "promoted.h"

#define PIECE 2048 /* elements; a piece stays in the first-level cache from one function to the next */
#define AHEAD 4    /* rows between the row of a function and the prefetched one */

/* Whether the operand is a number that the row reads with a stride of 0: all but its input and its output. */
static bool is_one(const dmlk_follower *f, uint32_t k) { return f->reads_one && k > 0 && k + 1 < f->operands; }

/* Prefetches a row of each tensor but the product's output: CPUs do not prefetch short rows that are far apart. */
static void fetch(const dmlk_followers *followers, int64_t from, int64_t count) {
    for (uint32_t i = 0; i < followers->count; i++) {
        const dmlk_follower *f = &followers->each[i];
        for (uint32_t k = 0; k < f->operands; k++) {
            if (f->base[k] == followers->base || (int32_t)k == f->number || is_one(f, k)) {
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
            at[k] = f->base[k] + (is_number || is_one(f, k) ? 0 : from * f->bytes[k]);
            strides[k] = is_number ? 1 : is_one(f, k) ? 0 : stride;
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
    const size_t bytes = (size_t)follower->bytes[k], all = DMLK_REPEATED * bytes;
    memcpy(follower->numbers, at, bytes);
    for (size_t filled = bytes; filled < all; filled *= 2) { /* twice as many each time, as there is a power of 2 */
        memcpy(follower->numbers + filled, follower->numbers, filled);
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

/* --- what kernels do in registers --- */

bool dmlk_is_usual_low(float low) { return low == low && (low != 0 || !signbit(low)); }

bool dmlk_is_usual_high(float high) { return high == high && high != 0; }

/* False: there is a bound already that comes first, or this one is not usual. */
static bool set_low(dmlk_finish *finish, float low) {
    const bool is_possible = !finish->has_low && !finish->has_high && dmlk_is_usual_low(low);
    finish->has_low = true;
    finish->low = low;
    return is_possible;
}

static bool set_high(dmlk_finish *finish, float high) {
    const bool is_possible = !finish->has_high && dmlk_is_usual_high(high);
    finish->has_high = true;
    finish->high = high;
    return is_possible;
}

/* The operand that is not the product, of a function of two. */
static uint32_t other_operand(const dmlk_followers *followers, const dmlk_follower *f) {
    return f->number == 0 || (f->number < 0 && f->base[0] != followers->base) ? 0 : 1;
}

/* Whether the function of two operands adds a tensor, or bounds by a number. */
static bool add_pair(const dmlk_followers *followers, const dmlk_follower *f, dmlk_finish *finish) {
    const uint32_t other = other_operand(followers, f);
    if (f->base[!other] != followers->base || f->base[other] == followers->base || (f->known == DMLK_ADD) != (f->number < 0)) {
        return false;
    }
    if (f->known == DMLK_ADD) {
        const bool is_first = finish->added == NULL && !finish->has_low && !finish->has_high;
        finish->added = (const float *)(const void *)f->base[other];
        return is_first;
    }
    float bound;
    memcpy(&bound, f->numbers, sizeof bound);
    return f->known == DMLK_LOW ? set_low(finish, bound) : set_high(finish, bound);
}

static bool adds_or_bounds(enum dmlk_known_function known) {
    return known == DMLK_ADD || known == DMLK_RELU || known == DMLK_LOW || known == DMLK_HIGH || known == DMLK_LOW_AND_HIGH;
}

bool dmlk_find_finish(const dmlk_followers *followers, dmlk_finish *finish) {
    *finish = (dmlk_finish){0};
    bool found = true;
    for (uint32_t i = 0; followers != NULL && found && i < followers->count; i++) {
        const dmlk_follower *f = &followers->each[i];
        found = adds_or_bounds(f->known) && f->base[f->operands - 1] == followers->base;
        if (found && f->operands == 3) {
            found = add_pair(followers, f, finish);
        } else if (found) {
            found = f->base[0] == followers->base && set_low(finish, f->low) &&
                    (f->known != DMLK_LOW_AND_HIGH || set_high(finish, f->high));
            finish->for_positive_zeros = finish->for_positive_zeros || (f->known != DMLK_RELU && f->low == 0);
        }
    }
    return found;
}

#include "kernel.h"
#include "ahead.h"
#include "packed_output.h"
#include "checked.h"
#include "staged_rows.h"

#define DMLK_ONLY_UNSIGNED
#define DMLK_BODY "copy_row.inc"
#include "each_type.inc"

static dmlk_row *const copy_rows[] = {
#define DMLK_ONLY_UNSIGNED
#define DMLK_BODY "row_table.inc"
#include "each_type.inc"
};

static bool is_backward(const dmlk_view *in) {
    bool backward = false;
    for (uint32_t d = 0; d < in->rank; d++) {
        backward = backward || (in->strides[d] < 0 && in->sizes[d] > 1);
    }
    return backward;
}

#ifndef DMLK_CHECKED

/* --- packed outputs, row by row --- */

#define LONG_ROW 4096 /* bytes; longer rows are as fast one by one */
#define MAX_STRIDE 4  /* elements, along a row of the input; inputs with larger strides are transposed (tiles.c) */

struct rows {
    dmlk_iter iter;
    const dmlk_view *out;
    int64_t length; /* elements of a row of the input */
    int64_t times;  /* how often the output repeats each of them */
    int64_t stride;
};

static void write_rows(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct rows *rows = context;
    const int64_t elements = rows->length * rows->times;
    dmlk_packed_output o;
    dmlk_cursor cursor;
    dmlk_packed_begin(&o, rows->out, begin * elements);
    dmlk_iter_seek(&rows->iter, begin, &cursor);
    const int64_t step = dmlk_iter_row_strides(&rows->iter)[0] * o.bytes;
    for (int64_t count = 0; begin < end && !dmlk_stopped(&o.work, 1); begin += count) {
        count = dmlk_min(dmlk_iter_row_left(&rows->iter, &cursor), end - begin);
        if (rows->times == 1) {
            dmlk_packed_rows(&o, &(dmlk_piece){cursor.at[0], step, rows->stride, rows->length}, 1, count);
        }
        for (int64_t i = 0; rows->times > 1 && i < count && !dmlk_stopped(&o.work, 1); i++) {
            const uint8_t *from = cursor.at[0] + i * step;
            dmlk_fetch(from + DMLK_FETCHED, i == 0 || step != 0 ? rows->length * o.bytes : 0);
            dmlk_packed_repeat(&o, from, rows->stride, rows->length, rows->times);
        }
        dmlk_iter_advance(&rows->iter, &cursor, count);
    }
    dmlk_packed_end(&o);
}

/* Removes the innermost loop; returns its size. */
static int64_t take_loop(dmlk_iter *iter) {
    const int64_t size = iter->sizes[--iter->rank];
    iter->count /= size;
    return size;
}

/* Copies row by row if the output is packed and the rows of the input are short, with small strides; otherwise
 * returns false. */
static bool copy_to_packed(const dmlk_view *in, const dmlk_view *out) {
    struct rows rows = {.out = out, .times = 1};
    dmlk_iter *iter = &rows.iter;
    if (dmlk_in_checked_kernel() || dmlk_iter_init(iter, DMLK_ANY_ORDER, (const dmlk_view *[]){in, out}, 2) != DMLK_OK) {
        return false;
    }
    int64_t step = 1;
    for (uint32_t d = iter->rank; d-- > 0; step *= iter->sizes[d]) {
        if (iter->strides[d][1] != step) {
            return false;
        }
    }
    const uint32_t last = iter->rank - 1;
    if (last > 1 && iter->strides[last][0] == 0 && iter->strides[last - 1][0] <= MAX_STRIDE) {
        rows.times = take_loop(iter);
    }
    rows.stride = iter->strides[iter->rank - 1][0];
    rows.length = take_loop(iter);
    const bool is_apart = rows.stride > MAX_STRIDE || rows.stride < -MAX_STRIDE;
    if (iter->rank == 0 || is_apart || rows.length * rows.times > LONG_ROW / iter->bytes[0]) {
        return false;
    }
    const int64_t grain = DMLK_COPY_WORTH_A_THREAD / (rows.length * rows.times * iter->bytes[0]);
    dmlk_parallel(iter->count, dmlk_parts(iter->count, grain), write_rows, &rows);
    return true;
}

#endif

int dmlk_copy_elements(const dmlk_view *in, const dmlk_view *out) {
    const dmlk_view *const views[] = {in, out};
#ifndef DMLK_CHECKED
    if (copy_to_packed(in, out)) {
        return DMLK_OK;
    }
    if (!is_backward(in)) {
        return dmlk_staged_rows(views, 2, NULL, NULL);
    }
#endif
    dmlk_row *row = copy_rows[dmlk_bits_type(in->type)];
    return is_backward(in) ? dmlk_indexed_rows(views, 2, row, NULL) : dmlk_for_rows(views, 2, row, NULL);
}

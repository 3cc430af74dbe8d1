#include "lines.h"

#include "ahead.h"
#include "cancellation.h"
#include "parallel.h"
#include "checked.h"
#include "transpose.h"

#define FEW 8       /* lines; fewer are visited one after the other */
#define LEAST 64    /* lines of a block; with fewer, the calls of the visitor take longer than its loops */
#define PIECE 4096  /* elements of a line visited at a time, if other lines share their cache lines */
#define AHEAD 4     /* rows between the visited row and the prefetched one, across lines */
#define COPIES (1 << 14) /* bytes of transposed elements */

/* Whether to visit across lines: neighbouring lines are closer than neighbouring elements, primarily in the first
 * operand. */
static bool goes_across(const dmlk_lines *lines) {
    const int64_t *each = dmlk_iter_row_strides(&lines->each), *along = dmlk_iter_row_strides(&lines->along);
    if (lines->each.sizes[lines->each.rank - 1] < FEW || lines->along.count == 1) {
        return lines->along.count == 1;
    }
    for (uint32_t k = 0; k < lines->along.operands; k++) {
        if (each[k] != along[k]) {
            return each[k] < along[k];
        }
    }
    return false;
}

int dmlk_lines_init(dmlk_lines *lines, enum dmlk_order order, uint32_t axes_mask, const dmlk_view *const *views,
                    uint32_t operands, uint32_t along) {
    if (operands > DMLK_MAX_OPERANDS) {
        return DMLK_NOT_IMPLEMENTED;
    }
    dmlk_view each[DMLK_MAX_OPERANDS], inside[DMLK_MAX_OPERANDS];
    const dmlk_view *each_of[DMLK_MAX_OPERANDS], *inside_of[DMLK_MAX_OPERANDS];
    for (uint32_t k = 0; k < operands; k++) {
        if (views[k]->rank != views[0]->rank || axes_mask >> views[0]->rank != 0) {
            return DMLK_BAD_PACKET;
        }
        each[k] = dmlk_view_select(views[k], ~axes_mask);
        inside[k] = dmlk_view_select(views[k], axes_mask);
        each_of[k] = &each[k];
        inside_of[k] = &inside[k];
    }
    int status = dmlk_iter_init(&lines->each, DMLK_ANY_ORDER, each_of, operands);
    if (status == DMLK_OK) {
        status = dmlk_iter_init(&lines->along, order, inside_of, along);
    }
    lines->across = status == DMLK_OK && goes_across(lines);
    lines->wide = false;
    return status;
}

struct run {
    const dmlk_lines *lines;
    int64_t most, unit; /* a part has a multiple of `unit` lines */
    dmlk_run_lines *run;
    void *context;
};

static void run_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct run *job = context;
    const dmlk_iter *each = &job->lines->each;
    int64_t work = 0;
    dmlk_cursor cursor;
    begin *= job->unit;
    end = dmlk_min(end * job->unit, each->count);
    dmlk_iter_seek(each, begin, &cursor);
    while (begin < end && !dmlk_stopped(&work, 0)) {
        const int64_t left = dmlk_min(dmlk_iter_row_left(each, &cursor), end - begin);
        const int64_t count = dmlk_min(left, job->most);
        const dmlk_line_block block = {begin, count, cursor.at, dmlk_iter_row_strides(each), &work};
        job->run(&block, job->context);
        dmlk_iter_advance(each, &cursor, count);
        begin += count;
    }
}

void dmlk_for_lines(const dmlk_lines *lines, int64_t most, int64_t grain, dmlk_run_lines *run, void *context) {
    const int64_t in_cache_line = DMLK_LINE / lines->each.bytes[0];
    const int64_t unit = lines->across && grain >= in_cache_line ? in_cache_line : 1;
    const int64_t units = (lines->each.count + unit - 1) / unit;
    struct run job = {lines, lines->wide ? most : dmlk_min(most, DMLK_MOST_LINES), unit, run, context};
    dmlk_parallel(units, dmlk_parts(units, grain / unit), run_part, &job);
}

int64_t dmlk_lines_grain(const dmlk_lines *lines, int64_t grain, int64_t least) {
    return lines->across ? dmlk_max(grain, dmlk_min(lines->each.sizes[lines->each.rank - 1], least)) : grain;
}

int64_t dmlk_lines_together(const dmlk_lines *lines, int64_t line_bytes, int64_t bytes) {
    if (!lines->across) {
        return 1;
    }
    return dmlk_min(bytes / line_bytes > LEAST ? bytes / line_bytes : LEAST, DMLK_MOST_LINES);
}

/* Visits n elements of each line along the line; those of the block's first line are at `at`. */
static void visit_along(const dmlk_lines *lines, const dmlk_line_block *block, uint8_t *const *at, int64_t n,
                        int64_t index, const dmlk_line_visitor *visitor, void *context) {
    uint8_t *start[DMLK_MAX_OPERANDS];
    for (int64_t line = 0; line < block->count && !dmlk_stopped(block->work, n); line++) {
        for (uint32_t k = 0; k < lines->along.operands; k++) {
            start[k] = at[k] + line * block->strides[k] * lines->along.bytes[k];
        }
        visitor->along(context, line, start, dmlk_iter_row_strides(&lines->along), n, index);
    }
}

/* Calls visitor->rows.  After the last rows of these lines, the rows of the next block are assumed to follow. */
static void visit_rows(const dmlk_lines *lines, const dmlk_line_block *block, uint8_t *const *at, int64_t n,
                       int64_t index, const dmlk_line_visitor *visitor, void *context) {
    const int64_t *along = dmlk_iter_row_strides(&lines->along);
    uint8_t *start[DMLK_MAX_OPERANDS];
    const int64_t fit = DMLK_WORK_BETWEEN_LOOKS / block->count, most = fit < 1 ? 1 : dmlk_min(fit, DMLK_MOST_ROWS);
    for (int64_t i = 0, rows = 0; i < n && !dmlk_stopped(block->work, rows * block->count); i += rows) {
        for (uint32_t k = 0; k < lines->along.operands; k++) {
            start[k] = at[k] + i * along[k] * lines->along.bytes[k];
        }
        rows = dmlk_min(n - i, most);
        const int64_t next_block = (block->at[0] - start[0]) / lines->along.bytes[0] + block->count;
        const int64_t next = index + i + rows == lines->along.count ? next_block : rows * along[0];
        visitor->rows(context, start, along, rows, index + i, next);
    }
}

static void visit_across(const dmlk_lines *lines, const dmlk_line_block *block, uint8_t *const *at, int64_t n,
                         int64_t index, const dmlk_line_visitor *visitor, void *context) {
    const int64_t *along = dmlk_iter_row_strides(&lines->along);
    uint8_t *start[DMLK_MAX_OPERANDS];
    if (visitor->rows != NULL && block->strides[0] == 1) {
        visit_rows(lines, block, at, n, index, visitor, context);
        return;
    }
    for (int64_t i = 0; i < n && !dmlk_stopped(block->work, block->count); i++) {
        for (uint32_t k = 0; k < lines->along.operands; k++) {
            start[k] = at[k] + i * along[k] * lines->along.bytes[k];
        }
        /* CPUs prefetch the next row themselves where it follows in memory, as it does in wide blocks of whole rows. */
        const bool fetch = block->count <= DMLK_MOST_LINES || along[0] > block->count;
        const uint32_t fetched = i + AHEAD < n && fetch ? 2 : 0;
        for (uint32_t k = 0; k < fetched && k < lines->along.operands && block->strides[k] == 1; k++) {
            if (visitor->unfetched >> k & 1) {
                continue;
            }
            const uint8_t *next = start[k] + AHEAD * along[k] * lines->along.bytes[k];
            for (int64_t b = 0; b < block->count * lines->along.bytes[k]; b += DMLK_LINE) {
                k == 0 ? __builtin_prefetch(next + b) : __builtin_prefetch(next + b, 1);
            }
        }
        visitor->across(context, start, block->strides, block->count, index + i);
    }
}

/* Visits n contiguous elements of each line across the lines, as transposed copies; there is only one operand. */
static void visit_turned(const dmlk_lines *lines, const dmlk_line_block *block, const uint8_t *at, int64_t n,
                         int64_t index, const dmlk_line_visitor *visitor, void *context) {
    _Alignas(DMLK_LINE) uint8_t copies[COPIES];
    const int64_t bytes = lines->along.bytes[0], most = COPIES / (bytes * block->count);
    const int64_t stride = *dmlk_iter_row_strides(&lines->along) * bytes, packed = 1;
    for (int64_t i = 0; i < n && !dmlk_stopped(block->work, most * block->count); i += most) {
        const int64_t rows = dmlk_min(n - i, most), ahead = i + most < n ? most * stride : 0;
        dmlk_transpose_fetching(bytes, at + i * stride, block->strides[0] * bytes, stride, copies, block->count * bytes, rows,
                       block->count, ahead);
        uint8_t *copy = copies;
        if (visitor->rows != NULL && rows <= DMLK_MOST_ROWS) {
            visitor->rows(context, &copy, &block->count, rows, index + i, 0);
            continue;
        }
        for (int64_t row = 0; row < rows; row++, copy += block->count * bytes) {
            visitor->across(context, &copy, &packed, block->count, index + i + row);
        }
    }
}

void dmlk_visit_lines(const dmlk_lines *lines, const dmlk_line_block *block, int64_t first, int64_t n,
                      const dmlk_line_visitor *visitor, void *context) {
    const bool shared = block->count > 1 && !lines->across;
    const bool turned = !lines->across && lines->along.count < visitor->least_along && block->count >= LEAST &&
                        !dmlk_in_checked_kernel();
    const int64_t longest = shared ? PIECE : DMLK_WORK_BETWEEN_LOOKS;
    uint8_t *at[DMLK_MAX_OPERANDS];
    dmlk_cursor cursor;
    dmlk_iter_seek(&lines->along, first, &cursor);
    for (int64_t index = first; index < first + n && !dmlk_stopped(block->work, 0);) {
        const int64_t left = dmlk_min(dmlk_iter_row_left(&lines->along, &cursor), first + n - index);
        const int64_t m = dmlk_min(left, longest);
        for (uint32_t k = 0; k < lines->along.operands; k++) {
            at[k] = block->at[k] + (cursor.at[k] - lines->along.base[k]);
        }
        if (turned) {
            visit_turned(lines, block, at[0], m, index, visitor, context);
        } else if (lines->across) {
            visit_across(lines, block, at, m, index, visitor, context);
        } else {
            visit_along(lines, block, at, m, index, visitor, context);
        }
        dmlk_iter_advance(&lines->along, &cursor, m);
        index += m;
    }
}

/* for_rows.c - the loops of element-wise kernels: row by row, or tile by tile. */
#include "parallel.h"
#include "ahead.h"
#include "cancellation.h"
#include "nontemporal.h"
#include "tiles.h"
#include "promoted.h"

static void run_rows(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const dmlk_tiles *job = context;
    const int64_t longest = DMLK_WORK_BETWEEN_LOOKS;
    int64_t work = 0, count = 0;
    dmlk_cursor cursor;
    dmlk_iter_seek(&job->rows, begin, &cursor);
    while (begin < end && !dmlk_stopped(&work, count)) {
        count = dmlk_iter_row_left(&job->rows, &cursor);
        count = count < end - begin ? count : end - begin;
        count = count < longest ? count : longest;
        job->row(cursor.at, dmlk_iter_row_strides(&job->rows), count, job->context);
        dmlk_iter_advance(&job->rows, &cursor, count);
        begin += count;
    }
    dmlk_streamed();
}

/* Short rows: makes a longer loop the innermost one, so that the kernel is called less often. */
static void lengthen_rows(dmlk_iter *rows) {
    const uint32_t row = rows->rank - 1, d = dmlk_nearest_loop(rows, 0);
    if (d != row && rows->sizes[row] < 8 && rows->sizes[d] >= 4 * rows->sizes[row] && !dmlk_writes_twice(rows)) {
        dmlk_iter_swap(rows, d, row);
    }
}

/* `cost`: of computing an element, in bytes (see dmlk_for_costly_rows).  An element that is followed by a gap also
 * costs the bytes of the gap, up to a whole cache line. */
static int64_t elements_worth_a_thread(const dmlk_iter *iter, int64_t cost) {
    int64_t bytes = cost;
    for (uint32_t k = 0; k < iter->operands; k++) {
        const int64_t stride = iter->strides[iter->rank - 1][k];
        bytes += dmlk_min(stride, DMLK_LINE) * iter->bytes[k] < DMLK_LINE ? stride * iter->bytes[k] : DMLK_LINE;
    }
    return DMLK_WORTH_A_THREAD / dmlk_max(bytes, 1);
}

/* Sets up the loops, a long one innermost.  (Does not clear `job`: it is large, and little of it is normally used.) */
static int begin_rows(dmlk_tiles *job, const dmlk_view *const *views, uint32_t operands, dmlk_row *row,
                      const void *context) {
    job->row = row;
    job->context = context;
    int status = dmlk_iter_init(&job->rows, DMLK_ANY_ORDER, views, operands);
    if (status == DMLK_OK) {
        lengthen_rows(&job->rows);
    }
    return status;
}

int dmlk_for_rows(const dmlk_view *const *views, uint32_t operands, dmlk_row *row, const void *context) {
    return dmlk_for_costly_rows(views, operands, row, context, 0);
}

int dmlk_for_costly_rows(const dmlk_view *const *views, uint32_t operands, dmlk_row *row, const void *context,
                         int64_t cost) {
    dmlk_tiles job;
    int status = begin_rows(&job, views, operands, row, context);
    if (status != DMLK_OK) {
        return status;
    }
    const int parts = dmlk_parts(job.rows.count, elements_worth_a_thread(&job.rows, cost));
    if (dmlk_plan_tiles(&job)) {
        dmlk_parallel(job.iter.count, (int)dmlk_min(parts, job.iter.count), dmlk_run_tiles, &job);
    } else {
        dmlk_parallel(job.rows.count, parts, run_rows, &job);
    }
    return DMLK_OK;
}

int dmlk_indexed_rows(const dmlk_view *const *views, uint32_t operands, dmlk_row *row, const void *context) {
    dmlk_tiles job;
    int status = begin_rows(&job, views, operands, row, context);
    if (status == DMLK_OK) {
        dmlk_parallel(job.rows.count, dmlk_parts(job.rows.count, elements_worth_a_thread(&job.rows, 0)), run_rows, &job);
    }
    return status;
}

/* for_rows.c - the loops of element-wise kernels: row by row, or tile by tile. */
#include "checked.h"
#include "parallel.h"
#include "stop.h"
#include "stream.h"
#include "transpose.h"
#include "view.h"

struct for_rows {
    dmlk_iter iter;
    dmlk_row *row;
    const void *context;
};

static void run_rows(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct for_rows *job = context;
    const int64_t longest = DMLK_WORK_BETWEEN_LOOKS;
    int64_t work = 0, count = 0;
    dmlk_cursor cursor;
    dmlk_iter_seek(&job->iter, begin, &cursor);
    while (begin < end && !dmlk_stopped(&work, count)) {
        count = dmlk_iter_row_left(&job->iter, &cursor);
        count = count < end - begin ? count : end - begin;
        count = count < longest ? count : longest;
        job->row(cursor.at, dmlk_iter_row_strides(&job->iter), count, job->context);
        dmlk_iter_advance(&job->iter, &cursor, count);
        begin += count;
    }
    dmlk_streamed();
}

/* --- tiles ---
 *
 * Where neighbours along a row of the output are far apart in an input, each element of a row costs that input a
 * cache line of which nothing else is used.  So a tile takes some of the row and some of the loop along which the
 * input's elements are neighbours, "across".  The input's part of it is transposed into memory at hand, where the
 * kernel finds rows as packed as those of the output.
 *
 * Then it matters in which order tiles follow each other: cache lines and pages that one has begun should be gone
 * on with soon, on both sides. */

#define ROW_TILE 64    /* elements of a row in a tile */
#define TILE_BYTES 256 /* of each input, across */
#define SPAN 4096      /* bytes to go on with on one side before it is the other's turn, if that has less than ... */
#define SHORT_SPAN 2048
#define NO_LOOP DMLK_MAX_RANK

struct tiles {
    struct for_rows rows;
    dmlk_iter iter;                /* from tile to tile */
    uint32_t loop[DMLK_MAX_RANK];  /* which loop of the rows each of its loops is; NO_LOOP: the outer part of one */
    uint32_t across;               /* a loop of the rows */
    int64_t across_tile;           /* elements */
    bool gathered[DMLK_MAX_OPERANDS];
};

/* The loop along which elements of operand k are nearest to each other. */
static uint32_t nearest(const dmlk_iter *rows, uint32_t k) {
    uint32_t best = rows->rank - 1;
    for (uint32_t d = rows->rank; d-- > 0;) {
        if (rows->strides[d][k] != 0 && rows->strides[d][k] < rows->strides[best][k]) {
            best = d;
        }
    }
    return best;
}

/* Is operand k better read along loop d than along the row? */
static bool gains(const dmlk_iter *rows, uint32_t k, uint32_t d) {
    const uint32_t row = rows->rank - 1;
    return d != row && rows->sizes[d] >= 4 && rows->sizes[row] >= 4 && rows->strides[d][k] != 0 &&
           rows->strides[row][k] / 4 >= rows->strides[d][k];
}

/* The loop across, or the row if no input gains from one. */
static uint32_t choose_across(const dmlk_iter *rows) {
    for (uint32_t k = 0; k + 1 < rows->operands; k++) {
        const uint32_t d = nearest(rows, k);
        if (gains(rows, k, d)) {
            return d;
        }
    }
    return rows->rank - 1;
}

/* Of what is written to one place the last must stay: such loops keep their order. */
static bool writes_twice(const dmlk_iter *rows) {
    bool twice = false;
    for (uint32_t d = 0; d < rows->rank; d++) {
        twice |= rows->strides[d][rows->operands - 1] == 0 && rows->sizes[d] > 1;
    }
    return twice;
}

/* The loops from tile to tile, but for those that have one step only. */
static void make_loops(struct tiles *t) {
    const dmlk_iter *rows = &t->rows.iter;
    dmlk_iter *iter = &t->iter;
    *iter = *rows;
    iter->rank = 0;
    iter->count = 1;
    for (uint32_t d = 0; d < rows->rank; d++) {
        const int64_t tile = d == rows->rank - 1 ? ROW_TILE : d == t->across ? t->across_tile : 1;
        const int64_t size = (rows->sizes[d] - 1) / tile + 1;
        if (size > 1 || (iter->rank == 0 && d == rows->rank - 1)) {
            for (uint32_t k = 0; k < rows->operands; k++) {
                iter->strides[iter->rank][k] = rows->strides[d][k] * tile;
            }
            iter->sizes[iter->rank] = size;
            iter->count *= size;
            t->loop[iter->rank++] = d;
        }
    }
}

/* Bytes that a step of loop d leads away from what has been touched, in the operand where that is least: all
 * nearer bytes belong to loops further inside. */
static int64_t step_of(const dmlk_iter *iter, uint32_t d) {
    int64_t least = INT64_MAX;
    for (uint32_t k = 0; k < iter->operands; k++) {
        const int64_t step = iter->strides[d][k] * iter->bytes[k];
        least = step != 0 && step < least ? step : least;
    }
    return least;
}

/* Short steps inside: so each side in turn is gone on with where less of it has been touched. */
static void order_loops(struct tiles *t) {
    for (uint32_t last = 1; last < t->iter.rank; last++) {
        for (uint32_t d = last; d > 0 && step_of(&t->iter, d - 1) < step_of(&t->iter, d); d--) {
            dmlk_iter_swap(&t->iter, d - 1, d);
            const uint32_t loop = t->loop[d];
            t->loop[d] = t->loop[d - 1];
            t->loop[d - 1] = loop;
        }
    }
}

/* An innermost loop that leads far on one side, while the next one still has short steps on the other: that one's
 * turn comes after a SPAN already. */
static void split_innermost(struct tiles *t) {
    dmlk_iter *iter = &t->iter;
    const uint32_t last = iter->rank - 1;
    if (iter->rank < 2 || iter->rank == DMLK_MAX_RANK || step_of(iter, last - 1) >= SHORT_SPAN) {
        return;
    }
    const bool cut = t->loop[last] == t->across || t->loop[last] == t->rows.iter.rank - 1;
    const int64_t size = iter->sizes[last], most = SPAN / step_of(iter, last);
    int64_t inner = 1;
    for (int64_t n = 2; n < size && n <= most; n++) {
        inner = size % n == 0 ? n : inner;
    }
    if (cut || inner == 1 || size <= most) {
        return;
    }
    iter->sizes[last + 1] = inner;
    memcpy(iter->strides[last + 1], iter->strides[last], sizeof iter->strides[last]);
    t->loop[last + 1] = t->loop[last];
    iter->sizes[last] = iter->sizes[last - 1];
    memcpy(iter->strides[last], iter->strides[last - 1], sizeof iter->strides[last]);
    t->loop[last] = t->loop[last - 1];
    iter->sizes[last - 1] = size / inner;
    for (uint32_t k = 0; k < iter->operands; k++) {
        iter->strides[last - 1][k] = iter->strides[last + 1][k] * inner;
    }
    t->loop[last - 1] = NO_LOOP;
    iter->rank++;
}

/* False: rows one after the other will do. */
static bool plan_tiles(struct tiles *t) {
    const dmlk_iter *rows = &t->rows.iter;
    const uint32_t row = rows->rank - 1, output = rows->operands - 1;
    if (dmlk_in_checked_kernel() || writes_twice(rows)) {
        return false;
    }
    t->across = choose_across(rows);
    if (t->across == row) {
        return false;
    }
    int64_t widest = 1;
    for (uint32_t k = 0; k < output; k++) {
        t->gathered[k] = gains(rows, k, t->across);
        widest = t->gathered[k] && rows->bytes[k] > widest ? rows->bytes[k] : widest;
    }
    t->across_tile = TILE_BYTES / widest;
    make_loops(t);
    order_loops(t);
    split_innermost(t);
    return true;
}

/* Rows of `columns` elements, `lines` of them. */
static void run_tile(const struct tiles *t, const dmlk_cursor *cursor, int64_t columns, int64_t lines) {
    _Alignas(64) uint8_t gathered[DMLK_MAX_OPERANDS - 1][ROW_TILE * TILE_BYTES];
    const dmlk_iter *rows = &t->rows.iter;
    uint8_t *at[DMLK_MAX_OPERANDS];
    int64_t strides[DMLK_MAX_OPERANDS], steps[DMLK_MAX_OPERANDS];
    for (uint32_t k = 0; k < rows->operands; k++) {
        const int64_t bytes = rows->bytes[k];
        at[k] = cursor->at[k];
        strides[k] = dmlk_iter_row_strides(rows)[k];
        steps[k] = rows->strides[t->across][k] * bytes;
        if (t->gathered[k]) {
            dmlk_transpose(bytes, at[k], strides[k] * bytes, steps[k], gathered[k], ROW_TILE * bytes, lines, columns);
            at[k] = gathered[k];
            strides[k] = 1;
            steps[k] = ROW_TILE * bytes;
        }
    }
    for (int64_t j = 0; j < lines; j++) {
        t->rows.row(at, strides, columns, t->rows.context);
        for (uint32_t k = 0; k < rows->operands; k++) {
            at[k] += steps[k];
        }
    }
}

/* Elements of tile number `index` of a loop. */
static int64_t tile_size(int64_t index, int64_t tile, int64_t size) {
    return tile < size - index * tile ? tile : size - index * tile;
}

static void run_tiles(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct tiles *t = context;
    const dmlk_iter *rows = &t->rows.iter;
    const uint32_t row = rows->rank - 1;
    int64_t work = 0, count = 0;
    dmlk_cursor cursor;
    dmlk_iter_seek(&t->iter, begin, &cursor);
    for (; begin < end && !dmlk_stopped(&work, count); begin++) {
        int64_t index[DMLK_MAX_RANK + 1] = {0}; /* of loops of the rows, and of NO_LOOP */
        for (uint32_t d = 0; d < t->iter.rank; d++) {
            index[t->loop[d]] = cursor.index[d];
        }
        const int64_t columns = tile_size(index[row], ROW_TILE, rows->sizes[row]);
        const int64_t lines = tile_size(index[t->across], t->across_tile, rows->sizes[t->across]);
        run_tile(t, &cursor, columns, lines);
        dmlk_iter_advance(&t->iter, &cursor, 1);
        count = columns * lines;
    }
    dmlk_streamed();
}

/* Rows of a few elements: a longer loop in their place, so that the kernel is not called for each. */
static void lengthen_rows(dmlk_iter *rows) {
    const uint32_t row = rows->rank - 1, d = nearest(rows, 0);
    if (d != row && rows->sizes[row] < 8 && rows->sizes[d] >= 4 * rows->sizes[row] && !writes_twice(rows)) {
        dmlk_iter_swap(rows, d, row);
    }
}

/* A second thread gains about 0.1 ms where 0.2 ms are to be done, and loses 4 to 8 ms if its core is taken.
 * Bit counts on one core of an AMD EPYC (2026): packed 1e6 uint8 0.03 ms, 1e6 uint32 0.15 ms; every second
 * uint8 0.8 ms.  So two threads begin at 2^20 elements of long packed rows and at 2^18 of others. */
static int64_t elements_worth_a_thread(const dmlk_iter *iter) {
    bool packed = iter->sizes[iter->rank - 1] >= 64;
    for (uint32_t k = 0; k < iter->operands; k++) {
        packed = packed && iter->strides[iter->rank - 1][k] <= 1;
    }
    return packed ? 1 << 19 : 1 << 17;
}

int dmlk_for_rows(const dmlk_view *const *views, uint32_t operands, dmlk_row *row, const void *context) {
    struct tiles job = {.rows = {.row = row, .context = context}};
    dmlk_iter *rows = &job.rows.iter;
    int status = dmlk_iter_init(rows, DMLK_ANY_ORDER, views, operands);
    if (status != DMLK_OK) {
        return status;
    }
    lengthen_rows(rows);
    const int parts = dmlk_parts(rows->count, elements_worth_a_thread(rows));
    if (plan_tiles(&job)) {
        dmlk_parallel(job.iter.count, parts < job.iter.count ? parts : (int)job.iter.count, run_tiles, &job);
    } else {
        dmlk_parallel(rows->count, parts, run_rows, &job.rows);
    }
    return DMLK_OK;
}

/* tiles.c - see tiles.h.
 *
 * Where neighbours in an output row are far apart in an input, each element costs a whole cache line of the input.
 * So a tile spans part of the row and part of the loop along which the input's elements are neighbours, "across".
 * Its part of the input is transposed into a cached buffer, which gives the kernel packed rows.
 *
 * Where rows are short, a tile joins several that are contiguous in the output, along the loop "next".  Outputs
 * that bypass the caches need that for longer rows too: partial lines are slow.
 *
 * While a tile is processed, the next one is prefetched.  The order of tiles is such that cache lines that a tile uses
 * in part, of inputs and output, are soon used again. */
#include "tiles.h"

#include "ahead.h"
#include "checked.h"
#include "cancellation.h"
#include "nontemporal.h"
#include "transpose.h"
#include "promoted.h"

#define LONG_ROW 1024 /* bytes of a row in a tile; rows of this length are efficient by themselves */
#define SHORT_ROW 320 /* bytes; shorter rows are faster if they are joined */
#define ACROSS 64    /* elements of a tile along the loop across */
#define TILE_BYTES (LONG_ROW * ACROSS) /* of each operand */
#define MAX_GATHERED 3 /* operands; further ones are read in place */

uint32_t dmlk_nearest_loop(const dmlk_iter *rows, uint32_t k) {
    uint32_t best = rows->rank - 1;
    for (uint32_t d = rows->rank; d-- > 0;) {
        if (rows->strides[d][k] != 0 && rows->strides[d][k] < rows->strides[best][k]) {
            best = d;
        }
    }
    return best;
}

bool dmlk_writes_twice(const dmlk_iter *rows) {
    bool twice = false;
    for (uint32_t d = 0; d < rows->rank; d++) {
        twice |= rows->strides[d][rows->operands - 1] == 0 && rows->sizes[d] > 1;
    }
    return twice;
}

/* Whether operand k is better read along loop d than along the row. */
static bool gains(const dmlk_iter *rows, uint32_t k, uint32_t d) {
    const uint32_t row = rows->rank - 1;
    return d != row && rows->sizes[d] >= 4 && rows->sizes[row] >= 4 && rows->strides[d][k] != 0 &&
           rows->strides[row][k] / 4 >= rows->strides[d][k];
}

/* Whether a step of loop d continues operand k contiguously after a whole row. */
static bool follows(const dmlk_iter *rows, uint32_t k, uint32_t d) {
    const uint32_t row = rows->rank - 1;
    int64_t length;
    return !__builtin_mul_overflow(rows->sizes[row], rows->strides[row][k], &length) && rows->strides[d][k] == length;
}

/* Chooses the loop across and the inputs that are gathered along it; false: none gains. */
static bool choose_across(dmlk_tiles *t) {
    const dmlk_iter *rows = &t->rows;
    uint32_t count = 0;
    for (uint32_t k = 0; k + 1 < rows->operands; k++) {
        const uint32_t d = count > 0 ? t->across : dmlk_nearest_loop(rows, k);
        t->gathered[k] = count < MAX_GATHERED && gains(rows, k, d);
        if (t->gathered[k]) {
            t->across = d;
            count++;
        }
    }
    return count > 0;
}

static int64_t widest(const dmlk_iter *rows) {
    int64_t bytes = 1;
    for (uint32_t k = 0; k < rows->operands; k++) {
        bytes = rows->bytes[k] > bytes ? rows->bytes[k] : bytes;
    }
    return bytes;
}

/* Chooses the loop along which short rows are joined, or also longer rows if the output bypasses the caches.  False:
 * rows need not be joined. */
static bool choose_next(dmlk_tiles *t) {
    const dmlk_iter *rows = &t->rows;
    const uint32_t row = rows->rank - 1, output = rows->operands - 1;
    const int64_t longest = t->large ? LONG_ROW / rows->bytes[output] : SHORT_ROW / widest(rows);
    if (!follows(rows, output, t->next) || rows->strides[row][output] != 1 || rows->sizes[row] < 4 ||
        rows->sizes[row] > longest) {
        return false;
    }
    bool joined = true;
    uint32_t count = 0;
    t->across = t->next;
    for (uint32_t k = 0; k < output; k++) {
        t->gathered[k] = count < MAX_GATHERED && !follows(rows, k, t->next) && rows->strides[row][k] <= 1;
        count += t->gathered[k];
        joined = joined && (t->gathered[k] || follows(rows, k, t->next));
    }
    return t->large || joined;
}

/* Sets the extent of a tile in each loop. */
static void size_tiles(dmlk_tiles *t) {
    const dmlk_iter *rows = &t->rows;
    const uint32_t row = rows->rank - 1;
    const int64_t bytes = widest(rows);
    t->joined = true;
    for (uint32_t k = 0; k < rows->operands; k++) {
        t->joined = t->joined && (t->gathered[k] || follows(rows, k, t->next));
    }
    for (uint32_t d = 0; d < rows->rank; d++) {
        t->tile[d] = 1;
    }
    t->tile[row] = dmlk_min(rows->sizes[row], LONG_ROW / bytes);
    const int64_t length = t->tile[row] * bytes;
    t->tile[t->across] = dmlk_min(rows->sizes[t->across], ACROSS);
    t->joined = t->joined && t->tile[row] == rows->sizes[row];
    if (t->joined && t->next != t->across) {
        t->tile[t->next] = dmlk_min(rows->sizes[t->next], TILE_BYTES / (length * t->tile[t->across]));
    }
}

/* The loops over tiles, without those of a single step. */
static void make_loops(dmlk_tiles *t) {
    const dmlk_iter *rows = &t->rows;
    dmlk_iter *iter = &t->iter;
    iter->operands = rows->operands;
    for (uint32_t k = 0; k < rows->operands; k++) {
        iter->base[k] = rows->base[k];
        iter->bytes[k] = rows->bytes[k];
    }
    iter->rank = 0;
    iter->count = 1;
    for (uint32_t d = 0; d < rows->rank; d++) {
        const int64_t size = (rows->sizes[d] - 1) / t->tile[d] + 1;
        if (size > 1 || (iter->rank == 0 && d == rows->rank - 1)) {
            for (uint32_t k = 0; k < rows->operands; k++) {
                iter->strides[iter->rank][k] = rows->strides[d][k] * t->tile[d];
            }
            iter->sizes[iter->rank] = size;
            iter->count *= size;
            t->loop[iter->rank++] = d;
        }
    }
}

/* The smallest step of loop d in bytes over the operands, if it stays within a cache line. */
static int64_t step_of(const dmlk_iter *iter, uint32_t d) {
    int64_t least = DMLK_LINE;
    for (uint32_t k = 0; k < iter->operands; k++) {
        const int64_t step = iter->strides[d][k] * iter->bytes[k];
        least = step != 0 && step < least ? step : least;
    }
    return least;
}

/* Sorts the loops with short steps innermost; the others keep the order of the output. */
static void order_loops(dmlk_tiles *t) {
    for (uint32_t last = 1; last < t->iter.rank; last++) {
        for (uint32_t d = last; d > 0 && step_of(&t->iter, d - 1) < step_of(&t->iter, d); d--) {
            dmlk_iter_swap(&t->iter, d - 1, d);
            const uint32_t loop = t->loop[d];
            t->loop[d] = t->loop[d - 1];
            t->loop[d - 1] = loop;
        }
    }
}

/* Chooses an input that is transposed into the output, where the row then works in place.  Returns the output if
 * there is none, because the output bypasses the caches, has no contiguous rows, or is also an input.  (An input may
 * not overlap the output in any other way.) */
static uint32_t choose_direct(const dmlk_tiles *t) {
    const dmlk_iter *rows = &t->rows;
    const uint32_t output = rows->operands - 1;
    uint32_t direct = output;
    for (uint32_t k = 0; k < output; k++) {
        if (rows->base[k] == rows->base[output]) {
            return output;
        }
        if (t->gathered[k] && rows->bytes[k] == rows->bytes[output] && direct == output) {
            direct = k;
        }
    }
    return t->large || rows->strides[rows->rank - 1][output] != 1 ? output : direct;
}

bool dmlk_plan_tiles(dmlk_tiles *t) {
    if (dmlk_in_checked_kernel() || t->rows.rank == 1 || dmlk_writes_twice(&t->rows)) {
        return false;
    }
    t->next = t->rows.rank - 2;
    t->gathered[t->rows.operands - 1] = false;
    t->large = dmlk_stream_pays(t->rows.count, t->rows.bytes[t->rows.operands - 1]);
    if (!choose_across(t) && !choose_next(t)) {
        return false;
    }
    t->direct = choose_direct(t);
    size_tiles(t);
    make_loops(t);
    order_loops(t);
    return true;
}

/* Sets the number of elements of the tile at the cursor in each loop; returns their product. */
static int64_t measure(const dmlk_tiles *t, const dmlk_cursor *cursor, int64_t *sizes) {
    int64_t count = 1;
    memcpy(sizes, t->tile, sizeof t->tile);
    for (uint32_t d = 0; d < t->iter.rank; d++) {
        const uint32_t loop = t->loop[d];
        sizes[loop] = dmlk_min(t->tile[loop], t->rows.sizes[loop] - cursor->index[d] * t->tile[loop]);
    }
    for (uint32_t d = 0; d < t->rows.rank; d++) {
        count *= sizes[d];
    }
    return count;
}

/* Runs one tile: `lines` blocks across, each of `rows` contiguous rows of `columns` elements.  The next tile is at
 * `ahead`. */
static void run_tile(const dmlk_tiles *t, const dmlk_cursor *cursor, const dmlk_cursor *ahead, const int64_t *sizes) {
    _Alignas(DMLK_LINE) uint8_t gathered[MAX_GATHERED][TILE_BYTES];
    const dmlk_iter *all = &t->rows;
    const bool blocks = t->next != t->across;
    const int64_t columns = sizes[all->rank - 1], rows = blocks ? sizes[t->next] : 1, lines = sizes[t->across];
    uint8_t *at[DMLK_MAX_OPERANDS];
    int64_t strides[DMLK_MAX_OPERANDS], steps[DMLK_MAX_OPERANDS];
    uint32_t count = 0;
    for (uint32_t k = 0; k < all->operands; k++) {
        const int64_t bytes = all->bytes[k], row = columns * bytes, next = all->strides[t->next][k] * bytes;
        at[k] = cursor->at[k];
        strides[k] = dmlk_iter_row_strides(all)[k];
        steps[k] = all->strides[t->across][k] * bytes;
        if (t->gathered[k] && k == t->direct) {
            const uint32_t out = all->operands - 1;
            const int64_t to_step = all->strides[t->across][out] * bytes;
            for (int64_t j = 0; j < rows; j++) {
                dmlk_transpose_to_memory(bytes, at[k] + j * next, strides[k] * bytes, steps[k],
                                         cursor->at[out] + j * all->strides[t->next][out] * bytes, to_step, lines, columns);
            }
            at[k] = cursor->at[out];
            strides[k] = 1;
            steps[k] = to_step;
        } else if (t->gathered[k]) {
            for (int64_t j = 0; j < rows; j++) {
                dmlk_transpose_fetching(bytes, at[k] + j * next, strides[k] * bytes, steps[k], gathered[count] + j * row,
                               rows * row, lines, columns, t->large ? ahead->at[k] - at[k] : 0);
            }
            at[k] = gathered[count++];
            strides[k] = 1;
            steps[k] = rows * row;
        }
    }
    if (t->joined && !blocks) {
        t->row(at, strides, lines * columns, t->context);
        return;
    }
    for (int64_t j = 0; j < lines; j++) { /* blocks of several rows are joined */
        t->row(at, strides, rows * columns, t->context);
        for (uint32_t k = 0; k < all->operands; k++) {
            at[k] += steps[k];
        }
    }
}

void dmlk_run_tiles(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const dmlk_tiles *t = context;
    int64_t work = 0, count = 0;
    dmlk_cursor cursor, ahead;
    dmlk_iter_seek(&t->iter, begin, &cursor);
    for (; begin < end && !dmlk_stopped(&work, count); begin++) {
        int64_t sizes[DMLK_MAX_RANK];
        ahead = cursor;
        dmlk_iter_advance(&t->iter, &ahead, 1);
        count = measure(t, &cursor, sizes);
        run_tile(t, &cursor, &ahead, sizes);
        cursor = ahead;
    }
    dmlk_streamed();
}

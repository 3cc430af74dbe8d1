/* multiply_integers: products of matrices of integers, with a zero point subtracted from each integer, for each pair
 * of matrices along the leading axes.
 *
 * Views: a {.., m, k}, its zero points, b {.., k, n}, its zero points, sums of b {.., n}, out {.., m, n}.  Zero points
 * (optional) have rank 1: one element, or one for each row of a or column of b.  The sums of columns (optional, and only
 * for 8 bits) are INT32, and only save the kernel from computing them.
 *
 * Integers of 8 bits give INT32, whose sums wrap; integers of 16 bits give INT64.  Products of 32 bits do not fit an
 * integer: they give FLOAT64, where products and sums are rounded, in ascending order of the summed index. */
#include "convolve.h"
#include "kernel.h"
#include "microkernel_s8.h"

enum { A, A_ZERO, B, B_ZERO, B_SUMS, OUT, VIEWS };

#define FEW_ROWS 4                    /* of a; up to this many, b is read in place */
#define FEW_COLUMNS 2048              /* of b, that are multiplied at a time then */
#define FEW_GRAIN 1000000             /* products worth a thread then */
#define LINES 8                       /* rows of b at a time then */
#define LANES 48                      /* positions that the tuned convolution multiplies together */
#define LINE_BYTES (INT64_C(1) << 18) /* bytes of a line of positions: half of a second-level cache */

struct job {
    const dmlk_view *v;
    int64_t m, n, depth;
    int64_t pieces; /* of a row of the output, each of at most DMLK_CHUNK elements */
    dmlk_iter batch; /* starts of a, b, out and, if there are any, sums of b */
};

/* The stride of the axis that is `back` axes before the last: 0 for columns, 1 for rows. */
static int64_t stride(const dmlk_view *view, uint32_t back) { return view->strides[view->rank - 1 - back]; }

/* Loads `count` elements from index `first` on, minus their zero points; as int64_t, which also holds a UINT32. */
static void load(const uint8_t *at, const dmlk_view *view, int64_t step, const dmlk_view *zero, int64_t first,
                 int64_t count, int64_t *to) {
    dmlk_promoted elements, zeros;
    dmlk_load_promoted(view->type, at + first * step * dmlk_type_bytes(view->type), step, count, &elements);
    const bool each = zero->base != NULL && zero->sizes[0] > 1;
    const int64_t zero_step = each ? zero->strides[0] : 0;
    if (zero->base != NULL) {
        dmlk_load_promoted(zero->type, zero->base + first * zero_step * dmlk_type_bytes(zero->type), zero_step, count, &zeros);
    }
    for (int64_t i = 0; i < count; i++) {
        to[i] = elements.i[i] - (zero->base != NULL ? zeros.i[i] : 0);
    }
}

DMLK_EACH_ISA(add_products, (int64_t a, const int64_t *restrict b, int64_t count, int64_t *restrict sums), (a, b, count, sums)) {
    for (int64_t i = 0; i < count; i++) {
        sums[i] = (int64_t)((uint64_t)sums[i] + (uint64_t)a * (uint64_t)b[i]);
    }
}

static void add_rounded(int64_t a, const int64_t *b, int64_t count, double *sums) {
    for (int64_t i = 0; i < count; i++) {
        const double product = (double)a * (double)b[i];
        sums[i] += product;
    }
}

/* Items: pieces of the rows of all output matrices. */
static void plain_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct job *job = context;
    const dmlk_view *v = job->v;
    const bool rounds = v[OUT].type == DMLK_FLOAT64;
    int64_t work = 0;
    for (int64_t item = begin; item < end; item++) {
        const int64_t first = item % job->pieces * DMLK_CHUNK, line = item / job->pieces, row = line % job->m;
        const int64_t count = dmlk_min(DMLK_CHUNK, job->n - first);
        dmlk_promoted sums;
        dmlk_cursor matrices;
        dmlk_iter_seek(&job->batch, line / job->m, &matrices);
        memset(&sums, 0, sizeof sums); /* as integers and as floats */
        for (int64_t k = 0; k < job->depth; k++) {
            if (dmlk_stopped(&work, count)) {
                return;
            }
            int64_t a, b[DMLK_CHUNK];
            load(matrices.at[0] + k * stride(&v[A], 0) * dmlk_type_bytes(v[A].type), &v[A], stride(&v[A], 1), &v[A_ZERO],
                 row, 1, &a);
            load(matrices.at[1] + k * stride(&v[B], 1) * dmlk_type_bytes(v[B].type), &v[B], stride(&v[B], 0), &v[B_ZERO],
                 first, count, b);
            if (rounds) {
                add_rounded(a, b, count, sums.f);
            } else {
                add_products(a, b, count, sums.i);
            }
        }
        const int64_t bytes = dmlk_type_bytes(v[OUT].type), at = row * stride(&v[OUT], 1) + first * stride(&v[OUT], 0);
        dmlk_store_promoted(v[OUT].type, matrices.at[2] + at * bytes, stride(&v[OUT], 0), count,
                            rounds ? DMLK_KIND_FLOAT : DMLK_KIND_SIGNED, &sums);
    }
}

static bool types_fit(const dmlk_view *v) {
    const int64_t bits = dmlk_type_bits(v[A].type);
    const uint32_t sums = bits == 8 ? DMLK_INT32 : bits == 16 ? DMLK_INT64 : DMLK_FLOAT64;
    for (int k = A; k <= B; k += 2) { /* each followed by its zero points */
        if (dmlk_type_kind(v[k].type) == DMLK_KIND_FLOAT || dmlk_type_bits(v[k].type) != bits ||
            (v[k + 1].base != NULL && v[k + 1].type != v[k].type)) {
            return false;
        }
    }
    return (bits == 8 || bits == 16 || bits == 32) && v[OUT].type == sums &&
           (v[B_SUMS].base == NULL || (bits == 8 && v[B_SUMS].type == DMLK_INT32));
}

static bool zero_fits(const dmlk_view *zero, int64_t most) {
    return zero->base == NULL || (zero->rank == 1 && (zero->sizes[0] == 1 || zero->sizes[0] == most));
}

static bool sums_fit(const dmlk_view *sums, const dmlk_view *b) {
    return sums->base == NULL || (sums->rank == b->rank - 1 && sums->sizes[b->rank - 2] == b->sizes[b->rank - 1]);
}

static int set_up(struct job *job) {
    const dmlk_view *v = job->v;
    const uint32_t rank = v[OUT].rank, operands = v[B_SUMS].base != NULL ? 4 : 3;
    if (rank < 2 || v[A].rank != rank || v[B].rank != rank) {
        return DMLK_BAD_PACKET;
    }
    job->m = v[OUT].sizes[rank - 2];
    job->n = v[OUT].sizes[rank - 1];
    job->depth = v[A].sizes[rank - 1];
    job->pieces = (job->n + DMLK_CHUNK - 1) / DMLK_CHUNK;
    if (v[A].sizes[rank - 2] != job->m || v[B].sizes[rank - 2] != job->depth || v[B].sizes[rank - 1] != job->n ||
        !zero_fits(&v[A_ZERO], job->m) || !zero_fits(&v[B_ZERO], job->n) || !sums_fit(&v[B_SUMS], &v[B])) {
        return DMLK_BAD_PACKET;
    }
    const uint32_t leading = (1u << (rank - 2)) - 1;
    const dmlk_view batch[4] = {dmlk_view_select(&v[A], leading), dmlk_view_select(&v[B], leading),
                                dmlk_view_select(&v[OUT], leading), dmlk_view_select(&v[B_SUMS], leading)};
    return dmlk_iter_init(&job->batch, DMLK_ANY_ORDER, (const dmlk_view *[]){&batch[0], &batch[1], &batch[2], &batch[3]},
                          operands);
}

#ifndef DMLK_CHECKED

/* A matrix as the image of a convolution whose windows have one element: its rows are y * x positions, in `y` lines
 * of `x`, and its depth is the channels. */
static dmlk_view image(const dmlk_view *matrix, uint8_t *base, int64_t y, int64_t x, int64_t row_stride, int64_t channels,
                       int64_t channel_stride) {
    dmlk_view view = *matrix;
    view.base = base;
    view.rank = 4;
    memcpy(view.sizes, (int64_t[]){1, channels, y, x}, 4 * sizeof *view.sizes);
    memcpy(view.strides, (int64_t[]){0, channels > 1 ? channel_stride : 0, y > 1 ? x * row_stride : 0, x > 1 ? row_stride : 0},
           4 * sizeof *view.strides);
    return view;
}

/* Whether the filters are the rows of a, not the columns of b.  Each filter may have its own zero point, but all
 * positions share one. */
static bool filters_are_of_a(const dmlk_view *v) {
    const bool a_may_be = v[B_ZERO].base == NULL || v[B_ZERO].sizes[0] == 1;
    const bool b_may_be = v[A_ZERO].base == NULL || v[A_ZERO].sizes[0] == 1;
    return a_may_be && (!b_may_be || dmlk_microkernel_s8_form->tiles[0].filters == NULL);
}

/* Multiplies bytes by the tuned convolution: rows of a and columns of b are positions and filters, or the reverse.
 * Positions are divided into lines that fit a cache.  False: both matrices have several zero points, memory ran out, or
 * the sums are not finished there. */
static bool convolve(const struct job *job, const dmlk_sums_finish *finish) {
    const dmlk_view *v = job->v;
    const bool a_filters = filters_are_of_a(v);
    const int in = a_filters ? B : A, filter = a_filters ? A : B;
    if (v[OUT].type != DMLK_INT32 || (v[in + 1].base != NULL && v[in + 1].sizes[0] > 1)) {
        return false;
    }
    const int64_t rows = a_filters ? job->n : job->m, filters = a_filters ? job->m : job->n;
    const uint32_t along = a_filters ? 0 : 1; /* positions are columns (0) or rows (1) of the output */
    const int64_t in_step = stride(&v[in], along), out_step = stride(&v[OUT], along);
    dmlk_convolution c = {.filter_sizes = {filters, job->depth, 1, 1}, .strides = {1, 1, 1, 1}, .dilations = {1, 1, 1, 1}};
    c.groups = 1;
    c.finish = finish;
    c.filter_zero = &v[filter + 1];
    if (v[in + 1].base != NULL) {
        const uint8_t bits = DMLK_LOAD(v[in + 1].base, 0);
        c.input_zero = v[in].type == DMLK_INT8 ? (int8_t)bits : bits;
    }
    const int64_t fitting = LINE_BYTES / job->depth / LANES * LANES, lines = 1 + (rows - 1) / (fitting < LANES ? LANES : fitting);
    int64_t even = lines; /* lines of the same length: the rest would be a convolution of its own */
    while (even < 2 * lines && rows % even != 0) {
        even++;
    }
    const int64_t line = even < 2 * lines ? rows / even : (rows / lines + LANES - 1) / LANES * LANES;
    for (int64_t i = 0; i < job->batch.count && !dmlk_watch_stopped(); i++) {
        dmlk_cursor at;
        dmlk_iter_seek(&job->batch, i, &at);
        c.filter = v[filter];
        c.filter.base = at.at[!a_filters];
        c.filter.rank = 6;
        memcpy(c.filter.sizes, (int64_t[]){filters, 1, job->depth, 1, 1, 1}, 6 * sizeof(int64_t));
        memcpy(c.filter.strides, (int64_t[]){stride(&v[filter], !along), 0, stride(&v[filter], along), 0, 0, 0},
               6 * sizeof(int64_t));
        if (!a_filters && v[B_SUMS].base != NULL) {
            c.filter_sums = v[B_SUMS];
            c.filter_sums.base = at.at[3];
            c.filter_sums.rank = 3;
            memcpy(c.filter_sums.sizes, (int64_t[]){filters, 1, 1}, 3 * sizeof(int64_t));
            memcpy(c.filter_sums.strides, (int64_t[]){v[B_SUMS].strides[v[B_SUMS].rank - 1], 0, 0}, 3 * sizeof(int64_t));
        }
        for (int64_t first = 0, x, y; first < rows; first += x * y) { /* whole lines, then the rest */
            x = dmlk_min(line, rows - first), y = (rows - first) / x;
            uint8_t *from = at.at[a_filters] + first * in_step, *to = at.at[2] + first * out_step * (int64_t)sizeof(int32_t);
            c.input = image(&v[in], from, y, x, in_step, job->depth, stride(&v[in], !along));
            c.output = image(&v[OUT], to, y, x, out_step, filters, stride(&v[OUT], !along));
            if (!dmlk_convolve_bytes(&c)) {
                return false;
            }
        }
    }
    return true;
}

/* --- few rows of bytes: b is read once, in place --- */

/* Adds products of LINES rows of b to the sums; `flip` makes its bytes signed. */
DMLK_EACH_ISA(add_lines, (const uint32_t *factors, const uint8_t *const *lines, uint8_t flip, int64_t count, uint32_t *restrict sums),
              (factors, lines, flip, count, sums)) {
    for (int64_t j = 0; j < count; j++) {
        uint32_t sum = sums[j];
        for (int i = 0; i < LINES; i++) {
            const int32_t byte = (int8_t)(lines[i][j] ^ flip);
            sum += factors[i] * (uint32_t)byte;
        }
        sums[j] = sum;
    }
}

static uint32_t byte_at(const dmlk_view *view, const uint8_t *at) {
    const uint8_t byte = DMLK_LOAD(at, 0);
    return view->type == DMLK_INT8 ? (uint32_t)(int8_t)byte : byte;
}

/* The zero point of a row of a or a column of b. */
static uint32_t zero_at(const dmlk_view *zero, int64_t i) {
    return zero->base == NULL ? 0 : byte_at(zero, zero->base + (zero->sizes[0] > 1 ? i * zero->strides[0] : 0));
}

/* Computes all rows and `count` columns.  With zero points A and B, an output is sum (a - A) b - B sum (a - A),
 * modulo 2^32. */
static void add_few(const struct job *job, const dmlk_cursor *matrices, int64_t first, int64_t count) {
    const dmlk_view *v = job->v;
    const uint32_t flip = v[B].type == DMLK_INT8 ? 0 : 128;
    uint32_t sums[FEW_ROWS][FEW_COLUMNS] = {{0}}, of_row[FEW_ROWS] = {0};
    int64_t work = 0;
    for (int64_t k = 0; k < job->depth && !dmlk_stopped(&work, count); k += LINES) {
        const int64_t there = dmlk_min(LINES, job->depth - k);
        const uint8_t *lines[LINES];
        for (int64_t i = 0; i < LINES; i++) {
            lines[i] = matrices->at[1] + first + (k + (i < there ? i : 0)) * stride(&v[B], 1);
        }
        for (int64_t row = 0; row < job->m; row++) {
            const uint8_t *a = matrices->at[0] + row * stride(&v[A], 1) + k * stride(&v[A], 0);
            uint32_t factors[LINES] = {0};
            for (int64_t i = 0; i < there; i++) {
                factors[i] = byte_at(&v[A], a + i * stride(&v[A], 0)) - zero_at(&v[A_ZERO], row);
                of_row[row] += factors[i];
            }
            add_lines(factors, lines, (uint8_t)flip, count, sums[row]);
        }
    }
    for (int64_t row = 0; row < job->m; row++) {
        int32_t *to = (int32_t *)(void *)matrices->at[2] + row * stride(&v[OUT], 1) + first * stride(&v[OUT], 0);
        for (int64_t j = 0; j < count; j++) {
            DMLK_STORE(to, j * stride(&v[OUT], 0), (int32_t)(sums[row][j] - (zero_at(&v[B_ZERO], first + j) - flip) * of_row[row]));
        }
    }
}

/* Items: pieces of the columns of all output matrices. */
static void few_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct job *job = context;
    const int64_t pieces = (job->n + FEW_COLUMNS - 1) / FEW_COLUMNS;
    for (int64_t item = begin; item < end && !dmlk_watch_stopped(); item++) {
        const int64_t first = item % pieces * FEW_COLUMNS;
        dmlk_cursor matrices;
        dmlk_iter_seek(&job->batch, item / pieces, &matrices);
        add_few(job, &matrices, first, dmlk_min(FEW_COLUMNS, job->n - first));
    }
}

/* False: there are more rows, or the rows of b are not contiguous. */
static bool multiply_few(struct job *job) {
    if (job->v[OUT].type != DMLK_INT32 || job->m > FEW_ROWS || (stride(&job->v[B], 0) != 1 && job->n > 1)) {
        return false;
    }
    const int64_t items = job->batch.count * ((job->n + FEW_COLUMNS - 1) / FEW_COLUMNS);
    const int64_t products = job->depth * job->m * dmlk_min(job->n, FEW_COLUMNS); /* of an item */
    dmlk_parallel(items, dmlk_parts(items, FEW_GRAIN / products + 1), few_part, job);
    return true;
}

/* Multiplies bytes; where there are packets that follow, perhaps together with these. */
static bool multiply_bytes(struct job *job, dmlk_followers *followers) {
    dmlk_sums_finish finish;
    if (multiply_few(job)) {
        return true;
    }
    const uint32_t count = dmlk_find_sums_finish(followers, &finish);
    if (count > 0 && finish.scaling == NULL && convolve(job, &finish)) {
        followers->done = count;
        return true;
    }
    return convolve(job, NULL);
}

#endif

int dmlk_run_multiply_integers(const dmlk_call *call) {
    if (!dmlk_has_views(call, VIEWS, 1 << A_ZERO | 1 << B_ZERO | 1 << B_SUMS)) {
        return DMLK_BAD_PACKET;
    }
    if (!types_fit(call->views)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    struct job job = {.v = call->views};
    const int status = set_up(&job);
    if (status != DMLK_OK) {
        return status;
    }
#ifndef DMLK_CHECKED
    if (multiply_bytes(&job, call->followers)) {
        return DMLK_OK; /* (these give the same bits) */
    }
#endif
    const int64_t items = job.batch.count * job.m * job.pieces;
    dmlk_parallel(items, dmlk_parts(items, 100000 / (job.depth * dmlk_min(job.n, DMLK_CHUNK)) + 1), plain_part, &job);
    return DMLK_OK;
}

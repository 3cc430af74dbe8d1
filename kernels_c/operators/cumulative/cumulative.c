/* cumulative: all partial results along an axis, as defined in functions.inc.
 *
 * Floats are accumulated in double, one after the other, and each output is rounded once: results do not depend on
 * layout or threads.  Integers are computed modulo 2^bits.  An element is read before its output is written, as that
 * may be the same memory. */
#include "cumulative.h"

#include "ahead.h"
#include "dmlk_math.h"
#include "kernel.h"
#include "nontemporal.h"
#include "transpose.h"
#include "walkers.h"

#define GRAIN (1 << 15) /* elements worth a thread */
#define LEAST_ACROSS 128 /* lines of a row worth a thread, if lines are visited across */
#define LONG_ROW 1024    /* elements; shorter rows that are not whole cache lines do not bypass the caches */
#define WIDE (1 << 11)  /* lines of a block that needs no copies: CPUs prefetch long rows themselves */
#define LEAST 8         /* the least contiguous lines that are scanned together, as transposed copies */
#define TURNED 32       /* the most of these lines */
#define COPIES (1 << 12) /* elements of these copies; they stay in the first-level cache */
#define STRIP 32        /* elements of a row whose results are kept in registers */
#define TOGETHER 8      /* rows that are scanned strip by strip */
#define AHEAD (DMLK_AHEAD / (int64_t)sizeof(float)) /* elements */

struct rows;

/* A line of functions.inc.  Its functions replace n elements, of one line or one of each line, by the outputs. */
struct function {
    int first;
    void (*floats_along)(double *x, int64_t n, double *y, bool exclusive);
    void (*floats_across)(double *x, int64_t n, double *y, bool exclusive);
    void (*float32_across)(const struct rows *rows, double *y, bool exclusive);
    void (*integers_along)(uint64_t *x, int64_t n, uint64_t *y, bool exclusive);
    void (*integers_across)(uint64_t *x, int64_t n, uint64_t *y, bool exclusive);
};

struct job {
    const struct function *function;
    bool exclusive;
    uint32_t type;
    bool streams; /* outputs of FLOAT32 bypass the caches */
    dmlk_lines lines; /* operands: in, out */
};

struct block {
    const struct job *job;
    int64_t count; /* lines */
    union {
        _Alignas(64) double f[WIDE]; /* aligned, so that a vector is in one cache line */
        uint64_t u[DMLK_MOST_LINES];
    } y; /* of each line */
};

#define LOOPS(name, T, next)                                                                                         \
    static void name##_along(T *values, int64_t n, T *state, bool exclusive) {                                       \
        T y = *state;                                                                                                \
        for (int64_t i = 0; i < n; i++) {                                                                            \
            const T x = values[i], before = y;                                                                       \
            y = (next);                                                                                              \
            values[i] = exclusive ? before : y;                                                                      \
        }                                                                                                            \
        *state = y;                                                                                                  \
    }                                                                                                                \
    DMLK_EACH_ISA(name##_across, (T *restrict values, int64_t n, T *restrict state, bool exclusive),                 \
                  (values, n, state, exclusive)) {                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                                            \
            const T x = values[i], y = state[i], result = (next);                                                    \
            state[i] = result;                                                                                       \
            values[i] = exclusive ? y : result;                                                                      \
        }                                                                                                            \
    }
/* Rows of n contiguous FLOAT32s in memory; an output may replace its input. */
struct rows {
    const float *from;
    int64_t rows, n, step, next; /* next: see dmlk_line_visitor; 0: nothing is prefetched */
    float *out;
    int64_t out_step;
};

/* The results of a strip stay in registers for several rows. */
#define FLOAT32_ACROSS(name, next_y)                                                                                 \
    DMLK_INLINE void name##_float32_row(const float *from, int64_t n, double *state, bool exclusive, float *out) {   \
        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) {                                                       \
            const double x = (double)from[i], y = state[i], result = (next_y);                                       \
            state[i] = result;                                                                                       \
            out[i] = dmlk_one_nan((float)(exclusive ? y : result));                                                  \
        }                                                                                                            \
    }                                                                                                                \
    DMLK_INLINE void name##_float32_strip(const struct rows *r, int64_t first, int64_t end, int64_t between,         \
                                          int64_t i, double *state, bool exclusive) {                                \
        double y[STRIP];                                                                                             \
        memcpy(y, state + i, sizeof y);                                                                              \
        for (int64_t row = first; row < end; row++) {                                                                \
            const float *from = r->from + row * r->step + i;                                                         \
            if (r->next != 0) {                                                                                      \
                const int64_t ahead = dmlk_row_ahead(row, r->rows, between, r->step, r->next);                       \
                dmlk_fetch_line(from + ahead);                                                                       \
                dmlk_fetch_line(from + ahead + STRIP / 2);                                                           \
            }                                                                                                        \
            name##_float32_row(from, STRIP, y, exclusive, r->out + row * r->out_step + i);                           \
        }                                                                                                            \
        memcpy(state + i, y, sizeof y);                                                                              \
    }                                                                                                                \
    DMLK_INLINE void name##_float32_rows(const struct rows *r, double *state, bool exclusive) {                      \
        const int64_t whole = r->n - r->n % STRIP, together = r->next == 0 ? r->rows : TOGETHER;                     \
        const int64_t between = dmlk_min((AHEAD + r->n - 1) / r->n, r->rows);                                        \
        for (int64_t first = 0; first < r->rows; first += together) {                                                \
            const int64_t end = dmlk_min(first + together, r->rows);                                                 \
            for (int64_t i = 0; i < whole; i += STRIP) {                                                             \
                name##_float32_strip(r, first, end, between, i, state, exclusive);                                   \
            }                                                                                                        \
            for (int64_t row = first; row < end && whole < r->n; row++) {                                            \
                name##_float32_row(r->from + row * r->step + whole, r->n - whole, state + whole, exclusive,          \
                                   r->out + row * r->out_step + whole);                                              \
            }                                                                                                        \
        }                                                                                                            \
    }                                                                                                                \
    DMLK_EACH_ISA(name##_float32_across, (const struct rows *r, double *state, bool exclusive), (r, state, exclusive)) { \
        exclusive ? name##_float32_rows(r, state, true) : name##_float32_rows(r, state, false);                      \
    }
#define SCAN(name, first, next)                                                                                      \
    LOOPS(name##_floats, double, next)                                                                               \
    LOOPS(name##_integers, uint64_t, next)                                                                           \
    FLOAT32_ACROSS(name, next)                                                                                       \
    static const struct function name##_function = {first, name##_floats_along, name##_floats_across,                \
                                                    name##_float32_across,                                           \
                                                    name##_integers_along, name##_integers_across};
#include "functions.inc"

DMLK_EACH_ISA(use_one_nan, (double *x, int64_t n), (x, n)) {
    for (int64_t i = 0; i < n; i++) {
        x[i] = dmlk_one_nan(x[i]);
    }
}

static bool is_float(const struct job *job) { return dmlk_type_kind(job->type) == DMLK_KIND_FLOAT; }

/* Whether elements across lines are contiguous FLOAT32s, which need no copy. */
static bool are_floats32(const struct job *job, const int64_t *strides) {
#ifdef DMLK_CHECKED
    (void)job, (void)strides;
    return false; /* loads are checked one by one */
#else
    return job->type == DMLK_FLOAT32 && strides[0] == 1 && strides[1] == 1;
#endif
}

static void store(const struct job *job, uint8_t *at, int64_t stride, int64_t count, dmlk_promoted *x) {
    if (is_float(job)) {
        use_one_nan(x->f, count);
    }
    dmlk_store_promoted(job->type, at, stride, count, is_float(job) ? DMLK_KIND_FLOAT : DMLK_KIND_UNSIGNED, x);
}

static void scan_along(void *context, int64_t line, uint8_t *const *at, const int64_t *strides, int64_t n,
                       int64_t index) {
    struct block *block = context;
    const struct job *job = block->job;
    const int64_t bytes = job->lines.along.bytes[0];
    dmlk_promoted x;
    (void)index;
    for (int64_t i = 0; i < n; i += DMLK_CHUNK) {
        const int64_t count = dmlk_min(n - i, DMLK_CHUNK);
        dmlk_load_promoted(job->type, at[0] + i * strides[0] * bytes, strides[0], count, &x);
        if (is_float(job)) {
            job->function->floats_along(x.f, count, &block->y.f[line], job->exclusive);
        } else {
            job->function->integers_along(x.u, count, &block->y.u[line], job->exclusive);
        }
        store(job, at[1] + i * strides[1] * bytes, strides[1], count, &x);
    }
}

static void scan_across(void *context, uint8_t *const *at, const int64_t *strides, int64_t count, int64_t index) {
    struct block *block = context;
    const struct job *job = block->job;
    dmlk_promoted x;
    (void)index;
    if (are_floats32(job, strides)) {
        const struct rows row = {(const float *)at[0], 1, count, 0, 0, (float *)at[1], 0};
        job->function->float32_across(&row, block->y.f, job->exclusive);
        return;
    }
    dmlk_load_promoted(job->type, at[0], strides[0], count, &x);
    if (is_float(job)) {
        job->function->floats_across(x.f, count, block->y.f, job->exclusive);
    } else {
        job->function->integers_across(x.u, count, block->y.u, job->exclusive);
    }
    store(job, at[1], strides[1], count, &x);
}

/* Scans rows across lines; a large output bypasses the caches. */
static void scan_rows(void *context, uint8_t *const *at, const int64_t *steps, int64_t rows, int64_t index, int64_t next) {
    struct block *block = context;
    const struct job *job = block->job;
    const int64_t count = block->count;
    const bool follow = steps[1] == count;
    const bool are_lines = dmlk_before_line(at[1]) == 0 && steps[1] * (int64_t)sizeof(float) % DMLK_LINE == 0;
    const bool streams = job->streams && (follow || are_lines || count >= LONG_ROW);
    const int64_t most = !streams ? rows : follow && count < WIDE / 2 ? WIDE / count : 1;
    _Alignas(64) float results[WIDE];
    (void)index;
    for (int64_t row = 0, n; row < rows; row += n) {
        float *out = (float *)at[1] + row * steps[1];
        n = dmlk_min(rows - row, most);
        const struct rows some = {(const float *)at[0] + row * steps[0], n, count, steps[0],
                                  row + n < rows ? n * steps[0] : next - row * steps[0],
                                  streams ? results : out, steps[1]};
        job->function->float32_across(&some, block->y.f, job->exclusive);
        if (streams) {
            dmlk_stream_copy(out, results, (size_t)(n * count) * sizeof *out);
        }
    }
}

/* Whether lines are contiguous FLOAT32s, in either direction. */
static bool are_contiguous(const struct job *job) {
    const dmlk_iter *along = &job->lines.along;
    const int64_t *strides = dmlk_iter_row_strides(along);
#ifdef DMLK_CHECKED
    return false; /* loads are checked one by one */
#endif
    return job->type == DMLK_FLOAT32 && !job->lines.across && along->rank == 1 && strides[0] == strides[1] &&
           (strides[0] == 1 || strides[0] == -1);
}

/* Scans such lines together, as transposed copies: in a single line, each result has to wait for the previous one. */
static void scan_turned(struct block *block, const dmlk_line_block *lines) {
    const struct job *job = block->job;
    const int64_t n = job->lines.along.count, count = lines->count, most = COPIES / count, size = sizeof(float);
    const int64_t *steps = lines->strides;
    const bool forward = *dmlk_iter_row_strides(&job->lines.along) == 1;
    _Alignas(64) float copies[COPIES], results[COPIES];
    for (int64_t i = 0; i < n && !dmlk_stopped(lines->work, most * count); i += most) {
        const int64_t rows = dmlk_min(n - i, most), lowest = (forward ? i : 1 - i - rows) * size;
        const int64_t next = i + most < n ? (forward ? most : -most) : steps[0] * count - (forward ? i : -i);
        uint8_t *out = lines->at[1] + lowest;
        float *first = forward ? copies : copies + (rows - 1) * count;
        const int64_t step = forward ? count : -count;
        const struct rows all = {first, rows, count, step, 0, first, step};
        dmlk_transpose_fetching(size, lines->at[0] + lowest, steps[0] * size, size, (uint8_t *)copies, count * size, rows,
                                count, next * size);
        job->function->float32_across(&all, block->y.f, job->exclusive);
        dmlk_transpose(size, (uint8_t *)copies, count * size, size, job->streams ? (uint8_t *)results : out,
                       job->streams ? rows * size : steps[1] * size, count, rows);
        if (job->streams && steps[1] == rows) {
            dmlk_stream_copy(out, results, (size_t)(rows * count * size));
        } else {
            for (int64_t line = 0; line < count && job->streams; line++) {
                dmlk_stream_copy(out + line * steps[1] * size, results + line * rows, (size_t)(rows * size));
            }
        }
    }
}

static void scan_block(const dmlk_line_block *lines, void *context) {
    static const dmlk_line_visitor scan = {.along = scan_along, .across = scan_across},
                                   scan_in_rows = {.along = scan_along, .across = scan_across, .rows = scan_rows};
    const struct job *job = context;
    struct block block;
    block.job = job;
    block.count = lines->count;
    for (int64_t i = 0; i < lines->count; i++) {
        if (is_float(job)) {
            block.y.f[i] = job->function->first;
        } else {
            block.y.u[i] = (uint64_t)job->function->first;
        }
    }
    if (lines->count >= LEAST && are_contiguous(job)) {
        scan_turned(&block, lines);
    } else {
        dmlk_visit_lines(&job->lines, lines, 0, job->lines.along.count,
                         are_floats32(job, lines->strides) ? &scan_in_rows : &scan, &block);
    }
    dmlk_streamed();
}

/* Reverses the lines: each starts at its last element. */
static void turn_round(dmlk_lines *lines) {
    for (uint32_t k = 0; k < lines->each.operands; k++) {
        int64_t *stride = &lines->along.strides[0][k];
        lines->each.base[k] += (lines->along.count - 1) * *stride * lines->each.bytes[k];
        *stride = -*stride;
    }
}

static int run(const dmlk_call *call, const struct function *function) {
    dmlk_cumulative k;
    if (!dmlk_has_views(call, 2, 0) || !dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *in = &call->views[0], *out = &call->views[1];
    if (dmlk_type_bytes(in->type) == 0 || in->type != out->type) {
        return DMLK_NOT_IMPLEMENTED;
    }
    if (k.axis >= in->rank) {
        return DMLK_BAD_PACKET;
    }
    struct job job = {.function = function, .exclusive = k.exclusive != 0, .type = in->type};
    const int status =
        dmlk_lines_init(&job.lines, DMLK_LOGICAL_ORDER, UINT32_C(1) << k.axis, (const dmlk_view *[]){in, out}, 2, 2);
    if (status == DMLK_OK) {
        if (k.decreasing != 0) {
            turn_round(&job.lines);
        }
        job.streams = dmlk_stream_pays(dmlk_view_elements(out), dmlk_type_bytes(out->type));
        job.lines.wide = job.lines.across && are_floats32(&job, dmlk_iter_row_strides(&job.lines.each));
        const int64_t grain = dmlk_lines_grain(&job.lines, GRAIN / job.lines.along.count, LEAST_ACROSS);
        dmlk_for_lines(&job.lines, are_contiguous(&job) ? TURNED : WIDE, grain, scan_block, &job);
    }
    return status;
}

#define SCAN(name, first, next) \
    int DMLK_RUN(name)(const dmlk_call *call) { return run(call, &name##_function); }
#include "functions.inc"

/* softmax: functions of an element and its group, as defined in functions.inc; a group is the elements along the
 * axes.
 *
 * Three passes over a block of groups find the largest elements, the sums of exponentials (exponentials.h), and the
 * outputs, which are computed from the sums and rounded once.  Exponentials are kept for the third pass if they fit
 * the cache; otherwise they are computed again, with the same bits.
 *
 * A group that contains a NaN or +infinity, or only -infinities, becomes NaN. */
#include "softmax.h"

#include <stdatomic.h>

#include "dmlk_float_math.h"
#include "exponentials.h"
#include "kernel.h"
#include "nontemporal.h"
#include "scratch.h"
#include "singles.h"
#include "walkers.h"

#define KEPT (1 << 18)  /* floats: exponentials of a block that are kept; 1 MiB, in the second- or third-level cache */
#define NEAR (1 << 12)  /* floats on the stack: exponentials of a block, or its elements if groups are contiguous */
#define SOME (1 << 11)  /* floats: so many elements of short contiguous groups are computed together */
#define NARROW 96       /* groups of a block, across groups: their sums of 16 lanes and some rows fit the first-level cache;
                           a thread also gets at least this many groups of a row */
#define GRAIN (1 << 15) /* elements worth a thread: 0.02 ms; across groups, 4 times as many */
#define LEAST 64        /* groups: across groups, the least size of a block that keeps exponentials, doubled if the
                           output bypasses the caches; other blocks are as wide as possible */

struct block;

/* A line of functions.inc. */
struct function {
    bool of_exp;
    void (*factors)(struct block *block, int64_t n);
    void (*results)(const struct block *block, int64_t line, int64_t step, const float *in, int64_t in_stride, int64_t rows,
                    int64_t n, float *out, int64_t out_stride);
};

struct job {
    const struct function *function;
    uint32_t in, out; /* types */
    bool streams;     /* the output bypasses the caches */
    bool in_place;
    dmlk_lines lines; /* operands: in, out */
    atomic_bool relative; /* simple exponentials failed in some block, and are no longer tried */
};

/* The groups being processed. */
struct block {
    const struct job *job;
    double factor[DMLK_CHUNK]; /* f of each group; before that, the sums */
    float high[DMLK_CHUNK], low[DMLK_CHUNK]; /* the two parts of f */
    bool are_numbers;  /* no output is NaN */
    float *kept;       /* exponentials, perhaps in place of the outputs; NULL: they are not kept */
    int64_t kept_step; /* across lines: from one row to the next */
    dmlk_exponentials e;
    dmlk_sums sums;
};

/* --- loops --- */

/* log(y / e), where e is the exponential of the largest element: accurate even if the others are small. */
DMLK_INLINE double log_of_sum(double y, float most) {
    const double e = (double)dmlk_exp_relativef(most, dmlk_relative_tof(most));
    return dmlk_log1p((y - e) / e);
}

#define VECTOR 16 /* floats */

/* n outputs, of group `line` (step 0), or one of each group from `line` on (step 1).  Compiled for each constant
 * step: with a variable step, compilers load numbers one by one. */
#define RESULTS(name, value, result)                                                                           \
    DMLK_INLINE void name##_loop(const struct block *restrict block, int64_t line, int64_t step, bool are_numbers, \
                                 const float *in, int64_t n, float *out) {                                     \
        const float *mosts = block->e.largest + line, *highs = block->high + line, *lows = block->low + line;   \
        const double *fs = block->factor + line;                                                               \
        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) { /* out may be in */                             \
            const float value = in[i], most = mosts[i * step], high = highs[i * step], low = lows[i * step];   \
            const double f = fs[i * step];                                                                     \
            (void)most, (void)f, (void)high, (void)low;                                                        \
            out[i] = are_numbers ? (result) : dmlk_one_nan_float(result);                                      \
        }                                                                                                      \
    }                                                                                                          \
    /* Two loops, with and without a test for NaNs. */                                                         \
    DMLK_INLINE void name##_of(const struct block *restrict block, int64_t line, int64_t step, const float *in, \
                               int64_t n, float *out) {                                                        \
        block->are_numbers ? name##_loop(block, line, step, true, in, n, out)                                  \
                           : name##_loop(block, line, step, false, in, n, out);                                \
    }                                                                                                          \
    /* Whole vectors are stored to whole cache lines.  The numbers before and after them are computed first, as\
     * parts of vectors that overlap these, since out may be in. */                                            \
    DMLK_INLINE void name##_row(const struct block *restrict block, int64_t line, int64_t step, const float *in, \
                                int64_t n, float *out) {                                                       \
        const int64_t before = dmlk_before_lines(out, n), last = n - VECTOR;                                   \
        const int64_t whole = n < VECTOR ? n : (n - before) / VECTOR * VECTOR;                                 \
        float first[VECTOR], rest[VECTOR];                                                                     \
        if (before > 0) {                                                                                      \
            name##_of(block, line, step, in, VECTOR, first);                                                   \
        }                                                                                                      \
        if (before + whole < n) {                                                                              \
            name##_of(block, line + step * last, step, in + last, VECTOR, rest);                               \
        }                                                                                                      \
        name##_of(block, line + step * before, step, in + before, whole, out + before);                        \
        if (before > 0) {                                                                                      \
            memcpy(out, first, sizeof first);                                                                  \
        }                                                                                                      \
        if (before + whole < n) {                                                                              \
            memcpy(out + last, rest, sizeof rest);                                                             \
        }                                                                                                      \
    }                                                                                                          \
    /* The same for `rows` rows: a row of each group from `line` on, or rows of one element of each group. */  \
    DMLK_EACH_ISA(name##_results, (const struct block *block, int64_t line, int64_t step, const float *in,     \
                                   int64_t in_stride, int64_t rows, int64_t n, float *out, int64_t out_stride), \
                  (block, line, step, in, in_stride, rows, n, out, out_stride)) {                              \
        for (int64_t row = 0; row < rows; row++, in += in_stride, out += out_stride) {                         \
            step == 0 ? name##_row(block, line + row, 0, in, n, out) : name##_row(block, line, 1, in, n, out); \
        }                                                                                                      \
    }

#define FUNCTION(name, is_of_exp, value, factor_of, result)                                                    \
    DMLK_EACH_ISA(name##_factors, (struct block *block, int64_t n), (block, n)) {                              \
        int32_t numbers = 1;                                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                                      \
            const double y = block->factor[i];                                                                 \
            const float most = block->e.largest[i];                                                            \
            (void)most;                                                                                        \
            const double f = (factor_of);                                                                      \
            block->factor[i] = f;                                                                              \
            block->high[i] = (float)f;                                                                         \
            block->low[i] = (float)(f - (double)(float)f);                                                     \
            numbers &= f == f;                                                                                 \
        }                                                                                                      \
        block->are_numbers = (is_of_exp) && numbers; /* (a NaN in a group makes the sum NaN) */                \
    }                                                                                                          \
    RESULTS(name, value, result)                                                                               \
    static const struct function name##_function = {is_of_exp, name##_factors, name##_results};
#define EXPONENTIAL(name, factor, result) FUNCTION(name, true, e, factor, result)
#define INPUT(name, factor, result) FUNCTION(name, false, x, factor, result)
#include "functions.inc"

/* --- elements as floats --- */

static void store(const struct job *job, uint8_t *at, int64_t stride, int64_t count, const float *from) {
    dmlk_promoted y;
    if (job->streams && stride == 1) {
        dmlk_stream_copy(at, from, (size_t)count * sizeof *from);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        y.f[i] = (double)from[i];
    }
    dmlk_store_promoted(job->out, at, stride, count, DMLK_KIND_FLOAT, &y);
}

/* --- the passes: each piece of a line, or row across lines --- */

static void largest_along(void *context, int64_t line, uint8_t *const *at, const int64_t *strides, int64_t n,
                          int64_t index) {
    struct block *block = context;
    const int64_t step = strides[0] * block->job->lines.along.bytes[0];
    float room[DMLK_CHUNK];
    (void)index;
    for (int64_t i = 0; i < n; i += DMLK_CHUNK) {
        const int64_t count = dmlk_min(n - i, DMLK_CHUNK);
        dmlk_largest_along(&block->e, line, dmlk_singles(block->job->in, at[0] + i * step, strides[0], count, room), count);
    }
}

static void largest_across(void *context, uint8_t *const *at, const int64_t *strides, int64_t count, int64_t index) {
    struct block *block = context;
    float room[DMLK_CHUNK];
    (void)index;
    dmlk_largest_across(&block->e, dmlk_singles(block->job->in, at[0], strides[0], count, room), 1, 0, true);
}

static void largest_rows(void *context, uint8_t *const *at, const int64_t *steps, int64_t rows, int64_t index,
                         int64_t next) {
    struct block *block = context;
    (void)index;
    dmlk_largest_across(&block->e, (const float *)at[0], rows, steps[0], next == 0);
}

static void sum_along(void *context, int64_t line, uint8_t *const *at, const int64_t *strides, int64_t n,
                      int64_t index) {
    struct block *block = context;
    const struct job *job = block->job;
    const int64_t step = strides[0] * job->lines.along.bytes[0], first = line * job->lines.along.count + index;
    float room[DMLK_CHUNK], forgotten[DMLK_CHUNK];
    for (int64_t i = 0; i < n; i += DMLK_CHUNK) {
        const int64_t count = dmlk_min(n - i, DMLK_CHUNK);
        const float *x = dmlk_singles(job->in, at[0] + i * step, strides[0], count, room);
        dmlk_exponentials_along(&block->e, &block->sums, line, x, count, index + i, block->kept != NULL ? block->kept + first + i : forgotten);
    }
}

static void sum_across(void *context, uint8_t *const *at, const int64_t *strides, int64_t count, int64_t index) {
    struct block *block = context;
    float room[DMLK_CHUNK], forgotten[DMLK_CHUNK];
    const float *x = dmlk_singles(block->job->in, at[0], strides[0], count, room);
    dmlk_exponentials_across(&block->e, &block->sums, x, 1, 0, 0, index,
                             block->kept != NULL ? block->kept + index * block->kept_step : forgotten, 0);
}

static void sum_rows(void *context, uint8_t *const *at, const int64_t *steps, int64_t rows, int64_t index, int64_t next) {
    struct block *block = context;
    float forgotten[DMLK_CHUNK];
    dmlk_exponentials_across(&block->e, &block->sums, (const float *)at[0], rows, steps[0], block->e.simple ? next : 0, index,
                             block->kept != NULL ? block->kept + index * block->kept_step : forgotten,
                             block->kept != NULL ? block->kept_step : 0);
}

/* Stores `count` outputs; `line` is the first or only group, `place` the index of the first element in block->kept. */
static void put(struct block *block, int64_t line, int64_t step, const uint8_t *in, int64_t in_stride, uint8_t *out,
                int64_t out_stride, int64_t count, int64_t place) {
    const struct job *job = block->job;
    const float *from = block->kept + place;
    float room[DMLK_CHUNK], e[DMLK_CHUNK];
    if (block->kept == NULL || !job->function->of_exp) {
        from = dmlk_singles(job->in, in, in_stride, count, room);
    }
    if (block->kept == NULL && job->function->of_exp) {
        dmlk_exponentials_again(&block->e, line, step, from, count, e);
        from = e;
    }
#ifdef DMLK_CHECKED
    const bool is_near = false;
#else
    const bool is_near = job->out == DMLK_FLOAT32 && out_stride == 1 && !job->streams;
#endif
    float *to = is_near ? (float *)out : e;
    job->function->results(block, line, step, from, 0, 1, count, to, 0);
    if (!is_near) {
        store(job, out, out_stride, count, to);
    }
}

static void put_along(void *context, int64_t line, uint8_t *const *at, const int64_t *strides, int64_t n,
                      int64_t index) {
    struct block *block = context;
    const dmlk_iter *along = &block->job->lines.along;
    for (int64_t i = 0; i < n; i += DMLK_CHUNK) {
        put(block, line, 0, at[0] + i * strides[0] * along->bytes[0], strides[0],
            at[1] + i * strides[1] * along->bytes[1], strides[1], dmlk_min(n - i, DMLK_CHUNK),
            line * along->count + index + i);
    }
}

static void put_across(void *context, uint8_t *const *at, const int64_t *strides, int64_t count, int64_t index) {
    struct block *block = context;
    put(block, 0, 1, at[0], strides[0], at[1], strides[1], count, index * block->kept_step);
}

static void put_rows(void *context, uint8_t *const *at, const int64_t *steps, int64_t rows, int64_t index, int64_t next) {
    struct block *block = context;
    const struct job *job = block->job;
    const int64_t count = block->e.count, step = steps[1], most = !job->streams ? rows : step == count ? NEAR / count : 1;
    float *out = (float *)at[1];
    _Alignas(64) float results[NEAR];
    (void)next;
    for (int64_t row = 0; row < rows; row += most, out += most * step) {
        const int64_t n = dmlk_min(rows - row, most);
        job->function->results(block, 0, 1, block->kept + (index + row) * block->kept_step, block->kept_step, n, count,
                               job->streams ? results : out, step);
        if (job->streams) {
            dmlk_stream_copy(out, results, (size_t)(n * count) * sizeof *out);
        }
    }
}

enum { IN = 1, OUT = 2 };
static const dmlk_line_visitor
    find_them = {.along = largest_along, .across = largest_across, .unfetched = OUT},
    find_in_rows = {.along = largest_along, .across = largest_across, .rows = largest_rows},
    sum_them = {.along = sum_along, .across = sum_across, .unfetched = OUT},
    sum_in_rows = {.along = sum_along, .across = sum_across, .rows = sum_rows};

/* Whether inputs are FLOAT32s whose rows need no copy. */
static bool are_rows(const struct job *job) {
#ifdef DMLK_CHECKED
    (void)job;
    return false; /* loads are checked one by one */
#else
    return job->in == DMLK_FLOAT32;
#endif
}

/* Whether the groups are contiguous FLOAT32s that fit the first-level cache. */
static bool are_near(const struct job *job) {
    const dmlk_iter *along = &job->lines.along;
    const int64_t *strides = dmlk_iter_row_strides(along);
#ifdef DMLK_CHECKED
    return false; /* loads are checked one by one */
#endif
    return job->in == DMLK_FLOAT32 && job->out == DMLK_FLOAT32 && !job->lines.across && along->rank == 1 &&
           strides[0] == 1 && strides[1] == 1 && along->count <= NEAR;
}

/* Whether to try simple exponentials first, which do not need the largest elements. */
static bool are_tried_simply(struct job *job) { return job->function->of_exp && !atomic_load(&job->relative); }

/* Runs all passes on such groups, a few groups at a time. */
static void run_near(const dmlk_line_block *lines, struct job *job) {
    const struct function *function = job->function;
    const int64_t n = job->lines.along.count, most = SOME / n > 1 ? SOME / n : 1;
    const int64_t in_stride = lines->strides[0], out_stride = lines->strides[1];
    const bool streams = job->streams && out_stride == n, direct = function->of_exp && !streams && !job->in_place;
    _Alignas(64) float exponentials[NEAR], results[NEAR];
    struct block block;
    for (int64_t line = 0, count; line < lines->count && !dmlk_stopped(lines->work, most * n); line += count) {
        const float *x = (const float *)lines->at[0] + line * in_stride;
        float *out = (float *)lines->at[1] + line * out_stride, *e = direct ? out : exponentials;
        const int64_t e_stride = direct ? out_stride : n;
        const bool simply = are_tried_simply(job);
        count = dmlk_min(lines->count - line, most);
        dmlk_exponentials_of_lines(&block.e, simply, x, in_stride, count, n, e, e_stride, block.factor);
        if (simply && !block.e.simple) {
            atomic_store(&job->relative, true);
        }
        function->factors(&block, count);
        function->results(&block, 0, 0, function->of_exp ? e : x, function->of_exp ? e_stride : in_stride, count, n,
                          streams ? results : out, out_stride);
        if (streams) {
            dmlk_stream_copy(out, results, (size_t)(count * n) * sizeof *out);
        }
    }
}

/* Computes the sums of exponentials, and keeps the exponentials if block->kept is set. */
static void sum(struct block *block, const dmlk_line_block *lines, struct job *job) {
    const int64_t n = job->lines.along.count;
    const bool in_rows = are_rows(job), simply = are_tried_simply(job);
    const dmlk_line_visitor *add = in_rows ? &sum_in_rows : &sum_them;
    if (simply) {
        dmlk_exponentials_simply(&block->e, lines->count);
        dmlk_sums_start(&block->sums, false, lines->count, n);
        dmlk_visit_lines(&job->lines, lines, 0, n, add, block);
    }
    if (!simply || !dmlk_are_simple(&block->e)) {
        atomic_store(&job->relative, true);
        dmlk_exponentials_start(&block->e, lines->count);
        dmlk_visit_lines(&job->lines, lines, 0, n, in_rows ? &find_in_rows : &find_them, block);
        dmlk_exponentials_relate(&block->e);
        dmlk_sums_start(&block->sums, false, lines->count, n);
        dmlk_visit_lines(&job->lines, lines, 0, n, add, block);
    }
    dmlk_sums_finish(&block->sums, block->factor);
}

static void run_block(const dmlk_line_block *lines, void *context) {
    struct job *job = context;
    const int64_t n = job->lines.along.count, elements = n <= KEPT ? n * lines->count : n;
    if (are_near(job)) {
        run_near(lines, job);
        dmlk_streamed();
        return;
    }
    const bool keeps = job->function->of_exp;
    const bool out_rows = are_rows(job) && job->out == DMLK_FLOAT32 && lines->strides[1] == 1;
    const bool direct = keeps && out_rows && !job->streams && !job->in_place && job->lines.across && job->lines.along.rank == 1;
    const bool takes = keeps && !direct && elements > NEAR && elements <= KEPT;
    float near[NEAR];
    void *far = takes ? dmlk_take(elements * (int64_t)sizeof(float)) : NULL;
    struct block block;
    block.job = job;
    block.kept = direct ? (float *)lines->at[1] : keeps && elements <= NEAR ? near : far; /* NULL if memory ran out */
    block.kept_step = direct ? dmlk_iter_row_strides(&job->lines.along)[1] : lines->count;
    sum(&block, lines, job);
    job->function->factors(&block, lines->count);
    dmlk_line_visitor put_them = {.along = put_along, .across = put_across};
    put_them.rows = out_rows && block.kept != NULL ? put_rows : NULL;
    put_them.unfetched = (block.kept != NULL ? IN : 0) | (job->streams ? OUT : 0);
    dmlk_visit_lines(&job->lines, lines, 0, n, &put_them, &block);
    dmlk_give(far);
    dmlk_streamed();
}

static int run(const dmlk_call *call, const struct function *function) {
    dmlk_softmax k;
    if (!dmlk_has_views(call, 2, 0) || !dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *in = &call->views[0], *out = &call->views[1];
    struct job job = {.function = function, .in = in->type, .out = out->type};
    job.in_place = in->base < out->base + out->byte_size && out->base < in->base + in->byte_size;
    if (!dmlk_is_single(in->type) || !dmlk_is_single(out->type)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    const int status =
        dmlk_lines_init(&job.lines, DMLK_LOGICAL_ORDER, k.axes_mask, (const dmlk_view *[]){in, out}, 2, 2);
    if (status == DMLK_OK) {
        const int64_t n = job.lines.along.count, size = sizeof(float);
        job.streams = out->type == DMLK_FLOAT32 && dmlk_stream_pays(dmlk_view_elements(out), size);
        /* Blocks are wide if sums have one lane, so that they always fit; if rows bypass the caches, so that rows are
         * long; and if rows are copied one by one. */
        const int64_t most = n < DMLK_SUMS_LONG || job.streams || !are_rows(&job) ? DMLK_MOST_LINES : NARROW;
        const int64_t keepable = dmlk_min(dmlk_lines_together(&job.lines, n * size, KEPT * size), most);
        const bool keeps = n <= KEPT / (job.streams ? 2 * LEAST : LEAST);
        const int64_t across = job.lines.across && !keeps ? DMLK_MOST_LINES : keepable;
        const int64_t together = job.lines.across || n > NEAR ? across : NEAR / n;
        const int64_t grain = (job.lines.across ? 4 * GRAIN : GRAIN) / n;
        dmlk_for_lines(&job.lines, together, dmlk_lines_grain(&job.lines, grain, NARROW), run_block, &job);
    }
    return status;
}

#define EXPONENTIAL(name, factor, result) \
    int DMLK_RUN(name)(const dmlk_call *call) { return run(call, &name##_function); }
#define INPUT(name, factor, result) EXPONENTIAL(name, factor, result)
#include "functions.inc"

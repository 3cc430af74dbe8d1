/* softmax: functions of an element and its group, the elements along the axes, as defined in functions.inc.
 *
 * Three passes over a block of groups: the largest element, the sum of exponentials, the outputs.  Exponentials are
 * FLOAT32, relative to that of the largest element (dmlk_exp_relativef); sums are double, in logical order (sums.h), and outputs are computed
 * with these and rounded once.  Exponentials are kept for the third pass if the cache holds them; otherwise
 * they are computed again, to the same bits.
 *
 * A NaN or +infinity makes its whole group NaN, and so does a group of -infinities. */
#include "softmax.h"

#include "dmlk_float_math.h"
#include "kernel.h"
#include "largest.h"
#include "scratch.h"
#include "walkers.h"

#define KEPT (1 << 18)  /* floats: 1 MiB, in the second- or third-level cache; also of a block of groups across memory */
#define NEAR (1 << 12)  /* floats on the stack: a block of groups along memory, in the first-level cache */
#define GRAIN (1 << 15) /* elements worth a thread: about 0.05 ms */

/* A line of functions.inc.  n values, with the parameters of one group (step 0) or of n groups (step 1). */
struct function {
    bool of_exp;
    void (*factors)(double *y, const float *largest, int64_t n);
    void (*results)(float *out, const float *in, int64_t n, const float *largest, const double *f, int64_t step);
};

struct job {
    const struct function *function;
    uint32_t in, out; /* types */
    dmlk_lines lines; /* operands: in, out */
};

/* The groups being processed. */
struct block {
    const struct job *job;
    float largest[DMLK_CHUNK];
    float shift[DMLK_CHUNK], low[DMLK_CHUNK]; /* dmlk_relativef of these */
    uint32_t offset[DMLK_CHUNK];
    double factor[DMLK_CHUNK];
    dmlk_sums sums;
    int64_t lines; /* of the block */
    float *kept;   /* exponentials; NULL: nothing is kept */
};

/* --- loops --- */

static void find_largest(float *largest, const float *x, int64_t n) {
    float found;
    dmlk_best_lines(false, x, 0, 1, n, &found);
    *largest = found > *largest ? found : *largest;
}

DMLK_EACH_ISA(find_each_largest, (float *restrict largest, const float *restrict x, int64_t n), (largest, x, n)) {
    for (int64_t i = 0; i < n; i++) {
        largest[i] = x[i] > largest[i] ? x[i] : largest[i];
    }
}

/* Loops over one group's elements or over elements of neighbouring groups: compiled for each, as compilers gather
 * numbers that are `step` apart one by one. */
#define FOR_STEP(loop, ...) step == 0 ? loop(__VA_ARGS__, 0) : loop(__VA_ARGS__, 1)

/* Along a group, the rest of n elements after whole vectors is computed as a vector that begins before it: compilers compute
 * it one by one, which takes as long as the vectors of a short group.  Not in place: results would be read. */
#define VECTOR 16
#define EACH_PASS(n, may_overlap)                                                                  \
    for (int64_t pass = 0, whole_ = (may_overlap) && (n) >= VECTOR ? (n) - (n) % VECTOR : (n),      \
                 begin = 0, count = whole_;                                                        \
         pass < 1 + (whole_ < (n)); pass++, begin = (n) - VECTOR, count = VECTOR)

/* What exponentials of the groups are relative to. */
DMLK_EACH_ISA(relate, (struct block *block, int64_t n), (block, n)) {
    for (int64_t i = 0; i < n; i++) {
        const dmlk_relativef to = dmlk_relative_tof(block->largest[i]);
        block->shift[i] = to.shift;
        block->low[i] = to.low;
        block->offset[i] = to.offset;
    }
}

DMLK_INLINE void exponentials_loop(float *restrict e, const float *restrict x, int64_t n,
                                   const struct block *restrict block, int64_t line, int64_t step) {
    const float *shift = block->shift + line, *low = block->low + line;
    const uint32_t *offset = block->offset + line;
    for (int64_t i = 0; i < n; i++) {
        e[i] = dmlk_exp_relativef(x[i], (dmlk_relativef){shift[i * step], low[i * step], offset[i * step]});
    }
}

DMLK_EACH_ISA(exponentials, (float *e, const float *x, int64_t n, const struct block *block, int64_t line, int64_t step),
              (e, x, n, block, line, step)) {
    EACH_PASS(n, step == 0) {
        FOR_STEP(exponentials_loop, e + begin, x + begin, count, block, line);
    }
}

#define SUMS_NAME(x) x##_exponentials
#define SUMS_T float
#define SUMS_PRODUCT 0
#define SUMS_TERM(x) (x)
#define SUMS_TERMS(x) (x)
#define SUMS_LINES
#include "sums.inc"

static void add_along(dmlk_sums *sums, int64_t line, const float *e, int64_t n, int64_t index) {
    sums->along = true;
    if (sums->lanes > 1) {
        along_exponentials(sums, line, e, n, index);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        sums->lane[line] += (double)e[i];
    }
}

/* e f, rounded once but for the last bits of f: along a group the two parts of f are constants. */
DMLK_INLINE float product(float e, double f) {
    const float high = (float)f, low = (float)(f - (double)high);
    return fmaf(e, high, e * low);
}

/* log(y / e), where e is the term of the largest element: accurate if the others are small. */
DMLK_INLINE double log_of_sum(double y, float most) {
    const double e = (double)dmlk_exp_relativef(most, dmlk_relative_tof(most));
    return dmlk_log1p((y - e) / e);
}

#define FUNCTION(name, is_of_exp, value, factor, result)                                                     \
    DMLK_EACH_ISA(name##_factors, (double *values, const float *largest, int64_t n), (values, largest, n)) { \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const double y = values[i];                                                                      \
            const float most = largest[i];                                                                   \
            (void)most;                                                                                      \
            values[i] = (factor);                                                                            \
        }                                                                                                    \
    }                                                                                                        \
    DMLK_INLINE void name##_loop(float *out, const float *in, int64_t n, const float *restrict largest,      \
                                 const double *restrict fs, bool are_numbers, int64_t step) {                \
        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) { /* possibly in place */                       \
            const float value = in[i], most = largest[i * step];                                             \
            const double f = fs[i * step];                                                                   \
            (void)most;                                                                                      \
            out[i] = are_numbers ? (result) : dmlk_one_nan_float(result);                                    \
        }                                                                                                    \
    }                                                                                                        \
    DMLK_EACH_ISA(name##_results,                                                                            \
                  (float *out, const float *in, int64_t n, const float *largest, const double *fs, int64_t step), \
                  (out, in, n, largest, fs, step)) {                                                         \
        const bool are_numbers = (is_of_exp) && step == 0 && fs[0] == fs[0]; /* a NaN makes the sum one */   \
        EACH_PASS(n, step == 0 && in != out) {                                                               \
            if (are_numbers) {                                                                               \
                name##_loop(out + begin, in + begin, count, largest, fs, true, 0);                           \
            } else {                                                                                         \
                FOR_STEP(name##_loop, out + begin, in + begin, count, largest, fs, false);                   \
            }                                                                                                \
        }                                                                                                    \
    }                                                                                                        \
    static const struct function name##_function = {is_of_exp, name##_factors, name##_results};
#define EXPONENTIAL(name, factor, result) FUNCTION(name, true, e, factor, result)
#define INPUT(name, factor, result) FUNCTION(name, false, x, factor, result)
#include "functions.inc"

/* --- elements as floats --- */

/* `count` <= DMLK_CHUNK elements: where they are, or in `room`. */
static const float *load(const struct job *job, const uint8_t *at, int64_t stride, int64_t count, float *room) {
#ifndef DMLK_CHECKED
    if (job->in == DMLK_FLOAT32 && stride == 1) {
        return (const float *)at;
    }
#endif
    dmlk_promoted x;
    dmlk_load_promoted(job->in, at, stride, count, &x);
    for (int64_t i = 0; i < count; i++) {
        room[i] = (float)x.f[i];
    }
    return room;
}

static void store(const struct job *job, uint8_t *at, int64_t stride, int64_t count, const float *from) {
    dmlk_promoted y;
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
        find_largest(&block->largest[line], load(block->job, at[0] + i * step, strides[0], count, room), count);
    }
}

static void largest_across(void *context, uint8_t *const *at, const int64_t *strides, int64_t count, int64_t index) {
    struct block *block = context;
    float room[DMLK_CHUNK];
    (void)index;
    find_each_largest(block->largest, load(block->job, at[0], strides[0], count, room), count);
}

static void sum_along(void *context, int64_t line, uint8_t *const *at, const int64_t *strides, int64_t n,
                      int64_t index) {
    struct block *block = context;
    const struct job *job = block->job;
    const int64_t step = strides[0] * job->lines.along.bytes[0], first = line * job->lines.along.count + index;
    float room[DMLK_CHUNK], forgotten[DMLK_CHUNK];
    for (int64_t i = 0; i < n; i += DMLK_CHUNK) {
        const int64_t count = dmlk_min(n - i, DMLK_CHUNK);
        const float *x = load(job, at[0] + i * step, strides[0], count, room);
        float *e = block->kept != NULL ? block->kept + first + i : forgotten;
        exponentials(e, x, count, block, line, 0);
        add_along(&block->sums, line, e, count, index + i);
    }
}

static void sum_across(void *context, uint8_t *const *at, const int64_t *strides, int64_t count, int64_t index) {
    struct block *block = context;
    float room[DMLK_CHUNK], forgotten[DMLK_CHUNK];
    const float *x = load(block->job, at[0], strides[0], count, room);
    float *e = block->kept != NULL ? block->kept + index * block->lines : forgotten;
    exponentials(e, x, count, block, 0, 1);
    rows_exponentials(&block->sums, e, 1, 0, index, 0);
}

/* `count` outputs; `line` is the first or only group, `place` that of the first element in block->kept. */
static void put(struct block *block, int64_t line, int64_t step, const uint8_t *in, int64_t in_stride, uint8_t *out,
                int64_t out_stride, int64_t count, int64_t place) {
    const struct job *job = block->job;
    const float *largest = &block->largest[line], *from = block->kept + place;
    float room[DMLK_CHUNK], e[DMLK_CHUNK];
    if (block->kept == NULL || !job->function->of_exp) {
        from = load(job, in, in_stride, count, room);
    }
    if (block->kept == NULL && job->function->of_exp) {
        exponentials(e, from, count, block, line, step);
        from = e;
    }
#ifdef DMLK_CHECKED
    const bool is_near = false;
#else
    const bool is_near = job->out == DMLK_FLOAT32 && out_stride == 1;
#endif
    float *to = is_near ? (float *)out : e;
    job->function->results(to, from, count, largest, &block->factor[line], step);
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
    put(block, 0, 1, at[0], strides[0], at[1], strides[1], count, index * block->lines);
}

static const dmlk_line_visitor find_them = {.along = largest_along, .across = largest_across},
                               sum_them = {.along = sum_along, .across = sum_across},
                               put_them = {.along = put_along, .across = put_across};

/* Whether the groups are contiguous FLOAT32s that the first-level cache holds. */
static bool are_near(const struct job *job) {
    const dmlk_iter *along = &job->lines.along;
    const int64_t *strides = dmlk_iter_row_strides(along);
#ifdef DMLK_CHECKED
    return false; /* loads are checked one by one */
#endif
    return job->in == DMLK_FLOAT32 && job->out == DMLK_FLOAT32 && !job->lines.across && along->rank == 1 &&
           strides[0] == 1 && strides[1] == 1 && along->count <= NEAR;
}

/* One such group after the other, each by the loops of all passes. */
static void run_near(const dmlk_line_block *lines, const struct job *job) {
    const struct function *function = job->function;
    const int64_t n = job->lines.along.count;
    float exponential[NEAR];
    struct block block;
    for (int64_t line = 0; line < lines->count && !dmlk_stopped(lines->work, n); line++) {
        const float *x = (const float *)lines->at[0] + line * lines->strides[0];
        float *out = (float *)lines->at[1] + line * lines->strides[1];
        block.largest[0] = -INFINITY;
        find_largest(block.largest, x, n);
        relate(&block, 1);
        exponentials(exponential, x, n, &block, 0, 0);
        if (n >= DMLK_SUMS_LONG) {
            lines_exponentials(exponential, 0, 1, n, block.factor);
        } else {
            dmlk_sums_start(&block.sums, false, 1, n);
            add_along(&block.sums, 0, exponential, n, 0);
            dmlk_sums_finish(&block.sums, block.factor);
        }
        function->factors(block.factor, block.largest, 1);
        function->results(out, function->of_exp ? exponential : x, n, block.largest, block.factor, 0);
    }
}

static void run_block(const dmlk_line_block *lines, void *context) {
    const struct job *job = context;
    const int64_t n = job->lines.along.count;
    if (are_near(job)) {
        run_near(lines, job);
        return;
    }
    const int64_t elements = n <= KEPT ? n * lines->count : n;
    const bool keeps = job->function->of_exp;
    float near[NEAR];
    void *far = keeps && elements > NEAR && elements <= KEPT ? dmlk_take(elements * (int64_t)sizeof(float)) : NULL;
    struct block block;
    block.job = job;
    block.lines = lines->count;
    block.kept = keeps && elements <= NEAR ? near : far; /* without memory nothing is kept */
    for (int64_t i = 0; i < lines->count; i++) {
        block.largest[i] = -INFINITY;
    }
    dmlk_visit_lines(&job->lines, lines, 0, n, &find_them, &block);
    relate(&block, lines->count);
    dmlk_sums_start(&block.sums, false, lines->count, n);
    dmlk_visit_lines(&job->lines, lines, 0, n, &sum_them, &block);
    dmlk_sums_finish(&block.sums, block.factor);
    job->function->factors(block.factor, block.largest, lines->count);
    dmlk_visit_lines(&job->lines, lines, 0, n, &put_them, &block);
    dmlk_give(far);
}

static bool is_single(uint32_t type) { return type == DMLK_FLOAT32 || type == DMLK_FLOAT16; }

static int run(const dmlk_call *call, const struct function *function) {
    dmlk_softmax k;
    if (!dmlk_has_views(call, 2, 0) || !dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *in = &call->views[0], *out = &call->views[1];
    struct job job = {.function = function, .in = in->type, .out = out->type};
    if (!is_single(in->type) || !is_single(out->type)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    const int status =
        dmlk_lines_init(&job.lines, DMLK_LOGICAL_ORDER, k.axes_mask, (const dmlk_view *[]){in, out}, 2, 2);
    if (status == DMLK_OK) {
        const int64_t n = job.lines.along.count, size = sizeof(float);
        const int64_t across = dmlk_lines_together(&job.lines, n * size, KEPT * size);
        const int64_t together = job.lines.across || n > NEAR ? across : NEAR / n;
        dmlk_for_lines(&job.lines, together, GRAIN / n, run_block, &job);
    }
    return status;
}

#define EXPONENTIAL(name, factor, result) \
    int DMLK_RUN(name)(const dmlk_call *call) { return run(call, &name##_function); }
#define INPUT(name, factor, result) EXPONENTIAL(name, factor, result)
#include "functions.inc"

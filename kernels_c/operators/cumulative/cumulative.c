/* cumulative: every partial result along an axis, as defined in functions.inc.
 *
 * Floats are accumulated in double, one after the other, and each output is rounded once: results do not depend on
 * layout or threads.  Integers are computed modulo 2^bits.  An element is read before its output is written, which
 * may be in the same place. */
#include "cumulative.h"

#include "doubles.h"
#include "kernel.h"
#include "transpose.h"
#include "walkers.h"

#define GRAIN (1 << 17) /* elements worth a thread */
#define WIDE (1 << 11)  /* lines of a block without copies: CPUs fetch the next elements of long rows by themselves */
#define LEAST 8         /* contiguous lines of a block, to be scanned together */
#define TURNED 64       /* at most */
#define COPIES (1 << 12) /* transposed elements, in the first-level cache */

/* A line of functions.inc.  Replaces n elements of one line, or one of each line, by the outputs. */
struct function {
    int first;
    void (*floats_along)(double *x, int64_t n, double *y, bool exclusive);
    void (*floats_across)(double *x, int64_t n, double *y, bool exclusive);
    void (*float32_across)(const float *x, int64_t n, double *y, bool exclusive, float *out);
    void (*integers_along)(uint64_t *x, int64_t n, uint64_t *y, bool exclusive);
    void (*integers_across)(uint64_t *x, int64_t n, uint64_t *y, bool exclusive);
};

struct job {
    const struct function *function;
    bool exclusive;
    uint32_t type;
    dmlk_lines lines; /* operands: in, out */
};

struct block {
    const struct job *job;
    union {
        double f[WIDE];
        uint64_t u[DMLK_MOST_LINES];
    } y; /* of each line */
};

#define LOOPS(name, T, next)                                                                                         \
    static void name##_along(T *values, int64_t n, T *of, bool exclusive) {                                          \
        T y = *of;                                                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                                            \
            const T x = values[i], before = y;                                                                       \
            y = (next);                                                                                              \
            values[i] = exclusive ? before : y;                                                                      \
        }                                                                                                            \
        *of = y;                                                                                                     \
    }                                                                                                                \
    DMLK_EACH_ISA(name##_across, (T *restrict values, int64_t n, T *restrict of, bool exclusive),                    \
                  (values, n, of, exclusive)) {                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                                            \
            const T x = values[i], y = of[i], result = (next);                                                       \
            of[i] = result;                                                                                          \
            values[i] = exclusive ? y : result;                                                                      \
        }                                                                                                            \
    }
/* Of contiguous FLOAT32s, as they are in memory; an output may be in the place of its input. */
#define FLOAT32_ACROSS(name, next)                                                                                   \
    DMLK_EACH_ISA(name##_float32_across, (const float *values, int64_t n, double *restrict of, bool exclusive,       \
                                          float *out),                                                               \
                  (values, n, of, exclusive, out)) {                                                                 \
        int64_t i = 0;                                                                                               \
        for (; i + 8 <= n; i += 8) {                                                                                 \
            dmlk_doubles4 results[2], chosen[2];                                                                     \
            for (int64_t k = 0; k < 2; k++) {                                                                        \
                const float *from = values + i + 4 * k;                                                              \
                const dmlk_doubles4 x = DMLK_WIDE(from), y = DMLK_FOUR_OF(of + i + 4 * k);                           \
                results[k] = (next);                                                                                 \
                chosen[k] = exclusive ? y : results[k];                                                              \
                DMLK_FOUR(of + i + 4 * k) = results[k];                                                              \
            }                                                                                                        \
            DMLK_STORE_EIGHT(out + i, chosen[0], chosen[1]);                                                         \
        }                                                                                                            \
        for (; i < n; i++) {                                                                                         \
            const double x = (double)values[i], y = of[i], result = (next), chosen = exclusive ? y : result;         \
            of[i] = result;                                                                                          \
            out[i] = (float)dmlk_one_nan(chosen);                                                                    \
        }                                                                                                            \
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

/* Whether the elements across lines need no copy. */
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
        job->function->float32_across((const float *)at[0], count, block->y.f, job->exclusive, (float *)at[1]);
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

/* Scans such lines together, in transposed copies: of one line, each result waits for the one before. */
static void scan_turned(struct block *block, const dmlk_line_block *lines) {
    const struct job *job = block->job;
    const int64_t n = job->lines.along.count, count = lines->count, most = COPIES / count, size = sizeof(float);
    const int64_t *steps = lines->strides;
    const bool forward = *dmlk_iter_row_strides(&job->lines.along) == 1;
    _Alignas(64) float copies[COPIES];
    for (int64_t i = 0; i < n && !dmlk_stopped(lines->work, most * count); i += most) {
        const int64_t rows = dmlk_min(n - i, most), lowest = (forward ? i : 1 - i - rows) * size;
        dmlk_transpose(size, lines->at[0] + lowest, steps[0] * size, size, (uint8_t *)copies, count * size, rows,
                       count);
        for (int64_t row = 0; row < rows; row++) {
            float *x = copies + (forward ? row : rows - 1 - row) * count;
            job->function->float32_across(x, count, block->y.f, job->exclusive, x);
        }
        dmlk_transpose(size, (uint8_t *)copies, count * size, size, lines->at[1] + lowest, steps[1] * size, count,
                       rows);
    }
}

static void scan_block(const dmlk_line_block *lines, void *context) {
    static const dmlk_line_visitor scan = {.along = scan_along, .across = scan_across};
    const struct job *job = context;
    struct block block;
    block.job = job;
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
        dmlk_visit_lines(&job->lines, lines, 0, job->lines.along.count, &scan, &block);
    }
}

/* Lines begin at their last element. */
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
        job.lines.wide = job.lines.across && are_floats32(&job, dmlk_iter_row_strides(&job.lines.each));
        dmlk_for_lines(&job.lines, are_contiguous(&job) ? TURNED : WIDE, GRAIN / job.lines.along.count, scan_block, &job);
    }
    return status;
}

#define SCAN(name, first, next) \
    int DMLK_RUN(name)(const dmlk_call *call) { return run(call, &name##_function); }
#include "functions.inc"

/* softmax: functions of an element and its group, the elements along the axes, as defined in functions.inc.
 *
 * Three passes over a block of groups: the largest element, the sum of exponentials, the outputs.  Everything is
 * computed in double, sums in logical order (sums.h), and rounded once.  What the second pass computes of each
 * element is kept for the third if the cache holds it; otherwise it is computed again, to the same bits.
 *
 * A NaN or +infinity makes its whole group NaN, and so does a group of -infinities. */
#include "softmax.h"

#include "dmlk_math.h"
#include "kernel.h"
#include "scratch.h"
#include "walkers.h"

#define KEPT (1 << 17)  /* doubles: 1 MiB, in the second- or third-level cache */
#define NEAR (1 << 12)  /* doubles on the stack */
#define GRAIN (1 << 15) /* elements worth a thread: about 0.05 ms */

/* A line of functions.inc.  n values, with the parameters of one group (step 0) or of n groups (step 1). */
struct function {
    bool of_exp;
    void (*factors)(double *y, int64_t n);
    void (*results)(double *values, int64_t n, const double *f, int64_t step);
};

struct job {
    const struct function *function;
    uint32_t in, out; /* types */
    dmlk_lines lines; /* operands: in, out */
};

/* The groups being processed. */
struct block {
    const struct job *job;
    double largest[DMLK_CHUNK];
    double factor[DMLK_CHUNK];
    dmlk_sums sums;
    int64_t lines; /* of the block */
    double *kept;  /* NULL: nothing is kept */
};

/* --- loops --- */

DMLK_EACH_ISA(find_largest, (double *largest, const double *x, int64_t n), (largest, x, n)) {
    double lanes[8];
    for (int lane = 0; lane < 8; lane++) {
        lanes[lane] = *largest;
    }
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        for (int lane = 0; lane < 8; lane++) {
            lanes[lane] = x[i + lane] > lanes[lane] ? x[i + lane] : lanes[lane];
        }
    }
    for (; i < n; i++) {
        lanes[0] = x[i] > lanes[0] ? x[i] : lanes[0];
    }
    for (int lane = 0; lane < 8; lane++) {
        *largest = lanes[lane] > *largest ? lanes[lane] : *largest;
    }
}

DMLK_EACH_ISA(find_each_largest, (double *restrict largest, const double *restrict x, int64_t n), (largest, x, n)) {
    for (int64_t i = 0; i < n; i++) {
        largest[i] = x[i] > largest[i] ? x[i] : largest[i];
    }
}

DMLK_EACH_ISA(subtract, (double *restrict x, int64_t n, const double *restrict largest, int64_t step),
              (x, n, largest, step)) {
    for (int64_t i = 0; i < n; i++) {
        x[i] -= largest[i * step];
    }
}

DMLK_EACH_ISA(exponentials, (double *restrict e, const double *restrict x, int64_t n), (e, x, n)) {
    for (int64_t i = 0; i < n; i++) {
        e[i] = dmlk_exp(x[i]);
    }
}

#define FUNCTION(name, is_of_exp, of, factor, result)                                                        \
    DMLK_EACH_ISA(name##_factors, (double *values, int64_t n), (values, n)) {                                \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const double y = values[i];                                                                      \
            values[i] = (factor);                                                                            \
        }                                                                                                    \
    }                                                                                                        \
    DMLK_EACH_ISA(name##_results, (double *restrict values, int64_t n, const double *restrict fs, int64_t step), \
                  (values, n, fs, step)) {                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const double of = values[i], f = fs[i * step];                                                   \
            values[i] = dmlk_one_nan_double(result);                                                         \
        }                                                                                                    \
    }                                                                                                        \
    static const struct function name##_function = {is_of_exp, name##_factors, name##_results};
#define EXPONENTIAL(name, factor, result) FUNCTION(name, true, e, factor, result)
#define INPUT(name, factor, result) FUNCTION(name, false, x, factor, result)
#include "functions.inc"

/* --- the passes: each piece of a line, or row across lines --- */

static void largest_along(void *context, int64_t line, uint8_t *const *at, const int64_t *strides, int64_t n,
                          int64_t index) {
    struct block *block = context;
    const int64_t step = strides[0] * block->job->lines.along.bytes[0];
    dmlk_promoted x;
    (void)index;
    for (int64_t i = 0; i < n; i += DMLK_CHUNK) {
        const int64_t count = dmlk_min(n - i, DMLK_CHUNK);
        dmlk_load_promoted(block->job->in, at[0] + i * step, strides[0], count, &x);
        find_largest(&block->largest[line], x.f, count);
    }
}

static void largest_across(void *context, uint8_t *const *at, const int64_t *strides, int64_t count, int64_t index) {
    struct block *block = context;
    dmlk_promoted x;
    (void)index;
    dmlk_load_promoted(block->job->in, at[0], strides[0], count, &x);
    find_each_largest(block->largest, x.f, count);
}

/* Loads `count` elements; sets x to what the results are computed from, and e, if not NULL, to the exponentials.
 * `largest` is that of the elements' group (step 0) or groups (step 1). */
static void load(const struct job *job, const uint8_t *at, int64_t stride, int64_t count, const double *largest,
                 int64_t step, dmlk_promoted *x, dmlk_promoted *e) {
    dmlk_load_promoted(job->in, at, stride, count, x);
    subtract(x->f, count, largest, step);
    if (e != NULL) {
        exponentials(e->f, x->f, count);
    }
}

static void keep(struct block *block, int64_t place, int64_t count, const dmlk_promoted *x, const dmlk_promoted *e) {
    if (block->kept != NULL) {
        memcpy(block->kept + place, block->job->function->of_exp ? e->f : x->f, (size_t)count * sizeof *block->kept);
    }
}

static void sum_along(void *context, int64_t line, uint8_t *const *at, const int64_t *strides, int64_t n,
                      int64_t index) {
    struct block *block = context;
    const struct job *job = block->job;
    const int64_t step = strides[0] * job->lines.along.bytes[0], first = line * job->lines.along.count + index;
    dmlk_promoted x, e;
    for (int64_t i = 0; i < n; i += DMLK_CHUNK) {
        const int64_t count = dmlk_min(n - i, DMLK_CHUNK);
        load(job, at[0] + i * step, strides[0], count, &block->largest[line], 0, &x, &e);
        keep(block, first + i, count, &x, &e);
        dmlk_sums_along(&block->sums, line, e.f, count, index + i);
    }
}

static void sum_across(void *context, uint8_t *const *at, const int64_t *strides, int64_t count, int64_t index) {
    struct block *block = context;
    dmlk_promoted x, e;
    load(block->job, at[0], strides[0], count, block->largest, 1, &x, &e);
    keep(block, index * block->lines, count, &x, &e);
    dmlk_sums_across(&block->sums, e.f, index);
}

/* `count` outputs; `line` is the first or only group, `place` that of the first element in block->kept. */
static void put(struct block *block, int64_t line, int64_t step, const uint8_t *in, int64_t in_stride, uint8_t *out,
                int64_t out_stride, int64_t count, int64_t place) {
    const struct job *job = block->job;
    const bool of_exp = job->function->of_exp;
    dmlk_promoted x, e;
    dmlk_promoted *y = of_exp ? &e : &x;
    if (block->kept != NULL) {
        memcpy(y->f, block->kept + place, (size_t)count * sizeof *y->f);
    } else {
        load(job, in, in_stride, count, &block->largest[line], step, &x, of_exp ? &e : NULL);
    }
    job->function->results(y->f, count, &block->factor[line], step);
    dmlk_store_promoted(job->out, out, out_stride, count, DMLK_KIND_FLOAT, y);
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

static void run_block(const dmlk_line_block *lines, void *context) {
    const struct job *job = context;
    const int64_t n = job->lines.along.count;
    const int64_t elements = n <= KEPT ? n * lines->count : n;
    double near[NEAR];
    void *far = elements > NEAR && elements <= KEPT ? dmlk_take(elements * (int64_t)sizeof(double)) : NULL;
    struct block block;
    block.job = job;
    block.lines = lines->count;
    block.kept = elements <= NEAR ? near : far; /* without memory nothing is kept */
    for (int64_t i = 0; i < lines->count; i++) {
        block.largest[i] = -(double)INFINITY;
    }
    dmlk_visit_lines(&job->lines, lines, 0, n, &find_them, &block);
    dmlk_sums_start(&block.sums, false, lines->count, n);
    dmlk_visit_lines(&job->lines, lines, 0, n, &sum_them, &block);
    dmlk_sums_finish(&block.sums, block.factor);
    job->function->factors(block.factor, lines->count);
    dmlk_visit_lines(&job->lines, lines, 0, n, &put_them, &block);
    dmlk_give(far);
}

static int run(const dmlk_call *call, const struct function *function) {
    dmlk_softmax k;
    if (!dmlk_has_views(call, 2, 0) || !dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *in = &call->views[0], *out = &call->views[1];
    struct job job = {.function = function, .in = in->type, .out = out->type};
    if (dmlk_type_kind(in->type) != DMLK_KIND_FLOAT || dmlk_type_kind(out->type) != DMLK_KIND_FLOAT) {
        return DMLK_NOT_IMPLEMENTED;
    }
    const int status =
        dmlk_lines_init(&job.lines, DMLK_LOGICAL_ORDER, k.axes_mask, (const dmlk_view *[]){in, out}, 2, 2);
    if (status == DMLK_OK) {
        const int64_t n = job.lines.along.count, bytes = n * (int64_t)sizeof(double);
        const int64_t together = dmlk_lines_together(&job.lines, bytes, KEPT * (int64_t)sizeof(double));
        dmlk_for_lines(&job.lines, together, GRAIN / n, run_block, &job);
    }
    return status;
}

#define EXPONENTIAL(name, factor, result) \
    int DMLK_RUN(name)(const dmlk_call *call) { return run(call, &name##_function); }
#define INPUT(name, factor, result) EXPONENTIAL(name, factor, result)
#include "functions.inc"

/* gradient: the gradients of a normalization with given statistics, or with the statistics of each group of elements.
 *
 * With r = 1 / sqrt(variance + epsilon), g the incoming gradient, and sums and means over the elements of a group:
 *   out_scale = r * sum(g * (in - mean)), out_bias = sum(g)
 *   out_gradient = scale * r * g, or if the statistics are the group's own
 *                  scale * r * (gc - c * (mean of g * c) / (variance + epsilon)), c = in - its mean, gc = g - its mean
 * Results are computed in double, sums in logical order (sums.h), and rounded once. */
#include <math.h>

#include "kernel.h"
#include "floats.h"
#include "normalization.h"
#include "walkers.h"

#define GRAIN (1 << 15) /* elements worth a thread */

enum operand { IN, GRADIENT_IN, OUT, ALONG, MEAN = ALONG, VARIANCE, SCALE, OUT_SCALE, OUT_BIAS, OPERANDS };

struct job {
    bool of_statistics;
    double epsilon;
    uint32_t types[OPERANDS];
    dmlk_lines lines;
};

/* The groups being processed; arrays have a number for each. */
struct block {
    const struct job *job;
    bool is_second; /* the second of the two passes that sum */
    double given[DMLK_CHUNK];                     /* the mean tensor */
    double in_mean[DMLK_CHUNK], g_mean[DMLK_CHUNK]; /* of the group, if of_statistics */
    double factor[DMLK_CHUNK], slope[DMLK_CHUNK]; /* out_gradient = factor * (gc - c * slope) */
    dmlk_sums a, b;
};

/* x = x * (y - m), for n elements of one group (step 0), or of one element of each group (step 1). */
DMLK_EACH_ISA(multiply, (double *restrict x, const double *restrict y, int64_t n, const double *restrict m, int64_t step),
              (x, y, n, m, step)) {
    for (int64_t i = 0; i < n; i++) {
        x[i] *= y[i] - m[i * step];
    }
}

DMLK_EACH_ISA(scale_by, (double *restrict g, int64_t n, const double *restrict factor, int64_t step), (g, n, factor, step)) {
    for (int64_t i = 0; i < n; i++) {
        g[i] = dmlk_one_nan_double(factor[i * step] * g[i]);
    }
}

/* Replaces g by the gradient. */
DMLK_EACH_ISA(combine, (double *restrict g, const double *restrict x, int64_t n, const struct block *b, int64_t line, int64_t step),
              (g, x, n, b, line, step)) {
    const double *in_mean = &b->in_mean[line], *g_mean = &b->g_mean[line];
    const double *factor = &b->factor[line], *slope = &b->slope[line];
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = i * step;
        const double c = x[i] - in_mean[k];
        g[i] = dmlk_one_nan_double(factor[k] * (g[i] - g_mean[k] - c * slope[k]));
    }
}

/* Replaces x and g by the terms that `count` elements add to the sums a and b. */
static void terms(const struct block *block, int64_t line, int64_t step, dmlk_promoted *x, dmlk_promoted *g,
                  int64_t count) {
    if (!block->job->of_statistics) { /* a: g * (in - mean), b: g */
        dmlk_promoted copy = *g;
        multiply(g->f, x->f, count, &block->given[line], step);
        *x = *g;
        *g = copy;
    } else if (block->is_second) { /* a: g * (in - its mean), b: g * (in - mean) */
        dmlk_promoted copy = *g;
        multiply(g->f, x->f, count, &block->given[line], step);
        multiply(copy.f, x->f, count, &block->in_mean[line], step);
        *x = copy;
    } /* else a: in, b: g */
}

static void load(const struct job *job, uint8_t *const *at, const int64_t *strides, int64_t i, int64_t count,
                 dmlk_promoted *x, dmlk_promoted *g) {
    const int64_t *bytes = job->lines.along.bytes;
    dmlk_load_promoted(job->types[IN], at[IN] + i * strides[IN] * bytes[IN], strides[IN], count, x);
    dmlk_load_promoted(job->types[GRADIENT_IN], at[GRADIENT_IN] + i * strides[GRADIENT_IN] * bytes[GRADIENT_IN],
                       strides[GRADIENT_IN], count, g);
}

static void sum_along(void *context, int64_t line, uint8_t *const *at, const int64_t *strides, int64_t n,
                      int64_t index) {
    struct block *block = context;
    dmlk_promoted x, g;
    for (int64_t i = 0; i < n; i += DMLK_CHUNK) {
        const int64_t count = dmlk_min(n - i, DMLK_CHUNK);
        load(block->job, at, strides, i, count, &x, &g);
        terms(block, line, 0, &x, &g, count);
        dmlk_sums_along(&block->a, line, x.f, count, index + i);
        dmlk_sums_along(&block->b, line, g.f, count, index + i);
    }
}

static void sum_across(void *context, uint8_t *const *at, const int64_t *strides, int64_t count, int64_t index) {
    struct block *block = context;
    dmlk_promoted x, g;
    load(block->job, at, strides, 0, count, &x, &g);
    terms(block, 0, 1, &x, &g, count);
    dmlk_sums_across(&block->a, x.f, index);
    dmlk_sums_across(&block->b, g.f, index);
}

/* Stores at most DMLK_CHUNK outputs, from element i on. */
static void put(const struct block *block, int64_t line, int64_t step, uint8_t *const *at, const int64_t *strides,
                int64_t i, int64_t count) {
    const struct job *job = block->job;
    dmlk_promoted x, g;
    load(job, at, strides, i, count, &x, &g);
    if (job->of_statistics) {
        combine(g.f, x.f, count, block, line, step);
    } else {
        scale_by(g.f, count, &block->factor[line], step);
    }
    dmlk_store_promoted(job->types[OUT], at[OUT] + i * strides[OUT] * job->lines.along.bytes[OUT], strides[OUT], count,
                        DMLK_KIND_FLOAT, &g);
}

static void put_along(void *context, int64_t line, uint8_t *const *at, const int64_t *strides, int64_t n,
                      int64_t index) {
    (void)index;
    for (int64_t i = 0; i < n; i += DMLK_CHUNK) {
        put(context, line, 0, at, strides, i, dmlk_min(n - i, DMLK_CHUNK));
    }
}

static void put_across(void *context, uint8_t *const *at, const int64_t *strides, int64_t count, int64_t index) {
    (void)index;
    put(context, 0, 1, at, strides, 0, count);
}

static const dmlk_line_visitor sum_them = {.along = sum_along, .across = sum_across},
                               put_them = {.along = put_along, .across = put_across};

/* --- blocks of groups --- */

static void sum(struct block *block, const dmlk_line_block *lines, double *a, double *b) {
    const int64_t n = block->job->lines.along.count;
    dmlk_sums_start(&block->a, false, lines->count, n);
    dmlk_sums_start(&block->b, false, lines->count, n);
    dmlk_visit_lines(&block->job->lines, lines, 0, n, &sum_them, block);
    dmlk_sums_finish(&block->a, a);
    dmlk_sums_finish(&block->b, b);
}

/* Loads a number for each group. */
static void get(const struct job *job, enum operand k, const dmlk_line_block *lines, dmlk_promoted *to) {
    dmlk_load_promoted(job->types[k], lines->at[k], lines->strides[k], lines->count, to);
}

static void give(const struct job *job, enum operand k, const dmlk_line_block *lines, dmlk_promoted *from) {
    for (int64_t i = 0; i < lines->count; i++) {
        from->f[i] = dmlk_one_nan_double(from->f[i]);
    }
    dmlk_store_promoted(job->types[k], lines->at[k], lines->strides[k], lines->count, DMLK_KIND_FLOAT, from);
}

static void run_block(const dmlk_line_block *lines, void *context) {
    const struct job *job = context;
    const double n = (double)job->lines.along.count;
    struct block block;
    dmlk_promoted given, variance, scale, a, b, bias;
    block.job = job;
    block.is_second = false;
    get(job, MEAN, lines, &given);
    get(job, VARIANCE, lines, &variance);
    get(job, SCALE, lines, &scale);
    memcpy(block.given, given.f, (size_t)lines->count * sizeof *block.given);
    sum(&block, lines, a.f, bias.f); /* with given statistics, these are the sums that the outputs need */
    memcpy(b.f, a.f, (size_t)lines->count * sizeof *b.f);
    if (job->of_statistics) {
        for (int64_t i = 0; i < lines->count; i++) {
            block.in_mean[i] = a.f[i] / n;
            block.g_mean[i] = bias.f[i] / n;
        }
        block.is_second = true;
        sum(&block, lines, a.f, b.f);
    }
    for (int64_t i = 0; i < lines->count; i++) {
        const double guarded = variance.f[i] + job->epsilon, r = 1 / sqrt(guarded);
        block.factor[i] = scale.f[i] * r;
        block.slope[i] = a.f[i] / n / guarded;
        b.f[i] *= r;
    }
    dmlk_visit_lines(&job->lines, lines, 0, job->lines.along.count, &put_them, &block);
    give(job, OUT_SCALE, lines, &b);
    give(job, OUT_BIAS, lines, &bias);
}

static int run(const dmlk_call *call, bool of_statistics) {
    static const enum operand order[] = {IN, GRADIENT_IN, MEAN, VARIANCE, SCALE, OUT, OUT_SCALE, OUT_BIAS};
    dmlk_normalization k;
    if (!dmlk_has_views(call, OPERANDS, 0) || !dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    if (!dmlk_have_floats(call)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    struct job job = {.of_statistics = of_statistics, .epsilon = (double)k.epsilon};
    const dmlk_view *views[OPERANDS];
    for (uint32_t v = 0; v < OPERANDS; v++) {
        views[order[v]] = &call->views[v];
        job.types[order[v]] = call->views[v].type;
        if (order[v] >= ALONG && !dmlk_is_one_along(&call->views[v], k.axes_mask)) {
            return DMLK_BAD_PACKET;
        }
    }
    const int status = dmlk_lines_init(&job.lines, DMLK_LOGICAL_ORDER, k.axes_mask, views, OPERANDS, ALONG);
    if (status == DMLK_OK) {
        const int64_t n = job.lines.along.count;
        dmlk_for_lines(&job.lines, dmlk_lines_together(&job.lines, n, 1), GRAIN / n, run_block, &job);
    }
    return status;
}

#define GRADIENT(name, of_statistics)                                             \
    const uint32_t dmlk_outputs_##name = 3;                                       \
    int DMLK_RUN(name)(const dmlk_call *call) { return run(call, of_statistics); }
#include "functions.inc"

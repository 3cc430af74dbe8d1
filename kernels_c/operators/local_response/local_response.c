/* local_response: sums over a window along an axis, and functions of an element and of such sums, as defined in
 * functions.inc.  Results are computed in double and rounded once; the terms of a window are added in logical order. */
#include "local_response.h"

#include <math.h>

#include "dmlk_math.h"
#include "kernel.h"
#include "scratch.h"
#include "walkers.h"

static bool are_floats(const dmlk_call *call) {
    for (uint32_t k = 0; k < call->view_count; k++) {
        if (dmlk_type_bytes(call->views[k].type) == 0 || dmlk_type_kind(call->views[k].type) != DMLK_KIND_FLOAT) {
            return false;
        }
    }
    return true;
}

/* --- windows --- */

#define NEAR (1 << 18)  /* bytes of terms that stay in the second-level cache */
#define GRAIN (1 << 15) /* elements worth a thread */

typedef void terms_function(double *x, int64_t n);

struct windows {
    terms_function *terms;
    uint32_t in, out; /* types */
    int64_t before, after;
    dmlk_lines lines; /* operands: in, out */
    atomic_bool no_memory;
};

/* The lines being processed.  Term i of line k is number k * length + i along lines, i * lines + k across them. */
struct block {
    const struct windows *job;
    const dmlk_line_block *at;
    double *terms;
};

static void keep(const struct block *block, const uint8_t *at, int64_t stride, int64_t count, double *terms) {
    dmlk_promoted x;
    dmlk_load_promoted(block->job->in, at, stride, count, &x);
    block->job->terms(x.f, count);
    memcpy(terms, x.f, (size_t)count * sizeof *terms);
}

static void keep_along(void *context, int64_t line, uint8_t *const *at, const int64_t *strides, int64_t n,
                       int64_t index) {
    const struct block *block = context;
    const dmlk_iter *along = &block->job->lines.along;
    for (int64_t i = 0; i < n; i += DMLK_CHUNK) {
        keep(block, at[0] + i * strides[0] * along->bytes[0], strides[0], dmlk_min(n - i, DMLK_CHUNK),
             block->terms + line * along->count + index + i);
    }
}

static void keep_across(void *context, uint8_t *const *at, const int64_t *strides, int64_t count, int64_t index) {
    const struct block *block = context;
    keep(block, at[0], strides[0], count, block->terms + index * count);
}

DMLK_EACH_ISA(add_to, (double *restrict sum, const double *restrict terms, int64_t n), (sum, terms, n)) {
    for (int64_t i = 0; i < n; i++) {
        sum[i] += terms[i];
    }
}

DMLK_EACH_ISA(one_nan, (double *x, int64_t n), (x, n)) {
    for (int64_t i = 0; i < n; i++) {
        x[i] = dmlk_one_nan_double(x[i]);
    }
}

/* The sums for elements first .. first + n - 1 of a line; `terms` are the terms of the line.  There are `step` terms
 * and `step` sums for each element. */
static void add_windows(const struct block *block, const double *terms, int64_t step, int64_t first, int64_t n,
                        double *sums) {
    const struct windows *job = block->job;
    const int64_t length = job->lines.along.count;
    memset(sums, 0, (size_t)(n * step) * sizeof *sums);
    for (int64_t k = -dmlk_min(job->before, first + n - 1); k <= dmlk_min(job->after, length - 1 - first); k++) {
        const int64_t begin = first + k < 0 ? -(first + k) : 0, end = dmlk_min(n, length - first - k);
        if (dmlk_stopped(block->at->work, (end - begin) * step)) {
            return;
        }
        add_to(sums + begin * step, terms + (first + begin + k) * step, (end - begin) * step);
    }
    one_nan(sums, n * step);
}

static void put_along(void *context, int64_t line, uint8_t *const *at, const int64_t *strides, int64_t n,
                      int64_t index) {
    const struct block *block = context;
    const dmlk_iter *along = &block->job->lines.along;
    for (int64_t i = 0; i < n; i += DMLK_CHUNK) {
        const int64_t count = dmlk_min(n - i, DMLK_CHUNK);
        dmlk_promoted sums;
        add_windows(block, block->terms + line * along->count, 1, index + i, count, sums.f);
        dmlk_store_promoted(block->job->out, at[1] + i * strides[1] * along->bytes[1], strides[1], count,
                            DMLK_KIND_FLOAT, &sums);
    }
}

static void put_across(void *context, uint8_t *const *at, const int64_t *strides, int64_t count, int64_t index) {
    const struct block *block = context;
    dmlk_promoted sums;
    add_windows(block, block->terms, count, index, 1, sums.f);
    dmlk_store_promoted(block->job->out, at[1], strides[1], count, DMLK_KIND_FLOAT, &sums);
}

static const dmlk_line_visitor keep_them = {.along = keep_along, .across = keep_across},
                               put_them = {.along = put_along, .across = put_across};

static void run_block(const dmlk_line_block *lines, void *context) {
    struct windows *job = context;
    const int64_t length = job->lines.along.count;
    const struct block block = {job, lines, dmlk_take(length * lines->count * (int64_t)sizeof(double))};
    if (block.terms == NULL) {
        atomic_store(&job->no_memory, true);
        return;
    }
    dmlk_visit_lines(&job->lines, lines, 0, length, &keep_them, (void *)(uintptr_t)&block);
    dmlk_visit_lines(&job->lines, lines, 0, length, &put_them, (void *)(uintptr_t)&block);
    dmlk_give(block.terms);
}

static int run_windows(const dmlk_call *call, terms_function *terms) {
    dmlk_local_response k;
    if (!dmlk_has_views(call, 2, 0) || !dmlk_get_constants(call, &k, sizeof k) || k.axis >= call->views[0].rank) {
        return DMLK_BAD_PACKET;
    }
    if (!are_floats(call)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    const dmlk_view *in = &call->views[0], *out = &call->views[1];
    struct windows job = {.terms = terms, .in = in->type, .out = out->type, .before = k.before, .after = k.after};
    const int status = dmlk_lines_init(&job.lines, DMLK_LOGICAL_ORDER, UINT32_C(1) << k.axis,
                                       (const dmlk_view *[]){in, out}, 2, 2);
    if (status != DMLK_OK) {
        return status;
    }
    const int64_t n = job.lines.along.count, bytes = n * (int64_t)sizeof(double);
    dmlk_for_lines(&job.lines, dmlk_lines_together(&job.lines, bytes, NEAR), GRAIN / n, run_block, &job);
    return atomic_load(&job.no_memory) ? DMLK_OUT_OF_MEMORY : DMLK_OK;
}

/* --- elements --- */

enum operand { X, S, G, U, OPERANDS };

struct elements {
    uint32_t inputs, types[OPERANDS], out;
    double alpha, beta, bias;
    void (*values)(double *x, const double *sums, const double *gs, const double *us, int64_t n,
                   const struct elements *job);
};

static void elements_row(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context) {
    const struct elements *job = context;
    dmlk_promoted v[OPERANDS];
    for (int64_t i = 0; i < count; i += DMLK_CHUNK) {
        const int64_t n = dmlk_min(count - i, DMLK_CHUNK);
        for (uint32_t k = 0; k < job->inputs; k++) {
            const uint8_t *from = at[k] + i * strides[k] * dmlk_type_bytes(job->types[k]);
            dmlk_load_promoted(job->types[k], from, strides[k], n, &v[k]);
        }
        job->values(v[X].f, v[S].f, v[G].f, v[U].f, n, job);
        uint8_t *to = at[job->inputs] + i * strides[job->inputs] * dmlk_type_bytes(job->out);
        dmlk_store_promoted(job->out, to, strides[job->inputs], n, DMLK_KIND_FLOAT, &v[X]);
    }
}

static int run_elements(const dmlk_call *call, struct elements *job) {
    dmlk_local_response k;
    if (!dmlk_has_views(call, job->inputs + 1, 0) || !dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    if (!are_floats(call)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    job->alpha = (double)k.alpha / (double)k.size;
    job->beta = (double)k.beta;
    job->bias = (double)k.bias;
    const dmlk_view *views[OPERANDS + 1];
    for (uint32_t i = 0; i <= job->inputs; i++) {
        views[i] = &call->views[i];
    }
    for (uint32_t i = 0; i < job->inputs; i++) {
        job->types[i] = views[i]->type;
    }
    job->out = views[job->inputs]->type;
    return dmlk_for_rows(views, call->view_count, elements_row, job);
}

/* --- the lines of the table --- */

#define WINDOW(name, term)                                     \
    DMLK_EACH_ISA(name##_terms, (double *xs, int64_t n), (xs, n)) { \
        for (int64_t i = 0; i < n; i++) {                      \
            const double x = xs[i];                            \
            xs[i] = (term);                                    \
        }                                                      \
    }                                                          \
    int DMLK_RUN(name)(const dmlk_call *call) { return run_windows(call, name##_terms); }

/* Operands that the function does not have are not set, and must not be read. */
#define ELEMENTS(name, input_count, value)                                                                    \
    DMLK_EACH_ISA(name##_values, (double *restrict xs, const double *restrict sums, const double *restrict gs, \
                                  const double *restrict us, int64_t n, const struct elements *job),          \
                  (xs, sums, gs, us, n, job)) {                                                               \
        const double alpha = job->alpha, beta = job->beta, bias = job->bias;                                  \
        for (int64_t i = 0; i < n; i++) {                                                                     \
            const double x = xs[i], s = bias + alpha * sums[i];                                               \
            const double g = (input_count) > 2 ? gs[i] : 0, u = (input_count) > 3 ? us[i] : 0;                \
            (void)g, (void)u;                                                                                 \
            xs[i] = dmlk_one_nan_double(value);                                                               \
        }                                                                                                     \
    }                                                                                                         \
    int DMLK_RUN(name)(const dmlk_call *call) {                                                               \
        struct elements job = {.inputs = (input_count), .values = name##_values};                             \
        return run_elements(call, &job);                                                                      \
    }
#include "functions.inc"

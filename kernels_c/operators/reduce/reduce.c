/* reduce: out = function over the reduced axes of in, as defined in functions.inc.
 *
 * Up to DMLK_CHUNK neighbouring outputs are processed at once.  The input is read along the reduced or the kept
 * axes, whichever are closer in memory.  Results do not depend on layout or threads:
 *   - integers are added and multiplied modulo 2^bits, and elements compared, as the bits they are
 *     (reduce.inc); any order gives the same, only places are found in logical order;
 *   - sums and products of floats are made in double and in logical order, input number i going
 *     to partial result i % lanes, so that several can be added at a time. */
#include "reduce.h"

#include <math.h>

#include "dmlk_math.h"
#include "kernel.h"

#define LANES 8
#define PIECE 128 /* inputs searched at once for a position */

enum family { SUMS, LARGEST_OF_ALL, PLACES };

/* The kind of comparison of LARGEST_OF_ALL and PLACES. */
enum comparison { LARGEST_INTEGER, LARGEST_FLOAT, PLACE_OF_INTEGER, PLACE_OF_FLOAT };

struct job;
struct block;

/* How inputs of one type are combined.  n inputs, `stride` apart, the first with index `index`: */
struct methods {
    void (*start)(const struct job *job, struct block *block);
    /* ... all into one output ... */
    void (*fold)(const struct job *job, struct block *block, int64_t output, const uint8_t *at, int64_t stride,
                 int64_t n, int64_t index);
    /* ... or, all with index `index`, into the first n outputs. */
    void (*join)(const struct job *job, struct block *block, const uint8_t *at, int64_t stride, int64_t n,
                 int64_t index);
    void (*finish)(const struct job *job, const struct block *block, uint8_t *at, int64_t stride);
};

/* A line of functions.inc. */
struct function {
    enum family family;
    bool is_product, is_shifted;
    const struct methods *integers;                                                  /* of sums, by type; NULL: only floats */
    void (*terms)(double *inputs, int64_t count, const double *m, int64_t m_stride); /* of sums of floats: in place */
    void (*last)(double *sums, int64_t count, double n, const double *m);
    uint64_t flip; /* all ones for the smallest */
};

struct job {
    const struct function *function;
    bool last_index;
    uint32_t in, out; /* types */
    dmlk_iter kept;    /* operands: in, out */
    dmlk_iter reduced; /* operand: in */
    const struct methods *methods;
    enum comparison how;
    uint64_t flip, infinity; /* of comparisons: see reduce.inc */
    uint64_t sign;           /* the sign bit of integers that have one, or 0 */
    int64_t lanes;           /* of sums and products of floats */
};

/* The outputs being processed. */
struct block {
    int64_t count;
    int64_t work; /* see dmlk_stopped */
    union {
        uint64_t bits[DMLK_CHUNK]; /* of the type's width each */
        double lanes[LANES][DMLK_CHUNK];
    };
    union {
        dmlk_promoted place; /* PLACES: index of the value among the reduced elements */
        dmlk_promoted shift; /* is_shifted: m */
    };
};

#define magnitude(x) ((x) & sign ? 0 - (x) : (x))
#define DMLK_ONLY_UNSIGNED
#define DMLK_BODY "reduce.inc"
#include "each_type.inc"
#undef magnitude

static const struct methods comparisons[] = {
    [DMLK_UINT8] = {start_uint8, fold_uint8, join_uint8, finish_uint8},
    [DMLK_UINT16] = {start_uint16, fold_uint16, join_uint16, finish_uint16},
    [DMLK_UINT32] = {start_uint32, fold_uint32, join_uint32, finish_uint32},
    [DMLK_UINT64] = {start_uint64, fold_uint64, join_uint64, finish_uint64},
};

/* --- the lines of the table --- */

#define METHODS(name, type) {start_##type, name##_fold_##type, name##_join_##type, finish_##type}
#define INTEGERS(name)                                                                                           \
    static const struct methods name##_integers[] = {                                                            \
        [DMLK_UINT8] = METHODS(name, uint8), [DMLK_UINT16] = METHODS(name, uint16),                              \
        [DMLK_UINT32] = METHODS(name, uint32), [DMLK_UINT64] = METHODS(name, uint64)};

#define FLOATS(name, term, result)                                                                               \
    DMLK_EACH_ISA(name##_terms, (double *inputs, int64_t count, const double *ms, int64_t m_stride),             \
                  (inputs, count, ms, m_stride)) {                                                               \
        for (int64_t i = 0; i < count; i++) {                                                                    \
            const double x = inputs[i], m = ms[i * m_stride];                                                    \
            (void)m;                                                                                             \
            inputs[i] = (term);                                                                                  \
        }                                                                                                        \
    }                                                                                                            \
    DMLK_EACH_ISA(name##_last, (double *sums, int64_t count, double n, const double *ms), (sums, count, n, ms)) { \
        for (int64_t i = 0; i < count; i++) {                                                                    \
            const double y = sums[i], m = ms[i];                                                                 \
            (void)m, (void)n;                                                                                    \
            sums[i] = (result);                                                                                  \
        }                                                                                                        \
    }

#define FUNCTION(name, ...) static const struct function name##_function = {__VA_ARGS__};
#define SUM(name, floats, integers, result)                                                                      \
    INTEGERS(name) FLOATS(name, floats, result) FUNCTION(name, SUMS, false, false, name##_integers, name##_terms, name##_last, 0)
#define PRODUCT(name, floats, integers, result)                                                                  \
    INTEGERS(name) FLOATS(name, floats, result) FUNCTION(name, SUMS, true, false, name##_integers, name##_terms, name##_last, 0)
#define FLOAT(name, floats, result)                                                                              \
    FLOATS(name, floats, result) FUNCTION(name, SUMS, false, false, NULL, name##_terms, name##_last, 0)
#define SHIFTED(name, floats, result)                                                                            \
    FLOATS(name, floats, result) FUNCTION(name, SUMS, false, true, NULL, name##_terms, name##_last, 0)
#define LARGEST(name, bits) FUNCTION(name, LARGEST_OF_ALL, .flip = bits)
#define PLACE(name, bits) FUNCTION(name, PLACES, .flip = bits)
#include "functions.inc"

/* --- sums and products of floats --- */

/* Compilers do not reliably vectorize single lanes.  Chains of additions are latency-bound: wider ones would not be
 * faster. */
typedef double pair __attribute__((vector_size(2 * sizeof(double)), aligned(sizeof(double))));

static inline double combine_floats(bool is_product, double a, double b) { return is_product ? a * b : a + b; }

static void start_floats(const struct job *job, struct block *block) {
    for (int64_t lane = 0; lane < job->lanes; lane++) {
        for (int64_t i = 0; i < block->count; i++) {
            block->lanes[lane][i] = job->function->is_product ? 1 : 0;
        }
    }
}

static inline __attribute__((always_inline)) void fold_floats_by(bool is_product, int64_t lanes,
                                                                 struct block *block, int64_t output,
                                                                 const double *x, int64_t n, int64_t index) {
    int64_t i = 0;
    if (lanes == LANES && n >= 2 * LANES) {
        for (; (index + i) % LANES != 0; i++) {
            double *v = &block->lanes[(index + i) % LANES][output];
            *v = combine_floats(is_product, *v, x[i]);
        }
        pair v[LANES / 2];
        for (int lane = 0; lane < LANES; lane++) {
            v[lane / 2][lane % 2] = block->lanes[lane][output];
        }
        for (; i + LANES <= n; i += LANES) {
#pragma GCC unroll 4
            for (int k = 0; k < LANES / 2; k++) {
                const pair next = *(const pair *)(x + i + 2 * k);
                v[k] = is_product ? v[k] * next : v[k] + next;
            }
        }
        for (int lane = 0; lane < LANES; lane++) {
            block->lanes[lane][output] = v[lane / 2][lane % 2];
        }
    }
    for (; i < n; i++) {
        double *v = &block->lanes[(index + i) % lanes][output];
        *v = combine_floats(is_product, *v, x[i]);
    }
}

DMLK_EACH_ISA(fold_doubles, (const struct job *job, struct block *block, int64_t output, const double *x, int64_t n,
                             int64_t index),
              (job, block, output, x, n, index)) {
    if (job->function->is_product) {
        fold_floats_by(true, job->lanes, block, output, x, n, index);
    } else {
        fold_floats_by(false, job->lanes, block, output, x, n, index);
    }
}

static void fold_floats(const struct job *job, struct block *block, int64_t output, const uint8_t *at,
                        int64_t stride, int64_t n, int64_t index) {
    const int64_t bytes = job->kept.bytes[0];
    dmlk_promoted x;
    for (int64_t r = 0; r < n; r += DMLK_CHUNK) {
        const int64_t count = dmlk_min(n - r, DMLK_CHUNK);
        dmlk_load_promoted(job->in, at + r * stride * bytes, stride, count, &x);
        job->function->terms(x.f, count, block->shift.f + output, 0);
        fold_doubles(job, block, output, x.f, count, index + r);
    }
}

DMLK_EACH_ISA(join_doubles, (bool is_product, double *restrict v, const double *restrict x, int64_t n),
              (is_product, v, x, n)) {
    for (int64_t i = 0; i < n; i++) {
        v[i] = combine_floats(is_product, v[i], x[i]);
    }
}

static void join_floats(const struct job *job, struct block *block, const uint8_t *at, int64_t stride, int64_t n,
                        int64_t index) {
    dmlk_promoted x;
    dmlk_load_promoted(job->in, at, stride, n, &x);
    job->function->terms(x.f, n, block->shift.f, 1);
    join_doubles(job->function->is_product, block->lanes[index % job->lanes], x.f, n);
}

static void finish_floats(const struct job *job, const struct block *block, uint8_t *at, int64_t stride) {
    dmlk_promoted result;
    memcpy(result.f, block->lanes[0], (size_t)block->count * sizeof *result.f);
    for (int64_t lane = 1; lane < job->lanes; lane++) {
        join_doubles(job->function->is_product, result.f, block->lanes[lane], block->count);
    }
    job->function->last(result.f, block->count, (double)job->reduced.count, block->shift.f);
    for (int64_t i = 0; i < block->count; i++) {
        result.f[i] = dmlk_one_nan(result.f[i]);
    }
    dmlk_store_promoted(job->out, at, stride, block->count, DMLK_KIND_FLOAT, &result);
}

static const struct methods float_methods = {start_floats, fold_floats, join_floats, finish_floats};

/* --- iterating over the inputs --- */

/* A row of m reduced positions, the first with index `index`, for each output of the block. */
static void take_in_row(const struct job *job, struct block *block, const uint8_t *at, int64_t m, int64_t index) {
    const int64_t bytes = job->kept.bytes[0];
    const int64_t kept = dmlk_iter_row_strides(&job->kept)[0];
    const int64_t reduced = dmlk_iter_row_strides(&job->reduced)[0];
    if (block->count == 1 || reduced < kept) {
        for (int64_t j = 0; j < block->count && !dmlk_stopped(&block->work, m); j++) {
            job->methods->fold(job, block, j, at + j * kept * bytes, reduced, m, index);
        }
    } else {
        for (int64_t r = 0; r < m && !dmlk_stopped(&block->work, block->count); r++) {
            job->methods->join(job, block, at + r * reduced * bytes, kept, block->count, index + r);
        }
    }
}

/* All reduced positions.  `at` is the input of the first output. */
static void take_in_all(const struct job *job, struct block *block, const uint8_t *at) {
    dmlk_cursor cursor;
    job->methods->start(job, block);
    dmlk_iter_seek(&job->reduced, 0, &cursor);
    for (int64_t index = 0; index < job->reduced.count && !dmlk_stopped(&block->work, 0);) {
        int64_t m = dmlk_min(dmlk_iter_row_left(&job->reduced, &cursor), DMLK_WORK_BETWEEN_LOOKS);
        take_in_row(job, block, at + (cursor.at[0] - job->reduced.base[0]), m, index);
        dmlk_iter_advance(&job->reduced, &cursor, m);
        index += m;
    }
}

/* Sets the fields derived from the function.  Bits are ordered as unsigned integers after the sign bit is flipped;
 * for the smallest instead of the largest, all bits are flipped. */
static void choose_methods(struct job *job) {
    const enum dmlk_kind kind = dmlk_type_kind(job->in);
    const bool is_float = kind == DMLK_KIND_FLOAT;
    const uint32_t bits = dmlk_type_bits(job->in);
    const uint32_t type = dmlk_bits_type(job->in);
    const uint64_t sign = kind == DMLK_KIND_SIGNED ? UINT64_C(1) << (bits - 1) : 0;
    if (job->function->family == SUMS) {
        job->methods = is_float ? &float_methods : &job->function->integers[type];
    } else {
        job->methods = &comparisons[type];
    }
    if (job->function->family == PLACES) {
        job->how = is_float ? PLACE_OF_FLOAT : PLACE_OF_INTEGER;
    } else {
        job->how = is_float ? LARGEST_FLOAT : LARGEST_INTEGER;
    }
    job->sign = sign;
    job->flip = sign ^ job->function->flip;
    job->infinity = bits == 16 ? 0x7c00 : bits == 32 ? 0x7f800000 : 0x7ff0000000000000;
}

/* exp(x) overflows where log(sum(exp(x))) does not: sum exp(x - maximum), and add the maximum at the end. */
static void find_shift(const struct job *shifted, struct block *block, const uint8_t *at) {
    struct job job = *shifted;
    dmlk_promoted maximum;
    job.function = &reduce_max_function;
    choose_methods(&job);
    take_in_all(&job, block, at);
    job.methods->finish(&job, block, (uint8_t *)&maximum, 1);
    dmlk_load_promoted(job.in, (const uint8_t *)&maximum, 1, block->count, &block->shift);
    for (int64_t i = 0; i < block->count; i++) {
        block->shift.f[i] = isfinite(block->shift.f[i]) ? block->shift.f[i] : 0;
    }
}

static void reduce_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct job *job = context;
    const int64_t out_stride = dmlk_iter_row_strides(&job->kept)[1];
    struct block block;
    dmlk_cursor cursor;
    block.work = 0;
    dmlk_iter_seek(&job->kept, begin, &cursor);
    while (begin < end && !dmlk_stopped(&block.work, 0)) {
        block.count = dmlk_min(dmlk_min(dmlk_iter_row_left(&job->kept, &cursor), DMLK_CHUNK), end - begin);
        if (job->function->is_shifted) {
            find_shift(job, &block, cursor.at[0]);
        }
        take_in_all(job, &block, cursor.at[0]);
        if (job->function->family == PLACES) {
            dmlk_store_promoted(job->out, cursor.at[1], out_stride, block.count, DMLK_KIND_SIGNED, &block.place);
        } else {
            job->methods->finish(job, &block, cursor.at[1], out_stride);
        }
        begin += block.count;
        dmlk_iter_advance(&job->kept, &cursor, block.count);
    }
}

/* Whether the function is implemented for these types. */
static bool has_function(const struct function *function, uint32_t in, uint32_t out) {
    if (function->family == PLACES) {
        return dmlk_type_kind(out) != DMLK_KIND_FLOAT && dmlk_type_bytes(out) >= 4;
    }
    const bool only_floats = function->family == SUMS && function->integers == NULL;
    return in == out && (dmlk_type_kind(in) == DMLK_KIND_FLOAT || !only_floats);
}

/* The order of the inputs matters for positions and for the rounding of floats. */
static enum dmlk_order order_of(const struct job *job) {
    return job->function->family == PLACES || job->methods == &float_methods ? DMLK_LOGICAL_ORDER : DMLK_ANY_ORDER;
}

/* A second thread is not worthwhile below 0.2 ms (see for_rows.c).  1e6 float32 on one core of an AMD EPYC (2026):
 * MAX 0.07 ms, SUM 0.15 ms, ARGMAX along the first axis 0.6 ms; LOG_SUM_EXP 2 ms. */
static int64_t inputs_worth_a_thread(const struct job *job) {
    return job->function->is_shifted ? 1 << 16 : 1 << 19;
}

static int run(const dmlk_call *call, const struct function *function) {
    dmlk_reduce k;
    if (!dmlk_has_views(call, 2, 0) || !dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *in = &call->views[0], *out = &call->views[1];
    if (!has_function(function, in->type, out->type)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    const dmlk_view reduced_out = dmlk_view_select(out, k.axes_mask);
    if (in->rank != out->rank || k.axes_mask >> in->rank != 0 || dmlk_view_elements(&reduced_out) != 1) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view kept_in = dmlk_view_select(in, ~k.axes_mask), kept_out = dmlk_view_select(out, ~k.axes_mask);
    const dmlk_view reduced = dmlk_view_select(in, k.axes_mask);
    struct job job = {.function = function, .last_index = k.last_index != 0, .in = in->type, .out = out->type};
    int status = dmlk_iter_init(&job.kept, DMLK_ANY_ORDER, (const dmlk_view *[]){&kept_in, &kept_out}, 2);
    if (status == DMLK_OK) {
        choose_methods(&job);
        status = dmlk_iter_init(&job.reduced, order_of(&job), (const dmlk_view *[]){&reduced}, 1);
    }
    if (status == DMLK_OK) {
        job.lanes = job.reduced.count < 4 * LANES ? 1 : LANES;
        const int64_t outputs_worth_a_thread = inputs_worth_a_thread(&job) / job.reduced.count;
        dmlk_parallel(job.kept.count, dmlk_parts(job.kept.count, outputs_worth_a_thread), reduce_part, &job);
    }
    return status;
}

#define KERNEL(name) \
    int DMLK_RUN(name)(const dmlk_call *call) { return run(call, &name##_function); }
#define SUM(name, floats, integers, last) KERNEL(name)
#define PRODUCT(name, floats, integers, last) KERNEL(name)
#define FLOAT(name, floats, last) KERNEL(name)
#define SHIFTED(name, floats, last) KERNEL(name)
#define LARGEST(name, flip) KERNEL(name)
#define PLACE(name, flip) KERNEL(name)
#include "functions.inc"

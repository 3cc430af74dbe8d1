/* element_wise: out = function(in), or function(a, b), as defined in functions.inc.
 *
 * A line expands into rows for frequent types, and into rows for double and 64-bit integers, which are the
 * definition: all other types, scale and bias, and the checked build use pieces promoted to these. */
#include "element_wise.h"

#include <math.h>

#include "bit_count.h"
#include "dmlk_math.h"
#include "kernel.h"
#include "staged_rows.h"

enum family { FLOATS, NUMBERS, COUNTS, BITS };

struct row {
    uint32_t in, out; /* types */
    dmlk_row *row;
};

struct function {
    enum family family;
    uint32_t inputs;
    uint32_t row_count;
    const struct row *rows;
    dmlk_row *(*tuned)(uint32_t in, uint32_t out); /* returns NULL where the CPU has nothing better; or is NULL */
};

typedef union scalar {
    double f;
    int64_t i;
    uint64_t u;
} scalar;

/* The context of a row. */
struct job {
    dmlk_element_wise k;
    const struct function *function;
    uint32_t in, out;           /* types */
    enum dmlk_kind kind;        /* the kind that pieces are promoted to */
    dmlk_row *promoted;         /* the row of that kind */
    scalar low, high;           /* bounds; a NaN is ignored ... */
    scalar low_test, high_test; /* ... because every number passes these */
};

/* --- building blocks of values --- */

/* A number wins over a NaN. */
static inline double max2(double a, double b) { return a > b || b != b ? a : b; }
static inline double min2(double a, double b) { return a < b || b != b ? a : b; }

/* log(1 + exp(x)) without overflow. */
static inline double softplus(double x) { return dmlk_log1p(dmlk_exp(-fabs(x))) + (x > 0 ? x : x < 0 ? 0 : x); }

/* A NaN becomes the bound too; but if the bound is NaN, every number passes. */
#define LIMIT_LOW(y) ((y) >= low_test ? (y) : low)
#define LIMIT_HIGH(y) ((y) <= high_test ? (y) : high)

#define DMLK_ONLY_UNSIGNED
#define DMLK_BODY "bits_set.inc"
#include "each_type.inc"
#define bits_set(x)                                                                                          \
    _Generic((x), uint8_t: bits_set_uint8, uint16_t: bits_set_uint16, uint32_t: bits_set_uint32,             \
             uint64_t: bits_set_uint64)(x)

/* --- rows --- */

#ifdef DMLK_CHECKED
#define FAST(...) /* only the definition */
#else
#define FAST(...) __VA_ARGS__
#endif

#define EACH_FLOAT(DO, ...) DO(FLOAT64, double, __VA_ARGS__) FAST(DO(FLOAT32, float, __VA_ARGS__))
#define EACH_SIGNED(DO, ...)      \
    DO(INT64, int64_t, __VA_ARGS__) \
    FAST(DO(INT32, int32_t, __VA_ARGS__) DO(INT16, int16_t, __VA_ARGS__) DO(INT8, int8_t, __VA_ARGS__))
#define EACH_UNSIGNED(DO, ...)       \
    DO(UINT64, uint64_t, __VA_ARGS__) \
    FAST(DO(UINT32, uint32_t, __VA_ARGS__) DO(UINT16, uint16_t, __VA_ARGS__) DO(UINT8, uint8_t, __VA_ARGS__))

#define PARAMETERS                                                                                      \
    const struct job *job = context;                                                                    \
    const double alpha = (double)job->k.alpha, beta = (double)job->k.beta, gamma = (double)job->k.gamma; \
    (void)alpha, (void)beta, (void)gamma;

#define LIMITS(T, member)                                                            \
    const T low = (T)job->low.member, low_test = (T)job->low_test.member;            \
    const T high = (T)job->high.member, high_test = (T)job->high_test.member;        \
    (void)low, (void)low_test, (void)high, (void)high_test;

/* In place or not: no element depends on another one. */
#define EACH_ELEMENT _Pragma("GCC ivdep") for (int64_t i = 0; i < count; i++)

/* X: the type to compute in; `stored` converts a value to the stored one. */
#define ROW1(name, I, X, O, constants, stored, value)                        \
    DMLK_ROW_OF_EACH_ISA(name) {                                             \
        PARAMETERS constants                                                 \
        const I *in = (const I *)at[0];                                      \
        O *out = (O *)at[1];                                                 \
        const int64_t in_stride = strides[0], out_stride = strides[1];       \
        EACH_ELEMENT {                                                       \
            const X x = (X)in[i * in_stride];                                \
            out[i * out_stride] = stored((O)(value));                        \
        }                                                                    \
    }

#define ROW2(name, I, X, O, constants, stored, value)                                             \
    DMLK_ROW_OF_EACH_ISA(name) {                                                                  \
        PARAMETERS constants                                                                      \
        const I *in_a = (const I *)at[0], *in_b = (const I *)at[1];                               \
        O *out = (O *)at[2];                                                                      \
        const int64_t a_stride = strides[0], b_stride = strides[1], out_stride = strides[2];      \
        EACH_ELEMENT {                                                                            \
            const X a = (X)in_a[i * a_stride], b = (X)in_b[i * b_stride];                         \
            out[i * out_stride] = stored((O)(value));                                             \
        }                                                                                         \
    }

#define AS_DOUBLE(TYPE, T, ROW, name, value) ROW(name##_##TYPE, T, double, T, , dmlk_one_nan, value)
#define AS_FLOAT(TYPE, T, ROW, name, value) ROW(name##_##TYPE, T, T, T, LIMITS(T, f), dmlk_one_nan, value)
#define AS_SIGNED(TYPE, T, ROW, name, value) ROW(name##_##TYPE, T, T, T, LIMITS(T, i), , value)
#define AS_UNSIGNED(TYPE, T, ROW, name, value) ROW(name##_##TYPE, T, T, T, LIMITS(T, u), , value)
#define TO_UINT8(TYPE, T, ROW, name, value) ROW(name##_##TYPE##_UINT8, T, T, uint8_t, , , value)
#define TO_UINT32(TYPE, T, ROW, name, value) ROW(name##_##TYPE##_UINT32, T, T, uint32_t, , , value)

/* --- functions --- */

static int run(const dmlk_call *call, const struct function *function);

#define ENTRY(TYPE, T, name) {DMLK_##TYPE, DMLK_##TYPE, name##_##TYPE},
#define ENTRY_UINT8(TYPE, T, name) {DMLK_##TYPE, DMLK_UINT8, name##_##TYPE##_UINT8},
#define ENTRY_UINT32(TYPE, T, name) {DMLK_##TYPE, DMLK_UINT32, name##_##TYPE##_UINT32},

#define KERNEL(name, family, inputs, tuned, ...)                                                    \
    static const struct row name##_rows[] = {__VA_ARGS__};                                          \
    static const struct function name##_function = {                                                \
        family, inputs, sizeof name##_rows / sizeof name##_rows[0], name##_rows, tuned};            \
    int DMLK_RUN(name)(const dmlk_call *call) { return run(call, &name##_function); }

#define FLOAT_ROWS(ROW, inputs, name, value)     \
    EACH_FLOAT(AS_DOUBLE, ROW, name, value)      \
    KERNEL(name, FLOATS, inputs, NULL, EACH_FLOAT(ENTRY, name))
#define NUMBER_ROWS(ROW, inputs, name, floats, integers) \
    EACH_FLOAT(AS_FLOAT, ROW, name, floats)              \
    EACH_SIGNED(AS_SIGNED, ROW, name, integers)          \
    EACH_UNSIGNED(AS_UNSIGNED, ROW, name, integers)      \
    KERNEL(name, NUMBERS, inputs, NULL, EACH_FLOAT(ENTRY, name) EACH_SIGNED(ENTRY, name) EACH_UNSIGNED(ENTRY, name))

#define FLOAT(name, value) FLOAT_ROWS(ROW1, 1, name, value)
#define FLOAT2(name, value) FLOAT_ROWS(ROW2, 2, name, value)
#define NUMBER(name, floats, integers) NUMBER_ROWS(ROW1, 1, name, floats, integers)
#define NUMBER2(name, floats, integers) NUMBER_ROWS(ROW2, 2, name, floats, integers)
#define BITS2(name, value)                         \
    EACH_UNSIGNED(AS_UNSIGNED, ROW2, name, value) \
    KERNEL(name, BITS, 2, NULL, EACH_UNSIGNED(ENTRY, name))
#define COUNT(name, value, tuned)                                          \
    AS_UNSIGNED(UINT64, uint64_t, ROW1, name, value)                       \
    FAST(EACH_UNSIGNED(TO_UINT8, ROW1, name, value))                       \
    FAST(EACH_UNSIGNED(TO_UINT32, ROW1, name, value))                      \
    KERNEL(name, COUNTS, 1, tuned, ENTRY(UINT64, uint64_t, name)           \
           FAST(EACH_UNSIGNED(ENTRY_UINT8, name) EACH_UNSIGNED(ENTRY_UINT32, name)))

#include "functions.inc"

/* --- running one --- */

static const uint32_t widest[] = {
    [DMLK_KIND_FLOAT] = DMLK_FLOAT64, [DMLK_KIND_SIGNED] = DMLK_INT64, [DMLK_KIND_UNSIGNED] = DMLK_UINT64};

static dmlk_row *find_row(const struct function *function, uint32_t in, uint32_t out) {
    for (uint32_t i = 0; i < function->row_count; i++) {
        if (function->rows[i].in == in && function->rows[i].out == out) {
            return function->rows[i].row;
        }
    }
    return NULL;
}

/* in * scale + bias: FLOAT64 in FLOAT64, all other types in FLOAT32 with two roundings.  The result is a double. */
static void scale(const struct job *job, enum dmlk_kind kind, dmlk_promoted *v, int64_t n) {
    const float scale = job->k.scale, bias = job->k.bias;
    for (int64_t i = 0; i < n; i++) {
        if (job->in == DMLK_FLOAT64) {
            v->f[i] = v->f[i] * (double)scale + (double)bias;
            continue;
        }
        float x = kind == DMLK_KIND_FLOAT ? (float)v->f[i] : kind == DMLK_KIND_SIGNED ? (float)v->i[i] : (float)v->u[i];
        v->f[i] = (double)(x * scale + bias);
    }
}

/* From one kind to another, by the rules of a cast. */
static void convert(enum dmlk_kind from, enum dmlk_kind to, dmlk_promoted *v, int64_t n) {
    if (from != to) {
        dmlk_promoted result;
        dmlk_store_promoted(widest[to], (uint8_t *)&result, 1, n, from, v);
        memcpy(v, &result, (size_t)n * sizeof v->u[0]);
    }
}

static void promoted_row(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context) {
    static const int64_t ones[] = {1, 1, 1};
    const struct job *job = context;
    const uint32_t inputs = job->function->inputs;
    const int64_t in_bytes = dmlk_type_bytes(job->in), out_bytes = dmlk_type_bytes(job->out);
    for (int64_t i = 0; i < count; i += DMLK_CHUNK) {
        const int64_t n = dmlk_min(count - i, DMLK_CHUNK);
        dmlk_promoted v[3];
        for (uint32_t k = 0; k < inputs; k++) {
            enum dmlk_kind kind = dmlk_type_kind(job->in);
            dmlk_load_promoted(job->in, at[k] + i * strides[k] * in_bytes, strides[k], n, &v[k]);
            if (job->k.has_scale_bias && k == 0) {
                scale(job, kind, &v[k], n);
                kind = DMLK_KIND_FLOAT;
            }
            convert(kind, job->kind, &v[k], n);
        }
        uint8_t *const pieces[] = {(uint8_t *)&v[0], (uint8_t *)&v[inputs == 1 ? 2 : 1], (uint8_t *)&v[2]};
        job->promoted(pieces, ones, n, job);
        uint8_t *out = at[inputs] + i * strides[inputs] * out_bytes;
        dmlk_store_promoted(job->out, out, strides[inputs], n, job->kind, &v[2]);
    }
}

/* Types of the inputs and of the output. */
static bool types_fit(const struct function *function, const dmlk_element_wise *k, uint32_t in, uint32_t out) {
    const bool floats = (in == DMLK_FLOAT32 && out == DMLK_FLOAT16) || (in == DMLK_FLOAT16 && out == DMLK_FLOAT32);
    const bool is_long = dmlk_type_bytes(in) == 8 && dmlk_type_kind(in) != DMLK_KIND_FLOAT;
    if (dmlk_type_bytes(in) == 0) {
        return false;
    }
    switch (function->family) {
    case FLOATS: /* 64-bit integers are not exact in double; scaled, they are FLOAT32 anyway */
        return (in == out || floats) && (!is_long || (k->has_scale_bias && function->inputs == 1));
    case NUMBERS: return in == out || floats;
    case COUNTS: return (out == DMLK_UINT8 || out == DMLK_UINT32) && !k->has_scale_bias;
    default: return in == out && !k->has_scale_bias;
    }
}

static scalar read_scalar(uint32_t type, const uint64_t *bits) {
    dmlk_promoted v;
    dmlk_load_promoted(type, (const uint8_t *)bits, 1, 1, &v);
    return (scalar){.u = v.u[0]};
}

static void read_limits(struct job *job) {
    job->low = job->low_test = read_scalar(job->in, &job->k.min_bits);
    job->high = job->high_test = read_scalar(job->in, &job->k.max_bits);
    if (dmlk_type_kind(job->in) == DMLK_KIND_FLOAT && isnan(job->low.f)) {
        job->low_test.f = -(double)INFINITY;
    }
    if (dmlk_type_kind(job->in) == DMLK_KIND_FLOAT && isnan(job->high.f)) {
        job->high_test.f = (double)INFINITY;
    }
}

static void choose_promoted(struct job *job) {
    const enum family family = job->function->family;
    if (family == BITS || family == COUNTS) {
        job->out = family == BITS ? dmlk_bits_type(job->out) : job->out;
        job->in = dmlk_bits_type(job->in);
    }
    job->kind = family == FLOATS ? DMLK_KIND_FLOAT : dmlk_type_kind(job->in);
    job->promoted = find_row(job->function, widest[job->kind], widest[job->kind]);
}

static int run(const dmlk_call *call, const struct function *function) {
    struct job job = {.function = function};
    const uint32_t inputs = function->inputs;
    if (!dmlk_has_views(call, inputs + 1, 0) || !dmlk_get_constants(call, &job.k, sizeof job.k)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *const views[] = {&call->views[0], &call->views[1], inputs == 2 ? &call->views[2] : NULL};
    job.in = views[0]->type;
    job.out = views[inputs]->type;
    if ((inputs == 2 && views[1]->type != job.in) || !types_fit(function, &job.k, job.in, job.out)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    read_limits(&job);
    choose_promoted(&job);
#ifndef DMLK_CHECKED
    if (!job.k.has_scale_bias) {
        dmlk_row *tuned = function->tuned != NULL ? function->tuned(job.in, job.out) : NULL;
        dmlk_row *row = tuned != NULL ? tuned : find_row(function, job.in, job.out);
        if (row != NULL) {
            return dmlk_staged_rows(views, inputs + 1, row, &job);
        }
        if (function->family == NUMBERS && job.in == DMLK_FLOAT16) { /* rounded to the output's type */
            row = find_row(function, DMLK_FLOAT32, DMLK_FLOAT32);
            return dmlk_float_rows(views, inputs + 1, row, &job);
        }
    }
#endif
    return dmlk_staged_rows(views, inputs + 1, promoted_row, &job);
}

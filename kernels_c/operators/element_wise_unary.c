/* element_wise_unary: out = function(in), or function(in * scale + bias).
 *
 * A row is handled in pieces, widened to double or 64-bit integers; clipping is exact in them, and
 * activations are computed in double and rounded once. */
#include "element_wise_unary.h"

#include <math.h>

#include "dmlk_math.h"
#include "kernel.h"
#include "staged_rows.h"

typedef union scalar {
    double f;
    int64_t i;
    uint64_t u;
} scalar;

struct job {
    dmlk_element_wise_unary k;
    uint32_t in, out; /* types */
    scalar low, high; /* CLIP, CLIP1 */
};

/* Of a number and a NaN the number wins. */
static inline double max2(double a, double b) { return a > b || b != b ? a : b; }
static inline double min2(double a, double b) { return a < b || b != b ? a : b; }

/* log(1 + exp(x)) without overflow. */
static inline double softplus(double x) { return dmlk_log1p(dmlk_exp(-fabs(x))) + (x > 0 ? x : x < 0 ? 0 : x); }

DMLK_EACH_ISA(activate, (const dmlk_element_wise_unary *k, double *v, int64_t n), (k, v, n)) {
    const double alpha = k->alpha, beta = k->beta, gamma = k->gamma;
#define EACH(value)                       \
    for (int64_t i = 0; i < n; i++) {     \
        const double x = v[i];            \
        v[i] = (value);                   \
    }                                     \
    break
    switch (k->function) {
    case DMLK_UNARY_ELU: EACH(x >= 0 ? x : alpha * dmlk_expm1(x));
    case DMLK_UNARY_CELU: EACH(max2(0, x) + min2(0, alpha * dmlk_expm1(x / alpha)));
    case DMLK_UNARY_HARD_SIGMOID: EACH(max2(0, min2(alpha * x + beta, 1)));
    case DMLK_UNARY_LEAKY_RELU: EACH(x >= 0 ? x : alpha * x);
    case DMLK_UNARY_LINEAR: EACH(alpha * x + beta);
    case DMLK_UNARY_PARAMETRIC_SOFTPLUS: EACH(alpha * softplus(beta * x));
    case DMLK_UNARY_RELU: EACH(x > 0 ? x : 0);
    case DMLK_UNARY_SCALED_ELU: EACH(x > 0 ? gamma * x : gamma * (alpha * dmlk_expm1(x)));
    case DMLK_UNARY_SCALED_TANH: EACH(alpha * dmlk_tanh(beta * x));
    case DMLK_UNARY_SIGMOID: EACH(1 / (1 + dmlk_exp(-x)));
    case DMLK_UNARY_SOFTPLUS: EACH(softplus(alpha * x) / alpha);
    case DMLK_UNARY_SOFTSIGN: EACH(x / (1 + fabs(x)));
    case DMLK_UNARY_TANH: EACH(dmlk_tanh(x));
    case DMLK_UNARY_THRESHOLDED_RELU: EACH(x > alpha ? x : 0);
    case DMLK_UNARY_SHRINK: EACH(x > alpha ? x - beta : x < -alpha ? x + beta : 0);
    case DMLK_UNARY_GELU: EACH(x * 0.5 * dmlk_erfc(-x * 0.70710678118654752440)); /* 1 + erf(y) = erfc(-y) */
    default: break; /* IDENTITY */
    }
#undef EACH
}

static void make_nans_one(double *v, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        v[i] = dmlk_one_nan(v[i]);
    }
}

static bool is_clip(uint32_t function) { return function == DMLK_UNARY_CLIP || function == DMLK_UNARY_CLIP1; }

static void clip(const struct job *job, enum dmlk_kind kind, dmlk_promoted *v, int64_t n) {
    const scalar low = job->low, high = job->high;
    const bool clip1 = job->k.function == DMLK_UNARY_CLIP1;
    switch (kind) {
    case DMLK_KIND_FLOAT:
        for (int64_t i = 0; i < n; i++) {
            const double x = v->f[i];
            v->f[i] = clip1 ? max2(low.f, min2(high.f, x)) : min2(high.f, max2(low.f, x));
        }
        break;
    case DMLK_KIND_SIGNED:
        for (int64_t i = 0; i < n; i++) {
            const int64_t x = v->i[i];
            v->i[i] = x < low.i ? low.i : x > high.i ? high.i : x;
        }
        break;
    case DMLK_KIND_UNSIGNED:
        for (int64_t i = 0; i < n; i++) {
            const uint64_t x = v->u[i];
            v->u[i] = x < low.u ? low.u : x > high.u ? high.u : x;
        }
        break;
    }
}

/* in * scale + bias: FLOAT64 in FLOAT64, all else in FLOAT32 with two roundings.  The result is a double. */
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
    static const uint32_t widest[] = {
        [DMLK_KIND_FLOAT] = DMLK_FLOAT64, [DMLK_KIND_SIGNED] = DMLK_INT64, [DMLK_KIND_UNSIGNED] = DMLK_UINT64};
    if (from != to) {
        dmlk_promoted result;
        dmlk_store_promoted(widest[to], (uint8_t *)&result, 1, n, from, v);
        memcpy(v, &result, (size_t)n * sizeof v->u[0]);
    }
}

static void unary_row(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context) {
    const struct job *job = context;
    const int64_t in_step = strides[0] * dmlk_type_bytes(job->in);
    const int64_t out_step = strides[1] * dmlk_type_bytes(job->out);
    for (int64_t i = 0; i < count; i += DMLK_CHUNK) {
        int64_t n = dmlk_min(count - i, DMLK_CHUNK);
        enum dmlk_kind kind = dmlk_type_kind(job->in);
        dmlk_promoted v;
        dmlk_load_promoted(job->in, at[0] + i * in_step, strides[0], n, &v);
        if (job->k.has_scale_bias) {
            scale(job, kind, &v, n);
            kind = DMLK_KIND_FLOAT;
        }
        const enum dmlk_kind wanted = is_clip(job->k.function) ? dmlk_type_kind(job->in) : DMLK_KIND_FLOAT;
        convert(kind, wanted, &v, n);
        if (is_clip(job->k.function)) {
            clip(job, wanted, &v, n);
        } else {
            activate(&job->k, v.f, n);
        }
        if (wanted == DMLK_KIND_FLOAT) {
            make_nans_one(v.f, n);
        }
        dmlk_store_promoted(job->out, at[1] + i * out_step, strides[1], n, wanted, &v);
    }
}

#ifndef DMLK_CHECKED

/* The same without a detour, for what is worth it: clipping, and functions of FLOAT32 that are a few operations. */

#define DMLK_BODY "element_wise_clip.inc"
#include "each_type.inc"

static dmlk_row *const clip_rows[] = {
#define DMLK_BODY "element_wise_clip_table.inc"
#include "each_type.inc"
};

DMLK_ROW_OF_EACH_ISA(float32_row) {
    const struct job *job = context;
    const double alpha = job->k.alpha, beta = job->k.beta;
    const float *in = (const float *)at[0];
    float *out = (float *)at[1];
    const int64_t in_stride = strides[0], out_stride = strides[1];
#define EACH(value)                             \
    for (int64_t i = 0; i < count; i++) {       \
        const double x = in[i * in_stride];     \
        out[i * out_stride] = (float)(value);   \
    }                                           \
    break
#define OR_NAN(value) dmlk_one_nan((float)(value)) /* the others are never NaN */
    switch (job->k.function) {
    case DMLK_UNARY_HARD_SIGMOID: EACH(max2(0, min2(alpha * x + beta, 1)));
    case DMLK_UNARY_LEAKY_RELU: EACH(OR_NAN(x >= 0 ? x : alpha * x));
    case DMLK_UNARY_LINEAR: EACH(OR_NAN(alpha * x + beta));
    case DMLK_UNARY_RELU: EACH(x > 0 ? x : 0);
    case DMLK_UNARY_SOFTSIGN: EACH(OR_NAN(x / (1 + fabs(x))));
    case DMLK_UNARY_THRESHOLDED_RELU: EACH(x > alpha ? x : 0);
    default: EACH(OR_NAN(x > alpha ? x - beta : x < -alpha ? x + beta : 0)); /* SHRINK */
    }
#undef EACH
#undef OR_NAN
}

static dmlk_row *choose_row(const struct job *job) {
    if (job->k.has_scale_bias || job->in != job->out) {
        return unary_row;
    }
    switch (job->k.function) {
    case DMLK_UNARY_CLIP:
    case DMLK_UNARY_CLIP1: {
        const bool floats = dmlk_type_kind(job->in) == DMLK_KIND_FLOAT;
        return floats && (isnan(job->low.f) || isnan(job->high.f)) ? unary_row : clip_rows[job->in];
    }
    case DMLK_UNARY_HARD_SIGMOID:
    case DMLK_UNARY_LEAKY_RELU:
    case DMLK_UNARY_LINEAR:
    case DMLK_UNARY_RELU:
    case DMLK_UNARY_SOFTSIGN:
    case DMLK_UNARY_THRESHOLDED_RELU:
    case DMLK_UNARY_SHRINK: return job->in == DMLK_FLOAT32 ? float32_row : unary_row;
    default: return unary_row;
    }
}

/* Is the result for FLOAT16 one of its operands, so that it may be a FLOAT32 on the way? */
static bool is_exact(const struct job *job) {
    const uint32_t function = job->k.function;
    return job->in == DMLK_FLOAT16 && !job->k.has_scale_bias &&
           (is_clip(function) || function == DMLK_UNARY_RELU || function == DMLK_UNARY_THRESHOLDED_RELU);
}

#else

static dmlk_row *choose_row(const struct job *job) {
    (void)job;
    return unary_row;
}

#endif

static scalar read_scalar(uint32_t type, const uint64_t *bits) {
    dmlk_promoted v;
    dmlk_load_promoted(type, (const uint8_t *)bits, 1, 1, &v);
    return (scalar){.u = v.u[0]};
}

/* Of integer bounds that exclude each other the one applied last wins. */
static void order_bounds(struct job *job, enum dmlk_kind kind) {
    bool crossed = kind == DMLK_KIND_SIGNED     ? job->low.i > job->high.i
                   : kind == DMLK_KIND_UNSIGNED ? job->low.u > job->high.u
                                                : false;
    if (crossed && job->k.function == DMLK_UNARY_CLIP) {
        job->low = job->high;
    } else if (crossed) {
        job->high = job->low;
    }
}

int dmlk_run_element_wise_unary(const dmlk_call *call) {
    struct job job;
    if (!dmlk_has_views(call, 2, 0) || !dmlk_get_constants(call, &job.k, sizeof job.k)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *in = &call->views[0], *out = &call->views[1];
    job.in = in->type;
    job.out = out->type;
    bool types_fit = in->type == out->type || (in->type == DMLK_FLOAT32 && out->type == DMLK_FLOAT16);
    if (!types_fit || dmlk_type_bytes(in->type) == 0 || job.k.function > DMLK_UNARY_CLIP1) {
        return DMLK_NOT_IMPLEMENTED;
    }
    const enum dmlk_kind kind = dmlk_type_kind(in->type);
    const bool identity = job.k.function == DMLK_UNARY_IDENTITY;
    if (is_clip(job.k.function)) {
        job.low = read_scalar(in->type, &job.k.min_bits);
        job.high = read_scalar(in->type, &job.k.max_bits);
        order_bounds(&job, kind);
    } else if (!identity && kind != DMLK_KIND_FLOAT && dmlk_type_bytes(in->type) == 8) {
        return DMLK_NOT_IMPLEMENTED; /* 64-bit integers are not exact in double */
    }
    if (identity && !job.k.has_scale_bias && in->type == out->type) {
        return dmlk_copy_elements(in, out);
    }
    const dmlk_view *const views[] = {in, out};
#ifndef DMLK_CHECKED
    if (is_exact(&job)) {
        job.in = job.out = DMLK_FLOAT32;
        return dmlk_float_rows(views, 2, choose_row(&job), &job);
    }
#endif
    return dmlk_staged_rows(views, 2, choose_row(&job), &job);
}

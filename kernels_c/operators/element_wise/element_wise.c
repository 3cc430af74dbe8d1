/* element_wise: out = function(in), or function(a, b), as defined in functions.inc.  This file runs the kernel of a
 * line; rows.h generates its rows. */
#include "rows.h"

#include <math.h>
#include <string.h>

#include "staged_rows.h"

static const uint32_t widest[] = {
    [DMLK_KIND_FLOAT] = DMLK_FLOAT64, [DMLK_KIND_SIGNED] = DMLK_INT64, [DMLK_KIND_UNSIGNED] = DMLK_UINT64};

/* --- all types: pieces are promoted to the widest types --- */

/* The low bits of a number without its fraction; 0 for infinities and NaNs. */
static int64_t wrapped(double x) {
    if (fabs(x) < 0x1p63) {
        return (int64_t)x;
    }
    const double low = fmod(x, 0x1p64); /* NaN if x is infinite */
    const uint64_t bits = low == low ? (uint64_t)fabs(low) : 0;
    return (int64_t)(low < 0 ? 0 - bits : bits);
}

/* in * scale + bias, for FLOAT64 in FLOAT64, for all other types in FLOAT32 with two roundings; integers wrap. */
static void scale(const struct dmlk_job *job, dmlk_promoted *v, int64_t n) {
    const float scale = job->k.scale, bias = job->k.bias;
    const enum dmlk_kind kind = dmlk_type_kind(job->in[0]);
    for (int64_t i = 0; i < n; i++) {
        if (job->in[0] == DMLK_FLOAT64) {
            v->f[i] = v->f[i] * (double)scale + (double)bias;
            continue;
        }
        float x = kind == DMLK_KIND_FLOAT ? (float)v->f[i] : kind == DMLK_KIND_SIGNED ? (float)v->i[i] : (float)v->u[i];
        v->f[i] = (double)(x * scale + bias);
    }
    if (kind != DMLK_KIND_FLOAT) {
        dmlk_promoted integers;
        for (int64_t i = 0; i < n; i++) {
            v->i[i] = wrapped(v->f[i]);
        }
        dmlk_store_promoted(job->in[0], (uint8_t *)&integers, 1, n, DMLK_KIND_SIGNED, v);
        dmlk_load_promoted(job->in[0], (const uint8_t *)&integers, 1, n, v);
    }
}

/* Converts from one kind to another, by the rules of a cast. */
static void convert(enum dmlk_kind from, enum dmlk_kind to, dmlk_promoted *v, int64_t n) {
    if (from != to) {
        dmlk_promoted result;
        dmlk_store_promoted(widest[to], (uint8_t *)&result, 1, n, from, v);
        memcpy(v, &result, (size_t)n * sizeof v->u[0]);
    }
}

static void promoted_row(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context) {
    static const int64_t ones[] = {1, 1, 1, 1};
    const struct dmlk_job *job = context;
    const uint32_t inputs = job->function->inputs;
    for (int64_t i = 0; i < count; i += DMLK_CHUNK) {
        const int64_t n = dmlk_min(count - i, DMLK_CHUNK);
        dmlk_promoted v[4];
        for (uint32_t k = 0; k < inputs; k++) {
            const uint8_t *in = at[k] + i * strides[k] * dmlk_type_bytes(job->in[k]);
            dmlk_load_promoted(job->in[k], in, strides[k], n, &v[k]);
            if (job->k.has_scale_bias && k == 0) {
                scale(job, &v[k], n);
            }
            convert(dmlk_type_kind(job->in[k]), job->kinds[k], &v[k], n);
        }
        uint8_t *const pieces[] = {(uint8_t *)&v[0], (uint8_t *)&v[1], (uint8_t *)&v[2], (uint8_t *)&v[3]};
        job->promoted(pieces, ones, n, job);
        uint8_t *out = at[inputs] + i * strides[inputs] * dmlk_type_bytes(job->out);
        dmlk_store_promoted(job->out, out, strides[inputs], n, job->kind, &v[inputs]);
    }
}

#ifndef DMLK_CHECKED

/* --- FLOAT32 scaled, piece by piece --- */

DMLK_EACH_ISA(scale_floats, (const float *in, int64_t stride, float scale, float bias, int64_t count, float *out),
              (in, stride, scale, bias, count, out)) {
    for (int64_t i = 0; i < count && stride == 1; i++) {
        out[i] = in[i] * scale + bias;
    }
    for (int64_t i = 0; i < count && stride != 1; i++) {
        out[i] = in[i * stride] * scale + bias;
    }
}

static void scaled_row(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context) {
    enum { PIECE = 1024 };
    const struct dmlk_job *job = context;
    const uint32_t inputs = job->function->inputs;
    float piece[PIECE];
    for (int64_t i = 0; i < count; i += PIECE) {
        const int64_t n = dmlk_min(count - i, PIECE);
        scale_floats((const float *)at[0] + i * strides[0], strides[0], job->k.scale, job->k.bias, n, piece);
        uint8_t *pieces[4] = {(uint8_t *)piece};
        int64_t steps[4] = {1};
        for (uint32_t k = 1; k <= inputs; k++) {
            steps[k] = strides[k];
            pieces[k] = at[k] + i * strides[k] * dmlk_type_bytes(k < inputs ? job->in[k] : job->out);
        }
        job->row(pieces, steps, n, job);
    }
}

#endif

/* --- types --- */

static bool is_long(uint32_t type) { return dmlk_type_bytes(type) == 8 && dmlk_type_kind(type) != DMLK_KIND_FLOAT; }

static bool inputs_fit(const struct dmlk_job *job) {
    const struct dmlk_function *function = job->function;
    for (uint32_t k = 0; k < function->inputs; k++) {
        const bool is_condition = function->rule == DMLK_CHOICES && k == 0;
        const uint32_t expected = is_condition ? DMLK_UINT8 : function->rule == DMLK_POWERS ? job->in[k] : job->in[function->inputs - 1];
        if (job->in[k] != expected || dmlk_type_bytes(job->in[k]) == 0 || (function->no_long && is_long(job->in[k]))) {
            return false;
        }
    }
    return true;
}

static bool output_fits(const struct dmlk_job *job) {
    const bool is_scaled = job->k.has_scale_bias;
    const uint32_t out = job->out, in = job->function->rule == DMLK_CHOICES ? job->in[1] : job->in[0];
    const bool floats = (in == DMLK_FLOAT32 && out == DMLK_FLOAT16) || (in == DMLK_FLOAT16 && out == DMLK_FLOAT32);
    switch (job->function->rule) {
    case DMLK_FLOATS: return (in == out || floats) && !is_long(in); /* 64-bit integers are not exact in double */
    case DMLK_NUMBERS:
    case DMLK_POWERS: return in == out || floats;
    case DMLK_PREDICATES:
    case DMLK_COUNTS: return (out == DMLK_UINT8 || out == DMLK_UINT32) && !is_scaled;
    default: return in == out && !is_scaled;
    }
}

/* Chooses the types that pieces are promoted to; functions of bits use unsigned types. */
static void choose_promoted(struct dmlk_job *job) {
    const enum dmlk_rule rule = job->function->rule;
    const bool bits = rule == DMLK_BITS || rule == DMLK_COUNTS || rule == DMLK_CHOICES;
    bool float_power = rule == DMLK_FLOATS, are_singles = true;
    for (uint32_t k = 0; k < job->function->inputs; k++) {
        are_singles = are_singles && (job->in[k] == DMLK_FLOAT32 || job->in[k] == DMLK_FLOAT16);
        job->in[k] = bits ? dmlk_bits_type(job->in[k]) : job->in[k];
        float_power = float_power || (rule == DMLK_POWERS && dmlk_type_kind(job->in[k]) == DMLK_KIND_FLOAT);
    }
    job->out = bits ? dmlk_bits_type(job->out) : job->out;
    for (uint32_t k = 0; k < job->function->inputs; k++) {
        const enum dmlk_kind own = rule == DMLK_POWERS ? DMLK_KIND_SIGNED : dmlk_type_kind(job->in[k]);
        job->kinds[k] = float_power ? DMLK_KIND_FLOAT : own;
    }
    job->kind = rule == DMLK_PREDICATES ? DMLK_KIND_UNSIGNED : job->kinds[0];
    job->promoted = job->function->promoted[job->kinds[0]];
    if (are_singles && job->function->promoted_singles != NULL) {
        job->promoted = job->function->promoted_singles;
    }
    if (rule == DMLK_POWERS && float_power && dmlk_type_kind(job->in[0]) != DMLK_KIND_FLOAT) {
        job->promoted = job->function->promoted[DMLK_KIND_UNSIGNED]; /* an integer to a power that is not whole */
    }
}

/* --- running a function --- */

static dmlk_scalar read_scalar(uint32_t type, const uint64_t *bits) {
    dmlk_promoted v;
    dmlk_load_promoted(type, (const uint8_t *)bits, 1, 1, &v);
    return (dmlk_scalar){.u = v.u[0]};
}

static void read_limits(struct dmlk_job *job) {
    job->low = job->low_test = read_scalar(job->in[0], &job->k.min_bits);
    job->high = job->high_test = read_scalar(job->in[0], &job->k.max_bits);
    if (dmlk_type_kind(job->in[0]) == DMLK_KIND_FLOAT && isnan(job->low.f)) {
        job->low_test.f = -(double)INFINITY;
    }
    if (dmlk_type_kind(job->in[0]) == DMLK_KIND_FLOAT && isnan(job->high.f)) {
        job->high_test.f = (double)INFINITY;
    }
}

#ifndef DMLK_CHECKED
/* The row that reads and stores the tensors' own types, or NULL. */
static dmlk_row *find_row(const struct dmlk_job *job, uint32_t in, uint32_t out) {
    const struct dmlk_function *function = job->function;
    dmlk_row *tuned = function->tuned != NULL ? function->tuned(in, out) : NULL;
    if (tuned != NULL) {
        return tuned;
    }
    for (uint32_t i = 0; i < function->row_count; i++) {
        const bool fits = function->rows[i].in == in && function->rows[i].out == out;
        if (fits && (function->rule != DMLK_POWERS || job->in[0] == in)) {
            return function->rows[i].row;
        }
    }
    return NULL;
}

/* The same for a call that may be scaled. */
static dmlk_row *choose_row(struct dmlk_job *job, uint32_t in, uint32_t out) {
    job->row = find_row(job, in, out);
    const bool is_scaled = job->k.has_scale_bias != 0;
    return job->row == NULL || !is_scaled ? job->row : in == DMLK_FLOAT32 ? scaled_row : NULL;
}

/* Whether the function takes a few instructions per vector: not mathematical functions, powers or remainders. */
static bool is_cheap(const struct dmlk_function *function) {
    const enum dmlk_rule rule = function->rule;
    const bool bits = rule == DMLK_BITS || rule == DMLK_COUNTS || rule == DMLK_CHOICES;
    return bits || (function->own_type && function->promoted_singles == NULL);
}

static bool is_half(uint32_t type) { return type == DMLK_FLOAT16; }

/* Treats FLOAT16 operands as FLOAT32. */
static void widen(struct dmlk_job *job) {
    for (uint32_t k = 0; k < job->function->inputs; k++) {
        job->in[k] = is_half(job->in[k]) ? DMLK_FLOAT32 : job->in[k];
    }
    job->out = is_half(job->out) ? DMLK_FLOAT32 : job->out;
}
#endif

/* Sets the job of a call, without its row; `order` is the view of each operand of the row. */
static int set_up(const dmlk_call *call, const struct dmlk_function *function, struct dmlk_job *job, uint32_t *order) {
    const uint32_t inputs = function->inputs;
    *job = (struct dmlk_job){.function = function};
    if (!dmlk_has_views(call, inputs + 1, 0) || !dmlk_get_constants(call, &job->k, sizeof job->k)) {
        return DMLK_BAD_PACKET;
    }
    for (uint32_t k = 0; k < inputs; k++) {
        order[k] = function->is_swapped ? inputs - 1 - k : k;
        job->in[k] = call->views[order[k]].type;
    }
    order[inputs] = inputs;
    job->out = call->views[inputs].type;
    if (!inputs_fit(job) || !output_fits(job)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    choose_promoted(job);
    read_limits(job);
    return job->promoted == NULL ? DMLK_NOT_IMPLEMENTED : DMLK_OK;
}

int dmlk_run_function(const dmlk_call *call, const struct dmlk_function *function) {
    struct dmlk_job job;
    const uint32_t inputs = function->inputs;
    uint32_t order[4];
    const int status = set_up(call, function, &job, order);
    if (status != DMLK_OK) {
        return status;
    }
    const dmlk_view *views[4];
    for (uint32_t k = 0; k <= inputs; k++) {
        views[k] = &call->views[order[k]];
    }
#ifndef DMLK_CHECKED
    const uint32_t in = job.in[inputs - 1];
    dmlk_row *row = choose_row(&job, in, job.out);
    if (row != NULL) {
        return (is_cheap(function) ? dmlk_cheap_rows : dmlk_staged_rows)(views, inputs + 1, row, &job);
    }
    row = choose_row(&job, DMLK_FLOAT32, is_half(job.out) ? DMLK_FLOAT32 : job.out);
    if (function->own_type && is_half(in) && row != NULL) { /* computed in FLOAT32, rounded to the output's type */
        widen(&job);
        return dmlk_float_rows(views, inputs + 1, row, &job);
    }
#endif
    return dmlk_staged_rows(views, inputs + 1, promoted_row, &job);
}

#ifndef DMLK_CHECKED
/* Tells a kernel what the function does, if it is one of those that kernels know. */
static void set_known(const struct dmlk_job *job, dmlk_follower *follower) {
    const enum dmlk_known_function known = job->function->known;
    const bool scales = known == DMLK_SCALE;
    bool is_known = job->out == DMLK_FLOAT32 && scales == (job->k.has_scale_bias != 0);
    for (uint32_t k = 0; k < job->function->inputs; k++) {
        is_known = is_known && job->in[k] == DMLK_FLOAT32;
    }
    follower->known = is_known ? known : DMLK_NOT_KNOWN;
    follower->low = scales ? job->k.scale : known == DMLK_RELU ? 0 : (float)job->low.f;
    follower->high = scales ? job->k.bias : (float)job->high.f;
}

bool dmlk_prepare_function(const dmlk_call *call, const struct dmlk_function *function, dmlk_follower *follower) {
    struct dmlk_job job;
    _Static_assert(sizeof job <= sizeof follower->context, "a job fits");
    if (set_up(call, function, &job, follower->order) != DMLK_OK || is_half(job.in[function->inputs - 1])) {
        return false; /* (FLOAT16 needs dmlk_float_rows) */
    }
    dmlk_row *row = choose_row(&job, job.in[function->inputs - 1], job.out);
    follower->row = row != NULL ? row : promoted_row;
    follower->operands = function->inputs + 1;
    set_known(&job, follower);
    memcpy(follower->context, &job, sizeof job);
    return true;
}
#endif

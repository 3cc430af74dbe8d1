/* pooling: each output is computed from the inputs in its window, as defined in functions.inc.  Inputs are
 * processed in row-major order of the window: results do not depend on layouts or threads. */
#include <math.h>

#include "pooling.h"

#include "dmlk_math.h"
#include "kernel.h"
#include "narrow.h"
#include "pool_float.h"
#include "scratch.h"
#include "taps.h"
#include "transpose.h"

struct job;

/* Computes the outputs of a row. */
typedef void pool_row(const struct job *job, const dmlk_window_row *row, dmlk_taps *taps, int64_t *work);

/* Scale and zero point of each channel; a step of 0 means that all channels share one. */
struct linear {
    const float *scale;
    const uint8_t *zero; /* NULL: 0 */
    int64_t scale_step, zero_step;
    bool is_signed;
};

enum tuned { PLAIN, MEANS, MAXIMA }; /* what the tuned kernel computes */

struct job {
    dmlk_windows windows;
    enum tuned tuned;
    bool padded;
    double power;
    pool_row *row;
    uint64_t packed_steps[DMLK_WINDOW_AXES]; /* elements of the packed input */
    const dmlk_view *positions;              /* of the maxima; may be NULL */
    struct linear from, to;
};

/* --- max_pooling: positions --- */

/* Stores the positions of a row's maxima.  `position` is that of each output's maximum, relative to place 0 of its
 * window; UINT64_MAX: there is none. */
static void put_positions(const struct job *job, const dmlk_window_row *row, const uint64_t *position) {
    const dmlk_windows *w = &job->windows;
    uint64_t origin = 0;
    int64_t offset = 0;
    for (uint32_t a = 0; a < DMLK_WINDOW_AXES; a++) {
        const dmlk_window_axis *axis = &w->axes[a];
        origin += (uint64_t)(row->index[a] * axis->stride - axis->start) * job->packed_steps[a];
    }
    for (uint32_t d = 0; d < job->positions->rank; d++) {
        offset += row->index[d < 2 ? d : d + DMLK_WINDOW_AXES - job->positions->rank] * job->positions->strides[d];
    }
    const uint32_t along = w->along < 2 ? w->along : w->along - (DMLK_WINDOW_AXES - job->positions->rank);
    const int64_t step = job->positions->strides[along];
    const uint64_t next = (uint64_t)w->axes[w->along].stride * job->packed_steps[w->along];
    uint32_t *narrow = (uint32_t *)job->positions->base + offset;
    uint64_t *wide = (uint64_t *)job->positions->base + offset;
    for (int64_t i = 0; i < row->count; i++) {
        const uint64_t at = position[i] == UINT64_MAX ? 0 : origin + (uint64_t)i * next + position[i];
        if (job->positions->type == DMLK_UINT32) {
            DMLK_STORE(narrow, i * step, (uint32_t)at);
        } else {
            DMLK_STORE(wide, i * step, at);
        }
    }
}

/* --- quantized_linear_average_pooling: from sums to means --- */

static int32_t zero_point(const struct linear *l, int64_t channel) {
    if (l->zero == NULL) {
        return 0;
    }
    const uint8_t raw = DMLK_LOAD(l->zero, channel * l->zero_step);
    return l->is_signed ? (int8_t)raw : raw;
}

/* The quantized mean, from the sum of the `inside` elements inside the input and the divisor `n`. */
static uint8_t mean_of(const struct job *job, int64_t channel, uint32_t sum, double inside, float n) {
    const struct linear *to = &job->to;
    const int32_t low = to->is_signed ? -128 : 0, zero = zero_point(to, channel);
    const float scale = DMLK_LOAD(job->from.scale, channel * job->from.scale_step);
    const uint32_t zeros = (uint32_t)(int64_t)inside * (uint32_t)zero_point(&job->from, channel);
    const float mean = n > 0 ? (float)(int32_t)(sum - zeros) * (scale / n) : 0;
    const float quotient = mean / DMLK_LOAD(to->scale, channel * to->scale_step);
    const float rounded = quotient == quotient ? rintf(quotient) : 0;
    const float near = rounded < -1024 ? -1024 : rounded > 1024 ? 1024 : rounded; /* (saturates anyway) */
    const int32_t q = (int32_t)near + zero;
    return (uint8_t)(q < low ? low : q > low + 255 ? low + 255 : q);
}

static void put_means(const struct job *job, const dmlk_window_row *row, const uint32_t *sum, const double *inside,
                      const float *n) {
    const dmlk_windows *w = &job->windows;
    const int64_t stride = w->out_strides[w->along];
    for (int64_t i = 0; i < row->count; i++) {
        const int64_t channel = row->index[1] + (w->along == 1 ? i : 0);
        DMLK_STORE(row->out, i * stride, mean_of(job, channel, sum[i], inside[i], n[i]));
    }
}

/* How many taps are added at a time (see taps.inc): more for the types that networks pool. */
#define UNROLLED_FOR_float16 1
#define UNROLLED_FOR_float32 9
#define UNROLLED_FOR_float64 1
#define UNROLLED_FOR_int8 3
#define UNROLLED_FOR_int16 1
#define UNROLLED_FOR_int32 1
#define UNROLLED_FOR_int64 1
#define UNROLLED_FOR_uint8 3
#define UNROLLED_FOR_uint16 1
#define UNROLLED_FOR_uint32 1
#define UNROLLED_FOR_uint64 1
#define DMLK_BODY "pooling.inc"
#include "each_type.inc"

#define T int8_t
#define OF(x) x##_signed
#include "quantized.inc"
#define T uint8_t
#define OF(x) x##_unsigned
#include "quantized.inc"

/* --- all poolings --- */

static void pool_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct job *job = context;
    int64_t work = 0;
    dmlk_window_row row;
    dmlk_taps taps;
    taps.row.count = 0;
    dmlk_window_seek(&job->windows, begin, &row);
    for (int64_t number = begin; number < end && !dmlk_stopped(&work, row.count); number++) {
        job->row(job, &row, &taps, &work);
        dmlk_window_next(&job->windows, &row);
    }
}

static void set_axes(const dmlk_pooling *k, dmlk_window_axis axes[3]) {
    for (int d = 0; d < 3; d++) {
        axes[d] = (dmlk_window_axis){.window = k->window[d],
                                     .stride = k->strides[d],
                                     .dilation = k->dilations[d],
                                     .start = k->start_padding[d],
                                     .end = k->end_padding[d]};
    }
}

#define INPUTS_WORTH_A_THREAD (1 << 13) /* 0.02 ms (see parallel.h) */

#ifndef DMLK_CHECKED
/* Computes maxima or means by the tuned kernel; false: nothing was done. */
static bool run_tuned(const struct job *job, uint32_t type, bool is_max) {
    const dmlk_windows *w = &job->windows;
    dmlk_float_convolution c = {.input = {.base = w->in, .type = type, .rank = DMLK_WINDOW_AXES},
                                .output = {.base = w->out, .type = type, .rank = DMLK_WINDOW_AXES},
                                .filter = {.sizes = {1, 1, 1, 1, 1, 1}},
                                .pads = true};
    int64_t outputs = 0;
    for (int a = 0; a < DMLK_WINDOW_AXES; a++) {
        const dmlk_window_axis *axis = &w->axes[a];
        c.input.sizes[a] = axis->input;
        c.output.sizes[a] = axis->output;
        c.input.strides[a] = w->in_strides[a];
        c.output.strides[a] = w->out_strides[a];
        if (a >= DMLK_FIRST_SPATIAL) {
            c.axes[a - DMLK_FIRST_SPATIAL] = (dmlk_taps_axis){.input = axis->input,
                                                              .output = axis->output,
                                                              .window = axis->window,
                                                              .step = axis->stride,
                                                              .tap = axis->dilation,
                                                              .origin = -axis->start,
                                                              .spread = 1};
            outputs += axis->output;
        }
    }
    if (is_max) {
        dmlk_view positions = c.output;
        if (job->positions == NULL) {
            return dmlk_pool_floats(&c, NULL, NULL);
        }
        positions.base = job->positions->base;
        positions.type = job->positions->type;
        for (uint32_t a = 0; a < DMLK_WINDOW_AXES; a++) {
            const uint32_t missing = DMLK_WINDOW_AXES - job->positions->rank;
            const bool is_there = a < 2 || a >= 2 + missing;
            positions.strides[a] = is_there ? job->positions->strides[a < 2 ? a : a - missing] : 0;
        }
        return dmlk_pool_floats(&c, NULL, &positions);
    }
    float *memory = dmlk_take(outputs * (int64_t)sizeof *memory), *next = memory;
    const float *counts[DMLK_SPATIAL];
    for (int k = 0; k < DMLK_SPATIAL && memory != NULL; k++) {
        const dmlk_window_axis *axis = &w->axes[DMLK_FIRST_SPATIAL + k];
        counts[k] = next;
        for (int64_t o = 0; o < axis->output; o++) {
            *next++ = (float)dmlk_count_along(axis, o, job->padded);
        }
    }
    const bool done = memory != NULL && dmlk_pool_floats(&c, counts, NULL);
    dmlk_give(memory);
    return done;
}
#endif

/* Runs a pooling from `in` to `out`; further views are in `job`. */
static int run(const dmlk_call *call, const dmlk_view *in, const dmlk_view *out, pool_row *const *rows, struct job *job) {
    dmlk_pooling k;
    if (!dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    job->padded = k.include_padding != 0;
    job->power = k.power;
    job->row = rows[in->type];
    if (job->row == NULL) {
        return DMLK_NOT_IMPLEMENTED;
    }
    dmlk_window_axis axes[3];
    set_axes(&k, axes);
    const int status = dmlk_windows_init(&job->windows, in, out, axes, k.spatial);
    if (status == DMLK_OK) {
        const dmlk_windows *w = &job->windows;
#ifndef DMLK_CHECKED
        const bool is_float = in->type == DMLK_FLOAT32 || in->type == DMLK_FLOAT16;
        if (is_float && job->tuned != PLAIN && run_tuned(job, in->type, job->tuned == MAXIMA)) {
            return DMLK_OK;
        }
#endif
        uint64_t step = 1;
        for (uint32_t a = DMLK_WINDOW_AXES; a-- > 0; step *= (uint64_t)w->axes[a].input) {
            job->packed_steps[a] = step;
        }
        const int64_t outputs_worth_a_thread = INPUTS_WORTH_A_THREAD / w->places;
        dmlk_parallel(w->rows, dmlk_parts(w->rows, outputs_worth_a_thread / w->row_length), pool_part, job);
    }
    return status;
}

static int run_float(const dmlk_call *call, pool_row *const *rows, enum tuned tuned) {
    struct job job = {.tuned = tuned};
    if (!dmlk_has_views(call, 2, 0)) {
        return DMLK_BAD_PACKET;
    }
    return call->views[0].type == call->views[1].type ? run(call, &call->views[0], &call->views[1], rows, &job)
                                                      : DMLK_NOT_IMPLEMENTED;
}

static int run_max(const dmlk_call *call, pool_row *const *rows, pool_row *const *rows_with_places) {
    struct job job = {.tuned = MAXIMA};
    if (!dmlk_has_views(call, 3, 1 << 2)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *in = &call->views[0], *out = &call->views[1], *positions = &call->views[2];
    if (positions->base == NULL) {
        return in->type == out->type ? run(call, in, out, rows, &job) : DMLK_NOT_IMPLEMENTED;
    }
    if (!dmlk_same_sizes(out, positions)) {
        return DMLK_BAD_PACKET;
    }
    if (in->type != out->type || (positions->type != DMLK_UINT32 && positions->type != DMLK_UINT64)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    job.positions = positions;
    return run(call, in, out, rows_with_places, &job);
}

/* Whether the view has one element, or one for each channel; sets the step, in elements, from one channel to the
 * next. */
static bool take_channels(const dmlk_view *view, int64_t channels, int64_t *step) {
    *step = 0;
    for (uint32_t d = 0; d < view->rank; d++) {
        if (view->sizes[d] > 1 && (*step != 0 || view->sizes[d] != channels)) {
            return false;
        }
        *step = view->sizes[d] > 1 ? view->strides[d] : *step;
    }
    return true;
}

static bool take_linear(const dmlk_view *scale, const dmlk_view *zero, uint32_t type, int64_t channels, struct linear *l) {
    l->scale = (const float *)scale->base;
    l->zero = zero->base;
    l->is_signed = type == DMLK_INT8;
    return take_channels(scale, channels, &l->scale_step) &&
           (zero->base == NULL || take_channels(zero, channels, &l->zero_step));
}

static int run_quantized(const dmlk_call *call, pool_row *const *rows) {
    struct job job = {.row = NULL};
    if (!dmlk_has_views(call, 6, 1 << 2 | 1 << 4)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *v = call->views, *in = &v[0], *out = &v[5];
    if ((out->type != DMLK_INT8 && out->type != DMLK_UINT8) || v[1].type != DMLK_FLOAT32 || v[3].type != DMLK_FLOAT32 ||
        (v[2].base != NULL && v[2].type != in->type) || (v[4].base != NULL && v[4].type != out->type)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    if (in->rank < 2 || !take_linear(&v[1], &v[2], in->type, in->sizes[1], &job.from) ||
        !take_linear(&v[3], &v[4], out->type, in->sizes[1], &job.to)) {
        return DMLK_BAD_PACKET;
    }
    return run(call, in, out, rows, &job);
}

static inline void select_covered(const dmlk_call *call, uint32_t tensor, uint32_t out, dmlk_read_set *reads) {
    dmlk_pooling k;
    dmlk_windows w;
    dmlk_window_axis axes[3];
    if (tensor != 0 || call->view_count <= out || !dmlk_get_constants(call, &k, sizeof k)) {
        return;
    }
    set_axes(&k, axes);
    if (dmlk_windows_init(&w, &call->views[0], &call->views[out], axes, k.spatial) == DMLK_OK) {
        dmlk_windows_reads(&w, k.spatial, reads);
    }
}

#define READS(name, out)                                                                   \
    void dmlk_reads_##name(const dmlk_call *call, uint32_t tensor, dmlk_read_set *reads) { \
        select_covered(call, tensor, out, reads);                                          \
    }
#define EACH_INTEGER(row)                                                                                      \
    [DMLK_INT8] = row##_int8, [DMLK_INT16] = row##_int16, [DMLK_INT32] = row##_int32, [DMLK_INT64] = row##_int64, \
    [DMLK_UINT8] = row##_uint8, [DMLK_UINT16] = row##_uint16, [DMLK_UINT32] = row##_uint32,                    \
    [DMLK_UINT64] = row##_uint64
#define EACH_FLOAT(row) \
    [DMLK_FLOAT16] = row##_float16, [DMLK_FLOAT32] = row##_float32, [DMLK_FLOAT64] = row##_float64

#define POOL(name, first, next, last)                                            \
    static pool_row *const name##_rows[DMLK_INT4 + 1] = {EACH_FLOAT(name)};      \
    int DMLK_RUN(name)(const dmlk_call *call) { return run_float(call, name##_rows, MEANS); } \
    READS(name, 1)
#define WIDE(name, first, next, last)                                            \
    static pool_row *const name##_rows[DMLK_INT4 + 1] = {EACH_FLOAT(name)};      \
    int DMLK_RUN(name)(const dmlk_call *call) { return run_float(call, name##_rows, PLAIN); } \
    READS(name, 1)
#define MAX(name)                                                                                            \
    static pool_row *const name##_rows[DMLK_INT4 + 1] = {EACH_FLOAT(max), EACH_INTEGER(max)};                \
    static pool_row *const name##_places[DMLK_INT4 + 1] = {EACH_FLOAT(max_places), EACH_INTEGER(max_places)}; \
    int DMLK_RUN(name)(const dmlk_call *call) { return run_max(call, name##_rows, name##_places); }          \
    const uint32_t dmlk_outputs_##name = 2;                                                                  \
    READS(name, 1)
#define QUANTIZED(name)                                                                                \
    static pool_row *const name##_rows[DMLK_INT4 + 1] = {[DMLK_INT8] = mean_signed, [DMLK_UINT8] = mean_unsigned}; \
    int DMLK_RUN(name)(const dmlk_call *call) { return run_quantized(call, name##_rows); }             \
    READS(name, 5)
#include "functions.inc"

/* pooling_grad: the gradient of a pooling's input.  The gradients of the outputs are added in row-major order, in
 * FLOAT64: results do not depend on layouts or threads.  A plane of the input (one batch and channel) is summed at a
 * time. */
#include "pooling_grad.h"

#include "kernel.h"
#include "narrow.h"
#include "scratch.h"
#include "windows.h"

enum { D = DMLK_FIRST_SPATIAL, H, W }; /* spatial axes; missing axes have size 1 */

/* The places of the window of one output that are inside the input, along each spatial axis: begin .. end - 1; place t
 * is input origin + t * dilation. */
struct box {
    int64_t origin[DMLK_WINDOW_AXES], begin[DMLK_WINDOW_AXES], end[DMLK_WINDOW_AXES];
};

struct job {
    dmlk_windows windows; /* of the input's gradient and the outputs' */
    uint32_t type;
    bool padded;
    const uint8_t *x; /* input of max_pooling */
    int64_t x_strides[DMLK_WINDOW_AXES];
    int64_t plane; /* elements */
    void (*add)(const struct job *job, const uint8_t *x, const struct box *box, double gradient, double *sums);
    double *sums; /* a plane for each part */
};

static inline double load(uint32_t type, const uint8_t *base, int64_t i) {
    return type == DMLK_FLOAT16 ? (double)dmlk_float16_to_float(DMLK_LOAD((const uint16_t *)base, i))
                                : (double)DMLK_LOAD((const float *)base, i);
}

static inline void store(uint32_t type, uint8_t *base, int64_t i, double x) {
    if (type == DMLK_FLOAT16) {
        DMLK_STORE((uint16_t *)base, i, NARROW(uint16_t, x));
    } else {
        DMLK_STORE((float *)base, i, NARROW(float, x));
    }
}

static void take_box(const dmlk_window_axis *axis, uint32_t a, int64_t output, struct box *box) {
    box->origin[a] = output * axis->stride - axis->start;
    box->begin[a] = dmlk_first_place(axis, box->origin[a], 0);
    box->end[a] = dmlk_first_place(axis, box->origin[a], axis->input);
}

/* The index of the input at a place of the window, along an axis. */
static inline int64_t at(const dmlk_windows *w, const struct box *box, uint32_t a, int64_t place) {
    return box->origin[a] + place * w->axes[a].dilation;
}

/* The divisor of average_pooling: at least 1 if the box is not empty. */
static double count(const struct job *job, const struct box *box) {
    double n = 1;
    for (uint32_t a = D; a <= W; a++) {
        const dmlk_window_axis *axis = &job->windows.axes[a];
        const int64_t output = (box->origin[a] + axis->start) / axis->stride;
        n *= (double)dmlk_count_along(axis, output, job->padded);
    }
    return n;
}

static void add_mean(const struct job *job, const uint8_t *x, const struct box *box, double gradient, double *sums) {
    const dmlk_windows *w = &job->windows;
    const double part = gradient / count(job, box);
    (void)x;
    for (int64_t d = box->begin[D]; d < box->end[D]; d++) {
        for (int64_t h = box->begin[H]; h < box->end[H]; h++) {
            double *row = sums + (at(w, box, D, d) * w->axes[H].input + at(w, box, H, h)) * w->axes[W].input;
            for (int64_t i = box->begin[W]; i < box->end[W]; i++) {
                row[at(w, box, W, i)] += part;
            }
        }
    }
}

/* Adds to the first maximum, or to the first input if all inputs are NaN. */
static void add_to_winner(const struct job *job, const uint8_t *x, const struct box *box, double gradient, double *sums) {
    const dmlk_windows *w = &job->windows;
    int64_t winner = -1;
    double best = 0;
    for (int64_t d = box->begin[D]; d < box->end[D]; d++) {
        for (int64_t h = box->begin[H]; h < box->end[H]; h++) {
            const int64_t z = at(w, box, D, d), y = at(w, box, H, h);
            const int64_t row = z * job->x_strides[D] + y * job->x_strides[H];
            for (int64_t i = box->begin[W]; i < box->end[W]; i++) {
                const int64_t column = at(w, box, W, i);
                const double value = load(job->type, x, row + column * job->x_strides[W]);
                if (winner < 0 || value > best || (best != best && value == value)) {
                    best = value;
                    winner = (z * w->axes[H].input + y) * w->axes[W].input + column;
                }
            }
        }
    }
    if (winner >= 0) {
        sums[winner] += gradient;
    }
}

/* The inputs in a window, at most 2^20, as a measure of work. */
static int64_t places_of(const struct box *box) {
    int64_t places = 1;
    for (uint32_t a = D; a <= W; a++) {
        places *= dmlk_min(box->end[a] - box->begin[a], 1 << 20);
        places = dmlk_min(places, 1 << 20);
    }
    return places;
}

/* Adds the gradients of a plane's outputs, which are at `from`; `x` is the plane of the pooling's input. */
static void add_plane(const struct job *job, const uint8_t *from, const uint8_t *x, double *sums, int64_t *work) {
    const dmlk_windows *w = &job->windows;
    const int64_t *strides = w->out_strides;
    struct box box;
    for (int64_t d = 0; d < w->axes[D].output; d++) {
        take_box(&w->axes[D], D, d, &box);
        for (int64_t h = 0; h < w->axes[H].output; h++) {
            take_box(&w->axes[H], H, h, &box);
            for (int64_t i = 0; i < w->axes[W].output; i++) {
                take_box(&w->axes[W], W, i, &box);
                job->add(job, x, &box, load(job->type, from, d * strides[D] + h * strides[H] + i * strides[W]), sums);
                if (dmlk_stopped(work, 1 + places_of(&box))) {
                    return;
                }
            }
        }
    }
}

static void put_plane(const struct job *job, const double *sums, uint8_t *to) {
    const dmlk_windows *w = &job->windows;
    for (int64_t d = 0; d < w->axes[D].input; d++) {
        for (int64_t h = 0; h < w->axes[H].input; h++) {
            for (int64_t i = 0; i < w->axes[W].input; i++) {
                const int64_t offset = d * w->in_strides[D] + h * w->in_strides[H] + i * w->in_strides[W];
                store(job->type, to, offset, dmlk_one_nan(*sums++));
            }
        }
    }
}

static void run_planes(int64_t begin, int64_t end, int part, void *context) {
    const struct job *job = context;
    const dmlk_windows *w = &job->windows;
    double *sums = job->sums + part * job->plane;
    int64_t work = 0;
    for (int64_t p = begin; p < end && !dmlk_stopped(&work, job->plane); p++) {
        const int64_t n = p / w->axes[1].input, c = p % w->axes[1].input;
        const int64_t from = n * w->out_strides[0] + c * w->out_strides[1];
        const int64_t to = n * w->in_strides[0] + c * w->in_strides[1];
        const int64_t x = n * job->x_strides[0] + c * job->x_strides[1];
        memset(sums, 0, (size_t)job->plane * sizeof *sums);
        add_plane(job, w->out + from * w->out_bytes, job->x == NULL ? NULL : job->x + x * w->in_bytes, sums, &work);
        put_plane(job, sums, w->in + to * w->in_bytes);
    }
}

static bool begin(const dmlk_call *call, const dmlk_view *inputs, const dmlk_view *outputs, dmlk_windows *w,
                  dmlk_pooling_grad *k) {
    dmlk_window_axis axes[3];
    if (!dmlk_get_constants(call, k, sizeof *k)) {
        return false;
    }
    for (int d = 0; d < 3; d++) {
        axes[d] = (dmlk_window_axis){.window = k->window[d],
                                     .stride = k->strides[d],
                                     .dilation = k->dilations[d],
                                     .start = k->start_padding[d],
                                     .end = k->end_padding[d]};
    }
    return dmlk_windows_init(w, inputs, outputs, axes, k->spatial) == DMLK_OK;
}

static int run(const dmlk_call *call, bool has_input,
               void (*add)(const struct job *, const uint8_t *, const struct box *, double, double *)) {
    struct job job = {.add = add};
    dmlk_pooling_grad k;
    if (!dmlk_has_views(call, has_input ? 3 : 2, 0)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *from = &call->views[has_input], *to = from + 1;
    if (!begin(call, to, from, &job.windows, &k) || (has_input && !dmlk_same_sizes(&call->views[0], to))) {
        return DMLK_BAD_PACKET;
    }
    if (from->type != to->type || call->views[0].type != to->type ||
        (to->type != DMLK_FLOAT32 && to->type != DMLK_FLOAT16)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    job.type = to->type;
    job.padded = k.include_padding != 0;
    if (has_input) {
        job.x = call->views[0].base;
        for (uint32_t d = 0; d < to->rank; d++) {
            job.x_strides[d < D ? d : d + DMLK_WINDOW_AXES - to->rank] = call->views[0].strides[d];
        }
    }
    const dmlk_windows *w = &job.windows;
    job.plane = w->axes[D].input * w->axes[H].input * w->axes[W].input;
    const int64_t planes = w->axes[0].input * w->axes[1].input;
    const int64_t work = dmlk_min(job.plane, 1 << 20) * dmlk_min(w->places, 1 << 20);
    const int parts = (int)dmlk_min(dmlk_parts(planes, (1 << 16) / work), planes);
    int64_t bytes;
    if (__builtin_mul_overflow(job.plane, parts * (int64_t)sizeof(double), &bytes) ||
        (job.sums = dmlk_take(bytes)) == NULL) {
        return DMLK_OUT_OF_MEMORY;
    }
    dmlk_parallel(planes, parts, run_planes, &job);
    dmlk_give(job.sums);
    return DMLK_OK;
}

/* The pooling's input is read where windows cover it; gradients are read completely. */
static inline void select_covered(const dmlk_call *call, bool has_input, uint32_t tensor, dmlk_read_set *reads) {
    dmlk_windows w;
    dmlk_pooling_grad k;
    if (has_input && tensor == 0 && call->view_count == 3 && begin(call, &call->views[0], &call->views[1], &w, &k)) {
        dmlk_windows_reads(&w, k.spatial, reads);
    }
}

#define GRADIENT(name, has_input, add)                                                     \
    int DMLK_RUN(name)(const dmlk_call *call) { return run(call, has_input, add); }        \
    void dmlk_reads_##name(const dmlk_call *call, uint32_t tensor, dmlk_read_set *reads) { \
        select_covered(call, has_input, tensor, reads);                                    \
    }
#include "functions.inc"

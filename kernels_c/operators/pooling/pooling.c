/* pooling: each output is computed from the inputs in its window, as defined in functions.inc.  Inputs are
 * processed in row-major order of the window: results do not depend on layouts or threads. */
#include "pooling.h"

#include "kernel.h"
#include "windows.h"

/* Computes the outputs of a row. */
typedef void pool_row(const dmlk_windows *w, const dmlk_window_row *row, bool padded, int64_t *work);

#define DMLK_BODY "pooling.inc"
#include "each_type.inc"

struct job {
    dmlk_windows windows;
    bool padded;
    pool_row *row;
};

static void pool_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct job *job = context;
    int64_t work = 0;
    dmlk_window_row row;
    dmlk_window_seek(&job->windows, begin, &row);
    for (int64_t number = begin; number < end && !dmlk_stopped(&work, row.count); number++) {
        job->row(&job->windows, &row, job->padded, &work);
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

/* A second thread is not worthwhile below 0.2 ms (see for_rows.c). */
#define INPUTS_WORTH_A_THREAD (1 << 18)

static inline int run(const dmlk_call *call, pool_row *const *rows) {
    dmlk_pooling k;
    if (!dmlk_has_views(call, 2, 0) || !dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *in = &call->views[0], *out = &call->views[1];
    struct job job = {.padded = k.include_padding != 0, .row = rows[in->type]};
    if (in->type != out->type || job.row == NULL) {
        return DMLK_NOT_IMPLEMENTED;
    }
    dmlk_window_axis axes[3];
    set_axes(&k, axes);
    const int status = dmlk_windows_init(&job.windows, in, out, axes, k.spatial);
    if (status == DMLK_OK) {
        const dmlk_windows *w = &job.windows;
        const int64_t outputs_worth_a_thread = INPUTS_WORTH_A_THREAD / w->places;
        dmlk_parallel(w->rows, dmlk_parts(w->rows, outputs_worth_a_thread / w->row_length), pool_part, &job);
    }
    return status;
}

static inline void select_covered(const dmlk_call *call, uint32_t tensor, dmlk_read_set *reads) {
    dmlk_pooling k;
    dmlk_windows w;
    dmlk_window_axis axes[3];
    if (tensor != 0 || call->view_count != 2 || !dmlk_get_constants(call, &k, sizeof k)) {
        return;
    }
    set_axes(&k, axes);
    if (dmlk_windows_init(&w, &call->views[0], &call->views[1], axes, k.spatial) != DMLK_OK) {
        return;
    }
    for (uint32_t d = 0; d < k.spatial; d++) {
        const dmlk_window_axis *axis = &w.axes[DMLK_WINDOW_AXES - k.spatial + d];
        reads->counts[2 + d] = dmlk_window_slices(axis, reads->slices[2 + d], &reads->has_more);
    }
}

#define POOL(name, first, next, last)                                                         \
    static pool_row *const name##_rows[DMLK_INT4 + 1] = {[DMLK_FLOAT16] = name##_float16,     \
                                                         [DMLK_FLOAT32] = name##_float32,     \
                                                         [DMLK_FLOAT64] = name##_float64};    \
    int DMLK_RUN(name)(const dmlk_call *call) { return run(call, name##_rows); }              \
    void dmlk_reads_##name(const dmlk_call *call, uint32_t tensor, dmlk_read_set *reads) {    \
        select_covered(call, tensor, reads);                                                  \
    }
#include "functions.inc"

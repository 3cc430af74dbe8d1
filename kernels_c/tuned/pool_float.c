/* pool_float.c - the tuned poolings of floats, as sliding windows (see window_taps.h). */
#include "pool_float.h"

#include "window_taps.h"

/* Sets the index of each tap relative to tap 0; false: the indices do not fit 32 bits. */
static bool set_indices(window_taps *w) {
    const dmlk_taps_axis *axes = w->c->axes;
    double most = 0;
    uint64_t stride = 1;
    for (int a = X; a >= N; stride *= (uint64_t)w->c->input.sizes[a], a--) {
        w->packed_strides[a] = stride;
        most += a >= Z ? (double)stride * (double)(axes[a - Z].window - 1) * (double)axes[a - Z].tap : 0;
    }
    for (int64_t t = 0; t < w->taps && most <= INT32_MAX; t++) {
        const int64_t row = t / axes[2].window;
        const int64_t tap[DMLK_SPATIAL] = {row / axes[1].window, row % axes[1].window, t % axes[2].window};
        for (int k = 0; k < DMLK_SPATIAL; k++) {
            w->tap_index[t] += (int32_t)(tap[k] * axes[k].tap * (int64_t)w->packed_strides[Z + k]);
        }
    }
    return most <= INT32_MAX;
}

bool dmlk_pool_floats(const dmlk_float_convolution *c, const float *const *counts, const dmlk_view *indices) {
    window_taps w = {.operation = counts != NULL ? AVERAGE : indices == NULL ? MAXIMUM : MAXIMUM_AND_INDEX,
                     .c = c,
                     .taps = 1,
                     .channels = c->output.sizes[CHANNEL],
                     .outside = counts == NULL ? LOWEST : 0,
                     .indices = indices};
    for (int k = 0; k < DMLK_SPATIAL; k++) {
        if (c->axes[k].window > MOST_TAPS) {
            return false;
        }
        w.taps *= c->axes[k].window;
        w.counts[k] = counts == NULL ? NULL : counts[k];
    }
    return w.taps <= MOST_TAPS && (indices == NULL || set_indices(&w)) && dmlk_run_windows(&w);
}

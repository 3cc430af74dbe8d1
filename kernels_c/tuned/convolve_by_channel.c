/* convolve_by_channel.c - convolutions whose groups have one channel each, as sliding windows (see window_taps.h). */
#include "cpu.h"
#include "window_taps.h"

bool dmlk_convolve_floats_by_channel(const dmlk_float_convolution *c) {
    const int64_t *f = c->filter.sizes;
    window_taps w = {.operation = CONVOLVE_FLOATS,
                     .c = c,
                     .taps = f[WINDOW] * f[WINDOW + 1] * f[WINDOW + 2],
                     .channels = c->output.sizes[CHANNEL]};
    return f[OF_GROUP] == 1 && dmlk_run_windows(&w);
}

/* The view with a Z axis of size 1. */
static dmlk_view with_z_axis(const dmlk_view *view) {
    dmlk_view result = *view;
    result.rank = 5;
    result.sizes[Z] = 1;
    result.strides[Z] = 0;
    for (int k = 0; k < 2; k++) {
        result.sizes[Y + k] = view->sizes[DMLK_Y + k];
        result.strides[Y + k] = view->strides[DMLK_Y + k];
    }
    return result;
}

bool dmlk_convolve_bytes_by_channel(const dmlk_convolution *convolution) {
    const dmlk_view *f = &convolution->filter;
    dmlk_float_convolution c = {
        .input = with_z_axis(&convolution->input),
        .output = with_z_axis(&convolution->output),
        .filter = {.base = f->base,
                   .type = f->type,
                   .rank = 6,
                   .sizes = {convolution->groups, convolution->filter_sizes[N] / convolution->groups, 1, 1, f->sizes[4],
                             f->sizes[5]},
                   .strides = {0, 0, 0, 0, f->strides[4], f->strides[5]}},
        .axes = {{.input = 1, .output = 1, .window = 1, .step = 1, .tap = 1, .spread = 1}},
    };
    for (int k = 1; k < DMLK_SPATIAL; k++) {
        const int axis = DMLK_Y + k - 1;
        c.axes[k] = (dmlk_taps_axis){.input = convolution->input.sizes[axis],
                                     .output = convolution->output.sizes[axis],
                                     .window = convolution->filter_sizes[axis],
                                     .step = convolution->strides[axis],
                                     .tap = convolution->dilations[axis],
                                     .origin = -convolution->start[axis],
                                     .spread = 1};
    }
    window_taps w = {.operation = CONVOLVE_BYTES,
                     .c = &c,
                     .taps = f->sizes[4] * f->sizes[5],
                     .channels = convolution->output.sizes[DMLK_CHANNEL],
                     .bytes = convolution,
                     .flip = convolution->input.type == DMLK_INT8 ? 0x80 : 0,
                     .zero = convolution->input_zero + (convolution->input.type == DMLK_INT8 ? 0x80 : 0)};
    return convolution->filter_sizes[DMLK_CHANNEL] == 1 &&
           dmlk_isa() != DMLK_ISA_GENERIC && /* slower than tiles without FMA */
           dmlk_run_windows(&w);
}

/* window_taps.c - the functions outside the inner loops that both kinds of sliding windows use. */
#include "window_taps.h"

#include "parallel.h"
#include "scratch.h"
#include "transpose.h"

static float read(const dmlk_view *view, int64_t at) {
    return view->type == DMLK_FLOAT32 ? ((const float *)(const void *)view->base)[at]
                                      : dmlk_float16_to_float(((const uint16_t *)(const void *)view->base)[at]);
}

float dmlk_find_nan(const window_taps *w, int64_t image, int64_t channel, const int64_t *output, int32_t *found) {
    const dmlk_float_convolution *c = w->c;
    const dmlk_taps_axis *axes = c->axes;
    bool is_nan = false;
    *found = NO_TAP;
    for (int64_t t = 0; t < w->taps; t++) {
        const int64_t row = t / axes[2].window;
        const int64_t tap[DMLK_SPATIAL] = {row / axes[1].window, row % axes[1].window, t % axes[2].window};
        int64_t at = image * c->input.strides[N] + channel * c->input.strides[CHANNEL];
        bool is_inside = true;
        for (int k = 0; k < DMLK_SPATIAL; k++) {
            const int64_t place = output[k] * axes[k].step + tap[k] * axes[k].tap + axes[k].origin;
            is_inside = is_inside && place >= 0 && place < axes[k].input;
            at += is_inside ? place * c->input.strides[Z + k] : 0;
        }
        if (is_inside && !isnan(read(&c->input, at))) {
            *found = w->tap_index[t];
            return LOWEST;
        }
        *found = is_inside && !is_nan ? w->tap_index[t] : *found;
        is_nan |= is_inside;
    }
    return is_nan ? (float)NAN : LOWEST;
}

int dmlk_window_parts(const window_taps *w, int64_t items) {
    const int64_t work = dmlk_view_elements(&w->c->output) * w->taps / items;
    return dmlk_parts(items, 60000 / (work + 1) + 1); /* 3 to 10 us for each thread */
}

void dmlk_find_window_bounds(window_taps *w) {
    dmlk_finish finish;
    w->is_bounded = w->operation == CONVOLVE_FLOATS && w->c->output.type == DMLK_FLOAT32 &&
                    dmlk_find_finish(w->c->followers, &finish) && finish.added == NULL && finish.has_low;
    if (w->is_bounded) {
        w->low = finish.low;
        w->high = finish.has_high ? finish.high : INFINITY;
    }
}

/* Packs weights [taps][channels] as a transposed matrix, if they are one of FLOAT32. */
static bool transpose_weights(const window_taps *w, const int64_t *offsets) {
    const dmlk_view *f = &w->c->filter;
    const int64_t bytes = (int64_t)sizeof(float), step = w->taps > 1 ? offsets[1] : 1;
    bool is_matrix = w->bytes == NULL && f->type == DMLK_FLOAT32 && f->sizes[FILTER] == 1;
    for (int64_t t = 0; t < w->taps; t++) {
        is_matrix = is_matrix && offsets[t] == t * step;
    }
    if (is_matrix) {
        dmlk_transpose(bytes, f->base, f->strides[GROUP] * bytes, step * bytes, (uint8_t *)w->weights, w->channels * bytes,
                       w->taps, w->channels);
    }
    return is_matrix;
}

static void pack(const window_taps *w, bool lanes_are_channels) {
    const dmlk_float_convolution *c = w->c;
    const dmlk_view *f = &c->filter;
    int64_t offsets[MOST_TAPS];
    for (int64_t t = 0; t < w->taps; t++) {
        const int64_t row = t / f->sizes[WINDOW + 2];
        offsets[t] = row / f->sizes[WINDOW + 1] * f->strides[WINDOW] +
                     row % f->sizes[WINDOW + 1] * f->strides[WINDOW + 1] +
                     t % f->sizes[WINDOW + 2] * f->strides[WINDOW + 2];
    }
    const int64_t step = lanes_are_channels ? w->channels : 1;
    const bool is_packed = lanes_are_channels && transpose_weights(w, offsets);
    for (int64_t channel = 0; channel < w->channels; channel++) {
        const int64_t from = w->bytes != NULL ? dmlk_filter_at(w->bytes, channel)
                                              : channel / f->sizes[FILTER] * f->strides[GROUP] +
                                                    channel % f->sizes[FILTER] * f->strides[FILTER];
        const int sign = f->type == DMLK_INT8 ? 0x80 : 0;
        const int zero = w->bytes != NULL ? sign + dmlk_filter_zero(w->bytes, channel) : 0;
        float *to = w->weights + (lanes_are_channels ? channel : channel * w->taps);
        for (int64_t t = 0; t < w->taps && !is_packed; t++) {
            const int64_t at = from + offsets[t];
            to[t * step] = w->bytes != NULL ? (float)((f->base[at] ^ sign) - zero) : read(f, at);
        }
        w->bias[channel] = (c->bias.base == NULL ? 0 : read(&c->bias, channel * c->bias.strides[0])) + 0.0f;
    }
}

float *dmlk_pack_window_weights(window_taps *w, bool lanes_are_channels, int64_t floats, float **rest) {
    const bool is_convolution = w->operation == CONVOLVE_FLOATS || w->operation == CONVOLVE_BYTES;
    const int64_t weights = is_convolution ? w->taps * w->channels : 0, biases = is_convolution ? w->channels : 0;
    float *memory = dmlk_take((weights + biases + floats) * (int64_t)sizeof *memory);
    if (memory == NULL) {
        return NULL;
    }
    *rest = memory + weights + biases;
    if (is_convolution) {
        w->weights = memory;
        w->bias = memory + weights;
        pack(w, lanes_are_channels);
    }
    return memory;
}

/* convolution_float: convolutions of FLOAT32 and FLOAT16, forward and backward, with a bias.
 *
 * Both directions are computed output element by output element.  Forward, tap t of output o multiplies input o *
 * stride + e * dilation - padding, where e is t, or counts from the end if the filter is reversed.  Backward, input i
 * adds to output i * stride + e * dilation - padding: so tap t of output o multiplies input (o + padding - e *
 * dilation) / stride, if that is a whole number.  Each output element is one chain of float32 fused multiply-adds, in
 * the order of the filter's elements, whatever the layout.  This is the definition; tuned/convolve_float.c and
 * convolve_transposed.c give the same bits. */
#include "convolution_float.h"

#include <math.h>

#include "convolve_float.h"
#include "convolve_transposed.h"
#include "kernel.h"
#include "windows.h"

enum { N, CHANNEL, Z, Y, X }; /* axes of input and output */
enum { GROUP, FILTER, OF_GROUP, WINDOW }; /* axes of the filter */

static inline float read(const dmlk_view *view, int64_t at) {
    return view->type == DMLK_FLOAT32 ? DMLK_LOAD((const float *)view->base, at)
                                      : dmlk_float16_to_float(DMLK_LOAD((const uint16_t *)view->base, at));
}

static inline void write(const dmlk_view *view, int64_t at, float x) {
    if (view->type == DMLK_FLOAT32) {
        DMLK_STORE((float *)view->base, at, x);
    } else {
        DMLK_STORE((uint16_t *)view->base, at, dmlk_float_to_float16(x));
    }
}

enum place { INSIDE, OUTSIDE, NOWHERE };

/* Where the input of an output and a tap is along an axis; *at is its index, if it is inside. */
static enum place find(const dmlk_taps_axis *axis, int64_t output, int64_t tap, int64_t *at) {
    const int64_t place = output * axis->step + tap * axis->tap + axis->origin;
    if (place % axis->spread != 0) {
        return NOWHERE;
    }
    *at = place / axis->spread;
    return *at >= 0 && *at < axis->input ? INSIDE : OUTSIDE;
}

/* Adds the products of one channel to `sum`; `in` and `filter` are the channel's first elements.  Returns early when
 * stopped. */
static float add_channel(const dmlk_float_convolution *c, const int64_t *output, int64_t in, int64_t filter, float sum,
                         int64_t *work) {
    const dmlk_view *f = &c->filter;
    for (int64_t z = 0; z < c->axes[0].window; z++) {
        for (int64_t y = 0; y < c->axes[1].window; y++) {
            for (int64_t x = 0; x < c->axes[2].window; x++) {
                if (dmlk_stopped(work, 1)) {
                    return sum;
                }
                const int64_t taps[DMLK_SPATIAL] = {z, y, x};
                int64_t from = in, weight = filter;
                enum place where = INSIDE;
                for (int k = 0; k < DMLK_SPATIAL; k++) {
                    int64_t at = 0;
                    const enum place along = find(&c->axes[k], output[k], taps[k], &at);
                    where = along > where ? along : where;
                    from += along == INSIDE ? at * c->input.strides[Z + k] : 0;
                    weight += taps[k] * f->strides[WINDOW + k];
                }
                const float w = read(f, weight);
                if (where == INSIDE) {
                    sum = fmaf(w, read(&c->input, from), sum);
                } else if (where == OUTSIDE && c->pads) {
                    sum = fmaf(w, 0, sum);
                }
            }
        }
    }
    return sum;
}

/* Items: output elements in logical order. */
static void plain_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const dmlk_float_convolution *c = context;
    const dmlk_view *in = &c->input, *out = &c->output, *f = &c->filter;
    int64_t work = 0;
    for (int64_t item = begin; item < end; item++) {
        int64_t index[5], rest = item, to = 0;
        for (int axis = X; axis >= N; axis--) {
            index[axis] = rest % out->sizes[axis];
            rest /= out->sizes[axis];
            to += index[axis] * out->strides[axis];
        }
        const int64_t group = index[CHANNEL] / f->sizes[FILTER], filter = index[CHANNEL] % f->sizes[FILTER];
        float sum = 0;
        for (int64_t channel = 0; channel < f->sizes[OF_GROUP]; channel++) {
            const int64_t of_input = group * f->sizes[OF_GROUP] + channel;
            sum = add_channel(c, index + Z, index[N] * in->strides[N] + of_input * in->strides[CHANNEL],
                              group * f->strides[GROUP] + dmlk_float_filter_at(c, filter) + channel * f->strides[OF_GROUP],
                              sum, &work);
            if (dmlk_stopped(&work, 0)) {
                return;
            }
        }
        const float bias = c->bias.base == NULL ? 0 : read(&c->bias, index[CHANNEL] * c->bias.strides[0]);
        write(out, to, dmlk_one_nan(sum + bias + 0.0f)); /* never -0: skipping a tap gives the same bits as 0 */
    }
}

/* --- the views --- */

/* The view with three spatial axes, its last ones; missing axes are inserted before them, with size 1. */
static dmlk_view with_all_axes(const dmlk_view *view, uint32_t spatial) {
    dmlk_view result = *view;
    const uint32_t first = view->rank - spatial;
    for (uint32_t k = 0; k < DMLK_SPATIAL; k++) {
        const uint32_t missing = DMLK_SPATIAL - spatial;
        result.sizes[first + k] = k < missing ? 1 : view->sizes[first + k - missing];
        result.strides[first + k] = k < missing ? 0 : view->strides[first + k - missing];
    }
    result.rank = first + DMLK_SPATIAL;
    return result;
}

/* False: the windows are not valid, or reach too far. */
static bool set_axis(dmlk_taps_axis *axis, const dmlk_convolution_float *k, uint32_t d) {
    const int64_t stride = k->strides[d], dilation = k->dilations[d], start = k->start_padding[d];
    const int64_t windows = k->backward ? axis->input : axis->output;
    const int64_t reach = dmlk_windows_reach(windows, axis->window, stride, dilation);
    if (reach == 0) {
        return false;
    }
    if (!k->backward) {
        axis->input = dmlk_met_by_windows(axis->input, reach - 1 - start, stride);
    }
    const int64_t sign = k->backward ? -1 : 1;
    axis->step = k->backward ? 1 : stride;
    axis->spread = k->backward ? stride : 1;
    axis->tap = k->reversed ? -sign * dilation : sign * dilation;
    axis->origin = (k->reversed ? sign * (axis->window - 1) * dilation : 0) - sign * start;
    return true;
}

/* Joins the two axes of blocked filters, the blocks and the filters of a block, into one axis. */
static dmlk_view join_blocks(const dmlk_view *view, uint32_t spatial, dmlk_float_convolution *c) {
    dmlk_view filter = *view;
    c->block = c->block_step = 0;
    if (view->rank == spatial + 4) {
        c->block = view->sizes[2];
        c->block_step = view->strides[1];
        filter.rank--;
        filter.sizes[1] *= view->sizes[2];
        filter.strides[1] = view->strides[2];
        for (uint32_t axis = 2; axis < filter.rank; axis++) {
            filter.sizes[axis] = view->sizes[axis + 1];
            filter.strides[axis] = view->strides[axis + 1];
        }
    }
    return filter;
}

/* Sets the convolution from views and constants; false if they do not match. */
static bool set_up(dmlk_float_convolution *c, const dmlk_convolution_float *k, const dmlk_view *views) {
    const dmlk_view *bias = &views[2];
    if (k->spatial < 1 || k->spatial > DMLK_SPATIAL || views[0].rank != k->spatial + 2 ||
        (views[1].rank != k->spatial + 3 && views[1].rank != k->spatial + 4) || views[3].rank != k->spatial + 2) {
        return false;
    }
    c->input = with_all_axes(&views[0], k->spatial);
    const dmlk_view filter = join_blocks(&views[1], k->spatial, c);
    c->filter = with_all_axes(&filter, k->spatial);
    c->output = with_all_axes(&views[3], k->spatial);
    c->bias = *bias;
    c->followers = NULL;
    c->pads = !k->backward;
    const uint32_t missing = DMLK_SPATIAL - k->spatial;
    for (uint32_t a = 0; a < DMLK_SPATIAL; a++) {
        dmlk_taps_axis *axis = &c->axes[a];
        *axis = (dmlk_taps_axis){.input = c->input.sizes[Z + a],
                                 .output = c->output.sizes[Z + a],
                                 .window = c->filter.sizes[WINDOW + a],
                                 .step = 1,
                                 .tap = 1,
                                 .spread = 1};
        if (a >= missing && !set_axis(axis, k, a - missing)) {
            return false;
        }
        c->input.sizes[Z + a] = axis->input;
    }
    const int64_t *sizes = c->filter.sizes;
    return c->input.sizes[N] == c->output.sizes[N] &&
           c->input.sizes[CHANNEL] % sizes[GROUP] == 0 && c->input.sizes[CHANNEL] / sizes[GROUP] == sizes[OF_GROUP] &&
           c->output.sizes[CHANNEL] % sizes[GROUP] == 0 && c->output.sizes[CHANNEL] / sizes[GROUP] == sizes[FILTER] &&
           (bias->base == NULL || (bias->rank == 1 && bias->sizes[0] == c->output.sizes[CHANNEL]));
}

static bool types_fit(const dmlk_view *views) {
    const uint32_t type = views[0].type;
    return (type == DMLK_FLOAT32 || type == DMLK_FLOAT16) && views[1].type == type &&
           (views[2].base == NULL || views[2].type == type) &&
           (views[3].type == type || views[3].type == DMLK_FLOAT32);
}

/* --- the elements of the input that are read --- */

/* Backward: whether a window of input `i` covers an element of the output along the axis. */
static bool adds_something(const dmlk_convolution_float *k, uint32_t d, const dmlk_taps_axis *axis, int64_t i) {
    const int64_t dilation = k->dilations[d], first = i * k->strides[d] - k->start_padding[d];
    const int64_t tap = first >= 0 ? 0 : dmlk_ceil_div(-first, dilation);
    return tap < axis->window && first + tap * dilation < axis->output;
}

#define MAX_INSPECTED (1 << 16) /* indices of an axis that are inspected one by one */

static uint32_t slices_backward(const dmlk_convolution_float *k, uint32_t d, const dmlk_taps_axis *axis,
                                dmlk_slice *slices, bool *has_more) {
    const int64_t stride = k->strides[d], dilation = k->dilations[d], start = k->start_padding[d];
    const int64_t span = (axis->window - 1) * dilation;
    /* The windows that reach the output, if only with the gaps between their taps. */
    const int64_t begin = start <= span ? 0 : dmlk_ceil_div(start - span, stride);
    const int64_t end = dmlk_min(axis->input, (axis->output - 1 + start) / stride + 1);
    const bool is_exact = axis->window == 1 || dilation <= axis->output; /* no gap is as long as the output */
    if (is_exact || end - begin > MAX_INSPECTED) {
        *has_more |= !is_exact;
        slices[0] = is_exact ? (dmlk_slice){.first = begin, .step = 1, .count = end - begin}
                             : (dmlk_slice){.first = 0, .step = 1, .count = axis->input};
        return begin < end;
    }
    uint32_t count = 0;
    for (int64_t i = begin; i < end; i++) {
        if (!adds_something(k, d, axis, i)) {
            continue;
        }
        if (count > 0 && slices[count - 1].first + slices[count - 1].count == i) {
            slices[count - 1].count++;
        } else if (count < DMLK_MOST_SLICES) {
            slices[count++] = (dmlk_slice){.first = i, .step = 1, .count = 1};
        } else {
            *has_more = true;
            slices[0] = (dmlk_slice){.first = 0, .step = 1, .count = axis->input};
            return 1;
        }
    }
    return count;
}

void dmlk_reads_convolution_float(const dmlk_call *call, uint32_t tensor, dmlk_read_set *reads) {
    dmlk_convolution_float k;
    dmlk_float_convolution c;
    if (tensor != 0 || call->view_count != 4 || !dmlk_get_constants(call, &k, sizeof k) || !set_up(&c, &k, call->views)) {
        return;
    }
    for (uint32_t d = 0; d < k.spatial; d++) {
        const dmlk_taps_axis *axis = &c.axes[d + DMLK_SPATIAL - k.spatial];
        if (k.backward) {
            reads->counts[2 + d] = slices_backward(&k, d, axis, reads->slices[2 + d], &reads->has_more);
            continue;
        }
        const dmlk_window_axis moved = {.input = axis->input,
                                        .output = axis->output,
                                        .window = axis->window,
                                        .stride = k.strides[d],
                                        .dilation = k.dilations[d],
                                        .start = k.start_padding[d]};
        reads->counts[2 + d] = dmlk_window_slices(&moved, reads->slices[2 + d], &reads->has_more);
    }
}

int dmlk_run_convolution_float(const dmlk_call *call) {
    dmlk_convolution_float k;
    dmlk_float_convolution c;
    if (!dmlk_has_views(call, 4, 1 << 2) || !dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    if (!types_fit(call->views)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    if (!set_up(&c, &k, call->views)) {
        return DMLK_BAD_PACKET;
    }
#ifndef DMLK_CHECKED
    c.followers = call->followers;
    if ((k.backward && dmlk_convolve_transposed(&c)) || dmlk_convolve_floats(&c)) {
        dmlk_followed(call);
        return DMLK_OK;
    }
#endif
    const int64_t elements = dmlk_view_elements(&c.output);
    const double products = (double)dmlk_view_elements(&c.filter) / (double)c.output.sizes[CHANNEL];
    dmlk_parallel(elements, dmlk_parts(elements, products < 10000 ? (int64_t)(10000 / (products + 1)) + 1 : 1), plain_part, &c);
    return DMLK_OK;
}

/* convolve_float.c - see convolve_float.h.
 *
 * Of each image and group, the output is the product of its filters (filters x taps of all channels) and the patches
 * under the windows (see patches.h); the summed index is in the order of the filter's elements. */
#include "convolve_float.h"

#include "cancellation.h"
#include "gemm_blocked.h"
#include "kernel.h"
#include "scratch.h"

enum { N, CHANNEL, Z, Y, X };
enum { GROUP, FILTER, OF_GROUP, WINDOW };

static const float no_bias = 0;

/* The stride of axes first .. last as one axis, if they follow each other; false: they do not. */
static bool merge(const dmlk_view *view, uint32_t first, uint32_t last, int64_t *stride) {
    int64_t size = 1;
    *stride = 1;
    for (uint32_t axis = last + 1; axis-- > first;) {
        if (view->sizes[axis] == 1) {
            continue;
        }
        if (size == 1) {
            *stride = view->strides[axis];
        } else if (view->strides[axis] != size * *stride) {
            return false;
        }
        size *= view->sizes[axis];
    }
    return true;
}

/* --- filters --- */

/* The filters with a constant distance from each element to the next: as they are, or a copy in `*memory`, which the
 * caller releases. */
static bool line_up_filters(const dmlk_view *filter, dmlk_view *lined, int64_t *stride, void **memory) {
    *lined = *filter;
    *memory = NULL;
    if (merge(filter, OF_GROUP, WINDOW + 2, stride)) {
        return true;
    }
    int64_t elements = 1;
    for (uint32_t axis = filter->rank; axis-- > 0; elements *= filter->sizes[axis]) {
        lined->strides[axis] = elements;
    }
    *stride = 1;
    *memory = dmlk_take(elements * dmlk_type_bytes(filter->type));
    lined->base = *memory;
    return *memory != NULL && dmlk_copy_elements(filter, lined) == DMLK_OK;
}

static bool is_finite(uint32_t type, const uint8_t *at) {
    float x;
    uint16_t half;
    if (type == DMLK_FLOAT16) {
        memcpy(&half, at, sizeof half);
        return (half & 0x7c00u) != 0x7c00u;
    }
    memcpy(&x, at, sizeof x);
    return (dmlk_float_bits(x) & 0x7f800000u) != 0x7f800000u;
}

/* Whether no filter has an infinity or a NaN: then a place that is skipped may as well be multiplied as a 0.  false
 * when stopped. */
static bool are_finite(const dmlk_view *filter) {
    dmlk_iter iter;
    if (dmlk_iter_init(&iter, DMLK_ANY_ORDER, (const dmlk_view *[]){filter}, 1) != DMLK_OK) {
        return false;
    }
    dmlk_cursor cursor;
    dmlk_iter_seek(&iter, 0, &cursor);
    const int64_t step = dmlk_iter_row_strides(&iter)[0] * iter.bytes[0];
    int64_t work = 0;
    bool finite = true;
    for (int64_t done = 0; done < iter.count && finite;) {
        const int64_t count = dmlk_min(dmlk_iter_row_left(&iter, &cursor), DMLK_WORK_BETWEEN_LOOKS);
        if (dmlk_stopped(&work, count)) {
            return false;
        }
        for (int64_t i = 0; i < count; i++) {
            finite &= is_finite(filter->type, cursor.at[0] + i * step);
        }
        done += count;
        dmlk_iter_advance(&iter, &cursor, count);
    }
    return finite;
}

/* --- products --- */

/* The products of all images and groups. */
struct product {
    const dmlk_float_convolution *c;
    dmlk_gemm_blocked gemm;
    dmlk_patches patches;
    dmlk_view filter;
    int64_t tap_stride;
    bool in_rows;    /* one output row at a time */
    bool by_channel; /* channels are closer than positions in the output: they are its columns */
};

/* Whether the patches are the input itself: windows of one element, one for each position. */
static bool is_pointwise(const dmlk_float_convolution *c, int64_t *stride) {
    for (int k = 0; k < DMLK_SPATIAL; k++) {
        const dmlk_taps_axis *axis = &c->axes[k];
        if (axis->window != 1 || axis->step != 1 || axis->origin != 0 || axis->input != axis->output) {
            return false;
        }
    }
    return merge(&c->input, Z, X, stride);
}

static dmlk_view images_and_groups(const dmlk_view *view, int64_t images, int64_t groups, int64_t image_stride,
                                   int64_t group_stride) {
    dmlk_view batch = *view;
    batch.rank = 2;
    batch.sizes[0] = images;
    batch.sizes[1] = groups;
    batch.strides[0] = images == 1 ? 0 : image_stride;
    batch.strides[1] = groups == 1 ? 0 : group_stride;
    return batch;
}

/* The batch of products; `out` is the output, from its first position on. */
static bool set_batch(struct product *p, const dmlk_view *out) {
    const dmlk_float_convolution *c = p->c;
    const int64_t images = out->sizes[N], *sizes = p->filter.sizes, groups = sizes[GROUP];
    dmlk_view bias = c->bias;
    if (bias.base == NULL) {
        bias.base = (uint8_t *)(uintptr_t)&no_bias;
        bias.type = DMLK_FLOAT32;
        bias.strides[0] = 0;
    }
    const dmlk_view batch[4] = {
        images_and_groups(&p->filter, images, groups, 0, p->filter.strides[GROUP]),
        images_and_groups(&c->input, images, groups, c->input.strides[N], sizes[OF_GROUP] * c->input.strides[CHANNEL]),
        images_and_groups(&bias, images, groups, 0, sizes[FILTER] * bias.strides[0]),
        images_and_groups(out, images, groups, out->strides[N], sizes[FILTER] * out->strides[CHANNEL])};
    const int a = p->by_channel;
    return dmlk_iter_init(&p->gemm.batch, DMLK_ANY_ORDER,
                          (const dmlk_view *[]){&batch[a], &batch[!a], &batch[2], &batch[3]}, 4) == DMLK_OK;
}

/* `count` positions of the output from the first one of `out` on, `stride` apart. */
static bool multiply(struct product *p, const dmlk_view *out, int64_t count, int64_t stride) {
    const dmlk_float_convolution *c = p->c;
    dmlk_gemm_blocked *g = &p->gemm;
    const int64_t *sizes = p->filter.sizes;
    const bool has_bias = c->bias.base != NULL;
    dmlk_matrix filters = {p->filter.type, p->filter.strides[FILTER], p->tap_stride, NULL};
    dmlk_matrix inputs = {c->input.type, 0, 0, &p->patches}; /* its columns are positions */
    if (!p->in_rows && is_pointwise(c, &inputs.column_stride)) {
        inputs.row_stride = c->input.strides[CHANNEL];
        inputs.patches = NULL;
    }
    dmlk_matrix bias = {has_bias ? c->bias.type : DMLK_FLOAT32, has_bias ? c->bias.strides[0] : 0, 0, NULL};
    dmlk_matrix to = {out->type, out->strides[CHANNEL], stride, NULL};
    g->m = sizes[FILTER];
    g->n = count;
    g->depth = sizes[OF_GROUP] * sizes[WINDOW] * sizes[WINDOW + 1] * sizes[WINDOW + 2];
    g->a = filters;
    g->b = inputs;
    g->c = bias;
    g->out = to;
    p->by_channel = sizes[FILTER] > 1 && to.row_stride < to.column_stride;
    if (p->by_channel) {
        g->m = count;
        g->n = sizes[FILTER];
        g->a = dmlk_transposed(inputs);
        g->b = dmlk_transposed(filters);
        g->c = dmlk_transposed(bias);
        g->out = dmlk_transposed(to);
    }
    g->has_c = true;
    g->alpha = g->beta = 1;
    g->last = 0;
    g->followers = c->followers;
    return set_batch(p, out) && dmlk_multiply(g);
}

/* All positions at once, or row by row if rows do not follow each other in the output. */
static bool multiply_rows(struct product *p) {
    const dmlk_float_convolution *c = p->c;
    int64_t stride;
    dmlk_patches *patches = &p->patches;
    if (merge(&c->output, Z, X, &stride)) {
        const int64_t *sizes = c->output.sizes;
        return multiply(p, &c->output, sizes[Z] * sizes[Y] * sizes[X], stride);
    }
    p->in_rows = true;
    patches->sizes[0] = patches->sizes[1] = 1;
    for (int64_t row = 0; row < c->output.sizes[Z] * c->output.sizes[Y] && !dmlk_watch_stopped(); row++) {
        patches->first[0] = row / c->output.sizes[Y];
        patches->first[1] = row % c->output.sizes[Y];
        dmlk_view out = c->output;
        const int64_t first = patches->first[0] * out.strides[Z] + patches->first[1] * out.strides[Y];
        out.base += first * dmlk_type_bytes(out.type);
        if (!multiply(p, &out, out.sizes[X], out.strides[X])) {
            return false;
        }
    }
    return true;
}

bool dmlk_convolve_floats(const dmlk_float_convolution *c) {
    struct product p = {.c = c, .patches = {.type = c->input.type, .channel_stride = c->input.strides[CHANNEL]}};
    for (int k = 0; k < DMLK_SPATIAL; k++) {
        if (c->axes[k].spread != 1) {
            return false;
        }
        p.patches.axes[k] = c->axes[k];
        p.patches.strides[k] = c->axes[k].input == 1 ? 0 : c->input.strides[Z + k]; /* unused, and perhaps huge */
        p.patches.sizes[k] = c->output.sizes[Z + k];
    }
    if (!c->pads && !are_finite(&c->filter)) {
        return false;
    }
    if (dmlk_convolve_floats_by_channel(c)) {
        return true;
    }
    void *memory;
    const bool done = line_up_filters(&c->filter, &p.filter, &p.tap_stride, &memory) && multiply_rows(&p);
    dmlk_give(memory);
    return done;
}

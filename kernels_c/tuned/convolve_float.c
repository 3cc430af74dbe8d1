/* convolve_float.c - see convolve_float.h.
 *
 * For each image and group, the output is the product of the filters (filters x taps of all channels) and the patches
 * that the windows cover; the summed index is in the order of the filter's elements.  Patches are packed (see
 * patches.h), or read in place: the address of the element for a position and a tap is then the sum of two offsets
 * from tables. */
#include "convolve_float.h"

#include "cancellation.h"
#include "gemm_blocked.h"
#include "kernel.h"
#include "microkernel_f32.h"
#include "parallel.h"
#include "scratch.h"
#include "staged_input.h"

enum { N, CHANNEL, Z, Y, X };
enum { GROUP, FILTER, OF_GROUP, WINDOW };

#define LEAST_NEIGHBOURS 8 /* filters of a group that are neighbours; with fewer, a copy is read faster */
#define MANY_POSITIONS 128 /* with fewer positions, panels of filters are filled better than panels of positions; */
#define MANY_FOR_LINES 256 /* with fewer than this, too, if filters are neighbours, as they are then read in place */

static const float no_bias = 0;

/* Finds the stride of axes first .. last as one axis; false: they cannot be merged. */
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

/* Where the elements of a filter are: at a constant distance, or as a table says, if filters are neighbours. */
struct taps {
    int64_t stride;
    const int64_t *at;
};

/* A table of where the elements of a filter are, which the caller releases; NULL: there is no memory. */
static int64_t *list_taps(const dmlk_view *filter) {
    const int64_t *sizes = filter->sizes + OF_GROUP, *strides = filter->strides + OF_GROUP;
    int64_t bytes = (int64_t)sizeof(int64_t); /* may overflow, as elements may be repeated (stride 0) */
    for (int i = 0; i < 1 + DMLK_SPATIAL; i++) {
        if (__builtin_mul_overflow(bytes, sizes[i], &bytes)) {
            return NULL;
        }
    }
    int64_t *table = dmlk_take(bytes), *to = table;
    if (table == NULL) {
        return NULL;
    }
    for (int64_t c = 0; c < sizes[0]; c++) {
        for (int64_t z = 0; z < sizes[1]; z++) {
            for (int64_t y = 0; y < sizes[2]; y++) {
                for (int64_t x = 0; x < sizes[3]; x++) {
                    *to++ = c * strides[0] + z * strides[1] + y * strides[2] + x * strides[3];
                }
            }
        }
    }
    return table;
}

/* Finds filters with a constant distance between consecutive elements, or with a table of them: the tensor itself, or
 * a copy.  The caller releases *memory. */
static bool line_up_filters(const dmlk_view *filter, dmlk_view *lined, struct taps *taps, void **memory) {
    *lined = *filter;
    *memory = NULL;
    *taps = (struct taps){0};
    if (merge(filter, OF_GROUP, WINDOW + 2, &taps->stride)) {
        return true;
    }
    if (filter->strides[FILTER] == 1 && filter->sizes[FILTER] >= LEAST_NEIGHBOURS) { /* then nothing repeats them all */
        *memory = list_taps(filter);
        taps->at = *memory;
        return *memory != NULL;
    }
    int64_t elements = 1;
    for (uint32_t axis = filter->rank; axis-- > 0; elements *= filter->sizes[axis]) {
        lined->strides[axis] = elements;
    }
    taps->stride = 1;
    int64_t bytes; /* may overflow, as a filter may be repeated (stride 0) */
    if (!__builtin_mul_overflow(elements, dmlk_type_bytes(filter->type), &bytes)) {
        *memory = dmlk_take(bytes);
    }
    lined->base = *memory;
    return *memory != NULL && dmlk_copy_elements(filter, lined) == DMLK_OK;
}

/* Whether blocks of filters can be columns of a product: the elements of a block are contiguous lines. */
static bool are_columns(const dmlk_float_convolution *c) {
    int64_t stride;
    return c->filter.type == DMLK_FLOAT32 && c->block == DMLK_F32_BLOCK && c->filter.strides[FILTER] == 1 &&
           merge(&c->filter, OF_GROUP, WINDOW + 2, &stride) && stride == DMLK_F32_BLOCK;
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

/* Whether no filter has an infinity or a NaN: then multiplying by 0 gives the same result as skipping a place.
 * Returns false when stopped. */
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
    struct taps taps;
    bool in_rows;    /* one output row at a time */
    bool by_channel; /* channels are closer than positions in the output: they are the columns of the product */
    bool in_blocks;  /* filters are read in place, as columns */
    const int64_t *position_at, *tap_at; /* if not NULL: offsets in the input, a FLOAT32 that contains all windows */
};

/* Whether the patches are the input itself: windows have one element, and there is one for each position. */
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

/* Sets the batch of products; `out` is the output, from its first position on. */
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

/* Whether filters are neighbours that are better read in place than copied, for so many positions: with eight rows in a
 * tile, which use each line.  With four, as those of AVX2, waiting for distant lines costs more than copies. */
static bool are_worth_reading(const dmlk_view *filter, int64_t count) {
    return filter->type == DMLK_FLOAT32 && filter->strides[FILTER] == 1 && filter->sizes[FILTER] % DMLK_F32_BLOCK == 0 &&
           filter->sizes[FILTER] >= count && count < MANY_FOR_LINES &&
           dmlk_microkernel_f32_form->lanes == DMLK_F32_BLOCK;
}

/* Computes `count` positions of the output, from the first one of `out` on, `stride` apart. */
static bool multiply(struct product *p, const dmlk_view *out, int64_t count, int64_t stride) {
    const dmlk_float_convolution *c = p->c;
    dmlk_gemm_blocked *g = &p->gemm;
    const int64_t *sizes = p->filter.sizes;
    const bool has_bias = c->bias.base != NULL;
    dmlk_matrix filters = {
        .type = p->filter.type, .row_stride = p->filter.strides[FILTER], .column_stride = p->taps.stride,
        .column_at = p->taps.at,
        .block = p->in_blocks ? c->block : 0, .block_step = c->block_step};
    dmlk_matrix inputs = {.type = c->input.type, .patches = &p->patches}; /* its columns are positions */
    if (!p->in_rows && is_pointwise(c, &inputs.column_stride)) {
        inputs.row_stride = c->input.strides[CHANNEL];
        inputs.patches = NULL;
    }
    dmlk_matrix bias = {.type = has_bias ? c->bias.type : DMLK_FLOAT32, .row_stride = has_bias ? c->bias.strides[0] : 0};
    dmlk_matrix to = {.type = out->type, .row_stride = out->strides[CHANNEL], .column_stride = stride};
    g->m = sizes[FILTER];
    g->n = count;
    g->depth = sizes[OF_GROUP] * sizes[WINDOW] * sizes[WINDOW + 1] * sizes[WINDOW + 2];
    g->a = filters;
    g->b = inputs;
    g->c = bias;
    g->out = to;
    g->may_read_b = are_worth_reading(&p->filter, count);
    p->by_channel = p->position_at != NULL || (p->in_blocks && count < MANY_POSITIONS) || g->may_read_b ||
                    (sizes[FILTER] > 1 && to.row_stride < to.column_stride);
    if (p->by_channel) {
        g->m = count;
        g->n = sizes[FILTER];
        g->a = dmlk_transposed(inputs);
        g->b = dmlk_transposed(filters);
        g->c = dmlk_transposed(bias);
        g->out = dmlk_transposed(to);
    }
    if (p->position_at != NULL) {
        g->a = (dmlk_matrix){.type = DMLK_FLOAT32, .row_at = p->position_at, .column_at = p->tap_at};
    }
    g->has_c = true;
    g->alpha = g->beta = 1;
    g->last = 0;
    g->followers = c->followers;
    return set_batch(p, out) && dmlk_multiply(g);
}

/* Computes all positions at once, or row by row if the rows of the output cannot be merged. */
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

/* --- products in place --- */

#define LEAST_FILTERS 12 /* filters of a group; fewer use too little of a tile */
#define MOST_STAGED (INT64_C(1) << 25) /* bytes of input that are copied at a time */
#define MOST_PLACES (INT64_C(1) << 40) /* entries of a table */

/* The part of the input that the windows cover, as floats: a copy, with 0 outside the input, or the input itself if
 * that suffices. */
struct stage {
    dmlk_stage copy;
    int64_t images; /* at a time */
    bool in_place;
};

/* false: an image is too large for a copy. */
static bool plan_stage(struct stage *s, const dmlk_float_convolution *c) {
    dmlk_view *view = &s->copy.view;
    s->in_place = c->input.type == DMLK_FLOAT32;
    s->copy.input = &c->input;
    *view = c->input;
    for (int k = 0; k < DMLK_SPATIAL; k++) {
        const dmlk_taps_axis *axis = &c->axes[k];
        const int64_t reach = (axis->window - 1) * axis->tap;
        const int64_t high = (axis->output - 1) * axis->step + axis->origin + (reach > 0 ? reach : 0);
        s->copy.low[k] = axis->origin + (reach < 0 ? reach : 0);
        view->sizes[Z + k] = high - s->copy.low[k] + 1;
        s->in_place = s->in_place && s->copy.low[k] >= 0 && high < axis->input;
    }
    s->copy.last = c->input.strides[CHANNEL] == 1 && c->input.strides[X] == c->input.sizes[CHANNEL];
    s->images = view->sizes[N];
    if (s->in_place) {
        memset(s->copy.low, 0, sizeof s->copy.low);
        return true;
    }
    if (dmlk_stage_floats(&s->copy) > (double)MOST_STAGED) { /* with padding, perhaps beyond 64 bits */
        return false;
    }
    dmlk_lay_out_stage(&s->copy);
    s->images = dmlk_min(s->images, MOST_STAGED / (view->strides[N] * (int64_t)sizeof(float)));
    return s->images > 0;
}

static void stage_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    dmlk_fill_stage(context, begin, end);
}

/* Places of the first tap at each position, and of each channel and tap from there. */
static void fill_tables(const dmlk_float_convolution *c, const dmlk_stage *s, int64_t *position_at, int64_t *tap_at) {
    const int64_t *strides = s->view.strides, *out = c->output.sizes + Z;
    for (int64_t i = 0; i < out[0] * out[1] * out[2]; i++) {
        const int64_t at[DMLK_SPATIAL] = {i / out[2] / out[1], i / out[2] % out[1], i % out[2]};
        position_at[i] = 0;
        for (int k = 0; k < DMLK_SPATIAL; k++) {
            position_at[i] += (at[k] * c->axes[k].step + c->axes[k].origin - s->low[k]) * strides[Z + k];
        }
    }
    const int64_t width = c->axes[2].window, height = c->axes[1].window, taps = c->axes[0].window * height * width;
    for (int64_t i = 0; i < c->filter.sizes[OF_GROUP] * taps; i++) {
        const int64_t t = i % taps;
        tap_at[i] = i / taps * strides[CHANNEL] + t / width / height * c->axes[0].tap * strides[Z] +
                    t / width % height * c->axes[1].tap * strides[Y] + t % width * c->axes[2].tap * strides[X];
    }
}

/* Copies and multiplies a few images at a time. */
static bool multiply_stages(struct product *p, struct stage *s, int64_t stride) {
    const dmlk_float_convolution *c = p->c;
    const int64_t *out = c->output.sizes, count = out[Z] * out[Y] * out[X];
    dmlk_stage *copy = &s->copy;
    for (int64_t image = 0; image < out[N] && !dmlk_watch_stopped(); image += s->images) {
        dmlk_float_convolution some = *c;
        const int64_t images = dmlk_min(s->images, out[N] - image);
        some.input.base += image * c->input.strides[N] * dmlk_type_bytes(c->input.type);
        some.input.sizes[N] = some.output.sizes[N] = images;
        some.output.base += image * c->output.strides[N] * dmlk_type_bytes(c->output.type);
        const dmlk_view from = some.input;
        dmlk_pool_phase fill;
        if (!s->in_place) {
            copy->input = &from;
            copy->view.sizes[N] = images;
            const int64_t lines = dmlk_stage_lines(copy);
            const int parts = dmlk_parts(dmlk_view_elements(&copy->view), 1 << 13); /* 32 KiB: 1 to 2 us */
            fill = (dmlk_pool_phase){
                .items = lines, .parts = (int)dmlk_min(parts, lines), .run = stage_part, .context = copy};
            some.input = copy->view;
        }
        p->c = &some;
        p->gemm.before = s->in_place ? NULL : &fill;
        if (!multiply(p, &some.output, count, stride)) {
            return false;
        }
    }
    return true;
}

static bool multiply_in_place(struct product *p, struct stage *s, int64_t stride) {
    const int64_t *out = p->c->output.sizes, positions = out[Z] * out[Y] * out[X];
    const int64_t floats = s->in_place ? 0 : s->images * s->copy.view.strides[N], *filter = p->filter.sizes;
    const int64_t depth = filter[OF_GROUP] * filter[WINDOW] * filter[WINDOW + 1] * filter[WINDOW + 2];
    if (positions > MOST_PLACES || depth > MOST_PLACES) {
        return false;
    }
    int64_t *tables = dmlk_take((positions + depth) * (int64_t)sizeof *tables + floats * (int64_t)sizeof(float));
    if (tables == NULL) {
        return false;
    }
    if (!s->in_place) {
        s->copy.view.base = (uint8_t *)(tables + positions + depth);
    }
    fill_tables(p->c, &s->copy, tables, tables + positions);
    p->position_at = tables;
    p->tap_at = tables + positions;
    const bool done = multiply_stages(p, s, stride);
    dmlk_give(tables);
    return done;
}

/* Whether reading in place is faster than packing patches: filters are in blocks, so that only patches would be
 * packed; or the elements of a tap are not contiguous, because channels are, or because windows have a stride. */
static bool is_better_in_place(const struct product *p) {
    const dmlk_float_convolution *c = p->c;
    const int64_t *filter = p->filter.sizes;
    const bool packs = (p->in_blocks && filter[WINDOW + 2] > 1) || c->input.strides[CHANNEL] < c->input.strides[X] || (c->axes[2].step > 1 && filter[WINDOW + 2] > 1);
    return packs && filter[FILTER] >= LEAST_FILTERS;
}

static bool multiply_all(struct product *p) {
    int64_t stride, across;
    struct stage stage;
    if (is_better_in_place(p) && !is_pointwise(p->c, &across) && merge(&p->c->output, Z, X, &stride) &&
        plan_stage(&stage, p->c)) {
        return multiply_in_place(p, &stage, stride);
    }
    return multiply_rows(p);
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
    if (c->block != 0) { /* for backward convolutions only convolve_transposed.c reads such blocks */
        p.in_blocks = true;
        p.filter = c->filter;
        p.taps.stride = c->block;
        return c->pads && are_columns(c) && multiply_all(&p);
    }
    if (!c->pads && !are_finite(&c->filter)) {
        return false;
    }
    if (dmlk_convolve_floats_by_channel(c)) {
        return true;
    }
    void *memory;
    const bool done = line_up_filters(&c->filter, &p.filter, &p.taps, &memory) && multiply_all(&p);
    dmlk_give(memory);
    return done;
}

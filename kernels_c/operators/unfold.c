/* unfold: the elements at each place of a window that moves over an image, as columns; 0 in the padding.  Elements
 * are copied bit by bit. */
#include "columns.h"
#include "packed_output.h"
#include "checked.h"
#include "windows.h"

void dmlk_reads_unfold(const dmlk_call *call, uint32_t tensor, dmlk_read_set *reads) {
    dmlk_columns c;
    if (tensor != 0 || call->view_count != 2 || !dmlk_columns_init(call, &call->views[0], &call->views[1], &c)) {
        return;
    }
    for (uint32_t d = 0; d < c.k.spatial; d++) {
        const dmlk_window_axis axis = {.input = call->views[0].sizes[DMLK_IMAGE_AXES + d],
                                       .output = c.k.blocks[d],
                                       .window = c.k.window[d],
                                       .stride = c.k.strides[d],
                                       .dilation = c.k.dilations[d],
                                       .start = c.k.start_padding[d]};
        reads->counts[DMLK_IMAGE_AXES + d] =
            dmlk_window_slices(&axis, reads->slices[DMLK_IMAGE_AXES + d], &reads->has_more);
    }
}

/* Copies the part of the columns that belongs to one place of the window. */
static int copy_place(const dmlk_columns *c, const dmlk_view *image, const uint32_t *place, dmlk_view out) {
    const uint64_t zero = 0;
    dmlk_view in = *image;
    int64_t first[DMLK_MAX_RANK] = {0}, count[DMLK_MAX_RANK];
    bool any = true;
    count[0] = out.sizes[0];
    count[1] = out.sizes[1];
    for (uint32_t d = DMLK_IMAGE_AXES; d < c->rank; d++) {
        const uint32_t axis = d - DMLK_IMAGE_AXES;
        const int64_t at = dmlk_blocks_inside(c, axis, image->sizes[d], place[axis], &first[d], &count[d]);
        any = any && count[d] > 0;
        if (any) {
            dmlk_cut(&in, d, at, c->k.strides[axis], count[d]);
        }
    }
    const int status = dmlk_fill_around(&out, first, count, &zero);
    return any && status == DMLK_OK ? dmlk_copy_elements(&in, &out) : status;
}

/* --- packed columns: row by row, so that an image is read from the caches for all places but the first --- */

struct job {
    dmlk_columns c;
    const dmlk_view *image, *columns;
};

/* The blocks along an axis whose element is inside the image.  The first has element `in`, the next `in` + `step`. */
struct inside {
    int64_t first, count, in, step;
};

static dmlk_span span_of(const void *context, uint32_t d, int64_t o) {
    const struct inside *inside = (const struct inside *)context + d;
    const int64_t number = o - inside->first;
    if (number >= 0 && number < inside->count) {
        return (dmlk_span){inside->in + number * inside->step, inside->step, inside->count - number, false};
    }
    return (dmlk_span){.count = number < 0 ? -number : INT64_MAX / 2, .is_constant = true};
}

/* Writes rows of the columns; a row is one place of the window in one channel. */
static void write_rows(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct job *job = context;
    const dmlk_columns *c = &job->c;
    const dmlk_view *image = job->image;
    const int64_t channels = image->sizes[1], blocks = job->columns->sizes[job->columns->rank - 1];
    const dmlk_view plane = dmlk_view_select(image, ~(uint32_t)3);
    const uint64_t zero = 0;
    dmlk_packed_output o;
    int64_t sizes[6];
    for (uint32_t d = 0; d < c->k.spatial; d++) {
        sizes[d] = c->k.blocks[d];
    }
    dmlk_packed_begin(&o, job->columns, begin * blocks);
    for (int64_t row = begin; row < end && !dmlk_stopped(&o.work, 1); row++) {
        struct inside inside[6];
        int64_t place = row % c->places;
        const int64_t of = row / c->places;
        for (uint32_t d = c->k.spatial; d-- > 0; place /= c->k.window[d]) {
            struct inside *i = &inside[d];
            i->step = c->k.strides[d];
            i->in = dmlk_blocks_inside(c, d, plane.sizes[d], (uint32_t)(place % c->k.window[d]), &i->first, &i->count);
        }
        const dmlk_spans spans = {&plane, sizes, c->k.spatial, span_of, inside, &zero};
        const int64_t first = of / channels * image->strides[0] + of % channels * image->strides[1];
        dmlk_packed_spans(&o, &spans, 0, image->base + first * o.bytes);
    }
    dmlk_packed_end(&o);
}

int dmlk_run_unfold(const dmlk_call *call) {
    dmlk_columns c;
    if (!dmlk_has_views(call, 2, 0) || !dmlk_columns_init(call, &call->views[0], &call->views[1], &c)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *in = &call->views[0], *out = &call->views[1];
    if (dmlk_bits_type(in->type) == DMLK_UNKNOWN || dmlk_bits_type(in->type) != dmlk_bits_type(out->type)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    if (!dmlk_in_checked_kernel() && dmlk_is_packed(out) && in->strides[in->rank - 1] == 1) {
        struct job job = {c, in, out};
        const int64_t rows = in->sizes[0] * in->sizes[1] * c.places;
        dmlk_parallel(rows, dmlk_row_parts(rows, out->sizes[out->rank - 1]), write_rows, &job);
        return DMLK_OK;
    }
    uint32_t place[6] = {0};
    int64_t number = 0, work = 0;
    int status;
    do {
        status = copy_place(&c, in, place, dmlk_columns_of_place(&c, out, number++));
    } while (status == DMLK_OK && dmlk_next_window_place(&c, place) && !dmlk_stopped(&work, 1 << 10));
    return status;
}

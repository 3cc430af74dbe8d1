/* unfold: the elements under each place of a window that moves over an image, as columns; 0 in the padding.  Elements
 * are copied bit by bit. */
#include "columns.h"
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

/* The columns of one place of the window. */
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

int dmlk_run_unfold(const dmlk_call *call) {
    dmlk_columns c;
    if (!dmlk_has_views(call, 2, 0) || !dmlk_columns_init(call, &call->views[0], &call->views[1], &c)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *in = &call->views[0], *out = &call->views[1];
    if (dmlk_bits_type(in->type) == DMLK_UNKNOWN || dmlk_bits_type(in->type) != dmlk_bits_type(out->type)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    uint32_t place[6] = {0};
    int64_t number = 0, work = 0;
    int status;
    do {
        status = copy_place(&c, in, place, dmlk_columns_of_place(&c, out, number++));
    } while (status == DMLK_OK && dmlk_next_window_place(&c, place) && !dmlk_stopped(&work, 1 << 10));
    return status;
}

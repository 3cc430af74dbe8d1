/* space_depth: moves block x block elements of the last two axes to the channels, axis 1, or back; bit by bit.  Both
 * tensors are viewed with six axes: batch, channel, y and x in the block, row and column of blocks. */
#include "space_depth.h"

#include "boxes.h"

/* Gives the view the six axes. */
static void set_layout(dmlk_view *view, const int64_t *sizes, const int64_t *strides) {
    view->rank = 6;
    memcpy(view->sizes, sizes, 6 * sizeof *sizes);
    memcpy(view->strides, strides, 6 * sizeof *strides);
}

static bool is_multiple(int64_t whole, int64_t factor, int64_t part) {
    return whole % factor == 0 && whole / factor == part;
}

int dmlk_run_space_depth(const dmlk_call *call) {
    dmlk_space_depth k;
    if (!dmlk_has_views(call, 2, 0) || !dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    dmlk_view space = call->views[k.to_space ? 1 : 0], deep = call->views[k.to_space ? 0 : 1];
    if (dmlk_bits_type(space.type) == DMLK_UNKNOWN || dmlk_bits_type(space.type) != dmlk_bits_type(deep.type)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    const int64_t block = k.block, channels = space.sizes[1], *s = space.strides, *d = deep.strides;
    const bool fits = space.rank == 4 && deep.rank == 4 && block >= 1 && space.sizes[0] == deep.sizes[0] &&
                      deep.sizes[1] % block == 0 && is_multiple(deep.sizes[1] / block, block, channels) &&
                      is_multiple(space.sizes[2], block, deep.sizes[2]) &&
                      is_multiple(space.sizes[3], block, deep.sizes[3]);
    if (!fits) {
        return DMLK_BAD_PACKET;
    }
    const int64_t step = k.depth_first ? 1 : channels, sizes[] = {space.sizes[0], channels, block, block, deep.sizes[2], deep.sizes[3]};
    const int64_t spatial[] = {s[0], s[1], s[2], s[3], s[2] * block, s[3] * block};
    const int64_t stacked[] = {d[0], d[1] * (k.depth_first ? block * block : 1), d[1] * step * block, d[1] * step, d[2], d[3]};
    set_layout(&space, sizes, spatial);
    set_layout(&deep, sizes, stacked);
    return k.to_space ? dmlk_copy_elements(&deep, &space) : dmlk_copy_elements(&space, &deep);
}

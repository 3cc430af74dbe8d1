/* upsample_2d: enlarges the last two axes by whole factors; each element is repeated. */
#include "upsample_2d.h"

#include "boxes.h"

/* Splits an axis of the output into inputs and their copies. */
static void repeat(dmlk_view *in, dmlk_view *out, uint32_t axis, int64_t factor) {
    const uint32_t copies = in->rank++;
    in->sizes[copies] = out->sizes[copies] = factor;
    in->strides[copies] = 0;
    out->strides[copies] = out->strides[axis];
    out->strides[axis] *= factor;
    out->sizes[axis] = in->sizes[axis];
    out->rank = in->rank;
}

int dmlk_run_upsample_2d(const dmlk_call *call) {
    dmlk_upsample_2d k;
    if (!dmlk_has_views(call, 2, 0) || !dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    dmlk_view in = call->views[0], out = call->views[1];
    if (in.type != out.type || dmlk_bits_type(in.type) == DMLK_UNKNOWN) {
        return DMLK_NOT_IMPLEMENTED;
    }
    bool fits = in.rank == out.rank && in.rank >= 2 && in.rank + 2 <= DMLK_MAX_RANK && k.height >= 1 && k.width >= 1;
    for (uint32_t d = 0; fits && d < in.rank; d++) {
        const int64_t factor = d + 2 == in.rank ? k.height : d + 1 == in.rank ? k.width : 1;
        fits = out.sizes[d] / in.sizes[d] == factor && out.sizes[d] % in.sizes[d] == 0;
    }
    if (!fits) {
        return DMLK_BAD_PACKET;
    }
    repeat(&in, &out, in.rank - 2, k.height);
    repeat(&in, &out, in.rank - 2, k.width);
    return dmlk_copy_elements(&in, &out);
}

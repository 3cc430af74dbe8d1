/* copy: out = in, bit by bit; only the layout may differ. */
#include "kernel.h"

int dmlk_run_copy(const dmlk_call *call) {
    if (!dmlk_has_views(call, 2, 0)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *in = &call->views[0], *out = &call->views[1];
    if (dmlk_bits_type(in->type) == DMLK_UNKNOWN || dmlk_bits_type(in->type) != dmlk_bits_type(out->type)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    return dmlk_copy_elements(in, out);
}

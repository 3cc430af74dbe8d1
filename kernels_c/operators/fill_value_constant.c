/* fill_value_constant: one value in every element of out. */
#include "fill_value_constant.h"

#include "boxes.h"

int dmlk_run_fill_value_constant(const dmlk_call *call) {
    dmlk_fill_value_constant k;
    if (!dmlk_has_views(call, 1, 0) || !dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *out = &call->views[0];
    return dmlk_bits_type(out->type) == DMLK_UNKNOWN ? DMLK_NOT_IMPLEMENTED : dmlk_fill(out, &k.value);
}

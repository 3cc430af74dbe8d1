/* constant_data: out = the packet's constants, byte for byte; out is a row of elements without gaps, and of as many
 * bytes. */
#include "kernel.h"

int dmlk_run_constant_data(const dmlk_call *call) {
    if (!dmlk_has_views(call, 1, 0)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *out = &call->views[0];
    if (out->rank != 1 || out->strides[0] != 1 || out->byte_size != call->constants_size ||
        (uint64_t)(out->sizes[0] * dmlk_type_bytes(out->type)) != out->byte_size) {
        return DMLK_BAD_PACKET;
    }
    DMLK_STORE_BYTES(out->base, call->constants, (size_t)call->constants_size);
    return DMLK_OK;
}

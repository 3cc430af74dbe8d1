/* constant_data: out = the packet's constants, byte for byte; out is packed and has the same size. */
#include "kernel.h"

int dmlk_run_constant_data(const dmlk_call *call) {
    if (!dmlk_has_views(call, 1, 0)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *out = &call->views[0];
    dmlk_iter iter;
    int status = dmlk_iter_init(&iter, DMLK_LOGICAL_ORDER, &out, 1);
    if (status != DMLK_OK) {
        return status;
    }
    const bool packed = iter.rank == 1 && (iter.count == 1 || dmlk_iter_row_strides(&iter)[0] == 1);
    if (!packed || (uint64_t)(iter.count * iter.bytes[0]) != out->byte_size || out->byte_size != call->constants_size) {
        return DMLK_BAD_PACKET;
    }
    DMLK_STORE_BYTES(out->base, call->constants, (size_t)call->constants_size);
    return DMLK_OK;
}

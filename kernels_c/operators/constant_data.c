/* constant_data: out = the packet's constants, byte for byte; both have the same number of bytes. */
#include "kernel.h"

int dmlk_run_constant_data(const dmlk_call *call) {
    if (!dmlk_has_views(call, 1, 0) || call->views[0].byte_size != call->constants_size) {
        return DMLK_BAD_PACKET;
    }
    DMLK_STORE_BYTES(call->views[0].base, call->constants, (size_t)call->constants_size);
    return DMLK_OK;
}

#include "kernel.h"

bool dmlk_has_views(const dmlk_call *call, uint32_t views, uint32_t optional_mask) {
    bool present = call->view_count == views;
    for (uint32_t k = 0; present && k < views; k++) {
        present = call->views[k].base != NULL || (optional_mask >> k & 1);
    }
    return present;
}

bool dmlk_get_constants(const dmlk_call *call, void *constants, uint64_t size) {
    if (call->constants_size != size) {
        return false;
    }
    memcpy(constants, call->constants, size);
    return true;
}

void dmlk_define_part(const dmlk_call *call, uint32_t tensor, uint32_t dimension, int64_t count) {
    call->fault->partial_tensor = tensor;
    call->fault->partial_dimension = dimension;
    call->fault->partial_count = (uint64_t)count;
}

#include "kernel.h"

int dmlk_run_element_wise_bit_count(const dmlk_call *call) {
    (void)call;
    return DMLK_NOT_IMPLEMENTED;
}

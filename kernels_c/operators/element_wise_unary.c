#include "kernel.h"

int dmlk_run_element_wise_unary(const dmlk_call *call) {
    (void)call;
    return DMLK_NOT_IMPLEMENTED;
}

#include "kernel.h"

int dmlk_run_convolution_integer(const dmlk_call *call) {
    (void)call;
    return DMLK_NOT_IMPLEMENTED;
}

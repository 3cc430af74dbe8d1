#include "kernel.h"

int dmlk_run_cast(const dmlk_call *call) {
    (void)call;
    return DMLK_NOT_IMPLEMENTED;
}

#include "kernel.h"

typedef struct kernel {
    const char *name;
    int (*run)(const dmlk_call *call);
} kernel;

static const kernel kernels[] = {
#define DMLK_KERNEL(stem) {#stem, dmlk_run_##stem},
#include "kernel_list.inc"
#undef DMLK_KERNEL
};

uint32_t dmlk_kernel_count(void) { return (uint32_t)(sizeof kernels / sizeof kernels[0]); }

const char *dmlk_kernel_name(uint32_t number) {
    return number < dmlk_kernel_count() ? kernels[number].name : NULL;
}

int dmlk_dispatch(const uint8_t *packet, uint64_t packet_size, const dmlk_segment *segments,
                  uint64_t segment_count, dmlk_fault *fault) {
    (void)packet; (void)packet_size; (void)segments; (void)segment_count; (void)fault;
    return DMLK_BAD_PACKET;
}

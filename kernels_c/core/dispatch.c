#include "dmlk.h"
uint32_t dmlk_kernel_count(void) { return 0; }
const char *dmlk_kernel_name(uint32_t kernel) { (void)kernel; return NULL; }
int dmlk_dispatch(const uint8_t *packet, uint64_t packet_size, const dmlk_segment *segments,
                  uint64_t segment_count, dmlk_fault *fault) {
    (void)packet; (void)packet_size; (void)segments; (void)segment_count; (void)fault;
    return DMLK_BAD_PACKET;
}

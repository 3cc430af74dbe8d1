/* packets.h - random dispatch packets: good ones of every kernel, and what breaks them. */
#ifndef DMLK_TEST_PACKETS_H
#define DMLK_TEST_PACKETS_H

#include "device.h"

/* Begins a good packet for the kernel with this number: any types, sizes, layouts and constants that it takes.  What
 * it only reads has the access READ.  A kernel of which nothing is known here ends the program. */
void packet_random(device *d, uint32_t kernel);

/* What the table of element-wise functions says of a kernel; NULL: it is none of them. */
struct element_wise_function {
    const char *name;
    uint32_t inputs;
    bool is_scaled; /* of numbers: scale and bias, and FLOAT16 to FLOAT32 and back, else of bits */
    bool is_float;  /* in double */
    bool is_count;
};
const struct element_wise_function *element_wise_function(uint32_t kernel);

/* Any kernel, with tensors of equal sizes and constants of some size. */
void packet_any(device *d);

/* Changes a word of the packet or of the descriptors, or cuts the packet. */
void packet_break(device *d);

#endif

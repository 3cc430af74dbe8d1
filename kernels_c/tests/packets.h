/* packets.h - random dispatch packets: valid ones for every kernel, and ways to corrupt them. */
#ifndef DMLK_TEST_PACKETS_H
#define DMLK_TEST_PACKETS_H

#include "device.h"

/* Makes a valid packet for the kernel with this number: any types, sizes, layouts and constants that it supports.
 * Inputs have READ access.  A kernel that is not known here ends the program. */
void packet_random(device *d, uint32_t kernel);

/* A kernel's entry in the table of element-wise functions; NULL: none. */
struct element_wise_function {
    const char *name;
    uint32_t inputs;
    bool is_scaled; /* of numbers, with scale and bias and mixed FLOAT16 and FLOAT32; otherwise of bits */
    bool no_long;   /* no 64-bit integers */
    bool is_count;  /* the output is UINT8 or UINT32 */
    bool is_choice; /* the first input is UINT8 */
    bool only_floats;
};
const struct element_wise_function *element_wise_function(uint32_t kernel);

/* Makes a packet for any kernel, with tensors of equal sizes and constants of a random size. */
void packet_any(device *d);

/* Changes a word of the packet or of the descriptors, or cuts the packet. */
void packet_break(device *d);

#endif

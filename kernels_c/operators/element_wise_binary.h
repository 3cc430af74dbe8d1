#ifndef DMLK_ELEMENT_WISE_BINARY_H
#define DMLK_ELEMENT_WISE_BINARY_H

#include "dmlk.h"

/* cffi: begin */

enum dmlk_binary {
    DMLK_BINARY_ADD = 0,    /* a + b; integers wrap */
    DMLK_BINARY_BIT_XOR = 1 /* of the raw bits, whatever the type */
};

/* Views: a, b, out.  Types equal; ADD also with FLOAT16 inputs and out FLOAT32. */
typedef struct dmlk_element_wise_binary {
    uint32_t function; /* enum dmlk_binary */
} dmlk_element_wise_binary;

/* cffi: end */

#endif

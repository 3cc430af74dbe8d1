/* fill_value_sequence.h - constants of the fill_value_sequence kernel. */
#ifndef DMLK_FILL_VALUE_SEQUENCE_H
#define DMLK_FILL_VALUE_SEQUENCE_H

#include <stdint.h>

/* cffi: begin */

typedef struct dmlk_fill_value_sequence {
    uint64_t start; /* bits of an element, in the lowest bytes */
    uint64_t delta;
} dmlk_fill_value_sequence;

/* cffi: end */

#endif

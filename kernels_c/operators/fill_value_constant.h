/* fill_value_constant.h - constants of the fill_value_constant kernel. */
#ifndef DMLK_FILL_VALUE_CONSTANT_H
#define DMLK_FILL_VALUE_CONSTANT_H

#include <stdint.h>

/* cffi: begin */

typedef struct dmlk_fill_value_constant {
    uint64_t value; /* bits of an element, in the lowest bytes */
} dmlk_fill_value_constant;

/* cffi: end */

#endif

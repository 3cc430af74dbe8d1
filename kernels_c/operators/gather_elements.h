/* gather_elements.h - constants of the gather_elements kernel. */
#ifndef DMLK_GATHER_ELEMENTS_H
#define DMLK_GATHER_ELEMENTS_H

#include <stdint.h>

/* cffi: begin */

typedef struct dmlk_gather_elements {
    uint32_t axis;
} dmlk_gather_elements;

/* cffi: end */

#endif

/* concatenate.h - constants of the concatenate kernel. */
#ifndef DMLK_CONCATENATE_H
#define DMLK_CONCATENATE_H

#include <stdint.h>

/* cffi: begin */

typedef struct dmlk_concatenate {
    uint32_t axis;
} dmlk_concatenate;

/* cffi: end */

#endif

/* hardmax.h - constants of the hardmax kernel. */
#ifndef DMLK_HARDMAX_H
#define DMLK_HARDMAX_H

#include <stdint.h>

/* cffi: begin */

typedef struct dmlk_hardmax {
    uint32_t axes_mask; /* bit d: a group extends along axis d */
} dmlk_hardmax;

/* cffi: end */

#endif

/* upsample_2d.h - constants of the upsample_2d kernel. */
#ifndef DMLK_UPSAMPLE_2D_H
#define DMLK_UPSAMPLE_2D_H

#include <stdint.h>

/* cffi: begin */

typedef struct dmlk_upsample_2d {
    uint32_t height, width; /* factors of the last two axes */
} dmlk_upsample_2d;

/* cffi: end */

#endif

/* take_slice.h - constants of the take_slice kernel. */
#ifndef DMLK_TAKE_SLICE_H
#define DMLK_TAKE_SLICE_H

#include <stdint.h>

/* cffi: begin */

typedef struct dmlk_take_slice {
    uint32_t first[8];
    int64_t step[8];
} dmlk_take_slice;

/* cffi: end */

#endif

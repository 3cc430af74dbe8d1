/* put_slice.h - constants of the put_slice kernel. */
#ifndef DMLK_PUT_SLICE_H
#define DMLK_PUT_SLICE_H

#include <stdint.h>

/* cffi: begin */

typedef struct dmlk_put_slice {
    uint32_t first[8];
    int32_t step[8];
} dmlk_put_slice;

/* cffi: end */

#endif

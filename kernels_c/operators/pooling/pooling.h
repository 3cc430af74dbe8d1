#ifndef DMLK_POOLING_H
#define DMLK_POOLING_H

#include "dmlk.h"

/* cffi: begin */

/* Constants of every kernel in functions.inc.  Views: input and output, {N, C, spatial axes}, of one type.  The
 * output may have any size: the part of a window beyond the padding is ignored.  Of each array the first `spatial`
 * elements are used. */
typedef struct dmlk_pooling {
    uint32_t spatial; /* 1 to 3 */
    uint32_t window[3];
    uint32_t strides[3];
    uint32_t dilations[3];
    uint32_t start_padding[3];
    uint32_t end_padding[3];
    uint32_t include_padding; /* 1: positions in the padding are counted */
} dmlk_pooling;

/* cffi: end */

#endif

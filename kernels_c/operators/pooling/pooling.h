#ifndef DMLK_POOLING_H
#define DMLK_POOLING_H

#include "dmlk.h"

/* cffi: begin */

/* Constants of every kernel in functions.inc.  Views, {N, C, spatial axes}: input and output, of one type;
 *   max_pooling                       then optionally the positions of the maxima, as in the packed input
 *   quantized_linear_average_pooling  between them scale and zero point of the input and of the output, with one
 *                                     element or one for each channel; zero points may be absent
 * The output may have any size: the part of a window beyond the padding is ignored.  The first `spatial` elements of
 * each array are used. */
typedef struct dmlk_pooling {
    uint32_t spatial; /* 1 to 3 */
    uint32_t window[3];
    uint32_t strides[3];
    uint32_t dilations[3];
    uint32_t start_padding[3];
    uint32_t end_padding[3];
    uint32_t include_padding; /* 1: positions in the padding are counted */
    uint32_t power;           /* of lp_pooling */
} dmlk_pooling;

/* cffi: end */

#endif

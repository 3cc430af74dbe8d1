#ifndef DMLK_POOLING_GRAD_H
#define DMLK_POOLING_GRAD_H

#include "dmlk.h"

/* cffi: begin */

/* Constants of every kernel in functions.inc.  Views, {N, C, spatial axes} and of one type: for max_pooling_grad the
 * input of the pooling; the gradient of its output; the gradient of its input.  Fields as in dmlk_pooling. */
typedef struct dmlk_pooling_grad {
    uint32_t spatial; /* 1 to 3 */
    uint32_t window[3];
    uint32_t strides[3];
    uint32_t dilations[3];
    uint32_t start_padding[3];
    uint32_t end_padding[3];
    uint32_t include_padding;
} dmlk_pooling_grad;

/* cffi: end */

#endif

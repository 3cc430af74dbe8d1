#ifndef DMLK_CONVOLUTION_FLOAT_H
#define DMLK_CONVOLUTION_FLOAT_H

#include "dmlk.h"

/* cffi: begin */

/* Views: input {n, groups * channels, spatial...}, filter {groups, filters, channels, spatial...}, bias (optional)
 * {groups * filters}, output {n, groups * filters, spatial...}.  `filters` and `channels` count those of a group; for
 * both directions the strides of the view lead to this order.  All are FLOAT32 or all FLOAT16, but the output may be
 * FLOAT32 while the others are FLOAT16.  Input and output may have any spatial sizes: each element of the output
 * (backward: of the input) has a window. */
typedef struct dmlk_convolution_float {
    uint32_t spatial;  /* spatial dimensions: 1 to 3; the arrays have as many valid elements */
    uint32_t backward; /* 1: each input element adds to the places that its window covers in the output */
    uint32_t reversed; /* 1: the filter is reversed along every spatial axis */
    uint32_t strides[3];
    uint32_t dilations[3];
    uint32_t start_padding[3]; /* of the output, if backward */
} dmlk_convolution_float;

/* cffi: end */

#endif

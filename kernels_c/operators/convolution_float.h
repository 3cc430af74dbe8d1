#ifndef DMLK_CONVOLUTION_FLOAT_H
#define DMLK_CONVOLUTION_FLOAT_H

#include "dmlk.h"

/* cffi: begin */

/* Views: input {n, groups * channels, spatial...}, filter {groups, filters, channels, spatial...} (of a group: both
 * directions read it this way, by strides), bias (optional) {groups * filters}, output {n, groups * filters,
 * spatial...}.  FLOAT32 or FLOAT16, all alike; the output may be FLOAT32 while the others are FLOAT16.  Input and output
 * may have any spatial sizes: the windows are those of the output's elements (backward: of the input's). */
typedef struct dmlk_convolution_float {
    uint32_t spatial;  /* spatial dimensions: 1 to 3; of the arrays as many numbers are used */
    uint32_t backward; /* 1: each input element adds to the places that its window covers in the output */
    uint32_t reversed; /* 1: the filter is turned round along every spatial axis */
    uint32_t strides[3];
    uint32_t dilations[3];
    uint32_t start_padding[3]; /* of the output, if backward */
} dmlk_convolution_float;

/* cffi: end */

#endif

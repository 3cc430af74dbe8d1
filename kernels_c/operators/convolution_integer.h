#ifndef DMLK_CONVOLUTION_INTEGER_H
#define DMLK_CONVOLUTION_INTEGER_H

#include "dmlk.h"

/* cffi: begin */

/* Views: input, input zero point (optional), filter, filter zero point (optional), sums of the filter (optional), output.
 * Zero points have rank 1: one element, or for the filter one per output channel.
 * The filter may be blocked: then its axes are filters / a, a, channels / b, b and the spatial axes.
 * Sums are INT32 and have the axes output channels and spatial axes: each filter element, summed over the channels of its
 * group.  They only save the kernel from computing them.
 * With spatial = 1 (tensors of rank 3) only the first element of each array is used.
 * The output may have any spatial sizes: each of its elements has a window. */
typedef struct dmlk_convolution_integer {
    uint32_t spatial; /* spatial dimensions: 1 or 2 */
    uint32_t groups;
    uint32_t strides[2];
    uint32_t dilations[2];
    uint32_t start_padding[2];
} dmlk_convolution_integer;

/* cffi: end */

#endif

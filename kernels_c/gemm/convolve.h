/* convolve.h - the fast way to convolve bytes. */
#ifndef DMLK_CONVOLVE_H
#define DMLK_CONVOLVE_H

#include <stdbool.h>

#include "view.h"

/* A convolution of INT8 or UINT8 with sums that wrap; arrays go by axis: N, channel, Y, X. */
typedef struct dmlk_convolution {
    dmlk_view input, filter, output;            /* rank 4 */
    int64_t strides[4], dilations[4], start[4]; /* of Y and X */
    int64_t groups;
    int input_zero;
    const dmlk_view *filter_zero; /* one element or one for each filter; base NULL: 0 */
} dmlk_convolution;

/* Runs it, with the same bits as the plain kernel.  false: nothing was done, it has no memory for this one. */
bool dmlk_convolve_bytes(const dmlk_convolution *convolution);

#endif

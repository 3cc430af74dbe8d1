/* pool_float.h - the tuned maximum and average poolings of FLOAT32 and FLOAT16. */
#ifndef DMLK_POOL_FLOAT_H
#define DMLK_POOL_FLOAT_H

#include "convolve_float.h"

/* The filter of `pooling` has only sizes, which are all 1, and the bias is ignored.  `counts`: for each axis, how many taps
 * of each output are counted in its mean; NULL: the maximum.  `indices` (rank 5, UINT32 or UINT64, may be NULL): where the
 * first maximum is in the packed input.  Bit-identical to the plain kernel.  false: nothing was done: not applicable, or
 * out of memory. */
bool dmlk_pool_floats(const dmlk_float_convolution *pooling, const float *const *counts, const dmlk_view *indices);

#endif

/* pool_float.h - the tuned kernel of maxima and means of FLOAT32 and FLOAT16. */
#ifndef DMLK_POOL_FLOAT_H
#define DMLK_POOL_FLOAT_H

#include "convolve_float.h"

/* Of `pooling` the filter's sizes are 1, its other fields and the bias unused.  `counts`: along each axis, how many places
 * of the window of each output are counted; NULL: maxima.  `positions` (rank 5): UINT32 or UINT64, where in the packed
 * input the first of the maxima is; may be NULL.  Bit-identical to the plain kernel.  false: nothing was done:
 * not applicable, or out of memory. */
bool dmlk_pool_floats(const dmlk_float_convolution *pooling, const float *const *counts, const dmlk_view *positions);

#endif

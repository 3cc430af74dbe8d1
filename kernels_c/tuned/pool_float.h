/* pool_float.h - the tuned maximum and average poolings of FLOAT32 and FLOAT16. */
#ifndef DMLK_POOL_FLOAT_H
#define DMLK_POOL_FLOAT_H

#include "convolve_float.h"

/* Only the sizes of the filter of `pooling` are used, which are all 1; the bias is ignored.  `counts`: for each axis,
 * how many taps of each output count in its mean; NULL: computes maxima.  `indices` (rank 5, UINT32 or UINT64, may be
 * NULL) receives the index of the first maximum in the packed input.  Bit-identical to the plain kernel.  False: the
 * kernel does not apply or memory ran out, and nothing was done. */
bool dmlk_pool_floats(const dmlk_float_convolution *pooling, const float *const *counts, const dmlk_view *indices);

#endif

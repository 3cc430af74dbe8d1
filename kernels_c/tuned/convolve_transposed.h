/* convolve_transposed.h - convolutions of floats whose axes have a step of 1, and perhaps a spread, with many filters. */
#ifndef DMLK_CONVOLVE_TRANSPOSED_H
#define DMLK_CONVOLVE_TRANSPOSED_H

#include "convolve_float.h"

/* Runs it, bit-identical to the plain kernel.  false: not applicable, or out of memory; parts of the output may have been
 * written. */
bool dmlk_convolve_transposed(const dmlk_float_convolution *convolution);

#endif

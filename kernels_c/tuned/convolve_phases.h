/* convolve_phases.h - convolutions of floats with a spread, as of transposed convolutions with a stride above 1. */
#ifndef DMLK_CONVOLVE_PHASES_H
#define DMLK_CONVOLVE_PHASES_H

#include "convolve_float.h"

static inline bool dmlk_is_spread(const dmlk_float_convolution *c) {
    return c->axes[0].spread != 1 || c->axes[1].spread != 1 || c->axes[2].spread != 1;
}

/* Runs the convolution without its followers, bit-identical to the plain kernel.  False: the kernel does not apply or
 * memory ran out; parts of the output may have been written. */
bool dmlk_convolve_phases(const dmlk_float_convolution *convolution);

#endif

/* convolve_phases.h - convolutions of floats with a spread: transposed ones, whose stride is above 1. */
#ifndef DMLK_CONVOLVE_PHASES_H
#define DMLK_CONVOLVE_PHASES_H

#include "convolve_float.h"

static inline bool dmlk_is_spread(const dmlk_float_convolution *c) {
    return c->axes[0].spread != 1 || c->axes[1].spread != 1 || c->axes[2].spread != 1;
}

/* Runs it, bit-identical to the plain kernel, without its followers.  false: not applicable, or out of memory; parts of
 * the output may have been written. */
bool dmlk_convolve_phases(const dmlk_float_convolution *convolution);

#endif

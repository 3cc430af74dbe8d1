/* convolve_phases.h - convolutions of floats with a spread, as of transposed convolutions with a stride above 1. */
#ifndef DMLK_CONVOLVE_PHASES_H
#define DMLK_CONVOLVE_PHASES_H

#include "convolve_float.h"

static inline bool dmlk_is_spread(const dmlk_float_convolution *c) {
    return c->axes[0].spread != 1 || c->axes[1].spread != 1 || c->axes[2].spread != 1;
}

/* Outputs o, o + spread, ... of an axis meet taps first, first + step, ... only: number j of these taps meets number i of
 * these outputs at place i + j * tap + place of the input.  Taps that meet none inside of it are left out. */
typedef struct dmlk_phase {
    int64_t outputs;
    int64_t first, step, taps; /* taps: their number, perhaps 0 */
    int64_t place, tap;
} dmlk_phase;

dmlk_phase dmlk_phase_of(const dmlk_taps_axis *axis, int64_t o);

/* Runs the convolution without its followers, bit-identical to the plain kernel.  False: the kernel does not apply or
 * memory ran out; parts of the output may have been written. */
bool dmlk_convolve_phases(const dmlk_float_convolution *convolution);

#endif

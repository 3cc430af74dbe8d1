/* convolve_float.h - convolutions of floats: their parameters, and the tuned kernel. */
#ifndef DMLK_CONVOLVE_FLOAT_H
#define DMLK_CONVOLVE_FLOAT_H

#include <stdbool.h>

#include "followers.h"
#include "view.h"

#define DMLK_SPATIAL 3

/* A spatial axis: output o multiplies tap t of the filter by element (o * step + t * tap + origin) / spread of the
 * input; if the division leaves a remainder, there is no such element. */
typedef struct dmlk_taps_axis {
    int64_t input, output, window; /* sizes */
    int64_t step, tap, origin, spread;
} dmlk_taps_axis;

/* output[n][g, f][o] = sum over channels c and taps t, in this order, of input[n][g, c][place] * filter[g][f][c][t],
 * plus the bias: one chain of float32 fused multiply-adds that starts at 0.  `pads`: a place outside the input counts
 * as a 0 that is multiplied; otherwise it is skipped. */
typedef struct dmlk_float_convolution {
    dmlk_view input, output; /* rank 5 */
    dmlk_view filter;        /* rank 6 */
    int64_t block, block_step; /* if not 0, filters are in blocks of `block` filters, block_step elements apart */
    dmlk_view bias;          /* rank 1; base NULL: none */
    dmlk_taps_axis axes[DMLK_SPATIAL];
    bool pads;
    const dmlk_followers *followers;
} dmlk_float_convolution;

/* The elements from the start of a group to the start of one of its filters. */
static inline int64_t dmlk_float_filter_at(const dmlk_float_convolution *c, int64_t filter) {
    const int64_t stride = c->filter.strides[1];
    return c->block == 0 ? filter * stride : filter / c->block * c->block_step + filter % c->block * stride;
}

/* Runs the convolution, bit-identical to the plain kernel.  False: the kernel does not apply or memory ran out, and
 * nothing was done. */
bool dmlk_convolve_floats(const dmlk_float_convolution *convolution);

/* The same for groups of one channel and a spread of 1.  If `pads` is not set, filters must be finite. */
bool dmlk_convolve_floats_by_channel(const dmlk_float_convolution *convolution);

#endif

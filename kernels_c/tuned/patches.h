/* patches.h - the inputs that the windows of a convolution cover, as a matrix whose panels are made when they are
 * used. */
#ifndef DMLK_PATCHES_H
#define DMLK_PATCHES_H

#include <stdbool.h>
#include <stdint.h>

#include "convolve_float.h"

#define DMLK_PATCH_POSITIONS 48 /* the most positions of a panel */

/* Row p is an output position; column c * taps + t is the element of channel c that tap t reads there, 0 outside the
 * input. */
typedef struct dmlk_patches {
    uint32_t type;                           /* DMLK_FLOAT32 or DMLK_FLOAT16 */
    dmlk_taps_axis axes[DMLK_SPATIAL];       /* spread 1 */
    int64_t strides[DMLK_SPATIAL], channel_stride; /* of the input, in elements */
    int64_t first[DMLK_SPATIAL], sizes[DMLK_SPATIAL]; /* the box of output positions, which are numbered in logical order */
} dmlk_patches;

/* to[k * pitch + i] = column `first_column` + k of row `first` + i, for k < depth and i < count <= pitch <=
 * DMLK_PATCH_POSITIONS; `base` is the input's first element.  `halves` is memory for depth * pitch elements. */
void dmlk_pack_patches(const dmlk_patches *p, const uint8_t *base, int64_t first_column, int64_t depth, int64_t first,
                       int64_t count, float *to, int64_t pitch, uint16_t *halves);

#endif

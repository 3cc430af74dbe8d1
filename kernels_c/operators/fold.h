/* fold.h - constants of the fold and unfold kernels. */
#ifndef DMLK_FOLD_H
#define DMLK_FOLD_H

#include <stdint.h>

/* cffi: begin */

/* Along each axis, element w of the window of block b is element b * stride + w * dilation - start of the image.  The
 * first `spatial` elements of each array are valid. */
typedef struct dmlk_fold {
    uint32_t spatial; /* 1 to 6 */
    uint32_t window[6];
    uint32_t strides[6];
    uint32_t dilations[6];
    uint32_t start_padding[6];
    uint32_t blocks[6];
} dmlk_fold;

typedef struct dmlk_fold dmlk_unfold;

/* cffi: end */

#endif

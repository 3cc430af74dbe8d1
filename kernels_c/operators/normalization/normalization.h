#ifndef DMLK_NORMALIZATION_H
#define DMLK_NORMALIZATION_H

#include "dmlk.h"

/* cffi: begin */

/* Constants of every kernel in functions.inc.  Views, FLOAT16 or FLOAT32:
 *   STATISTICS  in, scale, bias, add, mean, variance, out_mean, out_variance, out.  scale and bias (optional) and add
 *               (optional) have the sizes of in; mean, variance and their outputs have size 1 along the axes.  Only GIVEN
 *               has the inputs mean and variance; only other kinds may have the outputs
 *   GRADIENT    in, gradient, mean, variance, scale, out_gradient, out_scale, out_bias; all but in and the gradients have
 *               size 1 along the axes */
typedef struct dmlk_normalization {
    uint32_t axes_mask; /* bit d: the elements normalized together extend along axis d */
    float epsilon;
} dmlk_normalization;

/* cffi: end */

#endif

#ifndef DMLK_QUANTIZATION_H
#define DMLK_QUANTIZATION_H

#include "dmlk.h"

/* cffi: begin */

/* Constants of every kernel in functions.inc; an absent zero point is 0 (but see `centered`). */
typedef struct dmlk_quantization {
    uint32_t centered; /* 1: an absent zero point of an unsigned type is the middle of its range: 8 or 128 */
    uint32_t joint;    /* scale_sums: 1: sums are multiplied once, by the quotient of the scales */
} dmlk_quantization;

/* cffi: end */

#endif

#ifndef DMLK_ELEMENT_WISE_H
#define DMLK_ELEMENT_WISE_H

#include "dmlk.h"

/* cffi: begin */

/* Constants of every kernel in functions.inc.  Views: the inputs, of one type, and the output.  Types are equal,
 * except that FLOAT16 and FLOAT32 may be mixed between inputs and output; outputs of COUNT are UINT8 or UINT32. */
typedef struct dmlk_element_wise {
    uint32_t has_scale_bias; /* 1: the first input is x * scale + bias, in FLOAT32 with two roundings (FLOAT64 in itself); integers wrap */
    float scale;
    float bias;
    float alpha; /* alpha, beta and gamma are used as the function's line says */
    float beta;
    float gamma;
    uint64_t min_bits; /* low and high of a function: elements of the input's type, in the low bytes */
    uint64_t max_bits;
} dmlk_element_wise;

/* cffi: end */

#endif

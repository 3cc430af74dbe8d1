#ifndef DMLK_GEMM_H
#define DMLK_GEMM_H

#include "dmlk.h"

/* cffi: begin */

/* Views: a, b, c (optional), out: out = alpha * op(a) op(b) + beta * c over the last two axes.
 * Types equal; out may be FLOAT32 while the others are FLOAT16. */
typedef struct dmlk_gemm {
    uint32_t trans_a; /* 1: the last two axes of a are swapped before the product */
    uint32_t trans_b;
    float alpha;
    float beta; /* 0: c is not read */
} dmlk_gemm;

/* cffi: end */

#endif

#ifndef DMLK_ELEMENT_WISE_UNARY_H
#define DMLK_ELEMENT_WISE_UNARY_H

#include "dmlk.h"

/* cffi: begin */

/* Functions of one element x.  What alpha, beta and gamma mean stands beside each. */
enum dmlk_unary {
    DMLK_UNARY_IDENTITY = 0,             /* x */
    DMLK_UNARY_CLIP = 1,                 /* min(max, max(min, x)) */
    DMLK_UNARY_ELU = 2,                  /* x >= 0 ? x : alpha * (exp(x) - 1) */
    DMLK_UNARY_CELU = 3,                 /* max(0, x) + min(0, alpha * (exp(x / alpha) - 1)) */
    DMLK_UNARY_HARD_SIGMOID = 4,         /* max(0, min(alpha * x + beta, 1)) */
    DMLK_UNARY_LEAKY_RELU = 5,           /* x >= 0 ? x : alpha * x */
    DMLK_UNARY_LINEAR = 6,               /* alpha * x + beta */
    DMLK_UNARY_PARAMETRIC_SOFTPLUS = 7,  /* alpha * log(1 + exp(beta * x)) */
    DMLK_UNARY_RELU = 8,                 /* max(0, x) */
    DMLK_UNARY_SCALED_ELU = 9,           /* x > 0 ? gamma * x : gamma * alpha * (exp(x) - 1) */
    DMLK_UNARY_SCALED_TANH = 10,         /* alpha * tanh(beta * x) */
    DMLK_UNARY_SIGMOID = 11,             /* 1 / (1 + exp(-x)) */
    DMLK_UNARY_SOFTPLUS = 12,            /* log(1 + exp(alpha * x)) / alpha */
    DMLK_UNARY_SOFTSIGN = 13,            /* x / (1 + |x|) */
    DMLK_UNARY_TANH = 14,                /* tanh(x) */
    DMLK_UNARY_THRESHOLDED_RELU = 15,    /* x > alpha ? x : 0 */
    DMLK_UNARY_SHRINK = 16,              /* x > alpha ? x - beta : x < -alpha ? x + beta : 0 */
    DMLK_UNARY_GELU = 17,                /* x / 2 * (1 + erf(x / sqrt(2))) */
    DMLK_UNARY_CLIP1 = 18                /* max(min, min(max, x)): as CLIP but for NaN and min > max */
};

/* Views: in, out.  Types equal, or in FLOAT32 and out FLOAT16. */
typedef struct dmlk_element_wise_unary {
    uint32_t function;       /* enum dmlk_unary */
    uint32_t has_scale_bias; /* 1: x is in * scale + bias, in FLOAT32 with two roundings */
    float scale;
    float bias;
    float alpha;
    float beta;
    float gamma;
    uint32_t reserved;
    uint64_t min_bits; /* CLIP, CLIP1: an element of the input's type, in the low bytes */
    uint64_t max_bits;
} dmlk_element_wise_unary;

/* cffi: end */

#endif

/* gemm_blocked.h - products of matrices of floats, in blocks that fit the caches. */
#ifndef DMLK_GEMM_BLOCKED_H
#define DMLK_GEMM_BLOCKED_H

#include <stdbool.h>

#include "view.h"

/* A matrix: strides in elements. */
typedef struct dmlk_matrix {
    uint32_t type; /* DMLK_FLOAT32 or DMLK_FLOAT16 */
    int64_t row_stride, column_stride;
} dmlk_matrix;

/* out = alpha a b + beta c for each of a batch: a is m x depth, b depth x n. */
typedef struct dmlk_gemm_blocked {
    dmlk_matrix a, b, c, out;
    bool has_c;
    float alpha, beta;
    int64_t m, n, depth;
    dmlk_iter batch; /* starts of the matrices; operands: a, b, c (or out again), out */
} dmlk_gemm_blocked;

/* Runs it.  Each element is one chain of float32 fused multiply-adds, in ascending order of the summed index,
 * whatever the layout and the number of threads.  false: out of memory. */
bool dmlk_multiply(const dmlk_gemm_blocked *product);

#endif

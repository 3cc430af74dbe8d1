/* gemm_blocked.h - products of matrices of floats, in blocks that fit the caches. */
#ifndef DMLK_GEMM_BLOCKED_H
#define DMLK_GEMM_BLOCKED_H

#include <stdbool.h>

#include "followers.h"
#include "patches.h"
#include "view.h"

/* A matrix: strides in elements. */
typedef struct dmlk_matrix {
    uint32_t type; /* DMLK_FLOAT32 or DMLK_FLOAT16 */
    int64_t row_stride, column_stride;
    const dmlk_patches *patches; /* not NULL: a is that matrix, or b its transpose, and the batch has the input's starts */
    const int64_t *row_at, *column_at; /* not NULL: of a, FLOAT32: places of rows and columns, to be added, in elements */
    int64_t block, block_step; /* block not 0: columns of b (or rows of a) are in blocks of so many, block_step apart */
} dmlk_matrix;

static inline dmlk_matrix dmlk_transposed(dmlk_matrix m) {
    return (dmlk_matrix){m.type, m.column_stride, m.row_stride, m.patches, m.column_at, m.row_at, m.block, m.block_step};
}

/* out = (alpha a b + beta c) + last for each of a batch: a is m x depth, b depth x n. */
typedef struct dmlk_gemm_blocked {
    dmlk_matrix a, b, c, out;
    bool has_c;
    float alpha, beta;
    float last; /* -0: nothing changes; 0: a result of -0 becomes 0 */
    int64_t m, n, depth;
    dmlk_iter batch; /* starts of the matrices; operands: a, b, c (or out again), out */
    const dmlk_followers *followers;
} dmlk_gemm_blocked;

/* Runs it.  Each element is one chain of float32 fused multiply-adds, in ascending order of the summed index,
 * whatever the layout and the number of threads.  false: nothing was done: out of memory, or blocks that are not read in
 * place (FLOAT32, of DMLK_F32_BLOCK, the elements of a step contiguous and the steps of a block one after the other). */
bool dmlk_multiply(const dmlk_gemm_blocked *product);

#endif

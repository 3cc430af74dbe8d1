/* gemm_blocked.h - products of matrices of floats, in blocks that fit the caches. */
#ifndef DMLK_GEMM_BLOCKED_H
#define DMLK_GEMM_BLOCKED_H

#include <stdbool.h>

#include "followers.h"
#include "parallel.h"
#include "patches.h"
#include "view.h"

/* A matrix: strides in elements. */
typedef struct dmlk_matrix {
    uint32_t type; /* DMLK_FLOAT32 or DMLK_FLOAT16 */
    int64_t row_stride, column_stride;
    const dmlk_patches *patches; /* if not NULL, a is that matrix, or b is its transpose; the batch is over the input */
    /* If not NULL, they replace strides: element (r, k) is at row_at[r] + column_at[k].  Of a both may be there
     * (FLOAT32), or column_at alone, whose rows then have a stride of 1; of b row_at alone, if so have its columns. */
    const int64_t *row_at, *column_at;
    int64_t block, block_step; /* if not 0, columns of b (or rows of a) are in blocks of `block`, block_step apart */
} dmlk_matrix;

static inline dmlk_matrix dmlk_transposed(dmlk_matrix m) {
    return (dmlk_matrix){m.type, m.column_stride, m.row_stride, m.patches, m.column_at, m.row_at, m.block, m.block_step};
}

/* out = (alpha a b + beta c) + last, for each product of a batch: a is m x depth, b is depth x n. */
typedef struct dmlk_gemm_blocked {
    dmlk_matrix a, b, c, out;
    bool has_c;
    bool may_read_b; /* in place: worth it where few rows of a use it; without effect if it cannot be read so */
    float alpha, beta;
    float last; /* -0 changes nothing; 0 changes a result of -0 to 0 */
    int64_t m, n, depth;
    dmlk_iter batch; /* starts of the matrices; operands: a, b, c (or out again), out */
    const dmlk_followers *followers;
    const dmlk_pool_phase *before; /* if not NULL, it is run first, in the same call of the pool: it may write a */
} dmlk_gemm_blocked;

/* Computes the products.  Each element is one chain of float32 fused multiply-adds, in ascending order of the summed
 * index, whatever the layout and the number of threads.  False: nothing was done, because memory ran out, or because
 * a matrix in blocks cannot be read in place: it must be FLOAT32, in blocks of DMLK_F32_BLOCK, with the elements of a
 * step contiguous and the steps of a block contiguous. */
bool dmlk_multiply(const dmlk_gemm_blocked *product);

#endif

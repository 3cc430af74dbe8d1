/* microkernel_f32.h - sums of products of floats, the core of matrix products.
 *
 * A tile's sums stay in registers while each step multiplies a line of contiguous numbers with one number of each row.
 * Lines that follow each other, of as many numbers as the instructions take at a time, are read fastest: a piece of
 * 256 of them fits into the first-level cache. */
#ifndef DMLK_F32_H
#define DMLK_F32_H

#include <stdbool.h>
#include <stdint.h>

#include "cpu.h"

#define DMLK_F32_ROWS 8
#define DMLK_F32_COLUMNS 48 /* a multiple of every width */
#define DMLK_F32_BLOCK 16

typedef struct dmlk_f32_kernel {
    int64_t rows, columns, depth;
    bool is_first; /* sums begin at 0 */
    const float *row; /* row r, step k: row[r * row_stride + k * row_step] */
    int64_t row_stride, row_step;
    const int64_t *row_at, *step_at; /* not NULL: row[row_at[r] + step_at[k]] instead */
    const float *column; /* column j, step k: column[j + k * column_step] */
    int64_t column_step;
    int64_t block_step; /* not 0: columns are in blocks of DMLK_F32_BLOCK, so far apart: j / BLOCK * block_step + j % BLOCK */
    float *sums; /* sums[r * sums_stride + j]; undefined past the last column, up to a multiple of 16 */
    int64_t sums_stride;
} dmlk_f32_kernel;

/* How many columns a tile takes at a time; of blocks as many as AVX2 has registers for, with 6 rows. */
static inline int64_t dmlk_f32_width(enum dmlk_isa isa, bool in_blocks) {
    return isa != DMLK_ISA_AVX2 ? DMLK_F32_COLUMNS : in_blocks ? DMLK_F32_BLOCK : 24;
}

/* sums[r, j] = fma(row r at k, column j at k, sums[r, j] or 0) for k = 0, 1, ..., depth - 1: each sum is one chain in
 * this order, rounded once a step, so that all tiles give the same bits. */
void dmlk_f32_tile(enum dmlk_isa isa, const dmlk_f32_kernel *tile);

/* sums[j] = fma(row, column[j], sums[j]): one step of a single row. */
void dmlk_f32_step(enum dmlk_isa isa, float row, const float *column, int64_t columns, float *sums);

#endif

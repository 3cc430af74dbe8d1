/* microkernel_f32.h - sums of products of floats, the core of matrix products.
 *
 * A tile is up to 8 rows by 48 columns: its sums stay in registers (24 of 32) while each step multiplies 48
 * contiguous numbers with one number of each row. */
#ifndef DMLK_F32_H
#define DMLK_F32_H

#include <stdbool.h>
#include <stdint.h>

#include "cpu.h"

#define DMLK_F32_ROWS 8
#define DMLK_F32_COLUMNS 48

typedef struct dmlk_f32_kernel {
    int64_t rows, columns, depth;
    bool is_first; /* sums begin at 0 */
    const float *row; /* row r, step k: row[r * row_stride + k * row_step] */
    int64_t row_stride, row_step;
    const float (*column)[DMLK_F32_COLUMNS];
    float (*sums)[DMLK_F32_COLUMNS]; /* undefined past the last column */
} dmlk_f32_kernel;

/* sums[r][j] = fma(row r at k, column[k][j], sums[r][j] or 0) for k = 0, 1, ..., depth - 1: each sum is one chain in
 * this order, rounded once a step, so that all tiles give the same bits. */
void dmlk_f32_tile(enum dmlk_isa isa, const dmlk_f32_kernel *tile);

/* sums[j] = fma(row, column[j], sums[j]): one step of a single row. */
void dmlk_f32_step(enum dmlk_isa isa, float row, const float *column, int64_t columns, float *sums);

#endif

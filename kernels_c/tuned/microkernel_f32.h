/* microkernel_f32.h - sums of products of floats, the core of matrix products.
 *
 * A tile's sums stay in registers while each step multiplies a line of contiguous numbers with one number of each row.
 * Lines that follow each other, of as many numbers as the instructions take at a time, are read fastest: a piece of
 * 256 of them fits into the first-level cache. */
#ifndef DMLK_F32_H
#define DMLK_F32_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* From the first column to column j. */
static inline __attribute__((always_inline)) int64_t dmlk_f32_column_at(const dmlk_f32_kernel *t, int64_t j) {
    return t->block_step == 0 ? j : j / DMLK_F32_BLOCK * t->block_step + j % DMLK_F32_BLOCK;
}

/* Forms (see dispatch/choose.c): the generic one is the definition, all give the same bits. */
extern const struct dmlk_microkernel_f32_form {
    int64_t width, block_width; /* columns that a tile takes at a time; where they are in blocks */

    /* sums[r, j] = fma(row r at k, column j at k, sums[r, j] or 0) for k = 0, 1, ..., depth - 1: each sum is one chain in
     * this order, rounded once a step, so that all tiles give the same bits. */
    void (*tile)(const dmlk_f32_kernel *tile);

    /* sums[j] = fma(row, column[j], sums[j]): one step of a single row. */
    void (*step)(float row, const float *column, int64_t columns, float *sums);
} *dmlk_microkernel_f32_form;

/* For forms: a step in plain C. */
static inline __attribute__((always_inline)) void dmlk_f32_any_step(float row, const float *restrict column, int64_t columns,
                                                                    float *restrict sums) {
    for (int64_t j = 0; j < columns; j++) {
        sums[j] = fmaf(row, column[j], sums[j]);
    }
}

static inline int64_t dmlk_f32_width(bool in_blocks) {
    return in_blocks ? dmlk_microkernel_f32_form->block_width : dmlk_microkernel_f32_form->width;
}

static inline void dmlk_f32_tile(const dmlk_f32_kernel *tile) { dmlk_microkernel_f32_form->tile(tile); }

static inline void dmlk_f32_step(float row, const float *column, int64_t columns, float *sums) {
    dmlk_microkernel_f32_form->step(row, column, columns, sums);
}

#endif

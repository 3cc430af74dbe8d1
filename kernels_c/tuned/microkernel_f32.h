/* microkernel_f32.h - sums of products of floats, the core of matrix products.
 *
 * A tile's sums stay in registers while each step multiplies a line of contiguous numbers by one number of each row.
 * Lines are read fastest if they are contiguous and as long as a tile is wide: 256 of them fit into the first-level
 * cache. */
#ifndef DMLK_F32_H
#define DMLK_F32_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "element.h"
#include "followers.h"

#define DMLK_F32_ROWS 8     /* rows of a tile that suit every form */
#define DMLK_F32_COLUMNS 48 /* columns: a multiple of the width of every form */
#define DMLK_F32_BLOCK 16   /* columns of a block, if columns are in blocks */

/* How sums become results: the offset of the row or column is added, an element of another tensor, and then what
 * `finish` says about bounds; a NaN becomes DMLK_NAN_BITS. */
typedef struct dmlk_f32_results {
    float *out;
    const float *added; /* NULL: nothing; like out */
    int64_t stride; /* from row to row */
    const float *offsets; /* one for each column, or for each row */
    bool are_of_rows;
    const dmlk_finish *finish;
} dmlk_f32_results;

typedef struct dmlk_f32_kernel {
    int64_t rows, columns, depth;
    bool is_first; /* sums start at 0 instead of at their value in memory */
    const float *row; /* row r, step k: row[r * row_stride + k * row_step] */
    int64_t row_stride, row_step;
    const int64_t *row_at, *step_at; /* if not NULL: row[row_at[r] + step_at[k]] instead */
    const float *column; /* column j, step k: column[j + k * column_step] */
    int64_t column_step;
    const int64_t *column_at; /* if not NULL, step k of the columns starts at column[column_at[k]]; then rows have no table */
    int64_t block_step; /* if not 0, columns are in blocks: column j is at j / BLOCK * block_step + j % BLOCK */
    float *sums; /* sums[r * sums_stride + j]; undefined past the last column, up to a multiple of 16 */
    int64_t sums_stride;
    const dmlk_f32_results *results; /* if not NULL, results are stored instead of sums; only whole vectors of columns */
} dmlk_f32_kernel;

/* The elements from the first column to column j. */
static inline __attribute__((always_inline)) int64_t dmlk_f32_column_at(const dmlk_f32_kernel *t, int64_t j) {
    return t->block_step == 0 ? j : j / DMLK_F32_BLOCK * t->block_step + j % DMLK_F32_BLOCK;
}

/* Forms (see dispatch/choose.c): the generic one is the definition, all give the same bits. */
extern const struct dmlk_microkernel_f32_form {
    int64_t lanes; /* floats of a vector, of a form that can store results; 0: it cannot */
    int64_t width, block_width; /* columns that a tile processes at a time; the same if columns are in blocks */

    /* sums[r, j] = fma(row r at k, column j at k, sums[r, j]) for k = 0, 1, ..., depth - 1: each sum is one chain in
     * this order, rounded once for each step, so that all tiles give the same bits. */
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

/* few_rows.h - products of a few rows and a large matrix, which is read once, in place: memory limits the speed. */
#ifndef DMLK_FEW_ROWS_H
#define DMLK_FEW_ROWS_H

#include <stdint.h>

#define DMLK_FEW_LINES 8 /* rows of the large matrix that are added at a time */

/* sums[j] = fma(factors[k], lines[k * stride + j], sums[j]) for k = 0 .. 7, in this order: for matrices whose rows are
 * contiguous. */
void dmlk_add_lines(const float *factors, const float *lines, int64_t stride, int64_t count, float *sums);

/* For matrices whose columns are contiguous; NULL: panels would be as fast (see dispatch/choose.c). */
#define DMLK_FEW_COLUMNS 8 /* columns of the large matrix that are multiplied at a time */
extern const struct dmlk_few_rows_form {
    /* sums[r * sums_stride + j] = fma(rows[r * row_stride + k], columns[j * stride + k], sums[r * sums_stride + j]) for
     * k = 0 .. depth - 1, in this order, and j = 0 .. DMLK_FEW_COLUMNS - 1. */
    void (*add_columns)(const float *rows, int64_t row_stride, int64_t row_count, const float *columns, int64_t stride,
                        int64_t depth, float *sums, int64_t sums_stride);
} *dmlk_few_rows_form;

#endif

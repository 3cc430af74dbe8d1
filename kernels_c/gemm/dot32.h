/* dot32.h - sums of products of floats, the core of matrix products.
 *
 * A tile is 8 rows by 48 columns: its sums stay in registers (24 of 32) while one step after the other
 * multiplies 48 numbers that lie next to each other with one number of each row. */
#ifndef DMLK_DOT32_H
#define DMLK_DOT32_H

#include <stdint.h>

#include "isa.h"

#define DMLK_DOT32_ROWS 8
#define DMLK_DOT32_COLUMNS 48

/* sums[r][j] = fma(rows[r * row_stride + k], columns[k][j], sums[r][j]) for k = 0, 1, ..., depth - 1: each sum is
 * one chain in this order, rounded once a step, so that all tiles give the same bits. */
typedef void dmlk_dot32(const float (*columns)[DMLK_DOT32_COLUMNS], const float *rows, int64_t row_stride,
                        int64_t depth, float (*sums)[DMLK_DOT32_COLUMNS]);

/* The tile for instructions. */
dmlk_dot32 *dmlk_dot32_tile(enum dmlk_isa isa);

#endif

/* transpose.h - transposition of blocks of elements. */
#ifndef DMLK_TRANSPOSE_H
#define DMLK_TRANSPOSE_H

#include <stdint.h>

/* to[j][i] = from[i][j] for i < columns and j < rows, bit by bit: elements of 1, 2, 4 or 8 bytes.  `from_step` and
 * `to_step` are the distances of from[i] and to[j] to the next, `from_stride` of from[i][j] to from[i][j + 1]; all
 * in bytes.  Elements of to[j] are contiguous; the blocks do not overlap. */
void dmlk_transpose(int64_t bytes, const uint8_t *from, int64_t from_step, int64_t from_stride, uint8_t *to,
                    int64_t to_step, int64_t rows, int64_t columns);

/* The same, and prefetches the block that is `ahead` bytes after `from`; 0: none. */
void dmlk_transpose_fetching(int64_t bytes, const uint8_t *from, int64_t from_step, int64_t from_stride, uint8_t *to,
                             int64_t to_step, int64_t rows, int64_t columns, int64_t ahead);

/* The same for a result outside the first-level cache: its cache lines are prefetched before they are written. */
void dmlk_transpose_to_memory(int64_t bytes, const uint8_t *from, int64_t from_step, int64_t from_stride, uint8_t *to,
                              int64_t to_step, int64_t rows, int64_t columns);

#endif

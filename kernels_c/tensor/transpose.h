/* transpose.h - blocks of elements, rows made columns. */
#ifndef DMLK_TRANSPOSE_H
#define DMLK_TRANSPOSE_H

#include <stdint.h>

/* to[j][i] = from[i][j] for i < columns and j < rows, bit by bit: elements of 1, 2, 4 or 8 bytes.  A step leads
 * from each `from[i]` or `to[j]` to the next, `from_stride` from each from[i][j] to from[i][j + 1]; all in bytes.
 * Elements of to[j] follow each other; both do not overlap.  What will be transposed next stands `ahead` bytes
 * behind `from`, 0: nothing. */
void dmlk_transpose(int64_t bytes, const uint8_t *from, int64_t from_step, int64_t from_stride, uint8_t *to,
                    int64_t to_step, int64_t rows, int64_t columns, int64_t ahead);

#endif

/* dot8.h - sums of products of bytes, the core of integer convolutions and matrix products.
 *
 * Bytes are taken four at a time, a quad: one instruction (vpdpbusd) multiplies the quads of 16 lanes with
 * a quad that stands for a whole row, and adds the four products of each.  A tile is 8 rows by 48 lanes:
 * its sums stay in registers (24 of 32) from the first quad to the last. */
#ifndef DMLK_DOT8_H
#define DMLK_DOT8_H

#include <stdint.h>

#define DMLK_DOT8_ROWS 8
#define DMLK_DOT8_LANES 48

/* sums[r][l] = sum over q of the four products of quad q of lane l, unsigned bytes at
 * lanes + offsets[q] + 4 * l, and quad q of row r, signed bytes in rows[q * DMLK_DOT8_ROWS + r].
 * Modulo 2^32, so in whatever order they are added.  `count`: of lanes, 16, 32 or 48. */
typedef void dmlk_dot8(const uint8_t *lanes, const int64_t *offsets, int64_t quads, const int32_t *rows, int count,
                       int32_t sums[][DMLK_DOT8_LANES]);

/* The tile for the CPU; `one_row`: with a single row, where rows[q] are its quads. */
dmlk_dot8 *dmlk_dot8_tile(int one_row);

/* sums[r] = sum of all bytes of the quads of row r; rows: 1 or DMLK_DOT8_ROWS. */
void dmlk_dot8_sum_rows(const int32_t *quads_of_rows, int64_t quads, int rows, int32_t *sums);

#endif

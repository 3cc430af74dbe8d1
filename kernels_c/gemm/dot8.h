/* dot8.h - sums of products of bytes, the core of integer convolutions and matrix products.
 *
 * Bytes are taken four at a time, a quad: one instruction (vpdpbusd) multiplies the quads of 16 lanes with
 * a quad that stands for a whole row, and adds the four products of each.  A tile is 8 rows by 48 lanes:
 * its sums stay in registers (24 of 32) from the first quad to the last. */
#ifndef DMLK_DOT8_H
#define DMLK_DOT8_H

#include <stdint.h>

#include "isa.h"

#define DMLK_DOT8_ROWS 8
#define DMLK_DOT8_LANES 48

/* sums[r][l] = sum over q of the four products of quad q of lane l, unsigned bytes at
 * lanes + offsets[q] + 4 * l, and quad q of row r, signed bytes at rows + r * row_bytes + 4 * q.
 * Modulo 2^32, so in whatever order they are added.  `count`: of lanes, 16, 32 or 48. */
typedef void dmlk_dot8(const uint8_t *lanes, const int64_t *offsets, int64_t quads, const uint8_t *rows,
                       int64_t row_bytes, int count, int32_t sums[][DMLK_DOT8_LANES]);

/* The tile for instructions; `one_row`: with a single row. */
dmlk_dot8 *dmlk_dot8_tile(enum dmlk_isa isa, int one_row);

/* Sum of signed bytes, modulo 2^32. */
uint32_t dmlk_dot8_sum(enum dmlk_isa isa, const uint8_t *bytes, int64_t count);

#endif

/* microkernel_s8.h - sums of products of bytes, the core of integer convolutions and matrix products.
 *
 * Bytes are processed in quads of four: one instruction (vpdpbusd) multiplies the quads of 16 lanes with the
 * broadcast quad of a row, and adds the four products of each.  A tile has up to 48 lanes, three vectors, and 7 or
 * 8 rows: its sums stay in registers (21 or 24 of 32) from the first quad to the last.
 *
 * There are two kinds.  Lanes should be contiguous in the output: positions, or filters.
 *
 *     filters are packed in blocks: quads[block][q][filter of the block],
 *     a position is where its quads begin, and offsets[q] leads from there to quad q.
 *
 * One operand has signed bytes, the other unsigned bytes.  Sums are modulo 2^32, so their order does not matter. */
#ifndef DMLK_S8_H
#define DMLK_S8_H

#include <stdbool.h>
#include <stdint.h>

#include "cpu.h"

#define DMLK_S8_LANES 48
#define DMLK_S8_ROWS 8      /* filters of a tile whose lanes are positions */
#define DMLK_S8_POSITIONS 7 /* of one whose lanes are filters: divides image sizes of 7, 14, 28, 56 ... */
#define DMLK_S8_BLOCK 16    /* filters in a block, for those */

/* What sums start with: constants[filter] - factors[filter] * inputs[position].  `inputs` NULL: without those. */
typedef struct dmlk_s8_start {
    const int32_t *constants, *factors, *inputs;
} dmlk_s8_start;

/* sums[f][l] = start + those of quads at first + offsets[q] + 4 * l with those at filters + q * quad_bytes + 4 * f.
 * `count`: of positions, 16, 32 or 48. */
typedef void dmlk_s8_positions(const uint8_t *first, const int64_t *offsets, int64_t quads, const uint8_t *filters,
                                 int64_t quad_bytes, int count, const dmlk_s8_start *start, int32_t *const *sums);

/* sums[p][l] = start + those of quads at positions[p] + offsets[q] with those at
 * filters + l / 16 * block_bytes + 64 * q + l % 16 * 4.  `count`: of filters, 16, 32 or 48. */
typedef void dmlk_s8_filters(const uint8_t *const positions[DMLK_S8_POSITIONS], const int64_t *offsets,
                               int64_t quads, const uint8_t *filters, int64_t block_bytes, int count,
                               const dmlk_s8_start *start, int32_t *const sums[DMLK_S8_POSITIONS]);

typedef struct dmlk_s8_kernel {
    dmlk_s8_positions *positions, *one_filter; /* 8 rows; 1 */
    dmlk_s8_filters *filters;                  /* NULL: not available for this instruction set */
} dmlk_s8_kernel;

/* The tiles for an instruction set and signedness of filters. */
dmlk_s8_kernel dmlk_s8_tiles(enum dmlk_isa isa, bool signed_filters);

/* sums[f] = sum of the bytes of each filter of a block of `count`. */
void dmlk_s8_sums(enum dmlk_isa isa, bool signed_filters, const uint8_t *block, int64_t quads, int64_t count,
                    uint32_t *sums);

#endif

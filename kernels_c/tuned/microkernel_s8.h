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
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DMLK_S8_LANES 48
#define DMLK_S8_ROWS 8      /* filters of a tile whose lanes are positions */
#define DMLK_S8_POSITIONS 7 /* of one whose lanes are filters, in vector registers: divides image sizes of 7, 14, 28, 56 ... */
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
 * filters + l / 16 * block_bytes + 64 * q + l % 16 * 4.  `count`: of filters, 16, 32 or 48.  There are
 * as many positions as the kernel takes at a time (`rows`). */
typedef void dmlk_s8_filters(const uint8_t *const *positions, const int64_t *offsets,
                               int64_t quads, const uint8_t *filters, int64_t block_bytes, int count,
                               const dmlk_s8_start *start, int32_t *const *sums);

typedef struct dmlk_s8_kernel {
    dmlk_s8_positions *positions, *one_filter; /* 8 rows; 1 */
    dmlk_s8_filters *filters;                  /* NULL: not available for this instruction set */
    int64_t rows;                              /* positions that `filters` takes at a time */
} dmlk_s8_kernel;

/* sums[f] = sum of the bytes of each filter of a block of `count`. */
typedef void dmlk_s8_block_sums(bool signed_filters, const uint8_t *block, int64_t quads, int64_t count, uint32_t *sums);

/* Forms (see dispatch/choose.c): the generic one is the definition, all give the same bits. */
extern const struct dmlk_microkernel_s8_form {
    dmlk_s8_kernel tiles[2]; /* of unsigned filters; of signed ones */
    dmlk_s8_block_sums *sums;
    void (*leave)(void); /* if not NULL, each thread calls it after its last tile, before other code runs */
} *dmlk_microkernel_s8_form;

/* --- for forms --- */

/* The parameters of a tile whose lanes are positions, and the arguments that forward them; the same of filters. */
#define DMLK_S8_PARAMETERS                                                                                    \
    const uint8_t *first, const int64_t *offsets, int64_t quads, const uint8_t *filters, int64_t quad_bytes,  \
        int count, const dmlk_s8_start *start, int32_t *const *sums
#define DMLK_S8_ARGUMENTS first, offsets, quads, filters, quad_bytes, count, start, sums
#define DMLK_S8_FILTERS_PARAMETERS                                                                            \
    const uint8_t *const *positions, const int64_t *offsets, int64_t quads,               \
        const uint8_t *filters, int64_t block_bytes, int count, const dmlk_s8_start *start,                  \
        int32_t *const *sums
#define DMLK_S8_FILTERS_ARGUMENTS positions, offsets, quads, filters, block_bytes, count, start, sums

/* A byte as a number. */
static inline int32_t dmlk_s8_number(uint8_t byte, bool is_signed) { return is_signed ? (int8_t)byte : byte; }

/* Sums of a block in plain C. */
static inline void dmlk_s8_any_sums(bool signed_filters, const uint8_t *block, int64_t quads, int64_t count, uint32_t *sums) {
    memset(sums, 0, (size_t)count * sizeof *sums);
    for (int64_t q = 0; q < quads; q++) {
        for (int64_t f = 0; f < count; f++, block += 4) {
            for (int j = 0; j < 4; j++) {
                sums[f] += (uint32_t)dmlk_s8_number(block[j], signed_filters);
            }
        }
    }
}

#endif

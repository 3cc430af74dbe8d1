/* microkernel_s8.h - sums of products of bytes, the core of integer convolutions and matrix products.
 *
 * Bytes are processed in quads of four: one instruction (vpdpbusd) multiplies the quads of 16 lanes with the
 * broadcast quad of a row, and adds the four products of each.  A tile has up to 48 lanes, three vectors, and 7 or
 * 8 rows: its sums stay in registers (21 or 24 of 32) from the first quad to the last.
 *
 * There are two kinds of tiles, whose lanes are positions or filters: whichever are contiguous in the output.
 *
 *     Filters are packed in blocks: quads[block][q][filter of the block].
 *     A position is the address of its first quad; quad q is offsets[q] bytes after it.
 *
 * One operand has signed bytes, the other unsigned bytes; tile registers also take two of the same sign.  Sums are modulo
 * 2^32, so their order does not matter. */
#ifndef DMLK_S8_H
#define DMLK_S8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DMLK_S8_LANES 48    /* of a tile, at most */
#define DMLK_S8_ROWS 8      /* filters of a tile whose lanes are positions */
#define DMLK_S8_POSITIONS 7 /* positions of a tile in vector registers whose lanes are filters: divides 7, 14, 28, 56 ... */
#define DMLK_S8_BLOCK 16    /* filters of a block for such a tile */
#define DMLK_S8_DEPTH 16    /* quads that a tile register holds of each row, at most */

/* The initial sums: constants[filter] - factors[filter] * inputs[position]; if `inputs` is NULL, only the constants. */
typedef struct dmlk_s8_start {
    const int32_t *constants, *factors, *inputs;
    bool fits; /* what dmlk_s8_fits says of the filters of the tile */
} dmlk_s8_start;

/* sums[f][l] = start + the products of the quads at first + offsets[q] + 4 * l and at filters + q * quad_bytes + 4 *
 * f, for all q.  `count`: the number of positions, 16, 32 or 48. */
typedef void dmlk_s8_positions(const uint8_t *first, const int64_t *offsets, int64_t quads, const uint8_t *filters,
                                 int64_t quad_bytes, int count, const dmlk_s8_start *start, int32_t *const *sums);

/* sums[p][l] = start + the products of the quads at positions[p] + offsets[q] and at
 * filters + l / 16 * block_bytes + 64 * q + l % 16 * 4, for all q.  `count`: the number of filters, 16 for each block.  There
 * are row_tiles * rows positions.  Tile registers add `depth` quads at a time. */
typedef void dmlk_s8_filters(const uint8_t *const *positions, int rows, int row_tiles, const int64_t *offsets,
                               int64_t quads, int depth, const uint8_t *filters, int64_t block_bytes, int count,
                               const dmlk_s8_start *start, int32_t *const *sums);

/* A tile of up to 16 positions, one after the other; sums[f * step + l] is that of filter f and position l. */
typedef struct dmlk_s8_line {
    const uint8_t *first;
    const int32_t *inputs; /* as in dmlk_s8_start; NULL: only the constants */
    int32_t *sums;
    int64_t step;
} dmlk_s8_line;

/* Sums of `lanes` positions of each of `lines` and of the filters of `blocks`, one or two of both: start + the products
 * of the quads at first + offsets[q] + 4 * l and at filters + f * row_bytes + 4 * q, for all q.  Quads of 16 positions may
 * be read. */
typedef void dmlk_s8_lines(const dmlk_s8_line *lines, int line_count, int lanes, const int64_t *offsets, int64_t quads,
                           int depth, const uint8_t *filters, int64_t row_bytes, int blocks, const int32_t *constants,
                           const int32_t *factors);

typedef struct dmlk_s8_kernel {
    dmlk_s8_positions *positions, *one_filter; /* for DMLK_S8_ROWS filters, and for one */
    dmlk_s8_filters *filters;                  /* NULL: not available for this instruction set */
    int rows, row_tiles;                       /* positions of a tile whose lanes are filters, and tiles at a time, at most */
    int blocks;                                /* blocks of filters at a time, at most */
    dmlk_s8_lines *lines;                      /* NULL: not available */
    dmlk_s8_filters *filters_of_same;          /* for positions with the sign of the filters; NULL: not available */
    dmlk_s8_lines *lines_of_same;
    int64_t chunk;                             /* positions that are processed with the same filters, at most */
} dmlk_s8_kernel;

/* sums[f] = the sum of the bytes of filter f, for each filter of a block of `count` filters. */
typedef void dmlk_s8_block_sums(bool signed_filters, const uint8_t *block, int64_t quads, int64_t count, uint32_t *sums);

/* Whether the sum of two products fits 16 bits, for each pair of adjacent bytes of the filters, whatever the input. */
typedef bool dmlk_s8_fits(bool signed_filters, const uint8_t *filters, int64_t bytes);

/* Forms (see dispatch/choose.c): the generic one is the definition, all give the same bits. */
extern const struct dmlk_microkernel_s8_form {
    dmlk_s8_kernel tiles[2]; /* for unsigned filters; for signed filters */
    dmlk_s8_block_sums *sums;
    dmlk_s8_fits *fits;  /* NULL: makes no difference for the tiles */
    void (*leave)(void); /* if not NULL, each thread calls it after its last tile, before other code runs */
} *dmlk_microkernel_s8_form;

/* --- for forms --- */

/* The parameters of a tile whose lanes are positions, and the arguments that forward them; the same for filters. */
#define DMLK_S8_PARAMETERS                                                                                    \
    const uint8_t *first, const int64_t *offsets, int64_t quads, const uint8_t *filters, int64_t quad_bytes,  \
        int count, const dmlk_s8_start *start, int32_t *const *sums
#define DMLK_S8_ARGUMENTS first, offsets, quads, filters, quad_bytes, count, start, sums
#define DMLK_S8_FILTERS_PARAMETERS                                                                            \
    const uint8_t *const *positions, int rows, int row_tiles, const int64_t *offsets, int64_t quads,          \
        int depth, const uint8_t *filters, int64_t block_bytes, int count, const dmlk_s8_start *start,                  \
        int32_t *const *sums
#define DMLK_S8_FILTERS_ARGUMENTS \
    positions, rows, row_tiles, offsets, quads, depth, filters, block_bytes, count, start, sums

#define DMLK_S8_LINES_PARAMETERS                                                                              \
    const dmlk_s8_line *lines, int line_count, int lanes, const int64_t *offsets, int64_t quads,               \
        int depth, const uint8_t *filters, int64_t row_bytes, int blocks, const int32_t *constants, const int32_t *factors
#define DMLK_S8_LINES_ARGUMENTS \
    lines, line_count, lanes, offsets, quads, depth, filters, row_bytes, blocks, constants, factors

/* The kernels of DMLK_S8_POSITIONS positions in vector registers and up to three blocks of filters. */
#define DMLK_S8_IN_VECTORS(of_positions, of_one, of_filters)                                                   \
    {.positions = of_positions, .one_filter = of_one, .filters = of_filters, .rows = DMLK_S8_POSITIONS,         \
     .row_tiles = 1, .blocks = DMLK_S8_LANES / DMLK_S8_BLOCK, .chunk = 7 * DMLK_S8_POSITIONS}

/* A byte as a number. */
static inline int32_t dmlk_s8_number(uint8_t byte, bool is_signed) { return is_signed ? (int8_t)byte : byte; }

/* The sums of a block, in plain C. */
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

/* convolve_plan.h - convolutions of bytes as sums of products of quads (see microkernel_s8.h).
 *
 * The input is repacked so that the quads of consecutive positions are contiguous, for all strides of the tensor
 * and all strides and dilations of the convolution: one plane for each phase of a tap relative to the window's
 * stride,
 *
 *     quads of channels:  plane[channels / 4][y phase][x phase], position = 4 channels of one element;
 *     quads of taps:      plane[channel][y phase][taps / 4],     position = 4 taps of one window row.
 *
 * With channels last, and lanes that are filters, rows are only copied, with padding around them; and used in place
 * if there is no padding, no sign to flip, and the number of channels is a multiple of four.  Quads are then those
 * of an element's channels; if their number is no multiple of four, those of a window row as stored in memory, or
 * (with dilation) of elements padded to a multiple of four.
 *
 * Within a plane, a tap is a constant distance from the position.  Rows are contiguous, so that tiles whose lanes
 * are positions run past row ends: results between two rows are discarded.
 *
 * Zero points: with u = input and w = filter, one of them signed (the input's sign bit is flipped if need be),
 * sum (u - A)(w - B) = sum uw - B sum u + (taps A B - A sum w).  Padding is A.  Taps that meet only padding add
 * nothing: their products and zero point corrections are both skipped.
 *
 * convolve_plan.c makes the plan, convolve_input.c packs the input, convolve_filters.c the filters,
 * convolve_tiles.c multiplies them, and convolve.c runs these steps for each strip of the output. */
#ifndef DMLK_CONVOLVE_PLAN_H
#define DMLK_CONVOLVE_PLAN_H

#include "convolve.h"
#include "microkernel_s8.h"

#define DMLK_PANEL_BYTES (INT64_C(1) << 19) /* of planes: together with filters they fit into a second-level cache */

/* The taps of an axis: tap k is in the plane of phase index[k], at a distance of shift[k] positions. */
typedef struct dmlk_taps {
    int64_t taps;
    int64_t *index, *shift; /* [taps] */
    int64_t *phases;        /* [count], each from 0 to before the stride */
    int64_t count;
    int64_t reach; /* the largest shift */
} dmlk_taps;

/* Quads of one kind along a row: the first elements of their bytes, and the range of quads entirely inside. */
typedef struct dmlk_window {
    int64_t x[4];
    int64_t begin, end;
} dmlk_window;

typedef struct dmlk_plan {
    const dmlk_convolution *c;
    dmlk_s8_kernel tiles;
    uint8_t flip, padding;
    int zero;                  /* A */
    bool needs_sums;           /* some B is not 0 */
    dmlk_taps y, x;
    int64_t channels, filters; /* of a group */
    bool by_taps, by_rows; /* quads of taps; of all bytes of a window's row */
    bool channels_close; /* in the output, closer than positions */
    bool lanes_are_filters;
    bool direct;     /* positions are those of the input itself, there are no planes */
    bool copied;     /* the only plane is a copy of its rows */
    bool transposed; /* planes of four channels each are a transposition of the input's rows */
    bool in_order;   /* blocks are one of filters, which lie as quads in memory */

    int64_t quads;
    int64_t row_quads; /* of a row of taps, if rows that meet only padding are skipped; otherwise 0 */
    int64_t fours; /* groups of four channels, or of four taps along X */
    int order[3], step[4];  /* axes of quads, innermost first; distance between quads */
    int64_t *offsets;       /* [quads]: from a position */
    int64_t (*taps)[4];     /* [quads], if packed: the filter elements of each quad; -1: none, it is 0 */
    uint8_t *ones;          /* [quads][4], if sums are needed: 1 for each existing tap */

    int64_t pitch; /* positions in a row of a plane, but for copies */
    int64_t strip; /* rows of the output processed at once */
    int64_t planes, plane_bytes;
    int64_t sums; /* number of sums, if needed: see dmlk_strip */
    int64_t row_step, position_step; /* bytes from each position to the next, of planes or of the input */
    int64_t line_step, element_step; /* and from each element, of the input or its copy */
    int64_t line;                    /* elements in a line that a row of the output reads */
    dmlk_window *windows;            /* by taps: [fours]; by channels: [x.count] */

    int64_t width, group_blocks; /* filters in a block, at most BLOCK; blocks of a group */
    int64_t block_bytes;
    const uint8_t *blocks; /* from `first` on */
    uint8_t *packed;       /* their memory, if not the filter tensor itself: room for `room` blocks */
    int64_t first, room;   /* blocks of all groups, numbered */
    int32_t *factor;       /* [room][width]: B */
    int32_t *constant;     /* [room][width]: taps A B - A sum w */
    int32_t *row_constant; /* [y.taps][room][width], if rows may be left out: A sum w of each; NULL: A is 0 */
    int64_t row_constants; /* from each row to the next */
} dmlk_plan;

/* The unit of work: rows first .. first + rows - 1 of the output of one group of one image. */
typedef struct dmlk_strip {
    const dmlk_plan *p;
    int64_t n, group, first, rows;
    int64_t first_block, blocks; /* of the group */
    const uint8_t *input;        /* element 0 of image and group */
    const uint8_t *positions;    /* the first one, in the planes or in the input */
    uint8_t *planes;
    int32_t *sums;               /* [rows][pitch], and LANES more: of u */
    int32_t *elements, *columns; /* [lines][line], [rows][line]: of parts of windows, where lines are not planes */
    int64_t tiles;               /* of blocks */
} dmlk_strip;

/* convolve_plan.c: the plan of a convolution; false: out of memory.  It must be freed in both cases. */
bool dmlk_plan_convolution(dmlk_plan *p, const dmlk_convolution *c);
void dmlk_free_plan(dmlk_plan *p);

/* convolve_filters.c: their part of the plan, the memory for blocks, and blocks first .. first + count - 1. */
bool dmlk_plan_filters(dmlk_plan *p);
void dmlk_pack_filters(dmlk_plan *p, int64_t first, int64_t count);

/* The number of lines of the input, or its copy, that `rows` rows of the output read. */
static inline int64_t dmlk_lines(const dmlk_plan *p, int64_t rows) {
    return (rows - 1) * p->c->strides[DMLK_Y] + (p->y.taps - 1) * p->c->dilations[DMLK_Y] + 1;
}

/* convolve_input.c: the planes of a strip, and the sums of u; convolve_tiles.c: its results. */
void dmlk_fill_planes(dmlk_strip *s, int most_parts);
void dmlk_sum_windows(dmlk_strip *s, int most_parts);
void dmlk_convolve_strip(dmlk_strip *s, int most_parts);

/* --- forms (see dispatch/choose.c) --- */

extern const struct dmlk_convolve_input_form {
    /* Up to 16 quads at a time within 128 bytes: byte j of quad i is at from + i * step + j * next. */
    void (*fill_close)(const uint8_t *from, int64_t step, int64_t next, int64_t count, uint8_t flip, uint8_t *to);

    /* A whole row of a plane of channels that are contiguous along X. */
    void (*fill_packed)(const uint8_t *const from[4], const dmlk_window *w, const dmlk_plan *p, uint8_t *to);

    /* Sums of the channels of elements of a line. */
    void (*sum_elements)(const dmlk_plan *p, const uint8_t *from, int32_t *to);
} *dmlk_convolve_input_form;

extern const struct dmlk_convolve_filters_form {
    /* `count` quads of channels of a packed filter with at most 16 taps, from quad `first` on: four channels are 4 x taps
     * bytes, transposed.  `first` and `count` are multiples of the taps. */
    void (*pack_transposed)(const dmlk_plan *p, int64_t filter, int64_t first, int64_t count, uint8_t *to);
} *dmlk_convolve_filters_form;

extern const struct dmlk_convolve_tiles_form {
    /* Writes lanes, a mask, of sums[filter][position] to consecutive elements. */
    void (*store_lanes)(int32_t sums[DMLK_S8_ROWS][DMLK_S8_LANES], uint64_t lanes, int64_t filters, int32_t *to, int64_t step);
} *dmlk_convolve_tiles_form;

#endif

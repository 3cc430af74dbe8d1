/* convolve_plan.h - convolutions of bytes as sums of products of quads (see microkernel_s8.h).
 *
 * The input is repacked so that the quads of consecutive positions are contiguous, for all strides of the tensor
 * and all strides and dilations of the convolution: one plane for each phase of a tap relative to the window's
 * stride,
 *
 *     quads of channels:  plane[channels / 4][y phase][x phase], position = 4 channels of one element;
 *     quads of taps:      plane[channel][y phase][taps / 4],     position = 4 taps of one window row.
 *
 * With channels last, and lanes that are filters, rows are only copied, with padding on all sides; or even used in
 * place, if there is no padding, no sign to flip, and the number of channels is a multiple of four.  For tile registers,
 * rows of any other order are transposed to such a copy.  Quads then consist of an element's channels.  If the number of
 * channels is not a multiple of four, quads consist of the bytes of a window row as they are in memory or, with dilation,
 * of elements that are padded to a multiple of four.  Tile registers take 16 quads at a time: where a window's row is
 * too short for them, the rows of each window are copied to a patch, one after the other.
 *
 * Within a plane, a tap is a constant distance from the position.  Rows are contiguous, so that tiles whose lanes
 * are positions run past row ends: results between two rows are discarded.
 *
 * Zero points: with u = input and w = filter, one of them signed (the input's sign bit is flipped if need be, but not for
 * tile registers, which take both signs, unless sums of u are needed),
 * sum (u - A)(w - B) = sum uw - B sum u + (taps A B - A sum w).  Padding is A.  Taps that read only padding add
 * nothing: their products and their zero point corrections are both skipped.
 *
 * convolve_plan.c makes the plan, convolve_input.c packs the input, convolve_filters.c the filters,
 * convolve_tiles.c multiplies them, and convolve.c runs these steps for each strip of the output. */
#ifndef DMLK_CONVOLVE_PLAN_H
#define DMLK_CONVOLVE_PLAN_H

#include "convolve.h"
#include "microkernel_s8.h"
#include "parallel.h"

#define DMLK_PATCH_BYTES 16 /* that are copied at a time to a patch */
#define DMLK_PANEL_BYTES (INT64_C(1) << 19) /* bytes of planes that fit a second-level cache together with filters */

/* The taps of an axis: tap k is in the plane of phase index[k], at a distance of shift[k] positions. */
typedef struct dmlk_taps {
    int64_t taps;
    int64_t *index, *shift; /* [taps] */
    int64_t *phases;        /* [count], each from 0 to stride - 1 */
    int64_t count;
    int64_t reach; /* the largest shift */
} dmlk_taps;

/* The quads of one kind along a row: where the four bytes of quad 0 are, and the range of quads that are entirely
 * inside. */
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
    bool by_taps, by_rows; /* quads consist of taps; of consecutive bytes of a window's row */
    bool channels_close; /* in the output, channels are closer than positions */
    bool lanes_are_filters;
    bool direct;     /* positions are in the input itself, and there are no planes */
    bool copied;     /* the only plane is a copy of the input's rows */
    int64_t patch;   /* bytes: from the copy, the quads of each position are copied to a patch; 0: they are not */
    bool transposed; /* planes of four channels are a transposition of the input's rows */
    bool in_order;   /* unblocked filters are sequences of quads in memory */

    int64_t quads;
    int64_t row_quads; /* of a row of taps, if rows that read only padding are skipped; otherwise 0 */
    int64_t fours; /* groups of four channels, or of four taps along X */
    int order[3], step[4];  /* axes of quads, innermost first; distance between quads */
    int64_t *offsets;       /* [quads]: from a position */
    int64_t (*taps)[4];     /* [quads], if packed: the filter elements of each quad; -1: none, it is 0 */
    uint8_t *ones;          /* [quads][4], if sums are needed: 1 for each existing tap */

    int depth;            /* in tile registers: quads of a step */
    int64_t lanes, lines; /* in tile registers: positions of a tile in a line, and tiles of a row of the output; or 0 */
    uint8_t *turned;      /* [room][BLOCK][row_bytes]: the quads of each filter, for these tiles */
    int64_t row_bytes;

    int64_t bytes; /* of an element of the output */
    int64_t pitch; /* positions in a row of a plane, except for copies */
    int64_t strip; /* rows of the output that are processed at a time */
    int64_t planes, plane_bytes;
    int64_t sums; /* number of sums, if needed: see dmlk_strip */
    int64_t row_step, position_step; /* bytes from a row to the next, and from a position to the next */
    int64_t line_step, element_step; /* without planes: bytes from a line to the next, from an element to the next */
    int64_t line;                    /* elements of a line that a row of the output reads */
    dmlk_window *windows;            /* by taps: [fours]; by channels: [x.count] */

    int64_t width, group_blocks; /* filters in a block, at most BLOCK; blocks of a group */
    int64_t block_bytes;
    const uint8_t *blocks; /* the packed blocks, from number `first` on */
    uint8_t *packed;       /* memory for `room` blocks; NULL if blocks are in the filter tensor itself */
    int64_t first, room;   /* numbers count the blocks of all groups */
    int32_t *factor;       /* [room][width]: B */
    int32_t *constant;     /* [room][width]: taps A B - A sum w, and the bias of a finish */
    bool *fits;            /* [room]: what dmlk_s8_fits says of a block; NULL: makes no difference */
    float *scales;         /* [room][width], if sums are finished: what they are multiplied by */
    int32_t *row_constant; /* [y.taps][room][width], if rows of taps may be skipped: A sum w of each; NULL: A is 0 */
    int64_t row_constants; /* elements from a row of taps to the next */
} dmlk_plan;

/* The unit of work: rows first .. first + rows - 1 of the output of one group of one image. */
typedef struct dmlk_strip {
    const dmlk_plan *p;
    int64_t n, group, first, rows;
    int64_t first_block, blocks; /* of the group */
    const uint8_t *input;        /* element 0 of image and group */
    const uint8_t *positions;    /* the first position, in the planes or in the input */
    uint8_t *planes, *patches;
    int32_t *sums;               /* [rows][pitch], and LANES more: sums of u */
    int32_t *elements, *columns; /* [lines][line], [rows][line]: sums of parts of windows, if there are no planes */
    int64_t tiles, chunk;        /* what the blocks are divided into; if lanes are filters: positions of a chunk */
    enum { DMLK_NOTHING, DMLK_LINES, DMLK_PLANE_ROWS, DMLK_SUM_ROWS, DMLK_SUM_TILES, DMLK_PATCH_ROWS } filled;
} dmlk_strip;

/* convolve_plan.c: makes the plan of a convolution; false: out of memory.  The plan must be freed in both cases. */
bool dmlk_plan_convolution(dmlk_plan *p, const dmlk_convolution *c);
void dmlk_free_plan(dmlk_plan *p);

/* convolve_filters.c: plan the filters and take the memory for blocks; the phase that packs blocks first ..
 * first + count - 1. */
bool dmlk_plan_filters(dmlk_plan *p);
dmlk_pool_phase dmlk_pack_filters(dmlk_plan *p, int64_t first, int64_t count);

/* The number of lines of the input, or of its copy, that `rows` rows of the output read. */
static inline int64_t dmlk_lines(const dmlk_plan *p, int64_t rows) {
    return (rows - 1) * p->c->strides[DMLK_Y] + (p->y.taps - 1) * p->c->dilations[DMLK_Y] + 1;
}

/* The phases of one call of the pool that compute a strip.  convolve_input.c: fill its planes, compute the sums of u, and
 * fill patches; convolve_tiles.c: compute its results.  The last two are run after the phases in the mask `after`.  Most
 * return the number of phases, 0 to 2.  `filled` are the items of the last phase of the input. */
int dmlk_fill_planes(dmlk_strip *s, int most_parts, dmlk_pool_phase *phases);
int dmlk_sum_windows(dmlk_strip *s, int most_parts, dmlk_pool_phase *phases);
dmlk_pool_phase dmlk_fill_patches(dmlk_strip *s, int most_parts, unsigned after);
int dmlk_convolve_strip(dmlk_strip *s, int most_parts, unsigned after, dmlk_pool_phase *phases);

/* --- forms (see dispatch/choose.c) --- */

extern const struct dmlk_convolve_input_form {
    /* Fills in quads, up to 16 at a time from within 128 bytes: byte j of quad i is at from + i * step + j * next. */
    void (*fill_close)(const uint8_t *from, int64_t step, int64_t next, int64_t count, uint8_t flip, uint8_t *to);

    /* Fills in a whole row of a plane of channels that are contiguous along X. */
    void (*fill_packed)(const uint8_t *const from[4], const dmlk_window *w, const dmlk_plan *p, uint8_t *to);

    /* Sums the channels of each element of a line. */
    void (*sum_elements)(const dmlk_plan *p, const uint8_t *from, int32_t *to);
} *dmlk_convolve_input_form;

extern const struct dmlk_convolve_filters_form {
    /* Packs `count` quads of channels of a contiguous filter with at most 16 taps, from quad `first` on: transposes the
     * 4 x taps bytes of four channels.  `first` and `count` are multiples of the taps. */
    void (*pack_transposed)(const dmlk_plan *p, int64_t filter, int64_t first, int64_t count, uint8_t *to);
} *dmlk_convolve_filters_form;

extern const struct dmlk_convolve_tiles_form {
    /* Writes the positions in the mask `lanes` of sums[filter][position] to consecutive elements. */
    void (*store_lanes)(int32_t sums[DMLK_S8_ROWS][DMLK_S8_LANES], uint64_t lanes, int64_t filters, int32_t *to, int64_t step);

    /* Finishes the lanes in the mask `lanes` of `count` rows of sums, as consecutive elements: row r from element at[r] of
     * the tensors on.  The factors are those of rows, or (`of_lanes`) of lanes. */
    void (*store_finished)(int32_t (*sums)[DMLK_S8_LANES], uint64_t lanes, const float *factors, bool of_lanes,
                           const dmlk_sums_finish *finish, int64_t count, const int64_t *at);
} *dmlk_convolve_tiles_form;

#endif

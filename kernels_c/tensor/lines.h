/* lines.h - lines: the elements of tensors along some axes, one line for each position on the other axes.
 *
 * Neighbouring lines are processed in blocks.  Inside a block, elements are visited along each line, or across all
 * lines at once, whichever are closer in memory; both visit the elements of a line in the same order. */
#ifndef DMLK_LINES_H
#define DMLK_LINES_H

#include "promoted.h"
#include "view.h"

#define DMLK_MOST_LINES DMLK_CHUNK /* the most lines of a block, unless it is wide */

typedef struct dmlk_lines {
    dmlk_iter each;  /* from line to line; operands: all */
    dmlk_iter along; /* from element to element of a line; operands: the first ones, whose lines have equal sizes */
    bool across;     /* blocks are visited across their lines */
    bool wide;       /* set by kernels that take blocks of any size; otherwise false */
} dmlk_lines;

/* Neighbouring lines. */
typedef struct dmlk_line_block {
    int64_t first;             /* number of the first line */
    int64_t count;             /* at most DMLK_MOST_LINES, unless wide */
    uint8_t *const *at;        /* of each operand, the first element of the first line */
    const int64_t *strides;    /* of each operand, from line to line, in elements */
    int64_t *work;             /* see dmlk_stopped */
} dmlk_line_block;

/* The lines of `views` along the axes in the mask.  The first `along` views have lines of equal sizes.  `order` is
 * the order of the elements in a line. */
int dmlk_lines_init(dmlk_lines *lines, enum dmlk_order order, uint32_t axes_mask, const dmlk_view *const *views,
                    uint32_t operands, uint32_t along);

/* Calls `run` with blocks of at most `most` lines until each line was processed, in any order, on several threads if
 * each gets about `grain` lines: where lines are visited across, those of whole cache lines, if these are not more. */
typedef void dmlk_run_lines(const dmlk_line_block *block, void *context);
void dmlk_for_lines(const dmlk_lines *lines, int64_t most, int64_t grain, dmlk_run_lines *run, void *context);

/* The grain for dmlk_for_lines: `grain`; but if lines are visited across, at least `least` lines, or all lines of a
 * shorter row.  Where a row is split between two threads, they share a cache line. */
int64_t dmlk_lines_grain(const dmlk_lines *lines, int64_t grain, int64_t least);

/* How many lines to process together in `bytes` bytes of cache, if each needs `line_bytes`: across lines, as many as
 * fit, but enough for long loops; otherwise 1. */
int64_t dmlk_lines_together(const dmlk_lines *lines, int64_t line_bytes, int64_t bytes);

#define DMLK_MOST_ROWS 256 /* the most rows of a visit: 16 for each lane of a sum */

/* One step of a visit.  `index` counts the elements of a line.
 *
 * along: visits elements index .. index + n - 1 of line `line` of the block; `strides` lead from element to element.
 * across: visits element `index` of all lines; `strides` lead from line to line. rows, or NULL: visits elements index
 * .. index + rows - 1 of all lines, at most DMLK_MOST_ROWS; element i + 1 of a line is `steps` elements after element
 * i.  Only called if the first operand is contiguous across the lines; its rows of the next call are probably `next`
 * elements after these; 0: the rows are copies in the cache.
 *
 * Lines of fewer than `least_along` elements are visited across, as transposed copies, even where they are
 * contiguous.  Only for visitors that write no operand. */
typedef struct dmlk_line_visitor {
    void (*along)(void *context, int64_t line, uint8_t *const *at, const int64_t *strides, int64_t n, int64_t index);
    void (*across)(void *context, uint8_t *const *at, const int64_t *strides, int64_t count, int64_t index);
    void (*rows)(void *context, uint8_t *const *at, const int64_t *steps, int64_t rows, int64_t index, int64_t next);
    int64_t least_along;
    uint32_t unfetched; /* bit k: the cache holds operand k, or it is not accessed */
} dmlk_line_visitor;

/* Visits elements first .. first + n - 1 of every line of the block. */
void dmlk_visit_lines(const dmlk_lines *lines, const dmlk_line_block *block, int64_t first, int64_t n,
                      const dmlk_line_visitor *visitor, void *context);

#endif

/* view.h - strided views, and the iterator over several of them at once. */
#ifndef DMLK_VIEW_H
#define DMLK_VIEW_H

#include "dmlk.h"
#include "element.h"

#define DMLK_MAX_OPERANDS 16 /* tensors of one loop */

/* --- one view --- */

/* Product of the sizes, or -1 if a size is not positive or the product exceeds 63 bits. */
int64_t dmlk_view_elements(const dmlk_view *view);

/* Bits from the base to the end of the last element; false if that exceeds 64 bits. */
bool dmlk_view_extent(const dmlk_view *view, uint64_t *bits);

bool dmlk_same_sizes(const dmlk_view *a, const dmlk_view *b);

/* The part of the view along the axes in the mask, at coordinate 0 of the others.  Without any axis, one element. */
dmlk_view dmlk_view_select(const dmlk_view *view, uint32_t axes_mask);

/* --- several views of the same sizes, element by element --- */

enum dmlk_order {
    DMLK_ANY_ORDER,    /* the fastest order in memory, primarily of the last operand (the output) */
    DMLK_LOGICAL_ORDER /* last axis fastest */
};

/* The loops over the operands, after axes of size 1 are dropped and axes that follow each other
 * in memory, in every operand, are merged.  sizes[rank - 1] is the innermost loop: a row.
 * Array elements beyond `rank` and `operands` are uninitialized: clearing them would take longer than a short loop. */
typedef struct dmlk_iter {
    uint32_t operands;
    uint32_t rank;  /* >= 1 */
    int64_t count;  /* elements */
    int64_t sizes[DMLK_MAX_RANK];
    int64_t strides[DMLK_MAX_RANK][DMLK_MAX_OPERANDS]; /* in elements */
    int64_t bytes[DMLK_MAX_OPERANDS];                  /* of one element */
    uint8_t *base[DMLK_MAX_OPERANDS];
} dmlk_iter;

/* A position in the iteration: `at` points to the element of each operand. */
typedef struct dmlk_cursor {
    int64_t index[DMLK_MAX_RANK];
    uint8_t *at[DMLK_MAX_OPERANDS];
} dmlk_cursor;

/* DMLK_BAD_PACKET: sizes differ; DMLK_NOT_IMPLEMENTED: elements smaller than a byte, or more than
 * DMLK_MAX_OPERANDS views. */
int dmlk_iter_init(dmlk_iter *iter, enum dmlk_order order, const dmlk_view *const *views, uint32_t operands);

/* Exchanges two loops. */
void dmlk_iter_swap(dmlk_iter *iter, uint32_t a, uint32_t b);

/* Sets the cursor to element `position` (0 .. count - 1) of the iteration. */
void dmlk_iter_seek(const dmlk_iter *iter, int64_t position, dmlk_cursor *cursor);

/* Elements from the cursor to the end of its row. */
static inline int64_t dmlk_iter_row_left(const dmlk_iter *iter, const dmlk_cursor *cursor) {
    return iter->sizes[iter->rank - 1] - cursor->index[iter->rank - 1];
}

/* Strides of the operands along a row. */
static inline const int64_t *dmlk_iter_row_strides(const dmlk_iter *iter) { return iter->strides[iter->rank - 1]; }

/* Advances the cursor by `count` elements, at most to the end of its row (and then to the next row). */
void dmlk_iter_advance(const dmlk_iter *iter, dmlk_cursor *cursor, int64_t count);

/* --- rows: see walkers.h --- */

/* Processes `count` elements: operand k starts at at[k], with a stride of strides[k] elements. */
typedef void dmlk_row(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context);

/* Calls `row` until every element of the views is processed, in any order, on several threads if that is faster.
 * The row may receive copies of inputs. */
int dmlk_for_rows(const dmlk_view *const *views, uint32_t operands, dmlk_row *row, const void *context);

/* The same for a row that takes as long to compute an element as to move `cost` bytes through the second-level cache. */
int dmlk_for_costly_rows(const dmlk_view *const *views, uint32_t operands, dmlk_row *row, const void *context,
                         int64_t cost);

/* Like dmlk_for_rows, but each at[k] points into the tensor itself, so that a row may access other elements relative
 * to it.  The kernel must know that these exist. */
int dmlk_indexed_rows(const dmlk_view *const *views, uint32_t operands, dmlk_row *row, const void *context);

#endif

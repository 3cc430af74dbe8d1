/* selected.h - gather and scatter: which element of the table belongs to each element of the values. */
#ifndef DMLK_SELECTED_H
#define DMLK_SELECTED_H

#include "view.h"

struct dmlk_selection;

/* Element n of `values` belongs to an element of the table: start at element n of `table`, then move along each
 * indexed axis by its index times strides[axis].  The indices are `count` elements of the index tensor, the first at
 * element n of `indices`.  The three views have the same sizes; axes of size 1 are dropped. */
typedef struct dmlk_selected {
    dmlk_view table, indices, values;
    uint32_t own;     /* mask of the axes that the table does not have; its stride along them is 0 */
    uint32_t indexed; /* mask of the axes that the indices have */
    uint32_t count;   /* indices for each element */
    int64_t apart;    /* stride from one of these indices to the next, in elements of the index tensor */
    int64_t sizes[DMLK_MAX_RANK], strides[DMLK_MAX_RANK]; /* of the table's axes that are indexed */
} dmlk_selected;

/* False: the tensors do not fit the constants. */
bool dmlk_selected_init(const struct dmlk_selection *k, const dmlk_view *table, const dmlk_view *indices,
                 const dmlk_view *values, dmlk_selected *out);

/* The same view with the strides of a packed tensor, so that offsets are numbers of elements in logical order. */
dmlk_view dmlk_view_numbered(const dmlk_view *view);

#endif

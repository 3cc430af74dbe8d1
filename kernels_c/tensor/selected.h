/* selected.h - elements of a table that indices select, element by element of the values. */
#ifndef DMLK_SELECTED_H
#define DMLK_SELECTED_H

#include "view.h"

struct dmlk_selection;

/* Element n of `values` belongs to the element of the table that is found at element n of `table` plus the indices
 * at element n of `indices`, times their strides.  The three have the same sizes; axes of size 1 are dropped. */
typedef struct dmlk_selected {
    dmlk_view table, indices, values;
    uint32_t own;     /* mask of the axes that the table does not have: its stride there is 0 */
    uint32_t indexed; /* mask of the axes that the indices have */
    uint32_t count;   /* of indices for each element */
    int64_t apart;    /* stride of these in the index tensor */
    int64_t sizes[DMLK_MAX_RANK], strides[DMLK_MAX_RANK]; /* of the table's axes that they index */
} dmlk_selected;

/* False: the tensors do not fit the constants. */
bool dmlk_selected_init(const struct dmlk_selection *k, const dmlk_view *table, const dmlk_view *indices,
                 const dmlk_view *values, dmlk_selected *out);

/* The same view with the strides of a packed tensor, so that offsets are numbers of elements in logical order. */
dmlk_view dmlk_view_numbered(const dmlk_view *view);

#endif

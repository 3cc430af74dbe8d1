/* nonzero.h - the coordinates of the elements that are not zero, on several threads. */
#ifndef DMLK_NONZERO_H
#define DMLK_NONZERO_H

#include "view.h"

/* Where rows of coordinates are written.  A row has the coordinates along the last `columns` axes. */
typedef struct dmlk_nonzero_table {
    uint32_t *base;
    int64_t columns, row_stride, column_stride; /* strides in elements */
} dmlk_nonzero_table;

/* Writes the rows, in logical order; `iter` iterates over `in` in that order.  Returns the number of rows; -1:
 * nothing was done, because memory ran out or there are 2^31 elements or more. */
int64_t dmlk_list_nonzero(const dmlk_view *in, const dmlk_iter *iter, const dmlk_nonzero_table *table);

#endif

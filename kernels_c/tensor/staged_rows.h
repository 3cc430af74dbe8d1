/* staged_rows.h - rows that are fastest on contiguous elements. */
#ifndef DMLK_STAGED_ROWS_H
#define DMLK_STAGED_ROWS_H

#include "view.h"

/* dmlk_for_rows for a row that is fastest on contiguous elements: strided elements are packed into a cached buffer,
 * and unpacked afterwards.  A large output bypasses the caches.  The row may also receive the gaps between elements
 * of inputs; their results are not stored. `row` NULL: the elements are copied. */
int dmlk_staged_rows(const dmlk_view *const *views, uint32_t operands, dmlk_row *row, const void *context);

/* The same for a row that receives FLOAT16 operands as contiguous FLOAT32s; it is not NULL.  Not in a checked
 * kernel. */
int dmlk_float_rows(const dmlk_view *const *views, uint32_t operands, dmlk_row *row, const void *context);

/* dmlk_staged_rows for a row that takes less time than reading and writing its cache lines: it is also run on the
 * gaps between elements. */
int dmlk_cheap_rows(const dmlk_view *const *views, uint32_t operands, dmlk_row *row, const void *context);

#endif

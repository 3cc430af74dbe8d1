/* staged_rows.h - rows that are fastest where elements follow each other. */
#ifndef DMLK_STAGED_ROWS_H
#define DMLK_STAGED_ROWS_H

#include "view.h"

/* dmlk_for_rows for a row that is fastest where elements follow each other: those that are apart are put next to
 * each other near the core, and back.  A large output is streamed.  Of several inputs the row may be given what lies
 * between elements, too; that is not stored.
 * `row` NULL: the elements are copied. */
int dmlk_staged_rows(const dmlk_view *const *views, uint32_t operands, dmlk_row *row, const void *context);

/* The same for a row to which operands of FLOAT16 are FLOAT32s, all next to each other; it is not NULL.  Not in a
 * checked kernel. */
int dmlk_float_rows(const dmlk_view *const *views, uint32_t operands, dmlk_row *row, const void *context);

#endif

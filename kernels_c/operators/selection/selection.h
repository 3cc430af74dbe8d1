/* selection.h - constants of gathers and scatters. */
#ifndef DMLK_SELECTION_H
#define DMLK_SELECTION_H

#include <stdint.h>

/* cffi: begin */

/* How indices select elements of a table: the input of a gather, the output of a scatter.  Axes `axis` .. `axis +
 * count - 1` of the table are indexed.  The last axes of the indices are: `batch` axes that are also the table's
 * before `axis`, `own` axes that the table does not have, `trailing` axes that are also the table's after the indexed
 * ones and, if `is_tuple`, one with an index for each indexed axis.  Axes before these have size 1.
 *
 * The values that are gathered or scattered have the table's axes, with the indices' own axes in place of the indexed
 * axes; surplus or missing leading axes have size 1. */
typedef struct dmlk_selection {
    uint32_t axis;
    uint32_t count;
    uint32_t batch;
    uint32_t own;
    uint32_t trailing;
    uint32_t is_tuple;
    uint32_t may_miss; /* a scatter's index may be out of range without being wrong */
} dmlk_selection;

/* cffi: end */

#endif

#ifndef DMLK_REDUCE_H
#define DMLK_REDUCE_H

#include "dmlk.h"

/* cffi: begin */

/* Constants of every kernel in functions.inc.  Views: in, out.  out has size 1 along reduced axes, and the sizes of
 * in along all others. */
typedef struct dmlk_reduce {
    uint32_t axes_mask;  /* bit d: axis d is reduced */
    uint32_t last_index; /* PLACE: 1: of equal values the highest index wins; 0: the lowest */
} dmlk_reduce;

/* cffi: end */

#endif

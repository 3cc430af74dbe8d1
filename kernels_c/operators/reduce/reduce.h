#ifndef DMLK_REDUCE_H
#define DMLK_REDUCE_H

#include "dmlk.h"

/* cffi: begin */

/* Constants of every kernel in functions.inc.  Views: in, out.  out has size 1 along each reduced axis, else the sizes
 * of in. */
typedef struct dmlk_reduce {
    uint32_t axes_mask;  /* bit d: axis d is reduced */
    uint32_t last_index; /* of an index: 1 = of equal values the highest index wins */
} dmlk_reduce;

/* cffi: end */

#endif

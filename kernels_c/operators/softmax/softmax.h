#ifndef DMLK_SOFTMAX_H
#define DMLK_SOFTMAX_H

#include "dmlk.h"

/* cffi: begin */

/* Constants of every kernel in functions.inc.  Views: in, out, FLOAT16 or FLOAT32, of equal sizes. */
typedef struct dmlk_softmax {
    uint32_t axes_mask; /* bit d: a group extends along axis d */
} dmlk_softmax;

/* cffi: end */

#endif

#ifndef DMLK_CUMULATIVE_H
#define DMLK_CUMULATIVE_H

#include "dmlk.h"

/* cffi: begin */

/* Constants of every kernel in functions.inc.  Views: in, out, of one type and of equal sizes; out may be in. */
typedef struct dmlk_cumulative {
    uint32_t axis;
    uint32_t decreasing; /* 1: from the last element to the first */
    uint32_t exclusive;  /* 1: without the element itself */
} dmlk_cumulative;

/* cffi: end */

#endif

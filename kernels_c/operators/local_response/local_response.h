#ifndef DMLK_LOCAL_RESPONSE_H
#define DMLK_LOCAL_RESPONSE_H

#include "dmlk.h"

/* cffi: begin */

/* Constants of every kernel in functions.inc.  Views, of equal sizes: the inputs and the output, any floats. */
typedef struct dmlk_local_response {
    uint32_t axis;   /* WINDOW: output i is computed from inputs i - before .. i + after along this axis */
    uint32_t before;
    uint32_t after;
    float alpha;     /* ELEMENTS: this and the following fields */
    float beta;
    float bias;
    uint32_t size;   /* alpha is divided by it */
} dmlk_local_response;

/* cffi: end */

#endif

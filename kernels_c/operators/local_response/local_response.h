#ifndef DMLK_LOCAL_RESPONSE_H
#define DMLK_LOCAL_RESPONSE_H

#include "dmlk.h"

/* cffi: begin */

/* Constants of every kernel in functions.inc.  Views, of equal sizes: the inputs and the output, any floats. */
typedef struct dmlk_local_response {
    uint32_t axis;   /* of a WINDOW: output i is computed from the inputs i - before .. i + after along it */
    uint32_t before;
    uint32_t after;
    float alpha;     /* of ELEMENTS */
    float beta;
    float bias;
    uint32_t size;   /* alpha is divided by it */
} dmlk_local_response;

/* cffi: end */

#endif

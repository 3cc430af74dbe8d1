#ifndef DMLK_ADAM_OPTIMIZER_H
#define DMLK_ADAM_OPTIMIZER_H

#include "dmlk.h"

/* cffi: begin */

/* Views: parameters, first and second moments, gradient, step (one UINT32); the new parameters, first and second
 * moments.  All but step have equal sizes, and each is FLOAT16 or FLOAT32. */
typedef struct dmlk_adam_optimizer {
    float learning_rate;
    float beta1;
    float beta2;
    float epsilon;
} dmlk_adam_optimizer;

/* cffi: end */

#endif

#ifndef DMLK_ADAM_OPTIMIZER_H
#define DMLK_ADAM_OPTIMIZER_H

#include "dmlk.h"

/* cffi: begin */

/* Views: parameters, first and second moments, gradient, step (one UINT32); new parameters, new first and second
 * moments.  All but the step have equal sizes, and each of these is FLOAT16 or FLOAT32. */
typedef struct dmlk_adam_optimizer {
    float learning_rate;
    float beta1;
    float beta2;
    float epsilon;
} dmlk_adam_optimizer;

/* cffi: end */

#endif

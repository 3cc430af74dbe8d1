#ifndef DMLK_REDUCE_H
#define DMLK_REDUCE_H

#include "dmlk.h"

/* cffi: begin */

/* Numbers are those of DML_REDUCE_FUNCTION. */
enum dmlk_reduce_function {
    DMLK_REDUCE_ARGMAX = 0,
    DMLK_REDUCE_ARGMIN = 1,
    DMLK_REDUCE_AVERAGE = 2,
    DMLK_REDUCE_L1 = 3,
    DMLK_REDUCE_L2 = 4,
    DMLK_REDUCE_LOG_SUM = 5,
    DMLK_REDUCE_LOG_SUM_EXP = 6,
    DMLK_REDUCE_MAX = 7,
    DMLK_REDUCE_MIN = 8,
    DMLK_REDUCE_MULTIPLY = 9,
    DMLK_REDUCE_SUM = 10,
    DMLK_REDUCE_SUM_SQUARE = 11
};

/* Views: in, out.  out has size 1 along each reduced axis, else the sizes of in. */
typedef struct dmlk_reduce {
    uint32_t function;   /* enum dmlk_reduce_function */
    uint32_t axes_mask;  /* bit d: axis d is reduced */
    uint32_t last_index; /* ARGMAX, ARGMIN: 1 = of equal values the highest index wins */
} dmlk_reduce;

/* cffi: end */

#endif

/* resample.h - constants of the resample kernel. */
#ifndef DMLK_RESAMPLE_H
#define DMLK_RESAMPLE_H

#include <stdint.h>

/* cffi: begin */

enum dmlk_resample_mode {
    DMLK_NEAREST_HALF_UP, /* floor(p + 0.5) */
    DMLK_NEAREST_DOWN,    /* floor(p) */
    DMLK_NEAREST_UP,      /* ceil(p) */
    DMLK_LINEAR,          /* the weighted sum of floor(p) and floor(p) + 1 */
    DMLK_LINEAR_ANTIALIASED
};

/* The position of element o of axis d in the other tensor is p = (o - outer[d]) / scales[d] - inner[d]; each step is
 * rounded to FLOAT32. */
typedef struct dmlk_resample {
    uint32_t rank, mode;
    uint32_t gradient; /* 1: o is an element of the input, which is added to the output's elements near its position */
    float scales[8];   /* above 0 */
    float outer[8], inner[8];
} dmlk_resample;

/* cffi: end */

#endif

/* sums_finish.h - what is done to sums of INT32 before they are stored: they are scaled to bytes (scaling.h), or packets
 * behind the product convert them to floats, scale these, add a number and a tensor, bound and quantize them
 * (followers.h). */
#ifndef DMLK_SUMS_FINISH_H
#define DMLK_SUMS_FINISH_H

#include "followers.h"

/* x = (float)sum * factor + summand + an element of `added`, then bounded; stored as it is, quantized, or both.  The
 * tensors have the layout of the product's output: an element has the same offset, in elements, in each. */
typedef struct dmlk_sums_finish {
    const uint8_t *base;         /* of the product's output */
    const dmlk_scaling *scaling; /* the bias, added to sums, and the factor of each channel; NULL: no bias, and `factor` */
    float factor, summand;       /* (-0: nothing is added) */
    const float *added;          /* NULL: none */
    bool is_bounded;             /* x > low ? x : low, then x < high ? x : high: so a NaN becomes a bound */
    float low, high;
    float *floats;               /* NULL: x is not stored */
    uint8_t *bytes;              /* NULL: x / step is not quantized */
    float step;
    uint8_t zero;
    dmlk_integers integers;
} dmlk_sums_finish;

/* What the packets behind a product of integers do to its sums (`followers` may be NULL).  Returns how many packets,
 * from the first on, that is: 0: none. */
uint32_t dmlk_find_sums_finish(const dmlk_followers *followers, dmlk_sums_finish *finish);

#endif

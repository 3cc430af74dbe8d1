/* affine.h - (x - m) * factor + bias of FLOAT32s x, for groups of elements that share m, factor and bias: by a few
 * operations in FLOAT32 where that is as good as computing in double.
 *
 * With factor = f + f', bias - m * factor = c + c', each a FLOAT32 and what it lacks, y = fma(x, f, c) + fma(x, f', c'):
 * each fma is rounded once, so the first is off by half a unit of itself, whatever cancels in it.  The rest is below
 * 2^-46 of what is added, so a y that is not smaller than 2^-20 of that is good to a unit.  All other elements, those
 * that are not finite, and groups whose numbers are too large or small for this, are computed in double. */
#ifndef DMLK_NORMALIZATION_AFFINE_H
#define DMLK_NORMALIZATION_AFFINE_H

#include <math.h>

#include "dmlk_float_math.h"
#include "kernel.h"

#define DMLK_AFFINE_MOST 0x7f7fffff /* the bits of the largest finite number */

/* A number for each group. */
typedef struct dmlk_affine {
    float f[DMLK_CHUNK], f_low[DMLK_CHUNK], c[DMLK_CHUNK], c_low[DMLK_CHUNK];
    int32_t least[DMLK_CHUNK]; /* the bits of the least |y| that is accepted */
} dmlk_affine;

/* None of the group's results stands. */
static inline void dmlk_set_no_affine(dmlk_affine *a, int64_t group) {
    a->f[group] = a->f_low[group] = a->c[group] = a->c_low[group] = 0;
    a->least[group] = INT32_MAX;
}

static inline void dmlk_set_affine(dmlk_affine *a, int64_t group, double m, double factor, double bias) {
    const double moved = m * factor, c = bias - moved;
    const double least = 0x1p-20 * (fabs(moved) + fabs(bias)) + 0x1p-100;
    if (!(least <= 0x1p80) || !(factor == 0 || (fabs(factor) >= 0x1p-90 && fabs(factor) <= 0x1p90))) {
        dmlk_set_no_affine(a, group);
        return;
    }
    a->f[group] = (float)factor;
    a->f_low[group] = (float)(factor - (double)a->f[group]);
    a->c[group] = (float)c;
    a->c_low[group] = (float)(c - (double)a->c[group]);
    a->least[group] = (int32_t)dmlk_float_bits((float)least);
}

/* Whether y stands; otherwise it has to be computed in double. */
static inline bool dmlk_affine_stands(float y, int32_t least) {
    const int32_t size = (int32_t)dmlk_sizef(y);
    return size >= least && size <= DMLK_AFFINE_MOST;
}

/* Computes `rows` rows of n numbers, of one group (step 0) or of n groups (step 1); rows are `x_step` and `y_step`
 * apart.  *stand: all results stand. */
#define DMLK_AFFINE(name, step)                                                                                  \
    DMLK_EACH_ISA(name,                                                                                          \
                  (float *restrict y, int64_t y_step, const float *restrict x, int64_t x_step, int64_t rows,     \
                   int64_t n, const dmlk_affine *restrict a, int64_t group, bool *stand),                        \
                  (y, y_step, x, x_step, rows, n, a, group, stand)) {                                            \
        const float *f = a->f + group, *f_low = a->f_low + group, *c = a->c + group, *c_low = a->c_low + group;  \
        const int32_t *least = a->least + group;                                                                 \
        int32_t lowest = 0, highest = 0;                                                                         \
        for (int64_t row = 0; row < rows; row++, x += x_step, y += y_step) {                                     \
            for (int64_t i = 0; i < n; i++) {                                                                    \
                const int64_t k = i * (step);                                                                    \
                y[i] = fmaf(x[i], f[k], c[k]) + fmaf(x[i], f_low[k], c_low[k]);                                  \
                const int32_t size = (int32_t)dmlk_sizef(y[i]), above = size - least[k];                         \
                lowest = above < lowest ? above : lowest;                                                        \
                highest = size > highest ? size : highest;                                                       \
            }                                                                                                    \
        }                                                                                                        \
        *stand = lowest >= 0 && highest <= DMLK_AFFINE_MOST;                                                     \
    }
DMLK_AFFINE(dmlk_affine_along, 0)
DMLK_AFFINE(dmlk_affine_across, 1)
#undef DMLK_AFFINE

#endif

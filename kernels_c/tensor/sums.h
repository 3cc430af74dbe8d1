/* sums.h - sums and products of doubles that depend on nothing but the numbers and their order.
 *
 * Number i is added to lane i % lanes of its sum.  So several numbers can be added at a time, whether the numbers of
 * one sum are contiguous in memory or those of neighbouring sums are.  At the end the lanes are added pairwise. */
#ifndef DMLK_SUMS_H
#define DMLK_SUMS_H

#include "ahead.h"
#include "promoted.h"

#define DMLK_SUM_LANES 16 /* of a long sum */
#define DMLK_SUMS_LONG (4 * DMLK_SUM_LANES) /* numbers; shorter sums have one lane */

#define DMLK_SUMS_MOST 1024 /* the most sums at a time */

typedef struct dmlk_sums {
    bool is_product;
    int64_t count;  /* sums */
    int64_t lanes;  /* of each sum: DMLK_SUM_LANES; 1 for short sums */
    bool along;     /* lane k of sum i is lane[i * lanes + k]; otherwise lane[k * stride + i] */
    int64_t stride; /* at least count; lane[k * stride] is aligned to a cache line */
    _Alignas(64) double lane[DMLK_SUM_LANES * DMLK_SUMS_MOST];
} dmlk_sums;

/* Starts `count` sums of `terms` numbers each.  All numbers are then added along sums, or all across them. */
void dmlk_sums_start(dmlk_sums *sums, bool is_product, int64_t count, int64_t terms);

/* Adds numbers index .. index + n - 1 of one sum. */
void dmlk_sums_along(dmlk_sums *sums, int64_t sum, const double *x, int64_t n, int64_t index);

/* Adds number `index` of every sum. */
void dmlk_sums_across(dmlk_sums *sums, const double *x, int64_t index);

/* Stores the results.  dmlk_sums_combine adds (or multiplies) the results of further numbers to them. */
void dmlk_sums_finish(dmlk_sums *sums, double *results);
void dmlk_sums_combine(bool is_product, double *results, const double *more, int64_t count);

/* Adds up (or multiplies) the lanes of `count` sums with DMLK_SUM_LANES contiguous lanes each. */
void dmlk_sums_fold(bool is_product, const double *lanes, int64_t count, double *results);

/* The lanes to which number `index` of each sum is added, for sums that are added across. */
static inline double *dmlk_sums_row(dmlk_sums *sums, int64_t index) {
    return &sums->lane[(index & (sums->lanes - 1)) * sums->stride];
}

/* Forms of `lines` of sums.inc for the plain sums of FLOAT32s (see dispatch/choose.c), with the same bits. */
extern const struct dmlk_sum_lines_form {
    void (*sum)(const float *from, int64_t stride, int64_t lines, int64_t n, int64_t ahead, double *results);
} *dmlk_sum_lines_form;

/* --- for sums.inc --- */

#define DMLK_SUMS_STRIP 32 /* sums whose lane is kept in registers; as floats, two cache lines */
#define DMLK_SUMS_NEAR 128 /* sums whose lanes fit into half of the first-level cache */

/* A quarter of the lanes. */
typedef double dmlk_sums_vector __attribute__((vector_size(DMLK_SUM_LANES / 4 * sizeof(double)), aligned(sizeof(double))));

/* Combines the lanes of a sum, in four vectors, pairwise. */
#define DMLK_FOLD_LANES(result, a, b, c, d, operation)                                                  \
    do {                                                                                               \
        const dmlk_sums_vector all_ = ((a)operation(c))operation((b)operation(d));                     \
        (result) = (all_[0] operation all_[2])operation(all_[1] operation all_[3]);                    \
    } while (0)

#endif

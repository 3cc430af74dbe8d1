/* sums.h - sums and products of doubles whose result depends on nothing but the numbers and their order.
 *
 * Number i goes to partial result i % lanes, so that several can be added at a time, whether the numbers of one sum
 * follow each other in memory or those of neighbouring sums do.  Numbers of the same lane are added up in blocks of
 * DMLK_SUM_BLOCK numbers first: several blocks at a time, and with smaller rounding errors. */
#ifndef DMLK_SUMS_H
#define DMLK_SUMS_H

#include "promoted.h"

#define DMLK_SUM_LANES 8
#define DMLK_SUM_BLOCK 64

/* Up to DMLK_CHUNK sums at a time. */
typedef struct dmlk_sums {
    bool is_product;
    int64_t count; /* sums */
    int64_t lanes; /* 1: a short sum, without blocks */
    bool along;    /* lane k of sum i is number i * lanes + k below; otherwise k * count + i */
    double whole[DMLK_SUM_LANES * DMLK_CHUNK]; /* of whole blocks */
    double begun[DMLK_SUM_LANES * DMLK_CHUNK]; /* of the block that has begun */
} dmlk_sums;

/* Starts `count` sums of `terms` numbers each.  All numbers are then added along sums, or all across them. */
void dmlk_sums_start(dmlk_sums *sums, bool is_product, int64_t count, int64_t terms);

/* Adds numbers index .. index + n - 1 of one sum. */
void dmlk_sums_along(dmlk_sums *sums, int64_t sum, const double *x, int64_t n, int64_t index);

/* Adds number `index` of every sum. */
void dmlk_sums_across(dmlk_sums *sums, const double *x, int64_t index);

/* Stores the results; they may be combined with those of further numbers by dmlk_sums_combine. */
void dmlk_sums_finish(const dmlk_sums *sums, double *results);
void dmlk_sums_combine(bool is_product, double *results, const double *more, int64_t count);

/* --- for sums.inc --- */

/* Half of the lanes. */
typedef double dmlk_sums_vector __attribute__((vector_size(DMLK_SUM_LANES / 2 * sizeof(double)), aligned(sizeof(double))));

#define dmlk_sums_all(x) ((dmlk_sums_vector){x, x, x, x})

#endif

/* exponentials.h - FLOAT32 exponentials of the numbers of neighbouring lines, and their sums: in double and in logical
 * order (sums.h).
 *
 * They are relative to a power of 2 near that of the largest number of each line (dmlk_exp_relativef), or, if all numbers
 * are small, to 1 (dmlk_easy_expf): this is one pass less.  What is computed with the exponentials and sums of a line has
 * the same bits in both cases, as one of them is the other times a power of 2.
 *
 * All functions take FLOAT32s that are contiguous, along lines or across them. */
#ifndef DMLK_EXPONENTIALS_H
#define DMLK_EXPONENTIALS_H

#include "ahead.h"
#include "sums.h"

#define DMLK_MOST_EXPONENTIALS DMLK_CHUNK /* lines */

typedef struct dmlk_exponentials {
    int64_t count; /* lines */
    bool simple;   /* not relative */
    bool shifts;   /* a shift is not 0 */
    int32_t most;  /* simple: bits of the largest magnitude of all numbers */
    float largest[DMLK_MOST_EXPONENTIALS]; /* not simple */
    float shift[DMLK_MOST_EXPONENTIALS], low[DMLK_MOST_EXPONENTIALS], rounding[DMLK_MOST_EXPONENTIALS]; /* dmlk_relativef */
} dmlk_exponentials;

/* Of n numbers, those before the first line of the cache; 0 if there are too few for this to matter. */
static inline int64_t dmlk_before_lines(const float *x, int64_t n) {
    return n < 256 ? 0 : dmlk_before_line(x) / (int64_t)sizeof *x;
}

/* Either: exponentials that are simple, if dmlk_are_simple after all of them. */
void dmlk_exponentials_simply(dmlk_exponentials *e, int64_t count);
bool dmlk_are_simple(const dmlk_exponentials *e);

/* Or: first the largest numbers are found, those of a line piece by piece. */
void dmlk_exponentials_start(dmlk_exponentials *e, int64_t count);
void dmlk_largest_along(dmlk_exponentials *e, int64_t line, const float *x, int64_t n);
void dmlk_largest_across(dmlk_exponentials *e, const float *x, int64_t rows, int64_t step, bool cached);
void dmlk_exponentials_relate(dmlk_exponentials *e);

/* Of each line, exp(number - shift) is its exponential times 2^scale. */
void dmlk_exponentials_of_one(const dmlk_exponentials *e, double *scales, double *shifts);

/* Exponentials of numbers `index` and following of each line are stored, and added to sums.  Rows are `step` numbers apart,
 * and those that are taken next `next` numbers behind these, or 0: they are in a cache. */
void dmlk_exponentials_along(dmlk_exponentials *e, dmlk_sums *sums, int64_t line, const float *x, int64_t n, int64_t index,
                             float *to);
void dmlk_exponentials_across(dmlk_exponentials *e, dmlk_sums *sums, const float *x, int64_t rows, int64_t step, int64_t next,
                              int64_t index, float *to, int64_t to_step);

/* The same exponentials of n numbers, only stored: of one line (step 0), or of each line one (step 1). */
void dmlk_exponentials_again(dmlk_exponentials *e, int64_t line, int64_t step, const float *x, int64_t n, float *to);

/* All at once, of whole lines that the first-level cache holds; two of them are `stride` apart.  Simple ones are tried if
 * `simply`.  Lines of the next call probably follow. */
void dmlk_exponentials_of_lines(dmlk_exponentials *e, bool simply, const float *x, int64_t stride, int64_t count, int64_t n,
                                float *to, int64_t to_stride, double *sums);

#endif

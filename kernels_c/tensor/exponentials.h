/* exponentials.h - FLOAT32 exponentials of the numbers of neighbouring lines, and the sums of these exponentials,
 * computed in double and in logical order (sums.h).
 *
 * Exponentials are divided by a power of 2 near the exponential of the line's largest number (dmlk_exp_relativef).
 * If all numbers are small, they are not ("simple", dmlk_easy_expf), which saves a pass.  Results that a kernel
 * computes from the exponentials and sums of a line have the same bits either way, as the two differ by a power of 2.
 *
 * All functions take FLOAT32s that are contiguous, along lines or across them. */
#ifndef DMLK_EXPONENTIALS_H
#define DMLK_EXPONENTIALS_H

#include "ahead.h"
#include "sums.h"

#define DMLK_MOST_EXPONENTIALS DMLK_CHUNK /* lines */

typedef struct dmlk_exponentials {
    int64_t count; /* lines */
    bool simple;   /* not divided by a power of 2 */
    bool shifts;   /* a shift is not 0 */
    int32_t most;  /* simple: bits of the largest magnitude of all numbers so far */
    float largest[DMLK_MOST_EXPONENTIALS]; /* not simple: the largest number of each line */
    float shift[DMLK_MOST_EXPONENTIALS], low[DMLK_MOST_EXPONENTIALS], rounding[DMLK_MOST_EXPONENTIALS]; /* dmlk_relativef */
} dmlk_exponentials;

/* How many of n numbers precede the first whole cache line; 0 if n is too small for this to matter. */
static inline int64_t dmlk_before_lines(const float *x, int64_t n) {
    return n < 256 ? 0 : dmlk_before_line(x) / (int64_t)sizeof *x;
}

/* Starts simple exponentials.  They are correct if dmlk_are_simple returns true after the last of them. */
void dmlk_exponentials_simply(dmlk_exponentials *e, int64_t count);
bool dmlk_are_simple(const dmlk_exponentials *e);

/* Starts exponentials that are not simple: dmlk_largest_along or dmlk_largest_across is called for all numbers, piece
 * by piece, then dmlk_exponentials_relate. */
void dmlk_exponentials_start(dmlk_exponentials *e, int64_t count);
void dmlk_largest_along(dmlk_exponentials *e, int64_t line, const float *x, int64_t n);
void dmlk_largest_across(dmlk_exponentials *e, const float *x, int64_t rows, int64_t step, bool cached);
void dmlk_exponentials_relate(dmlk_exponentials *e);

/* Sets the shift and scale of each line: exp(number - shift) is the computed exponential times 2^scale. */
void dmlk_exponentials_of_one(const dmlk_exponentials *e, double *scales, double *shifts);

/* Store the exponentials of a line's numbers index .. index + n - 1, or of rows index .. index + rows - 1 of all
 * lines, and add them to the sums.  Rows are `step` numbers apart; the rows of the next call are `next` numbers after
 * these and are prefetched; 0: they are in a cache. */
void dmlk_exponentials_along(dmlk_exponentials *e, dmlk_sums *sums, int64_t line, const float *x, int64_t n, int64_t index,
                             float *to);
void dmlk_exponentials_across(dmlk_exponentials *e, dmlk_sums *sums, const float *x, int64_t rows, int64_t step, int64_t next,
                              int64_t index, float *to, int64_t to_step);

/* Stores the same exponentials again, without adding them: of n numbers of `line` (step 0), or of one number of each
 * line (step 1). */
void dmlk_exponentials_again(dmlk_exponentials *e, int64_t line, int64_t step, const float *x, int64_t n, float *to);

/* Exponentials and sums of `count` whole lines that fit the first-level cache together; lines are `stride` numbers
 * apart.  With `simply`, simple exponentials are tried first.  The lines after these are prefetched, for the next
 * call. */
void dmlk_exponentials_of_lines(dmlk_exponentials *e, bool simply, const float *x, int64_t stride, int64_t count, int64_t n,
                                float *to, int64_t to_stride, double *sums);

#endif

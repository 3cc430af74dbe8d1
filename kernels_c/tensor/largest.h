/* largest.h - the largest or smallest of contiguous FLOAT32s, with one comparison per vector.  NaNs are ignored;
 * between 0 and -0, either may be the result.  Without numbers, the largest is -infinity and the smallest infinity. */
#ifndef DMLK_LARGEST_H
#define DMLK_LARGEST_H

#include <stdint.h>
#include <stdbool.h>

/* The results of `lines` lines of n numbers each; lines are `stride` numbers apart.  Prefetches `ahead` bytes past
 * the numbers that are compared. */
void dmlk_best_lines(bool smallest, const float *from, int64_t stride, int64_t lines, int64_t n, int64_t ahead,
                     float *results);

#define DMLK_PLACE_MOST 1024 /* the most numbers of a line in dmlk_best_places */

/* The same, with the place of the first or last number that equals the result; if no number does, any place of the
 * line. */
void dmlk_best_places(bool smallest, bool last, const float *from, int64_t stride, int64_t lines, int64_t n, int64_t ahead,
                      float *results, int32_t *places);

/* Rows of `count` numbers, `step` numbers apart.  Result i is the largest or smallest of number i of all rows. */
typedef struct dmlk_best_rows {
    bool smallest, last;
    const float *from;
    int64_t rows, step, count;
    bool cached; /* the rows are in the cache; otherwise they are prefetched */
} dmlk_best_rows;
void dmlk_best_of_rows(const dmlk_best_rows *rows, float *results);

/* The same, with the number of the first or last row that contains each result; the first row is 0. */
void dmlk_best_places_of_rows(const dmlk_best_rows *rows, float *results, int32_t *places);

#endif

/* largest.h - the largest of contiguous FLOAT32s, or the smallest, by one instruction for each vector.  NaNs are ignored, and
 * of two zeros any may be found; the largest of no numbers is -infinity, the smallest infinity. */
#ifndef DMLK_LARGEST_H
#define DMLK_LARGEST_H

#include <stdint.h>
#include <stdbool.h>

/* Results of lines of n numbers each, of which two are `stride` apart.  What is `ahead` bytes behind is fetched meanwhile. */
void dmlk_best_lines(bool smallest, const float *from, int64_t stride, int64_t lines, int64_t n, int64_t ahead,
                     float *results);

#define DMLK_PLACE_MOST 1024 /* numbers of a line */

/* The same, with the place of the first or last number that equals the result; if there is none, any place of the line. */
void dmlk_best_places(bool smallest, bool last, const float *from, int64_t stride, int64_t lines, int64_t n, int64_t ahead,
                      float *results, int32_t *places);

/* Results of number i of each row, of `count`; rows are `step` numbers apart. */
typedef struct dmlk_best_rows {
    bool smallest, last;
    const float *from;
    int64_t rows, step, count;
    bool cached; /* rows are in the cache; otherwise what is taken later is fetched */
} dmlk_best_rows;
void dmlk_best_of_rows(const dmlk_best_rows *rows, float *results);

/* The same, with the first or last row of each result, the first row being 0. */
void dmlk_best_places_of_rows(const dmlk_best_rows *rows, float *results, int32_t *places);

#endif

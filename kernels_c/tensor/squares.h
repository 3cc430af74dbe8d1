/* squares.h - square blocks that are transposed in registers: the forms that transpose.c uses (see transpose.inc). */
#ifndef DMLK_SQUARES_H
#define DMLK_SQUARES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shuffle.h"

typedef void dmlk_square(const uint8_t *from, int64_t from_step, uint8_t *to, int64_t to_step);

/* Squares of `size` x `size` elements; 0: there are none. */
typedef struct dmlk_squares {
    int64_t size;
    dmlk_square *run;
} dmlk_squares;

/* See dispatch/choose.c. */
extern const struct dmlk_transpose_form {
    dmlk_squares squares[9]; /* by the bytes of an element */
    const struct dmlk_transpose_form *smaller; /* the form for blocks that its squares do not fit into; NULL: none */
} *dmlk_transpose_form;

/* Permutation indices that interleave two vectors of N lane by lane, by N and the number of lanes; the second vector's
 * elements are numbered from N. */
#define LOW_2_1 0, 2
#define HIGH_2_1 1, 3
#define LOW_4_1 0, 4, 1, 5
#define HIGH_4_1 2, 6, 3, 7
#define LOW_4_2 0, 4, 2, 6
#define HIGH_4_2 1, 5, 3, 7
#define LOW_8_1 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_8_1 4, 12, 5, 13, 6, 14, 7, 15
#define LOW_8_2 0, 8, 1, 9, 4, 12, 5, 13
#define HIGH_8_2 2, 10, 3, 11, 6, 14, 7, 15
#define LOW_8_4 0, 8, 2, 10, 4, 12, 6, 14
#define HIGH_8_4 1, 9, 3, 11, 5, 13, 7, 15
#define LOW_16_1 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_16_1 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define LOW_16_2 0, 16, 1, 17, 2, 18, 3, 19, 8, 24, 9, 25, 10, 26, 11, 27
#define HIGH_16_2 4, 20, 5, 21, 6, 22, 7, 23, 12, 28, 13, 29, 14, 30, 15, 31
#define LOW_16_4 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29
#define HIGH_16_4 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31
#define DMLK_INDICES_(which, n, lanes) which##_##n##_##lanes
#define DMLK_INDICES(which, n, lanes) DMLK_INDICES_(which, n, lanes)

typedef uint8_t whole_lane __attribute__((vector_size(16)));

static inline __attribute__((always_inline)) whole_lane load_1(const uint8_t *from, int64_t step) {
    whole_lane x;
    (void)step;
    memcpy(&x, from, sizeof x);
    return x;
}

#endif

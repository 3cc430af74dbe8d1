/* window_rows.h - depthwise convolutions of planes whose rows are contiguous: vectors of adjacent outputs, computed from the
 * rows of the input in place. */
#ifndef DMLK_WINDOW_ROWS_H
#define DMLK_WINDOW_ROWS_H

#include "convolve_float.h"

#define DMLK_WINDOW_ROWS_MOST 5 /* taps of a window along an axis */

/* height x width outputs of each of some channels.  Windows are squares of 3 or 5 taps, whose rows are adjacent, and have the
 * same step, 1 or 2, along both axes; with a step of 2 their columns are adjacent, too. */
typedef struct dmlk_window_rows {
    const dmlk_taps_axis *axes; /* of rows and of columns */
    int64_t planes;
    const uint8_t *plane;       /* element (0, 0) of the input */
    bool halves;                /* input and output are FLOAT16 instead of FLOAT32 */
    uint8_t *to;
    int64_t plane_step, to_plane_step, row_step, to_step; /* from plane to plane and from row to row, in elements */
    int64_t first[2];           /* row and column of tap 0 of the first output */
    const float *weights;       /* of the first channel; those of the next one follow */
    const float *bias;          /* of each channel */
    bool is_bounded;            /* bounds follow, as in window_taps.h */
    float low, high;
    int64_t height, width;
} dmlk_window_rows;

/* Forms (see dispatch/choose.c). */
extern const struct dmlk_window_rows_form {
    void (*convolve)(const dmlk_window_rows *rows);
} *dmlk_window_rows_form;

#endif

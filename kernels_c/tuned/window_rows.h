/* window_rows.h - depthwise convolutions of planes whose rows are contiguous: vectors of adjacent outputs, computed from the
 * rows of the input in place. */
#ifndef DMLK_WINDOW_ROWS_H
#define DMLK_WINDOW_ROWS_H

#include "convolve_float.h"

#define DMLK_WINDOW_ROWS_MOST 5 /* taps of a window along an axis */

/* height x width outputs of a plane.  Windows are squares of 3 or 5 taps and have a step of 1; their rows are adjacent. */
typedef struct dmlk_window_rows {
    const dmlk_taps_axis *axes; /* of rows and of columns */
    const uint8_t *plane;       /* element (0, 0) of the input */
    bool halves;                /* input and output are FLOAT16 instead of FLOAT32 */
    uint8_t *to;
    int64_t row_step, to_step;  /* from row to row, in elements */
    int64_t first[2];           /* row and column of tap 0 of the first output */
    const float *weights;
    float bias;
    int64_t height, width;
} dmlk_window_rows;

/* Forms (see dispatch/choose.c). */
extern const struct dmlk_window_rows_form {
    void (*convolve)(const dmlk_window_rows *rows);
} *dmlk_window_rows_form;

#endif

/* staged_input.h - a part of a convolution's input as floats, with 0 outside of the input, in working memory. */
#ifndef DMLK_STAGED_INPUT_H
#define DMLK_STAGED_INPUT_H

#include <stdbool.h>

#include "convolve_float.h"

/* `view` is the copy: images, channels and a box of places, whose first one is at `low` of the input. */
typedef struct dmlk_stage {
    const dmlk_view *input; /* at its first image and channel */
    int64_t low[DMLK_SPATIAL];
    dmlk_view view;
    bool last; /* channels are closest, as in the input */
} dmlk_stage;

/* Sets the strides of the copy from its sizes. */
void dmlk_lay_out_stage(dmlk_stage *s);

/* Floats of an image of the copy. */
double dmlk_stage_floats(const dmlk_stage *s);

/* Lines of the copy along the last spatial axis, of all channels if they are closest. */
int64_t dmlk_stage_lines(const dmlk_stage *s);
void dmlk_fill_stage(const dmlk_stage *s, int64_t begin, int64_t end);

#endif

/* taps.h - some places of the window of each output of a row, in order: what a pooling loop runs over. */
#ifndef DMLK_TAPS_H
#define DMLK_TAPS_H

#include "windows.h"

#define DMLK_MOST_TAPS 64

typedef struct dmlk_taps {
    int64_t count;
    int64_t number[DMLK_MOST_TAPS];                      /* of output 0's input, in elements from row->origin */
    int64_t begin[DMLK_MOST_TAPS], end[DMLK_MOST_TAPS];  /* outputs for which the place is inside the input */
    uint64_t position[DMLK_MOST_TAPS];                   /* as `number`, in the packed input */
    dmlk_outputs whole;                                  /* outputs for which all of them are; begin == end: none */
    bool is_run;                                         /* they are adjacent elements */
    bool has_more;                                       /* further places follow `last` */
    dmlk_place last;
    dmlk_window_row row; /* the row that they were taken for, if they are all: those of its neighbours are often equal */
} dmlk_taps;

/* The first taps of a row; false: there are none.  `taps` are those of the row before, or zero.  And the next ones. */
bool dmlk_first_taps(const dmlk_windows *w, const dmlk_window_row *row, const uint64_t *packed_steps, dmlk_taps *taps);
bool dmlk_next_taps(const dmlk_windows *w, const dmlk_window_row *row, const uint64_t *packed_steps, dmlk_taps *taps);

#endif

/* taps.h - the places of a window, for all outputs of a row, in row-major order and in groups: the inner loops of
 * pooling. */
#ifndef DMLK_TAPS_H
#define DMLK_TAPS_H

#include "windows.h"

#define DMLK_MOST_TAPS 64 /* of a group */

typedef struct dmlk_taps {
    int64_t count;
    int64_t number[DMLK_MOST_TAPS];                      /* where the input of output 0 is: elements from row->origin */
    int64_t begin[DMLK_MOST_TAPS], end[DMLK_MOST_TAPS];  /* outputs for which the tap is inside the input */
    uint64_t position[DMLK_MOST_TAPS];                   /* the same as `number`, in the packed input */
    dmlk_outputs whole;                                  /* outputs whose taps are all inside the input; may be empty */
    bool is_run;                                         /* the taps are adjacent elements */
    bool has_more;                                       /* `last` is the first place of the next group */
    dmlk_place last;
    dmlk_window_row row; /* the row of these taps, if one group has them all: the next row often has the same taps */
} dmlk_taps;

/* The first group of taps of a row, and the next one; false: there is none.  Before dmlk_first_taps, `taps` is all
 * zero or holds the taps of another row, which are reused if they are the same. */
bool dmlk_first_taps(const dmlk_windows *w, const dmlk_window_row *row, const uint64_t *packed_steps, dmlk_taps *taps);
bool dmlk_next_taps(const dmlk_windows *w, const dmlk_window_row *row, const uint64_t *packed_steps, dmlk_taps *taps);

#endif

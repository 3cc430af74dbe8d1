/* resample_windows.h - mixes pairs of taps for eight elements at once. */
#ifndef DMLK_RESAMPLE_WINDOWS_H
#define DMLK_RESAMPLE_WINDOWS_H

#include <stdint.h>

#define DMLK_MIXED 8 /* elements that are mixed at once; their taps are among DMLK_MIX_WINDOW + 1 contiguous ones */
#define DMLK_MIX_WINDOW 16

/* Forms (see dispatch/choose.c). */
extern const struct dmlk_resample_form {
    /* row[i] = (1 - w) a + w b, where a is from[window[i / 8] + lane[i]], b the element after it, and w is weight[i];
     * if w is 0, row[i] = a.  Starts at element `first`; returns the first one without a window (-1), or `count`. */
    int64_t (*mix_windows)(const float *from, const int64_t *window, const int32_t *lane, const double *weight,
                           int64_t first, int64_t count, double *row);
} *dmlk_resample_form;

#endif

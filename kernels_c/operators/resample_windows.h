/* resample_windows.h - pairs of taps of eight elements at once. */
#ifndef DMLK_RESAMPLE_WINDOWS_H
#define DMLK_RESAMPLE_WINDOWS_H

#include <stdint.h>

#define DMLK_MIXED 8 /* elements that are mixed at once; their taps are among DMLK_MIX_WINDOW + 1 contiguous ones */
#define DMLK_MIX_WINDOW 16

/* Forms (see dispatch/choose.c). */
extern const struct dmlk_resample_form {
    /* row[i] = (1 - w) a + w b: a and b are from[window[i / 8] + lane[i]] and the next one, w is weight[i]; where w is 0, a
     * itself.  From element `first` on; returns the first that was not computed, as it is in no window (-1), or `count`. */
    int64_t (*mix_windows)(const float *from, const int64_t *window, const int32_t *lane, const double *weight,
                           int64_t first, int64_t count, double *row);
} *dmlk_resample_form;

#endif

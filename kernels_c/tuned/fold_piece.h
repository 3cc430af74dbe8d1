/* fold_piece.h - computes a piece of a row for fold_rows.c; each form uses the vectors of its instruction set. */
#ifndef DMLK_FOLD_PIECE_H
#define DMLK_FOLD_PIECE_H

#include "narrow.h"
#include "promoted.h"
#include "view.h"

#define DMLK_FOLD_MOST 64   /* the most places of a window */
#define DMLK_FOLD_LANES 16  /* elements of a row whose sums are in registers together */
#define DMLK_FOLD_PIECE 256 /* elements of a row whose sums are rounded together */

/* The rows that are added to a row of the image, in order: element i of from[t] to element i, for begins[t] <= i <
 * ends[t]. */
typedef struct dmlk_fold_taps {
    int64_t count, ahead; /* ahead: prefetch distance in elements; CPUs do not prefetch so many rows themselves */
    const float *from[DMLK_FOLD_MOST];
    int64_t begins[DMLK_FOLD_MOST], ends[DMLK_FOLD_MOST];
} dmlk_fold_taps;

/* Sums elements at .. at + DMLK_FOLD_LANES - 1, to which all taps add. */
typedef void dmlk_add_lanes(const dmlk_fold_taps *taps, int64_t at, double *to);

static inline double dmlk_add_one(const dmlk_fold_taps *taps, int64_t at) {
    double sum = 0;
    for (int64_t t = 0; t < taps->count; t++) {
        sum += at >= taps->begins[t] && at < taps->ends[t] ? (double)taps->from[t][at] : 0;
    }
    return sum;
}

/* Computes elements [from, to), at most DMLK_FOLD_PIECE.  All taps add to elements [begin, end); the last vector of
 * these may compute some elements again. */
static inline __attribute__((always_inline)) void dmlk_sum_piece(dmlk_add_lanes *add_lanes, const dmlk_fold_taps *taps, int64_t begin,
                                                               int64_t end, int64_t from, int64_t to, float *out) {
    double row[DMLK_FOLD_PIECE];
    int64_t at = from;
    begin = dmlk_min(begin > from ? begin : from, to);
    end = dmlk_min(end, to);
    while (at < begin || (at < to && end - begin < DMLK_FOLD_LANES)) {
        row[at - from] = dmlk_add_one(taps, at);
        at++;
    }
    for (; at < end; at += DMLK_FOLD_LANES) {
        const int64_t lanes = dmlk_min(at, end - DMLK_FOLD_LANES);
        add_lanes(taps, lanes, row + lanes - from);
    }
    for (at = dmlk_min(at, end > begin ? end : begin); at < to && end - begin >= DMLK_FOLD_LANES; at++) {
        row[at - from] = dmlk_add_one(taps, at);
    }
    for (int64_t i = 0; i < to - from; i++) {
        out[from + i] = dmlk_sum_to_float(row[i]);
    }
}


#define DMLK_FOLD_PARAMETERS \
    const dmlk_fold_taps *taps, int64_t begin, int64_t end, int64_t from, int64_t to, float *out
#define DMLK_FOLD_ARGUMENTS taps, begin, end, from, to, out

/* Forms of dmlk_sum_piece (see dispatch/choose.c). */
extern const struct dmlk_fold_rows_form {
    void (*sum_piece)(DMLK_FOLD_PARAMETERS);
} *dmlk_fold_rows_form;

#endif

/* windows.h - windows that move over the spatial axes of a tensor, for pooling and similar kernels.
 *
 * The walker returns rows: consecutive output elements along one axis, the one with the smallest stride.  For each
 * row it iterates over the places of the window in row-major order, each with those outputs of the row for which
 * the place is inside the input.  So an output element receives its inputs in row-major order, whatever the layout
 * and the split of rows.
 *
 * Guarantees: every output element is in exactly one row; every place that the walker returns is inside the input for
 * at least one output of the row; addresses point into the views themselves, never into a copy.  The walker reads and
 * writes no element. */
#ifndef DMLK_WINDOWS_H
#define DMLK_WINDOWS_H

#include "promoted.h"
#include "read_set.h"

/* An axis over which the window moves: place t of the window of output o is input o * stride + t * dilation - start. */
typedef struct dmlk_window_axis {
    int64_t input, output;    /* sizes */
    int64_t window;           /* places */
    int64_t stride, dilation; /* at least 1 */
    int64_t start, end;       /* padding */
} dmlk_window_axis;

/* The most elements from the first place of the first window to the last place of the last window: an input and two
 * paddings whose sizes have 32 bits each.  With this limit, positions do not overflow. */
#define DMLK_MOST_REACH (3 * (int64_t)UINT32_MAX)

/* The elements that `count` windows of `window` places each span; 0 if an argument is not positive, or if they are
 * more than DMLK_MOST_REACH.  All arguments are below 2^32. */
static inline int64_t dmlk_windows_reach(int64_t count, int64_t window, int64_t stride, int64_t dilation) {
    if (count < 1 || window < 1 || stride < 1 || dilation < 1) {
        return 0;
    }
    const uint64_t moved = (uint64_t)(count - 1) * (uint64_t)stride, span = (uint64_t)(window - 1) * (uint64_t)dilation;
    const uint64_t most = DMLK_MOST_REACH - 1;
    return moved > most || span > most - moved ? 0 : (int64_t)(moved + span) + 1;
}

/* The number of input elements, of `size`, that kernels need to consider if the last place of the last window is at
 * `last`.  If a stride or more of elements follow it, no window reaches these, and kernels ignore them. */
static inline int64_t dmlk_met_by_windows(int64_t size, int64_t last, int64_t stride) {
    return size - 1 - last < stride ? size : dmlk_max(last + 1, 1);
}

/* The input positions along the axis that the windows cover, as at most DMLK_MOST_SLICES disjoint slices.  Exact,
 * unless more slices are needed: then the whole axis, and `has_more` is set. */
uint32_t dmlk_window_slices(const dmlk_window_axis *axis, dmlk_slice *slices, bool *has_more);

/* Outputs begin .. end - 1 along an axis. */
typedef struct dmlk_outputs {
    int64_t begin, end;
} dmlk_outputs;

#define DMLK_FIRST_SPATIAL 2 /* the first of the spatial axes */
#define DMLK_WINDOW_AXES 5 /* batch, channel and up to three spatial ones; those that are missing have size 1 */
#define DMLK_KNOWN_PLACES 32 /* places along the axis of rows for which dmlk_outputs_inside is stored */

typedef struct dmlk_windows {
    dmlk_window_axis axes[DMLK_WINDOW_AXES]; /* the window size is 1 along batch and channel */
    int64_t in_strides[DMLK_WINDOW_AXES], out_strides[DMLK_WINDOW_AXES]; /* in elements */
    uint8_t *in, *out;
    int64_t in_bytes, out_bytes; /* of one element */
    int64_t places;              /* of a window, including those in the padding; at most INT64_MAX */
    uint32_t along;              /* the axis of rows */
    int64_t row_length;          /* outputs of a row, at most DMLK_CHUNK; the last row along the axis may be shorter */
    int64_t pieces;              /* rows along the whole axis */
    int64_t rows;                /* of all outputs */
    int64_t row_step;            /* input elements from one output of a row to the next; modulo 2^64 if only one has them */
    uint64_t place_steps[DMLK_WINDOW_AXES]; /* input elements from one place to the next */
    dmlk_outputs inside[DMLK_KNOWN_PLACES]; /* the results of dmlk_outputs_inside */
} dmlk_windows;

/* `axes` are the spatial axes, of which only window, stride, dilation, start and end are read.  DMLK_BAD_PACKET:
 * the rank of a view is not spatial + 2, or the parameters are not a valid window. */
int dmlk_windows_init(dmlk_windows *w, const dmlk_view *in, const dmlk_view *out, const dmlk_window_axis *axes,
                      uint32_t spatial);

typedef struct dmlk_window_row {
    int64_t index[DMLK_WINDOW_AXES]; /* of the first output */
    int64_t count;                   /* outputs, at most w->row_length; w->out_strides[w->along] apart */
    uint8_t *out;
    uint64_t origin; /* number of the input element at place 0 of the first output; modulo 2^64, as it may be outside */
    int64_t begin[DMLK_WINDOW_AXES], end[DMLK_WINDOW_AXES]; /* places along each axis that are inside the input for an output */
} dmlk_window_row;

/* Restricts the elements of the input that a kernel reads to those that windows cover. */
void dmlk_windows_reads(const dmlk_windows *w, uint32_t spatial, dmlk_read_set *reads);

/* Row `number` (0 .. w->rows - 1), and the next row. */
void dmlk_window_seek(const dmlk_windows *w, int64_t number, dmlk_window_row *row);
void dmlk_window_next(const dmlk_windows *w, dmlk_window_row *row);

/* One place of the window, and the outputs of the row for which it is inside the input. */
typedef struct dmlk_place {
    int64_t at[DMLK_WINDOW_AXES];
    int64_t begin, end;   /* of the outputs of the row */
    uint64_t number;      /* elements from row->origin to the input of output 0; later outputs are w->row_step apart */
    const uint8_t *first; /* the input of output `begin` */
} dmlk_place;

static inline int64_t dmlk_ceil_div(int64_t x, int64_t divisor) {
    return divisor == 1 ? x : (x + divisor - 1) / divisor; /* x >= 0 */
}

/* The first place of the window that is not below `low`, if place 0 is at `origin`. */
static inline int64_t dmlk_first_place(const dmlk_window_axis *axis, int64_t origin, int64_t low) {
    return origin >= low ? 0 : dmlk_min(axis->window, dmlk_ceil_div(low - origin, axis->dilation));
}

/* The outputs along the axis of rows for which a place is inside the input. */
static inline dmlk_outputs dmlk_outputs_inside(const dmlk_window_axis *axis, int64_t place) {
    const int64_t before = axis->start - place * axis->dilation; /* distance before the input, for output 0 */
    const int64_t last = axis->input - 1 + before;
    return (dmlk_outputs){.begin = before <= 0 ? 0 : dmlk_ceil_div(before, axis->stride),
                          .end = last < 0 ? 0 : dmlk_min(axis->output, last / axis->stride + 1)};
}

/* Sets all fields but `at`, from `at`. */
static inline void dmlk_take_place(const dmlk_windows *w, const dmlk_window_row *row, dmlk_place *place) {
    const int64_t t = place->at[w->along], from = row->index[w->along];
    const dmlk_outputs inside =
        t < DMLK_KNOWN_PLACES ? w->inside[t] : dmlk_outputs_inside(&w->axes[w->along], t);
    place->begin = inside.begin > from ? inside.begin - from : 0;
    place->end = dmlk_min(inside.end - from, row->count);
    place->number = 0;
    for (uint32_t a = DMLK_FIRST_SPATIAL; a < DMLK_WINDOW_AXES; a++) {
        place->number += (uint64_t)place->at[a] * w->place_steps[a];
    }
    const uint64_t first = row->origin + place->number + (uint64_t)place->begin * (uint64_t)w->row_step;
    place->first = w->in + (int64_t)first * w->in_bytes;
}

/* The first place; false: there is none.  And the next one. */
static inline bool dmlk_first_place_of(const dmlk_windows *w, const dmlk_window_row *row, dmlk_place *place) {
    for (int a = 0; a < DMLK_WINDOW_AXES; a++) {
        if (row->begin[a] >= row->end[a]) {
            return false;
        }
        place->at[a] = row->begin[a];
    }
    dmlk_take_place(w, row, place);
    return true;
}

static inline bool dmlk_next_place_of(const dmlk_windows *w, const dmlk_window_row *row, dmlk_place *place) {
    int a = DMLK_WINDOW_AXES - 1;
    while (++place->at[a] == row->end[a]) {
        place->at[a] = row->begin[a];
        if (--a < 0) {
            return false;
        }
    }
    dmlk_take_place(w, row, place);
    return true;
}

/* The number of places along one axis of an output's window that are inside the input or, if `padded`, inside the
 * input or its padding. */
static inline int64_t dmlk_count_along(const dmlk_window_axis *axis, int64_t output, bool padded) {
    const int64_t origin = output * axis->stride - axis->start;
    const int64_t low = padded ? -axis->start : 0, high = axis->input + (padded ? axis->end : 0);
    const int64_t begin = dmlk_first_place(axis, origin, low), end = dmlk_first_place(axis, origin, high);
    return end - begin;
}

/* The product of these numbers along all axes but the axis of rows, for a row.  A double, because windows may have up
 * to 2^96 places in the padding. */
static inline double dmlk_count_others(const dmlk_windows *w, const dmlk_window_row *row, bool padded) {
    double count = 1;
    for (uint32_t a = 0; a < DMLK_WINDOW_AXES; a++) {
        count *= a == w->along ? 1 : (double)dmlk_count_along(&w->axes[a], row->index[a], padded);
    }
    return count;
}

/* The number of these places along all axes for output `i` of the row; `others` is the result of dmlk_count_others. */
static inline double dmlk_count_places(const dmlk_windows *w, const dmlk_window_row *row, double others, int64_t i,
                                       bool padded) {
    return others * (double)dmlk_count_along(&w->axes[w->along], row->index[w->along] + i, padded);
}

/* The outputs of the row whose windows have all their places along its axis inside the input or, if `padded`, inside
 * the input or its padding; begin > end: none. */
static inline dmlk_outputs dmlk_whole_windows(const dmlk_windows *w, const dmlk_window_row *row, bool padded) {
    const dmlk_window_axis *axis = &w->axes[w->along];
    const int64_t high = axis->start + axis->input + (padded ? axis->end : 0);
    const int64_t last = high - 1 - (axis->window - 1) * axis->dilation; /* where place 0 of such a window may be */
    const int64_t begin = (padded ? 0 : dmlk_ceil_div(axis->start, axis->stride)) - row->index[w->along];
    const int64_t end = (last < 0 ? 0 : last / axis->stride + 1) - row->index[w->along];
    return (dmlk_outputs){begin > 0 ? dmlk_min(begin, row->count) : 0, dmlk_min(end, row->count)};
}

#endif

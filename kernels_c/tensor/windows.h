/* windows.h - windows that move over the spatial axes of a tensor, for pooling and similar kernels.
 *
 * The walker returns rows: consecutive output elements along one axis, the one with the smallest stride.  For each
 * row it iterates over the places of the window in row-major order, each with those outputs of the row for which
 * the place is inside the input.  So an output element receives its inputs in row-major order, whatever the layout
 * and the split of rows.
 *
 * It promises: every output element is in exactly one row; every place that is handed out is inside the input for at
 * least one output of the row; addresses are those of the views themselves, never of a copy.  It reads and writes no
 * element. */
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

/* From the first place of the first window to the last one of the last window: as far as sizes and paddings of 32 bits
 * reach, so that no place overflows. */
#define DMLK_MOST_REACH (3 * (int64_t)UINT32_MAX)

/* That distance, for `count` windows of so many places, or 0 if a number is not positive or it is more than
 * DMLK_MOST_REACH.  All numbers are below 2^32. */
static inline int64_t dmlk_windows_reach(int64_t count, int64_t window, int64_t stride, int64_t dilation) {
    if (count < 1 || window < 1 || stride < 1 || dilation < 1) {
        return 0;
    }
    const uint64_t moved = (uint64_t)(count - 1) * (uint64_t)stride, span = (uint64_t)(window - 1) * (uint64_t)dilation;
    const uint64_t most = DMLK_MOST_REACH - 1;
    return moved > most || span > most - moved ? 0 : (int64_t)(moved + span) + 1;
}

/* The elements of an input of `size` that windows may meet whose last place is `last`.  Fewer only where more are left
 * over than a stride: then kernels do as if the rest were not there. */
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

#define DMLK_FIRST_SPATIAL 2
#define DMLK_WINDOW_AXES 5 /* batch, channel and up to three spatial ones; those that are missing have size 1 */
#define DMLK_KNOWN_PLACES 32

typedef struct dmlk_windows {
    dmlk_window_axis axes[DMLK_WINDOW_AXES]; /* the window size is 1 along batch and channel */
    int64_t in_strides[DMLK_WINDOW_AXES], out_strides[DMLK_WINDOW_AXES]; /* in elements */
    uint8_t *in, *out;
    int64_t in_bytes, out_bytes; /* of one element */
    int64_t places;              /* of a window, including those in the padding; at most INT64_MAX */
    uint32_t along;              /* the axis of rows */
    int64_t row_length;          /* outputs of a row, but for the last one along the axis: at most DMLK_CHUNK */
    int64_t pieces;              /* rows that make up that axis */
    int64_t rows;
    int64_t row_step;            /* input elements from one output of a row to the next; modulo 2^64 if only one has them */
    uint64_t place_steps[DMLK_WINDOW_AXES]; /* input elements from one place to the next */
    dmlk_outputs inside[DMLK_KNOWN_PLACES]; /* see dmlk_outputs_inside */
} dmlk_windows;

/* `axes` are the spatial axes, of which only window, stride, dilation, start and end are read.  DMLK_BAD_PACKET:
 * the rank of a view is not spatial + 2, or the parameters are not a valid window. */
int dmlk_windows_init(dmlk_windows *w, const dmlk_view *in, const dmlk_view *out, const dmlk_window_axis *axes,
                      uint32_t spatial);

typedef struct dmlk_window_row {
    int64_t index[DMLK_WINDOW_AXES]; /* of the first output */
    int64_t count;                   /* outputs, at most w->row_length; w->out_strides[w->along] apart */
    uint8_t *out;
    uint64_t origin; /* number of the input element under place 0 of the first output; modulo 2^64: it may be outside */
    int64_t begin[DMLK_WINDOW_AXES], end[DMLK_WINDOW_AXES]; /* places along each axis that are inside the input for an output */
} dmlk_window_row;

/* Reduces the elements of the input that a kernel reads to those that windows cover. */
void dmlk_windows_reads(const dmlk_windows *w, uint32_t spatial, dmlk_read_set *reads);

/* Row `number` (0 .. w->rows - 1), and the next row. */
void dmlk_window_seek(const dmlk_windows *w, int64_t number, dmlk_window_row *row);
void dmlk_window_next(const dmlk_windows *w, dmlk_window_row *row);

/* One place of the window, and the outputs of the row for which it is inside the input. */
typedef struct dmlk_place {
    int64_t at[DMLK_WINDOW_AXES];
    int64_t begin, end;   /* of the outputs of the row */
    uint64_t number;      /* of the input of output 0, from row->origin; the others' are w->row_step elements apart */
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

/* Sets all but `at`. */
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

/* How many places of the window of output number `i` of the row are inside the input or, if `padded`, inside the
 * input or its padding.  `others` are those along all axes but that of rows: dmlk_count_others.  Doubles, because
 * paddings make windows of up to 2^96 places. */
static inline int64_t dmlk_count_along(const dmlk_window_axis *axis, int64_t output, bool padded) {
    const int64_t origin = output * axis->stride - axis->start;
    const int64_t low = padded ? -axis->start : 0, high = axis->input + (padded ? axis->end : 0);
    const int64_t begin = dmlk_first_place(axis, origin, low), end = dmlk_first_place(axis, origin, high);
    return end - begin;
}

static inline double dmlk_count_others(const dmlk_windows *w, const dmlk_window_row *row, bool padded) {
    double count = 1;
    for (uint32_t a = 0; a < DMLK_WINDOW_AXES; a++) {
        count *= a == w->along ? 1 : (double)dmlk_count_along(&w->axes[a], row->index[a], padded);
    }
    return count;
}

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

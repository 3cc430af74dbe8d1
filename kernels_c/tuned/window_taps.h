/* window_taps.h - sliding windows over single channels: depthwise convolutions and poolings of floats, and depthwise
 * convolutions of bytes.  Shared by the files of the two loops: windows_in_planes.c, whose vectors hold adjacent
 * outputs of a plane, and windows_in_channels.c, whose vectors hold adjacent channels of an output.
 *
 * Each lane is one chain over the taps, in order: of fused multiply-adds, of sums or of maxima.  FLOAT16s are widened
 * when they are copied.  So are bytes, minus their zero point: a sum of 128 products of at most 255 x 255 is exact in
 * FLOAT32. */
#ifndef DMLK_WINDOW_TAPS_H
#define DMLK_WINDOW_TAPS_H

#include <math.h>

#include "convolve.h"
#include "convolve_float.h"
#include "element.h"
#include "promoted.h"

enum { N, CHANNEL, Z, Y, X };            /* axes of tensors */
enum { GROUP, FILTER, OF_GROUP, WINDOW }; /* axes of filters */

#define MOST_TAPS 128 /* of a window */
#define LANES 8 /* floats of a vector */
#define MOST_COPIED (1 << 19) /* floats that a thread copies at a time */
#define NO_TAP (-1) /* instead of an index: no maximum was found */
#define LOWEST (-INFINITY)

typedef float vector __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));
typedef int32_t mask __attribute__((vector_size(LANES * sizeof(float))));
typedef uint8_t vector_of_bytes __attribute__((vector_size(LANES), aligned(1), may_alias));
#define INLINE static inline __attribute__((always_inline))

enum window_operation {
    CONVOLVE_FLOATS,
    CONVOLVE_AND_BOUND, /* the same, and the bounds that follow */
    CONVOLVE_BYTES, /* to INT32 */
    AVERAGE,
    MAXIMUM,
    MAXIMUM_AND_INDEX
};

typedef struct window_taps {
    enum window_operation operation;
    const dmlk_float_convolution *c;
    int64_t taps;
    int64_t channels; /* of the output */
    float outside;    /* the value of a tap outside of the input */
    /* Convolutions.  Weights are [taps][channels] if the lanes are channels, otherwise [channels][taps]. */
    float *weights, *bias;
    bool is_bounded; /* the functions that follow a convolution are these bounds, applied before results are stored: */
    float low, high;
    /* CONVOLVE_BYTES: the value of a byte of the input is (byte ^ flip) - zero. */
    const dmlk_convolution *bytes;
    uint8_t flip;
    int32_t zero;
    /* AVERAGE: along each axis, how many taps of each output are counted. */
    const float *counts[DMLK_SPATIAL];
    /* MAXIMUM_AND_INDEX: the output of indices, which count the elements of the packed input. */
    const dmlk_view *indices;
    uint64_t packed_strides[5];
    int32_t tap_index[MOST_TAPS]; /* of each tap, from tap 0 */
} window_taps;

INLINE void multiply_add(const vector *a, const vector *b, vector *sum) {
    vector result;
    for (int l = 0; l < LANES; l++) {
        result[l] = fmaf((*a)[l], (*b)[l], (*sum)[l]);
    }
    *sum = result;
}

/* Replaces smaller maxima by x, and their indices by `index`; the first of equal maxima stays. */
INLINE void take_larger(const vector *x, int32_t index, vector *maximum, mask *found) {
    vector larger;
    mask its_index;
    for (int l = 0; l < LANES; l++) {
        its_index[l] = (*x)[l] > (*maximum)[l] ? index : (*found)[l];
    }
    for (int l = 0; l < LANES; l++) {
        larger[l] = (*x)[l] > (*maximum)[l] ? (*x)[l] : (*maximum)[l];
    }
    *maximum = larger;
    *found = its_index;
}

/* Adds one more tap to the chain; only convolutions have a weight. */
INLINE void add_tap(const enum window_operation operation, const vector *weight, const vector *x, vector *sum) {
    if (operation == CONVOLVE_FLOATS || operation == CONVOLVE_AND_BOUND || operation == CONVOLVE_BYTES) {
        multiply_add(weight, x, sum);
    } else if (operation == AVERAGE) {
        *sum += *x;
    } else {
        vector result;
        for (int l = 0; l < LANES; l++) {
            result[l] = (*x)[l] > (*sum)[l] ? (*x)[l] : (*sum)[l];
        }
        *sum = result;
    }
}

/* Adds the bias to the sum of products, or converts it to INT32. */
INLINE void finish_convolution(const enum window_operation operation, const vector *bias, vector *sum) {
    if (operation == CONVOLVE_BYTES) {
        *sum = (vector)__builtin_convertvector(*sum, mask);
        return;
    }
    const vector y = *sum + *bias; /* never -0, as no bias is */
    const mask is_number = y == y;
    *sum = (vector)(((mask)y & is_number) | (~is_number & (int32_t)DMLK_NAN_BITS));
}

/* Adds the bias, and replaces what is not above `low` by it, NaNs too, then what is not below `high`. */
INLINE void finish_bounded(const vector *bias, const vector *low, const vector *high, vector *sum) {
    vector y = *sum + *bias;
    const mask is_above = y > *low;
    y = (vector)(((mask)y & is_above) | ((mask)*low & ~is_above));
    const mask is_below = y < *high;
    *sum = (vector)(((mask)y & is_below) | ((mask)*high & ~is_below));
}

/* Replaces the sum of `count` elements by their mean; by 0 if there are none. */
INLINE void divide(const vector *count, vector *sum) {
    const vector y = *sum / *count;
    const mask is_number = y == y, are_some = *count > (vector){0};
    *sum = (vector)((((mask)y & is_number) | (~is_number & (int32_t)DMLK_NAN_BITS)) & are_some);
}

INLINE void fill(float *to, int64_t count, float x) {
    for (int64_t i = 0; i < count; i++) {
        to[i] = x;
    }
}

INLINE void widen_vector(const uint8_t *from, const vector_of_bytes *flip, const mask *zero, float *to) {
    const mask x = __builtin_convertvector(*(const vector_of_bytes *)from ^ *flip, mask) - *zero;
    *(vector *)to = __builtin_convertvector(x, vector);
}

INLINE void widen_bytes(const window_taps *w, const uint8_t *from, int64_t count, float *to) {
    const vector_of_bytes flip = w->flip - (vector_of_bytes){0};
    const mask zero = w->zero - (mask){0};
    if (count < LANES) {
        for (int64_t i = 0; i < count; i++) {
            to[i] = (float)((from[i] ^ w->flip) - w->zero);
        }
        return;
    }
    for (int64_t i = 0; i + LANES < count; i += LANES) {
        widen_vector(from + i, &flip, &zero, to + i);
    }
    widen_vector(from + count - LANES, &flip, &zero, to + count - LANES);
}

/* The lowest coordinate that the taps of an output read, relative to tap 0; and how many coordinates they span. */
static inline int64_t lowest_tap(const dmlk_taps_axis *axis) { return axis->tap < 0 ? (axis->window - 1) * axis->tap : 0; }
static inline int64_t tap_span(const dmlk_taps_axis *axis) {
    return (axis->window - 1) * (axis->tap < 0 ? -axis->tap : axis->tap) + 1;
}

/* The index of the first tap of an output. */
INLINE uint64_t first_index(const window_taps *w, int64_t image, int64_t channel, int64_t z, int64_t y, int64_t x) {
    const int64_t output[DMLK_SPATIAL] = {z, y, x};
    uint64_t at = (uint64_t)image * w->packed_strides[N] + (uint64_t)channel * w->packed_strides[CHANNEL];
    for (int k = 0; k < DMLK_SPATIAL; k++) {
        at += (uint64_t)(output[k] * w->c->axes[k].step + w->c->axes[k].origin) * w->packed_strides[Z + k];
    }
    return at;
}

/* Stores `count` indices from element `at` on.  The first tap of the first output has the index `first`, that of the next
 * one first + step; `found` are relative to it. */
INLINE void store_indices(const dmlk_view *to, int64_t at, int64_t stride, const int32_t *found, int64_t count,
                          uint64_t first, uint64_t step) {
    if (to->type == DMLK_UINT32) {
        uint32_t *narrow = (uint32_t *)(void *)to->base + at;
        const uint32_t low = (uint32_t)first, low_step = (uint32_t)step;
        for (int64_t i = 0; i < count && stride == 1; i++) { /* separate, so that it is vectorized */
            narrow[i] = found[i] < 0 ? 0 : low + (uint32_t)i * low_step + (uint32_t)found[i];
        }
        for (int64_t i = 0; i < count && stride != 1; i++) {
            narrow[i * stride] = found[i] < 0 ? 0 : low + (uint32_t)i * low_step + (uint32_t)found[i];
        }
        return;
    }
    uint64_t *wide = (uint64_t *)(void *)to->base + at;
    for (int64_t i = 0; i < count; i++, first += step) {
        wide[i * stride] = found[i] < 0 ? 0 : first + (uint64_t)found[i];
    }
}

/* window_taps.c */

/* The maximum of an output whose vector loop found LOWEST: NaN if no tap inside the input is a number, and at least one is
 * inside.  `found`: the index of the first number, or else of the first NaN. */
float dmlk_find_nan(const window_taps *w, int64_t image, int64_t channel, const int64_t *output, int32_t *found);

/* The number of threads for `items` parts of the output. */
int dmlk_window_parts(const window_taps *w, int64_t items);

/* Finds out whether the functions that follow are a lower bound, and perhaps an upper one. */
void dmlk_find_window_bounds(window_taps *w);

/* Packs weights and biases.  Returns memory to be released with dmlk_give, or NULL if memory ran out; *rest is the
 * part of it after the packed weights and biases, with room for `floats` floats. */
float *dmlk_pack_window_weights(window_taps *w, bool lanes_are_channels, int64_t floats, float **rest);

/* windows_in_channels.c, windows_in_planes.c: compute all outputs.  False: the loop does not apply or memory ran out,
 * and nothing was done. */
bool dmlk_run_windows_in_channels(window_taps *w);
bool dmlk_run_windows_in_planes(window_taps *w);

static inline bool dmlk_run_windows(window_taps *w) {
    dmlk_find_window_bounds(w);
    return w->taps <= MOST_TAPS && (dmlk_run_windows_in_channels(w) || dmlk_run_windows_in_planes(w));
}

#endif

/* convolve.h - tuned convolutions of bytes. */
#ifndef DMLK_CONVOLVE_H
#define DMLK_CONVOLVE_H

#include <stdbool.h>

#include "sums_finish.h"
#include "view.h"

/* Axes of input, output and of the arrays below. */
enum dmlk_convolution_axis { DMLK_N, DMLK_CHANNEL, DMLK_Y, DMLK_X };

/* A convolution of INT8 or UINT8 with sums that wrap. */
typedef struct dmlk_convolution {
    dmlk_view input, output; /* rank 4 */
    /* Filters and channels may be blocked: rank 6, with sizes filters / a, a, channels / b, b, Y and X. */
    dmlk_view filter;
    int64_t filter_sizes[4];                    /* filters, channels of a group, Y, X */
    int64_t strides[4], dilations[4], start[4]; /* of Y and X */
    int64_t groups;
    int input_zero;
    const dmlk_view *filter_zero; /* one element or one for each filter; base NULL: 0 */
    dmlk_view filter_sums; /* INT32, filters, Y, X: sums over the channels; base NULL: they are computed if needed */
    const dmlk_sums_finish *finish; /* its tensors have the layout of `output`, and are written instead; NULL: sums are */
} dmlk_convolution;

/* The offset, in elements, of the first element of a filter. */
static inline int64_t dmlk_filter_at(const dmlk_convolution *c, int64_t filter) {
    const dmlk_view *f = &c->filter;
    return f->sizes[1] == 1 ? filter * f->strides[0]
                            : filter / f->sizes[1] * f->strides[0] + filter % f->sizes[1] * f->strides[1];
}

/* The zero point of a filter. */
static inline int dmlk_filter_zero(const dmlk_convolution *c, int64_t filter) {
    const dmlk_view *zero = c->filter_zero;
    if (zero->base == NULL) {
        return 0;
    }
    const uint8_t bits = zero->base[zero->sizes[0] == 1 ? 0 : filter * zero->strides[0]];
    return zero->type == DMLK_INT8 ? (int8_t)bits : bits;
}

/* Whether any filter has a zero point other than 0. */
bool dmlk_has_filter_zeros(const dmlk_convolution *c);

/* The bits to flip in the input: vpdpbusd requires one signed and one unsigned operand. */
static inline uint8_t dmlk_input_flip(const dmlk_convolution *c) { return c->input.type == c->filter.type ? 0x80 : 0; }

/* The input's zero point after flipping. */
static inline int dmlk_flipped_zero(const dmlk_convolution *c) {
    const int shift = c->input.type == DMLK_INT8 ? 128 : -128;
    return c->input_zero + (dmlk_input_flip(c) != 0 ? shift : 0);
}

/* Runs the convolution, bit-identical to the plain kernel.  False: memory ran out, or the sums are not finished here, and
 * nothing was done. */
bool dmlk_convolve_bytes(const dmlk_convolution *convolution);

/* The same for groups of one channel with small windows, computed in bytes and in floats.  False: the kernel does not
 * apply, and nothing was done. */
bool dmlk_convolve_depthwise(const dmlk_convolution *convolution);
bool dmlk_convolve_bytes_by_channel(const dmlk_convolution *convolution);

/* Forms of dmlk_convolve_depthwise (see dispatch/choose.c); without a form, it does not apply. */
extern const struct dmlk_depthwise_form {
    bool (*convolve)(const dmlk_convolution *convolution);
} *dmlk_depthwise_form;

#endif

/* columns.h - the two tensors of fold and unfold: an image {N, C, axes ...}, and columns {.., N, C * places, blocks}
 * with a row for each place of the window in each channel, and a column for each block. */
#ifndef DMLK_COLUMNS_H
#define DMLK_COLUMNS_H

#include "boxes.h"
#include "fold.h"

#define DMLK_IMAGE_AXES 2 /* the axes before the spatial ones */

typedef struct dmlk_columns {
    dmlk_fold k;
    uint32_t rank; /* of the image, and of the columns as seen by dmlk_columns_of_place */
    int64_t places;
} dmlk_columns;

/* Sets `c`; false: the tensors do not match the constants. */
static inline bool dmlk_columns_init(const dmlk_call *call, const dmlk_view *image, const dmlk_view *columns,
                                     dmlk_columns *c) {
    dmlk_fold *k = &c->k;
    if (call->view_count != 2 || !dmlk_get_constants(call, k, sizeof *k) || k->spatial < 1 || k->spatial > 6 ||
        image->rank != k->spatial + DMLK_IMAGE_AXES || columns->rank < 3) {
        return false;
    }
    const int64_t *sizes = &columns->sizes[columns->rank - 3];
    int64_t blocks = 1;
    c->rank = image->rank;
    c->places = 1;
    for (uint32_t d = 0; d < k->spatial; d++) {
        const int64_t most = INT64_C(1) << 40; /* larger positions only occur in malformed packets */
        int64_t reach;
        if (k->window[d] < 1 || k->strides[d] < 1 || k->dilations[d] < 1 || k->blocks[d] < 1 ||
            __builtin_mul_overflow((int64_t)k->window[d], (int64_t)k->dilations[d], &reach) || reach > most ||
            __builtin_mul_overflow((int64_t)k->blocks[d], (int64_t)k->strides[d], &reach) || reach > most ||
            __builtin_mul_overflow(c->places, (int64_t)k->window[d], &c->places) ||
            __builtin_mul_overflow(blocks, (int64_t)k->blocks[d], &blocks)) {
            return false;
        }
    }
    return sizes[0] == image->sizes[0] && sizes[1] % c->places == 0 && sizes[1] / c->places == image->sizes[1] &&
           sizes[2] == blocks && dmlk_view_elements(columns) == sizes[0] * sizes[1] * sizes[2];
}

/* The next place of the window in row-major order; false: that was the last one. */
static inline bool dmlk_next_window_place(const dmlk_columns *c, uint32_t *place) {
    for (uint32_t d = c->k.spatial; d-- > 0;) {
        if (++place[d] < c->k.window[d]) {
            return true;
        }
        place[d] = 0;
    }
    return false;
}

/* The part of the columns that belongs to place `number` of the window, with the axes of the image: N, C, and the
 * blocks along each spatial axis. */
static inline dmlk_view dmlk_columns_of_place(const dmlk_columns *c, const dmlk_view *columns, int64_t number) {
    const int64_t *strides = &columns->strides[columns->rank - 3];
    dmlk_view view = *columns;
    int64_t step = strides[2];
    for (uint32_t d = c->rank; d-- > DMLK_IMAGE_AXES;) {
        view.sizes[d] = c->k.blocks[d - DMLK_IMAGE_AXES];
        view.strides[d] = step;
        step *= view.sizes[d];
    }
    view.rank = c->rank;
    view.base += number * strides[1] * dmlk_type_bytes(columns->type);
    view.sizes[1] = columns->sizes[columns->rank - 2] / c->places;
    view.strides[1] = strides[1] * c->places;
    view.sizes[0] = columns->sizes[columns->rank - 3];
    view.strides[0] = strides[0];
    return view;
}

/* The blocks along spatial axis d whose place `place` is inside the image; returns the position of the first. */
static inline int64_t dmlk_blocks_inside(const dmlk_columns *c, uint32_t d, int64_t size, uint32_t place,
                                         int64_t *first, int64_t *count) {
    const int64_t stride = c->k.strides[d], blocks = c->k.blocks[d];
    const int64_t shift = (int64_t)place * c->k.dilations[d] - c->k.start_padding[d];
    const int64_t last = size - 1 - shift;
    const int64_t end = last < 0 ? 0 : dmlk_min(last / stride + 1, blocks);
    *first = shift >= 0 ? 0 : dmlk_min((stride - 1 - shift) / stride, blocks);
    *count = end > *first ? end - *first : 0;
    return *first * stride + shift;
}

#endif

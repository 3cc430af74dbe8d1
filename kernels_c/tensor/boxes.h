/* boxes.h - parts of tensors that are tensors themselves: the copies and fills that data movement consists of. */
#ifndef DMLK_BOXES_H
#define DMLK_BOXES_H

#include "kernel.h"

/* Keeps `count` indices of an axis: first, first + step, ...; step may be 0 or, for an input, negative.  For a single
 * index the step is ignored, as its product with the stride might overflow. */
static inline void dmlk_cut(dmlk_view *view, uint32_t axis, int64_t first, int64_t step, int64_t count) {
    view->base += first * view->strides[axis] * dmlk_type_bytes(view->type);
    view->strides[axis] *= count > 1 ? step : 1;
    view->sizes[axis] = count;
}

/* Stores the element `bits`, of the tensor's type, everywhere. */
static inline int dmlk_fill(const dmlk_view *out, const void *bits) {
    dmlk_view in = *out;
    in.base = (uint8_t *)(uintptr_t)bits;
    memset(in.strides, 0, sizeof in.strides);
    return dmlk_copy_elements(&in, out);
}

/* Stores the element `bits` everywhere but in the box of count[d] indices from first[d] on along each axis d; `out`
 * becomes the box.  If some count[d] is 0, the box is empty and the whole tensor is filled. */
static inline int dmlk_fill_around(dmlk_view *out, const int64_t *first, const int64_t *count, const void *bits) {
    int status = DMLK_OK;
    for (uint32_t d = 0; status == DMLK_OK && d < out->rank; d++) {
        const int64_t before = count[d] > 0 ? first[d] : out->sizes[d];
        const int64_t after = out->sizes[d] - before - (count[d] > 0 ? count[d] : 0);
        dmlk_view part = *out;
        if (before > 0) {
            dmlk_cut(&part, d, 0, 1, before);
            status = dmlk_fill(&part, bits);
        }
        if (status == DMLK_OK && after > 0) {
            part = *out;
            dmlk_cut(&part, d, out->sizes[d] - after, 1, after);
            status = dmlk_fill(&part, bits);
        }
        if (count[d] <= 0) {
            break;
        }
        dmlk_cut(out, d, first[d], 1, count[d]);
    }
    return status;
}

/* --- rows with coordinates, for kernels that compute with them --- */

/* The axis with the smallest stride. */
static inline uint32_t dmlk_nearest_axis(const dmlk_view *view) {
    uint32_t nearest = view->rank - 1;
    for (uint32_t d = view->rank; d-- > 0;) {
        const bool nearer = view->strides[d] < view->strides[nearest] || view->sizes[nearest] == 1;
        nearest = view->sizes[d] > 1 && nearer ? d : nearest;
    }
    return nearest;
}

static inline int64_t dmlk_rows_along(const dmlk_view *view, uint32_t axis) {
    return dmlk_view_elements(view) / view->sizes[axis];
}

/* The coordinates of the first element of row `number` along the axis. */
static inline void dmlk_row_start(const dmlk_view *view, uint32_t axis, int64_t number, int64_t *index) {
    for (uint32_t d = view->rank; d-- > 0;) {
        index[d] = d == axis ? 0 : number % view->sizes[d];
        number /= d == axis ? 1 : view->sizes[d];
    }
}

/* Moves `index` from the first element of a row to that of the next row. */
static inline void dmlk_next_row(const dmlk_view *view, uint32_t axis, int64_t *index) {
    index[axis] = 0;
    for (uint32_t d = view->rank; d-- > 0;) {
        if (d != axis && ++index[d] < view->sizes[d]) {
            return;
        }
        index[d] = 0;
    }
}

static inline uint8_t *dmlk_element(const dmlk_view *view, const int64_t *index) {
    int64_t at = 0;
    for (uint32_t d = 0; d < view->rank; d++) {
        at += index[d] * view->strides[d];
    }
    return view->base + at * dmlk_type_bytes(view->type);
}

/* The number of parts into which to split `rows` rows of `length` elements: see parallel.h. */
static inline int dmlk_row_parts(int64_t rows, int64_t length) {
    return dmlk_parts(rows, (1 << 18) / length + 1);
}

#endif

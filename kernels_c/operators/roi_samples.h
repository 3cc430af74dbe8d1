/* roi_samples.h - where the samples of a region of interest lie in the input. */
#ifndef DMLK_ROI_SAMPLES_H
#define DMLK_ROI_SAMPLES_H

#include <math.h>
#include <stdlib.h>

#include "kernel.h"
#include "narrow.h"
#include "roi_align.h"

/* --- elements --- */

static inline double roi_load(const dmlk_view *view, int64_t offset) {
    return view->type == DMLK_FLOAT32 ? (double)DMLK_LOAD((const float *)(const void *)view->base, offset)
                                      : (double)dmlk_float16_to_float(DMLK_LOAD((const uint16_t *)(const void *)view->base, offset));
}

/* Loaded once: the host may change regions while the kernel runs. */
static inline float roi_load_once(const dmlk_view *view, int64_t offset) {
    return view->type == DMLK_FLOAT32
               ? dmlk_bits_float(DMLK_LOAD_ONCE((const uint32_t *)(const void *)view->base, offset))
               : dmlk_float16_to_float(DMLK_LOAD_ONCE((const uint16_t *)(const void *)view->base, offset));
}

static inline void roi_store(const dmlk_view *view, int64_t offset, double x) {
    if (view->type == DMLK_FLOAT32) {
        DMLK_STORE((float *)(void *)view->base, offset, dmlk_one_nan((float)x));
    } else {
        DMLK_STORE((uint16_t *)(void *)view->base, offset, dmlk_double_to_float16(dmlk_one_nan(x)));
    }
}

static inline int64_t roi_batch(const dmlk_view *indices, int64_t region, int64_t batches) {
    const int64_t at = region * indices->strides[0];
    const uint64_t index = indices->type == DMLK_UINT64 ? DMLK_LOAD_ONCE((const uint64_t *)(const void *)indices->base, at)
                                                        : DMLK_LOAD_ONCE((const uint32_t *)(const void *)indices->base, at);
    return dmlk_unsigned_index(index, batches);
}

static inline bool roi_is_maximum(double x, double best) { return x > best || best != best; }

/* --- samples --- */

#define MANY_SAMPLES 1024 /* of an output element, along an axis */

/* Samples of a region along an axis: output element o has numbers o * per_output to (o + 1) * per_output - 1.  Corners
 * and positions are FLOAT32, as on GPUs. */
typedef struct roi_axis {
    float from, to, step, in_offset, out_offset;
    double intervals; /* between the corners */
    int64_t size, per_output;
    bool linear;
} roi_axis;

/* The one or two input elements of a sample, and its place between the corners: 0 at the first, 1 at the second. */
typedef struct roi_taps {
    int count;
    int64_t index[2];
    double weight[2], t;
} roi_taps;

static inline roi_axis roi_axis_of(const dmlk_roi_align *k, float from, float to, int64_t size, int64_t outputs) {
    roi_axis a = {.from = from, .to = to, .in_offset = k->in_offset, .out_offset = k->out_offset, .size = size};
    const float extent = to - from;
    double n = (double)ceilf(extent / (float)outputs);
    n = isfinite(n) ? fmin(fmax(n, k->minimum), k->maximum) : k->minimum;
    a.per_output = n < 1 ? 1 : (int64_t)n;
    a.intervals = (double)outputs * (double)a.per_output - (k->aligned != 0);
    a.step = extent / (float)a.intervals;
    a.linear = k->linear != 0;
    return a;
}

/* The position of sample number s in the input. */
static inline float roi_position(const roi_axis *a, int64_t s) {
    const bool only = a->intervals == 0; /* one sample, in the middle */
    return only ? (a->from + a->to) / 2 - a->in_offset : ((float)s - a->out_offset) * a->step + a->from - a->in_offset;
}

/* The first of samples low .. high - 1 whose position is at least x or, with `after`, above x; `high` if there is
 * none.  Positions do not decrease. */
static inline int64_t roi_first(const roi_axis *a, int64_t low, int64_t high, double x, bool after) {
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const double p = (double)roi_position(a, middle);
        if (after ? p > x : p >= x) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/* The samples of an output element that may be inside the input.  Only searched for in regions that are much larger
 * than the input: then most samples are outside. */
static inline void roi_range(const roi_axis *a, int64_t o, int64_t *first, int64_t *end) {
    *first = o * a->per_output;
    *end = *first + a->per_output;
    if (a->per_output > MANY_SAMPLES && a->step > 0.5F) { /* not because MinimumSamplesPerOutput asks for them */
        *first = roi_first(a, *first, *end, -1, false);
        *end = roi_first(a, *first, *end, (double)a->size, true);
    }
}

/* Sets the taps of sample number s; false: it lies outside the input. */
static inline bool roi_sample(const roi_axis *a, int64_t s, roi_taps *taps) {
    const double x = (double)roi_position(a, s), last = (double)(a->size - 1);
    if (!(x >= -1 && x <= (double)a->size)) {
        return false;
    }
    const double inside = fmin(fmax(x, 0), last);
    const double low = a->linear ? floor(inside) : fmin((double)floorf((float)inside + 0.5F), last);
    const double w = a->linear ? inside - low : 0;
    *taps = (roi_taps){.count = w > 0 ? 2 : 1,
                       .index = {(int64_t)low, (int64_t)low + 1},
                       .weight = {1 - w, w},
                       .t = a->intervals == 0 ? 0.5 : ((double)s - (double)a->out_offset) / a->intervals};
    return true;
}

/* One region: the batch item that it lies in, and its samples. */
typedef struct roi_region {
    int64_t batch;
    roi_axis y, x;
} roi_region;

/* image: {N, C, H, W}; regions {R, 4}; indices {R}; outputs {R, C, OutH, OutW}. */
static inline roi_region roi_region_of(const dmlk_roi_align *k, const dmlk_view *image, const dmlk_view *regions,
                                       const dmlk_view *indices, const dmlk_view *outputs, int64_t r) {
    float corner[4];
    for (int i = 0; i < 4; i++) {
        const float scale = i % 2 == 0 ? k->scale_x : k->scale_y;
        corner[i] = roi_load_once(regions, r * regions->strides[0] + i * regions->strides[1]) * scale;
    }
    return (roi_region){.batch = roi_batch(indices, r, image->sizes[0]),
                        .y = roi_axis_of(k, corner[1], corner[3], image->sizes[2], outputs->sizes[2]),
                        .x = roi_axis_of(k, corner[0], corner[2], image->sizes[3], outputs->sizes[3])};
}

static inline double roi_samples_per_output(const roi_region *r) { return (double)r->y.per_output * (double)r->x.per_output; }

static inline bool roi_is_valid(const dmlk_view *image, const dmlk_view *regions, const dmlk_view *indices,
                                const dmlk_view *outputs) {
    return image->rank == 4 && outputs->rank == 4 && regions->rank == 2 && indices->rank == 1 && regions->sizes[1] == 4 &&
           regions->sizes[0] == outputs->sizes[0] && indices->sizes[0] == outputs->sizes[0] &&
           image->sizes[1] == outputs->sizes[1];
}

static inline bool roi_has_types(const dmlk_view *image, const dmlk_view *regions, const dmlk_view *indices) {
    return (image->type == DMLK_FLOAT32 || image->type == DMLK_FLOAT16) && regions->type == image->type &&
           (indices->type == DMLK_UINT32 || indices->type == DMLK_UINT64);
}

/* --- the elements that are read --- */

/* Sets the bits of the elements in the marked rows and columns, in every channel of a batch item. */
static inline void roi_mark_item(const dmlk_view *image, int64_t batch, const uint8_t *rows, const uint8_t *columns,
                                 uint64_t *marks, int64_t *work) {
    const int64_t height = image->sizes[2], width = image->sizes[3];
    for (int64_t row = 0; row < image->sizes[1] * height && !dmlk_stopped(work, width); row++) {
        const int64_t first = (batch * image->sizes[1] * height + row) * width;
        for (int64_t x = 0; rows[row % height] && x < width; x++) {
            marks[(first + x) / 64] |= (uint64_t)(columns[x] != 0) << (first + x) % 64;
        }
    }
}

/* Sets read[i] to 1 for the indices of an axis that some sample reads. */
static inline void roi_mark_axis(const roi_axis *a, int64_t outputs, uint8_t *read, int64_t *work) {
    memset(read, 0, (size_t)a->size);
    for (int64_t o = 0; o < outputs; o++) {
        int64_t s, end;
        for (roi_range(a, o, &s, &end); s < end && !dmlk_stopped(work, 1); s++) {
            roi_taps taps;
            const int count = roi_sample(a, s, &taps) ? taps.count : 0;
            for (int i = 0; i < count; i++) {
                read[taps.index[i]] = 1;
            }
        }
    }
}

/* dmlk_reads_<stem> for the image.  A sample reads elements only if it is inside the input along both axes. */
static inline void roi_reads(const dmlk_call *call, uint32_t tensor, const dmlk_roi_align *k, const dmlk_view *regions,
                             const dmlk_view *indices, const dmlk_view *outputs, dmlk_read_set *reads) {
    const dmlk_view *image = &call->views[tensor];
    uint64_t *marks = dmlk_begin_marks(call, tensor, reads);
    uint8_t *rows = malloc((size_t)image->sizes[2]), *columns = malloc((size_t)image->sizes[3]);
    int64_t work = 0;
    for (int64_t i = 0; marks != NULL && rows != NULL && columns != NULL && i < outputs->sizes[0]; i++) {
        const roi_region r = roi_region_of(k, image, regions, indices, outputs, i);
        roi_mark_axis(&r.y, outputs->sizes[2], rows, &work);
        roi_mark_axis(&r.x, outputs->sizes[3], columns, &work);
        roi_mark_item(image, r.batch, rows, columns, marks, &work);
    }
    free(rows);
    free(columns);
}

#endif

/* upsample_2d: the last two axes enlarged by whole factors, each element repeated or linearly interpolated between
 * the centres of elements.  Interpolation is computed in FLOAT64: along the last axis first, then along the other. */
#include "upsample_2d.h"

#include "boxes.h"
#include "narrow.h"

/* Output i of an enlarged element: between input `low` and the next, relative to the element. */
typedef struct mix {
    int64_t low; /* -1 or 0 */
    double weight; /* of the next; below 1 */
} mix;

static inline mix mix_of(int64_t i, int64_t factor) {
    const int64_t twice = 2 * i + 1 - factor; /* the position, in units of 1 / (2 * factor) */
    return (mix){.low = twice < 0 ? -1 : 0, .weight = (double)(twice < 0 ? twice + 2 * factor : twice) / (double)(2 * factor)};
}

/* An element of weight 0 has no influence, even if it is infinite or NaN. */
static inline double blend(double low, double high, double weight) {
    return weight == 0 ? low : (1 - weight) * low + weight * high;
}

#define MIXES 32 /* outputs of an element that are prepared for a whole row */

#define DMLK_BODY "upsample_2d.inc"
#include "each_type.inc"

typedef void upsample_row(const uint8_t *above, const uint8_t *below, double weight, int64_t in_stride,
                          int64_t columns, int64_t factor, uint8_t *out, int64_t out_stride);

static upsample_row *row_of(uint32_t type) {
    return type == DMLK_FLOAT32   ? upsample_float32
           : type == DMLK_FLOAT16 ? upsample_float16
           : type == DMLK_FLOAT64 ? upsample_float64
                                  : NULL;
}

struct job {
    const dmlk_view *in, *out;
    int64_t height, width;
    upsample_row *row;
};

static void write_rows(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct job *job = context;
    const dmlk_view *in = job->in, *out = job->out;
    const uint32_t x = in->rank - 1, y = x - 1;
    int64_t work = 0, row[DMLK_MAX_RANK];
    dmlk_row_start(out, x, begin, row);
    for (int64_t r = begin; r < end && !dmlk_stopped(&work, out->sizes[x]); r++, dmlk_next_row(out, x, row)) {
        int64_t index[DMLK_MAX_RANK];
        memcpy(index, row, sizeof index);
        uint8_t *to = dmlk_element(out, index);
        const mix m = mix_of(index[y] % job->height, job->height);
        const int64_t low = index[y] / job->height + m.low, high = low + 1;
        index[y] = low < 0 ? 0 : low;
        const uint8_t *above = dmlk_element(in, index);
        index[y] = high < in->sizes[y] ? high : in->sizes[y] - 1;
        job->row(above, dmlk_element(in, index), m.weight, in->strides[x], in->sizes[x], job->width, to, out->strides[x]);
    }
}

/* Splits an axis of the output into inputs and their copies. */
static void repeat(dmlk_view *in, dmlk_view *out, uint32_t axis, int64_t factor) {
    const uint32_t copies = in->rank++;
    in->sizes[copies] = out->sizes[copies] = factor;
    in->strides[copies] = 0;
    out->strides[copies] = out->strides[axis];
    out->strides[axis] *= factor;
    out->sizes[axis] = in->sizes[axis];
    out->rank = in->rank;
}

int dmlk_run_upsample_2d(const dmlk_call *call) {
    dmlk_upsample_2d k;
    if (!dmlk_has_views(call, 2, 0) || !dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    dmlk_view in = call->views[0], out = call->views[1];
    struct job job = {&in, &out, k.height, k.width, row_of(in.type)};
    if (in.type != out.type || (k.linear ? job.row == NULL : dmlk_bits_type(in.type) == DMLK_UNKNOWN)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    bool fits = in.rank == out.rank && in.rank >= 2 && in.rank + 2 <= DMLK_MAX_RANK && k.height >= 1 && k.width >= 1;
    for (uint32_t d = 0; fits && d < in.rank; d++) {
        const int64_t factor = d + 2 == in.rank ? job.height : d + 1 == in.rank ? job.width : 1;
        fits = out.sizes[d] / in.sizes[d] == factor && out.sizes[d] % in.sizes[d] == 0;
    }
    if (!fits) {
        return DMLK_BAD_PACKET;
    }
    if (!k.linear) {
        const uint32_t x = in.rank - 1;
        repeat(&in, &out, x - 1, job.height);
        repeat(&in, &out, x, job.width);
        return dmlk_copy_elements(&in, &out);
    }
    const int64_t length = out.sizes[out.rank - 1], rows = dmlk_view_elements(&out) / length;
    dmlk_parallel(rows, dmlk_row_parts(rows, 4 * length), write_rows, &job);
    return DMLK_OK;
}

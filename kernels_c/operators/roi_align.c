/* roi_align: an output element is the average, or the maximum, of samples of the input in its part of a region of
 * interest.  Sums are FLOAT64, in the order of the samples; samples outside the input are added last. */
#include "boxes.h"
#include "roi_samples.h"

enum { INPUT, REGIONS, INDICES, OUTPUT, VIEWS };

#define MAX_CHANNELS 64 /* channels that are sampled together, as they share the positions of samples */

static bool is_valid(const dmlk_call *call, dmlk_roi_align *k) {
    const dmlk_view *v = call->views;
    return dmlk_has_views(call, VIEWS, 0) && dmlk_get_constants(call, k, sizeof *k) &&
           roi_is_valid(&v[INPUT], &v[REGIONS], &v[INDICES], &v[OUTPUT]);
}

bool dmlk_indices_roi_align(const dmlk_call *call, dmlk_index_use *use) {
    dmlk_roi_align k;
    *use = (dmlk_index_use){.indices = INDICES, .target = INPUT, .axis = 0, .count = 1};
    use->sizes[0] = call->views[INPUT].sizes[0];
    return is_valid(call, &k);
}

void dmlk_reads_roi_align(const dmlk_call *call, uint32_t tensor, dmlk_read_set *reads) {
    dmlk_roi_align k;
    const dmlk_view *v = call->views;
    if (tensor == INPUT && is_valid(call, &k) && roi_has_types(&v[INPUT], &v[REGIONS], &v[INDICES])) {
        roi_reads(call, tensor, &k, &v[REGIONS], &v[INDICES], &v[OUTPUT], reads);
    }
}

struct job {
    const dmlk_view *v;
    dmlk_roi_align k;
};

/* The values of a sample in `count` channels; `offset` is that of the first channel. */
static void interpolate(const dmlk_view *in, int64_t offset, const roi_taps *y, const roi_taps *x, int64_t count, double *value) {
    memset(value, 0, (size_t)count * sizeof *value);
    for (int i = 0; i < y->count; i++) {
        for (int j = 0; j < x->count; j++) {
            const int64_t at = offset + y->index[i] * in->strides[2] + x->index[j] * in->strides[3];
            const double w = y->weight[i] * x->weight[j];
            for (int64_t c = 0; c < count; c++) {
                const double term = w * roi_load(in, at + c * in->strides[1]);
                value[c] = i + j == 0 ? term : value[c] + term;
            }
        }
    }
}

/* Sums or maxima of the samples inside the input, for `count` channels; returns the number of these samples. */
static double reduce(const struct job *job, const roi_region *r, const int64_t *index, int64_t count, double *result, int64_t *work) {
    const dmlk_view *in = &job->v[INPUT];
    const int64_t offset = r->batch * in->strides[0] + index[1] * in->strides[1];
    int64_t y, y_end, x_begin, x_end;
    double samples = 0, value[MAX_CHANNELS];
    memset(result, 0, (size_t)count * sizeof *result);
    roi_range(&r->x, index[3], &x_begin, &x_end);
    for (roi_range(&r->y, index[2], &y, &y_end); y < y_end && !dmlk_stopped(work, 1); y++) {
        roi_taps row, column;
        const bool inside = roi_sample(&r->y, y, &row);
        for (int64_t x = x_begin; inside && x < x_end && !dmlk_stopped(work, count); x++) {
            if (roi_sample(&r->x, x, &column)) {
                interpolate(in, offset, &row, &column, count, value);
                for (int64_t c = 0; c < count; c++) {
                    const bool wins = samples == 0 || roi_is_maximum(value[c], result[c]);
                    result[c] = !job->k.takes_maximum ? result[c] + value[c] : wins ? value[c] : result[c];
                }
                samples++;
            }
        }
    }
    return samples;
}

/* The output element, from the sum or maximum of the samples inside the input. */
static double finish(const dmlk_roi_align *k, double result, double inside, double samples) {
    const double outside = (double)k->outside, missing = samples - inside;
    if (k->takes_maximum) {
        return missing > 0 && (inside == 0 || roi_is_maximum(outside, result)) ? outside : result;
    }
    return (missing > 0 ? result + missing * outside : result) / samples;
}

/* Items: positions in regions, each for all channels. */
static void align(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct job *job = context;
    const dmlk_view *v = job->v, *out = &v[OUTPUT];
    int64_t work = 0;
    for (int64_t item = begin; item < end && !dmlk_stopped(&work, 1); item++) {
        int64_t index[DMLK_MAX_RANK];
        dmlk_row_start(out, 1, item, index);
        const roi_region r = roi_region_of(&job->k, &v[INPUT], &v[REGIONS], &v[INDICES], out, index[0]);
        for (; index[1] < out->sizes[1]; index[1] += MAX_CHANNELS) {
            const int64_t count = dmlk_min(MAX_CHANNELS, out->sizes[1] - index[1]);
            double result[MAX_CHANNELS];
            const double inside = reduce(job, &r, index, count, result, &work);
            int64_t at = 0;
            for (uint32_t d = 0; d < 4; d++) {
                at += index[d] * out->strides[d];
            }
            for (int64_t c = 0; c < count; c++) {
                roi_store(out, at + c * out->strides[1], finish(&job->k, result[c], inside, roi_samples_per_output(&r)));
            }
        }
    }
}

int dmlk_run_roi_align(const dmlk_call *call) {
    struct job job = {.v = call->views};
    if (!is_valid(call, &job.k)) {
        return DMLK_BAD_PACKET;
    }
    if (!roi_has_types(&job.v[INPUT], &job.v[REGIONS], &job.v[INDICES]) || job.v[OUTPUT].type != job.v[INPUT].type) {
        return DMLK_NOT_IMPLEMENTED;
    }
    const int64_t items = dmlk_rows_along(&job.v[OUTPUT], 1);
    dmlk_parallel(items, dmlk_row_parts(items, 16 * job.v[OUTPUT].sizes[1]), align, &job);
    return DMLK_OK;
}

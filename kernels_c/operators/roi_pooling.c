/* roi_pooling: the maxima of bins of regions of interest. */
#include "roi_pooling.h"

#include "boxes.h"
#include "roi_samples.h"

enum { INPUT, REGIONS, OUTPUT, VIEWS };

/* A region along an axis: its first element and its number of elements.  Bins round down at the start and up at the
 * end. */
typedef struct extent {
    double first, count;
    int64_t bins, size;
} extent;

typedef struct region {
    int64_t batch;
    extent y, x;
} region;

static bool is_valid(const dmlk_call *call, dmlk_roi_pooling *k) {
    const dmlk_view *in = &call->views[INPUT], *regions = &call->views[REGIONS], *out = &call->views[OUTPUT];
    return dmlk_has_views(call, VIEWS, 0) && dmlk_get_constants(call, k, sizeof *k) && in->rank == 4 && out->rank == 4 &&
           regions->rank == 2 && regions->sizes[0] == out->sizes[0] && regions->sizes[1] == 5 && in->sizes[1] == out->sizes[1];
}

static bool has_types(const dmlk_call *call) {
    const uint32_t type = call->views[INPUT].type;
    return (type == DMLK_FLOAT32 || type == DMLK_FLOAT16) && call->views[REGIONS].type == type && call->views[OUTPUT].type == type;
}

/* The first of a region's five numbers is an index. */
bool dmlk_indices_roi_pooling(const dmlk_call *call, dmlk_index_use *use) {
    dmlk_roi_pooling k;
    *use = (dmlk_index_use){.indices = REGIONS, .target = INPUT, .axis = 0, .count = 5};
    use->sizes[0] = call->views[INPUT].sizes[0];
    return is_valid(call, &k);
}

/* Corners are scaled in FLOAT32, as on GPUs; bins are computed from whole numbers, exactly. */
static extent extent_of(float from, float to, float scale, int64_t bins, int64_t size) {
    const double first = (double)roundf(from * scale), last = (double)roundf(to * scale);
    return (extent){first, fmax(last - first + 1, 1), bins, size};
}

static region region_of(const dmlk_roi_pooling *k, const dmlk_view *v, int64_t r) {
    float value[5];
    for (int i = 0; i < 5; i++) {
        value[i] = roi_load_once(&v[REGIONS], r * v[REGIONS].strides[0] + i * v[REGIONS].strides[1]);
    }
    const double last = (double)(v[INPUT].sizes[0] - 1);
    return (region){.batch = (int64_t)fmin(fmax((double)truncf(value[0]), 0), last), /* a NaN becomes 0 */
                    .y = extent_of(value[2], value[4], k->scale, v[OUTPUT].sizes[2], v[INPUT].sizes[2]),
                    .x = extent_of(value[1], value[3], k->scale, v[OUTPUT].sizes[3], v[INPUT].sizes[3])};
}

static void bin_of(const extent *e, int64_t o, int64_t *begin, int64_t *end) {
    const double bins = (double)e->bins, size = (double)e->size;
    *begin = (int64_t)fmin(fmax(floor((double)o * e->count / bins) + e->first, 0), size);
    *end = (int64_t)fmin(fmax(ceil((double)(o + 1) * e->count / bins) + e->first, 0), size);
}

static void mark_axis(const extent *e, uint8_t *read) {
    memset(read, 0, (size_t)e->size);
    for (int64_t o = 0; o < e->bins; o++) {
        int64_t i, end;
        for (bin_of(e, o, &i, &end); i < end; i++) {
            read[i] = 1;
        }
    }
}

void dmlk_reads_roi_pooling(const dmlk_call *call, uint32_t tensor, dmlk_read_set *reads) {
    dmlk_roi_pooling k;
    if (tensor != INPUT || !is_valid(call, &k) || !has_types(call)) {
        return;
    }
    const dmlk_view *in = &call->views[INPUT];
    uint64_t *marks = dmlk_begin_marks(call, tensor, reads);
    uint8_t *rows = malloc((size_t)in->sizes[2]), *columns = malloc((size_t)in->sizes[3]);
    int64_t work = 0;
    for (int64_t i = 0; marks != NULL && rows != NULL && columns != NULL && i < call->views[OUTPUT].sizes[0]; i++) {
        const region r = region_of(&k, call->views, i);
        mark_axis(&r.y, rows);
        mark_axis(&r.x, columns);
        roi_mark_item(in, r.batch, rows, columns, marks, &work);
    }
    free(rows);
    free(columns);
}

struct job {
    const dmlk_view *v;
    dmlk_roi_pooling k;
};

/* The maximum of a bin: NaN only if all elements are NaN; 0 if there are no elements. */
static double maximum(const dmlk_view *in, int64_t offset, const int64_t *y, const int64_t *x, int64_t *work) {
    double best = 0;
    for (int64_t i = y[0]; i < y[1] && !dmlk_stopped(work, x[1] - x[0]); i++) {
        for (int64_t j = x[0]; j < x[1]; j++) {
            const double value = roi_load(in, offset + i * in->strides[2] + j * in->strides[3]);
            best = (i == y[0] && j == x[0]) || roi_is_maximum(value, best) ? value : best;
        }
    }
    return best;
}

/* Items: bins, each for all channels. */
static void pool(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct job *job = context;
    const dmlk_view *in = &job->v[INPUT], *out = &job->v[OUTPUT];
    int64_t work = 0;
    for (int64_t item = begin; item < end && !dmlk_stopped(&work, 1); item++) {
        int64_t index[DMLK_MAX_RANK], y[2], x[2];
        dmlk_row_start(out, 1, item, index);
        const region r = region_of(&job->k, job->v, index[0]);
        bin_of(&r.y, index[2], &y[0], &y[1]);
        bin_of(&r.x, index[3], &x[0], &x[1]);
        for (int64_t c = 0; c < out->sizes[1] && !dmlk_stopped(&work, 1); c++) {
            const int64_t at = index[0] * out->strides[0] + c * out->strides[1] + index[2] * out->strides[2] + index[3] * out->strides[3];
            roi_store(out, at, maximum(in, r.batch * in->strides[0] + c * in->strides[1], y, x, &work));
        }
    }
}

int dmlk_run_roi_pooling(const dmlk_call *call) {
    struct job job = {.v = call->views};
    if (!is_valid(call, &job.k)) {
        return DMLK_BAD_PACKET;
    }
    if (!has_types(call)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    const int64_t items = dmlk_rows_along(&job.v[OUTPUT], 1);
    dmlk_parallel(items, dmlk_row_parts(items, 16 * job.v[OUTPUT].sizes[1]), pool, &job);
    return DMLK_OK;
}

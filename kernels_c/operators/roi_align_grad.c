/* roi_align_grad: the gradients of roi_align by its input and by the corners of its regions.
 *
 * Each sample inside the input receives a part of its output element's gradient: equal parts for averages; for
 * maxima, all of it goes to the largest sample.  Sums are FLOAT64, in the order of regions, channels, output elements
 * and samples. */
#include "boxes.h"
#include "roi_samples.h"
#include "scratch.h"

enum { INPUT, GRADIENT, REGIONS, INDICES, OUT, OUT_REGIONS, VIEWS };

const uint32_t dmlk_outputs_roi_align_grad = 2;

/* The tensor with the sizes of the forward input: that input, or its gradient. */
static const dmlk_view *image_of(const dmlk_call *call) { return &call->views[call->views[INPUT].rank != 0 ? INPUT : OUT]; }

static bool has_valid_image(const dmlk_call *call) {
    const dmlk_view *v = call->views, *image = image_of(call);
    return image->rank != 0 && roi_is_valid(image, &v[REGIONS], &v[INDICES], &v[GRADIENT]) &&
           (v[OUT].rank == 0 || dmlk_same_sizes(&v[OUT], image));
}

static bool is_valid(const dmlk_call *call, dmlk_roi_align *k) {
    const dmlk_view *v = call->views;
    return dmlk_has_views(call, VIEWS, 1u << INPUT | 1u << OUT | 1u << OUT_REGIONS) && dmlk_get_constants(call, k, sizeof *k) &&
           has_valid_image(call) && (v[OUT_REGIONS].rank == 0 || dmlk_same_sizes(&v[OUT_REGIONS], &v[REGIONS])) &&
           (v[INPUT].rank != 0 || (!k->takes_maximum && v[OUT_REGIONS].rank == 0));
}

static bool has_types(const dmlk_call *call) {
    const dmlk_view *v = call->views;
    const uint32_t type = v[GRADIENT].type;
    return roi_has_types(&v[GRADIENT], &v[REGIONS], &v[INDICES]) && (v[INPUT].rank == 0 || v[INPUT].type == type) &&
           (v[OUT].rank == 0 || v[OUT].type == type) && (v[OUT_REGIONS].rank == 0 || v[OUT_REGIONS].type == type);
}

bool dmlk_indices_roi_align_grad(const dmlk_call *call, dmlk_index_use *use) {
    dmlk_roi_align k;
    if (!is_valid(call, &k)) {
        return false;
    }
    const dmlk_view *image = image_of(call);
    *use = (dmlk_index_use){.indices = INDICES, .target = (uint32_t)(image - call->views), .axis = 0, .count = 1};
    use->sizes[0] = image->sizes[0];
    return true;
}

void dmlk_reads_roi_align_grad(const dmlk_call *call, uint32_t tensor, dmlk_read_set *reads) {
    dmlk_roi_align k;
    const dmlk_view *v = call->views;
    if (tensor != INPUT || !is_valid(call, &k) || !has_types(call)) {
        return;
    }
    if (!k.takes_maximum && v[OUT_REGIONS].rank == 0) {
        memset(reads->counts, 0, sizeof reads->counts);
    } else {
        roi_reads(call, tensor, &k, &v[REGIONS], &v[INDICES], &v[GRADIENT], reads);
    }
}

/* --- one sample --- */

struct job {
    const dmlk_view *v, *image;
    dmlk_roi_align k;
    double *planes; /* sums for a plane of the image, for each part */
};

/* Where the gradients of one channel's samples are added: to a plane of the image or, if that is NULL, to the
 * corners. */
typedef struct target {
    const struct job *job;
    const dmlk_view *in;
    int64_t offset; /* of the channel in the input */
    double *plane, *corners;
    int64_t work;
} target;

static double value_at(const target *to, int64_t y, int64_t x) {
    return roi_load(to->in, to->offset + y * to->in->strides[2] + x * to->in->strides[3]);
}

static double interpolate(const target *to, const roi_taps *y, const roi_taps *x) {
    double value = 0;
    for (int i = 0; i < y->count; i++) {
        for (int j = 0; j < x->count; j++) {
            const double term = y->weight[i] * x->weight[j] * value_at(to, y->index[i], x->index[j]);
            value = i + j == 0 ? term : value + term;
        }
    }
    return value;
}

static void add_to_plane(const target *to, const roi_taps *y, const roi_taps *x, double g) {
    for (int i = 0; i < y->count; i++) {
        for (int j = 0; j < x->count; j++) {
            to->plane[y->index[i] * to->job->image->sizes[3] + x->index[j]] += g * (y->weight[i] * x->weight[j]);
        }
    }
}

/* Adds to the gradient of the corners: the sample moves when the corners of its region move. */
static void add_to_corners(const target *to, const roi_taps *y, const roi_taps *x, double g) {
    double v[2][2] = {{0}};
    for (int i = 0; i < y->count; i++) {
        for (int j = 0; j < x->count; j++) {
            v[i][j] = value_at(to, y->index[i], x->index[j]);
        }
    }
    if (x->count == 2) {
        const double above = v[0][1] - v[0][0];
        const double slope = y->count == 2 ? y->weight[0] * above + y->weight[1] * (v[1][1] - v[1][0]) : above;
        const double moved = g * slope * (double)to->job->k.scale_x;
        to->corners[0] += moved * (1 - x->t);
        to->corners[2] += moved * x->t;
    }
    if (y->count == 2) {
        const double left = v[1][0] - v[0][0];
        const double slope = x->count == 2 ? x->weight[0] * left + x->weight[1] * (v[1][1] - v[0][1]) : left;
        const double moved = g * slope * (double)to->job->k.scale_y;
        to->corners[1] += moved * (1 - y->t);
        to->corners[3] += moved * y->t;
    }
}

static void add_sample(const target *to, const roi_taps *y, const roi_taps *x, double g) {
    if (to->plane != NULL) {
        add_to_plane(to, y, x, g);
    } else {
        add_to_corners(to, y, x, g);
    }
}

/* --- one output element --- */

static void add_output(target *to, const roi_region *r, int64_t oy, int64_t ox, double g) {
    const bool takes_maximum = to->job->k.takes_maximum != 0;
    const double share = g / roi_samples_per_output(r);
    int64_t y, y_end, x_begin, x_end;
    double best = 0;
    roi_taps best_row = {0}, best_column = {0}, row, column;
    roi_range(&r->x, ox, &x_begin, &x_end);
    for (roi_range(&r->y, oy, &y, &y_end); y < y_end && !dmlk_stopped(&to->work, 1); y++) {
        const bool inside = roi_sample(&r->y, y, &row);
        for (int64_t x = x_begin; inside && x < x_end && !dmlk_stopped(&to->work, 4); x++) {
            if (!roi_sample(&r->x, x, &column)) {
                continue;
            }
            if (!takes_maximum) {
                add_sample(to, &row, &column, share);
                continue;
            }
            const double value = interpolate(to, &row, &column);
            if (best_row.count == 0 || roi_is_maximum(value, best)) {
                best = value;
                best_row = row;
                best_column = column;
            }
        }
    }
    if (best_row.count != 0) {
        add_sample(to, &best_row, &best_column, g);
    }
}

/* Adds the gradients of one channel of a region. */
static void add_channel(target *to, const roi_region *r, int64_t region, int64_t channel) {
    const dmlk_view *g = &to->job->v[GRADIENT];
    to->in = &to->job->v[INPUT];
    to->offset = to->in->rank == 0 ? 0 : r->batch * to->in->strides[0] + channel * to->in->strides[1];
    for (int64_t y = 0; y < g->sizes[2]; y++) {
        for (int64_t x = 0; x < g->sizes[3] && !dmlk_stopped(&to->work, 1); x++) {
            const int64_t at = region * g->strides[0] + channel * g->strides[1] + y * g->strides[2] + x * g->strides[3];
            add_output(to, r, y, x, roi_load(g, at));
        }
    }
}

static roi_region region_of(const struct job *job, int64_t r) {
    return roi_region_of(&job->k, job->image, &job->v[REGIONS], &job->v[INDICES], &job->v[GRADIENT], r);
}

/* --- the outputs --- */

/* Items: planes of the image. */
static void fill_planes(int64_t begin, int64_t end, int part, void *context) {
    const struct job *job = context;
    const dmlk_view *out = &job->v[OUT];
    const int64_t height = out->sizes[2], width = out->sizes[3];
    target to = {.job = job, .plane = job->planes + part * height * width};
    for (int64_t item = begin; item < end && !dmlk_stopped(&to.work, height * width); item++) {
        const int64_t batch = item / out->sizes[1], channel = item % out->sizes[1];
        memset(to.plane, 0, (size_t)(height * width) * sizeof *to.plane);
        for (int64_t i = 0; i < job->v[GRADIENT].sizes[0] && !dmlk_stopped(&to.work, 1); i++) {
            const roi_region r = region_of(job, i);
            if (r.batch == batch) {
                add_channel(&to, &r, i, channel);
            }
        }
        const int64_t offset = batch * out->strides[0] + channel * out->strides[1];
        for (int64_t e = 0; e < height * width; e++) {
            roi_store(out, offset + e / width * out->strides[2] + e % width * out->strides[3], to.plane[e]);
        }
    }
}

/* Items: regions. */
static void fill_corners(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct job *job = context;
    const dmlk_view *out = &job->v[OUT_REGIONS];
    double corners[4];
    target to = {.job = job, .corners = corners};
    for (int64_t i = begin; i < end && !dmlk_stopped(&to.work, 1); i++) {
        const roi_region r = region_of(job, i);
        memset(corners, 0, sizeof corners);
        for (int64_t channel = 0; channel < job->image->sizes[1]; channel++) {
            add_channel(&to, &r, i, channel);
        }
        for (int64_t n = 0; n < 4; n++) {
            roi_store(out, i * out->strides[0] + n * out->strides[1], corners[n]);
        }
    }
}

int dmlk_run_roi_align_grad(const dmlk_call *call) {
    struct job job = {.v = call->views};
    if (!is_valid(call, &job.k)) {
        return DMLK_BAD_PACKET;
    }
    if (!has_types(call)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    job.image = image_of(call);
    const int64_t elements = dmlk_view_elements(&job.v[GRADIENT]), regions = job.v[GRADIENT].sizes[0];
    if (job.v[OUT].rank != 0) {
        const int64_t *sizes = job.image->sizes, planes = sizes[0] * sizes[1], plane = sizes[2] * sizes[3];
        const int parts = dmlk_row_parts(planes, 16 * (elements / sizes[1] + 1) + plane);
        int64_t bytes;
        if (__builtin_mul_overflow(plane, (int64_t)sizeof(double) * parts, &bytes) || (job.planes = dmlk_take(bytes)) == NULL) {
            return DMLK_OUT_OF_MEMORY;
        }
        dmlk_parallel(planes, parts, fill_planes, &job);
        dmlk_give(job.planes);
    }
    if (job.v[OUT_REGIONS].rank != 0) {
        dmlk_parallel(regions, dmlk_row_parts(regions, 16 * (elements / regions)), fill_corners, &job);
    }
    return DMLK_OK;
}

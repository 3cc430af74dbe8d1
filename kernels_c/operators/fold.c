/* fold: each element of the image is the sum of the columns' elements that belong to it, in FLOAT64 and in row-major
 * order of the window; elements in the padding are dropped.  A band of a plane (one batch and channel) of the image
 * is summed at a time: some consecutive indices of its first axis. */
#include "columns.h"
#include "fold_rows.h"
#include "narrow.h"
#include "scratch.h"

#define BAND (1 << 12) /* elements of a band; at least one index of the first axis */

#define DMLK_BODY "fold.inc"
#include "each_type.inc"

typedef struct functions {
    void (*add)(const uint8_t *from, int64_t stride, int64_t count, double *sums, int64_t step);
    void (*put)(const double *sums, int64_t count, uint8_t *to, int64_t stride);
} functions;

static functions functions_of(uint32_t type) {
    return type == DMLK_FLOAT32   ? (functions){add_float32, put_float32}
           : type == DMLK_FLOAT16 ? (functions){add_float16, put_float16}
           : type == DMLK_FLOAT64 ? (functions){add_float64, put_float64}
                                  : (functions){NULL, NULL};
}

struct job {
    dmlk_columns c;
    const dmlk_view *in, *out;
    functions f;
    int64_t bands, height; /* of a plane; indices of a band */
    int64_t steps[DMLK_MAX_RANK]; /* sums from one index of an axis to the next */
    double *sums; /* a band for each part */
};

/* A band: indices [begin, end) of the first axis of a plane. */
struct band {
    int64_t begin, end;
};

/* Advances the indices of the axes from `first` to the last but one; false: that was the last row. */
static bool next_row(uint32_t first, uint32_t rank, const int64_t *sizes, int64_t *index) {
    for (uint32_t d = rank - 1; d-- > first;) {
        if (++index[d] < sizes[d]) {
            return true;
        }
        index[d] = 0;
    }
    return false;
}

/* Adds the elements of one place of the window, of every block; the band starts at `index`. */
static void add_place(const struct job *job, const uint32_t *place, const int64_t *index, struct band band, dmlk_view in,
                      double *sums, int64_t *work) {
    const dmlk_columns *c = &job->c;
    const uint32_t last = c->rank - 1;
    int64_t at[DMLK_MAX_RANK] = {index[0], index[1]}, first, count;
    for (uint32_t d = DMLK_IMAGE_AXES; d < c->rank; d++) {
        const uint32_t axis = d - DMLK_IMAGE_AXES;
        const int64_t size = axis == 0 ? band.end : job->out->sizes[d], stride = c->k.strides[axis];
        int64_t position = dmlk_blocks_inside(c, axis, size, place[axis], &first, &count);
        if (axis == 0) {
            const int64_t before = position < band.begin ? (band.begin - position - 1) / stride + 1 : 0;
            first += before;
            count -= before;
            position += before * stride - band.begin;
        }
        if (count <= 0) {
            return;
        }
        sums += position * job->steps[d];
        dmlk_cut(&in, d, first, 1, count);
    }
    do {
        double *to = sums;
        for (uint32_t d = DMLK_IMAGE_AXES; d < last; d++) {
            to += at[d] * job->steps[d] * c->k.strides[d - DMLK_IMAGE_AXES];
        }
        job->f.add(dmlk_element(&in, at), in.strides[last], in.sizes[last], to, c->k.strides[last - DMLK_IMAGE_AXES]);
    } while (!dmlk_stopped(work, in.sizes[last]) && next_row(DMLK_IMAGE_AXES, c->rank, in.sizes, at));
}

static void fold_bands(int64_t begin, int64_t end, int part, void *context) {
    const struct job *job = context;
    const uint32_t last = job->c.rank - 1;
    const int64_t *sizes = job->out->sizes, elements = job->height * job->steps[DMLK_IMAGE_AXES];
    double *sums = job->sums + part * elements;
    int64_t work = 0;
    for (int64_t n = begin; n < end && !dmlk_stopped(&work, elements); n++) {
        const int64_t plane = n / job->bands, first = n % job->bands * job->height;
        const struct band band = {first, dmlk_min(first + job->height, sizes[DMLK_IMAGE_AXES])};
        int64_t index[DMLK_MAX_RANK] = {plane / sizes[1], plane % sizes[1]}, number = 0;
        uint32_t place[6] = {0};
        memset(sums, 0, (size_t)elements * sizeof *sums);
        do {
            add_place(job, place, index, band, dmlk_columns_of_place(&job->c, job->in, number++), sums, &work);
        } while (dmlk_next_window_place(&job->c, place) && !dmlk_stopped(&work, 1));
        dmlk_view out = *job->out;
        dmlk_cut(&out, DMLK_IMAGE_AXES, first, 1, band.end - first);
        const double *from = sums;
        do {
            job->f.put(from, out.sizes[last], dmlk_element(&out, index), out.strides[last]);
            from += out.sizes[last];
        } while (next_row(DMLK_IMAGE_AXES, job->c.rank, out.sizes, index));
    }
}

/* The columns of places inside the image. */
void dmlk_reads_fold(const dmlk_call *call, uint32_t tensor, dmlk_read_set *reads) {
    dmlk_columns c;
    const dmlk_view *columns = &call->views[0], *image = &call->views[1];
    if (tensor != 0 || call->view_count != 2 || !dmlk_columns_init(call, image, columns, &c)) {
        return;
    }
    bool all = true;
    for (uint32_t d = 0; d < c.k.spatial; d++) {
        int64_t first, count, end;
        dmlk_blocks_inside(&c, d, image->sizes[DMLK_IMAGE_AXES + d], 0, &first, &count);
        dmlk_blocks_inside(&c, d, image->sizes[DMLK_IMAGE_AXES + d], c.k.window[d] - 1, &end, &count);
        all = all && first == 0 && end + count == c.k.blocks[d];
    }
    uint64_t *marks = all ? NULL : dmlk_begin_marks(call, tensor, reads);
    if (marks == NULL) {
        return;
    }
    const int64_t blocks = columns->sizes[columns->rank - 1], rows = columns->sizes[columns->rank - 2];
    for (int64_t row = dmlk_view_elements(columns) / blocks; row-- > 0;) {
        int64_t rest = row % rows % c.places, inside[6][2];
        for (uint32_t d = c.k.spatial; d-- > 0;) {
            dmlk_blocks_inside(&c, d, image->sizes[DMLK_IMAGE_AXES + d], (uint32_t)(rest % c.k.window[d]), &inside[d][0],
                               &inside[d][1]);
            rest /= c.k.window[d];
        }
        for (int64_t b = 0; b < blocks; b++) {
            int64_t number = b;
            bool is_inside = true;
            for (uint32_t d = c.k.spatial; d-- > 0;) {
                const int64_t at = number % c.k.blocks[d] - inside[d][0];
                is_inside = is_inside && at >= 0 && at < inside[d][1];
                number /= c.k.blocks[d];
            }
            marks[(row * blocks + b) / 64] |= (uint64_t)is_inside << (row * blocks + b) % 64;
        }
    }
}

int dmlk_run_fold(const dmlk_call *call) {
    struct job job;
    if (!dmlk_has_views(call, 2, 0) || !dmlk_columns_init(call, &call->views[1], &call->views[0], &job.c)) {
        return DMLK_BAD_PACKET;
    }
    job.in = &call->views[0];
    job.out = &call->views[1];
    job.f = functions_of(job.in->type);
    if (job.in->type != job.out->type || job.f.add == NULL) {
        return DMLK_NOT_IMPLEMENTED;
    }
#ifndef DMLK_CHECKED
    if (dmlk_fold_rows(&job.c, job.in, job.out)) {
        return DMLK_OK;
    }
#endif
    int64_t row = 1, bytes;
    for (uint32_t d = job.c.rank; d-- > DMLK_IMAGE_AXES;) {
        job.steps[d] = row;
        row *= d > DMLK_IMAGE_AXES ? job.out->sizes[d] : 1;
    }
    const int64_t height = job.out->sizes[DMLK_IMAGE_AXES];
    job.height = dmlk_min(height, row < BAND ? BAND / row : 1);
    job.bands = (height - 1) / job.height + 1;
    const int64_t bands = job.out->sizes[0] * job.out->sizes[1] * job.bands, elements = job.height * row;
    const int64_t work = dmlk_min(elements, 1 << 20) * dmlk_min(job.c.places, 1 << 20); /* of a band, or less */
    const int parts = (int)dmlk_min(dmlk_row_parts(bands, work), bands);
    if (__builtin_mul_overflow(elements, parts * (int64_t)sizeof(double), &bytes) || (job.sums = dmlk_take(bytes)) == NULL) {
        return DMLK_OUT_OF_MEMORY;
    }
    dmlk_parallel(bands, parts, fold_bands, &job);
    dmlk_give(job.sums);
    return DMLK_OK;
}

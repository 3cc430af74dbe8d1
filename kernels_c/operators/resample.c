/* resample: an element is the weighted sum of elements of the input around its position there, or the nearest of them.
 *
 * Weights are the product of those of each axis, which are computed once, as a table: the taps of an axis.  Sums are
 * FLOAT64: rows of the input are mixed along the axes before the last one, the innermost first, then the last axis is
 * mixed within the row.  The gradient uses the same tables, transposed. */
#include "resample.h"

#include <math.h>

#include "boxes.h"
#include "cancellation.h"
#include "narrow.h"
#include "scratch.h"

#define MOST_TAPS (INT64_C(1) << 28) /* of an axis: 4 GiB */
#define FAR 0x1p52                   /* positions beyond it are clamped like this one */

/* Along an axis, element x of the output is the sum of weight[i] * input[index[i]], i from start[x] to start[x + 1]. */
typedef struct taps {
    int64_t count; /* elements of the output */
    int64_t *start, *index;
    double *weight;
    /* Of the last axis: the indices that are read, rising, and for each tap its place among them. */
    int64_t *columns, *column;
    int64_t column_count;
} taps;

/* The limits of an integer type of at most 32 bits. */
#define HALF(T) ((double)((uint64_t)1 << (8 * sizeof(T) - 1)))
#define LEAST(T) ((T)-1 < (T)1 ? -HALF(T) : 0)
#define MOST(T) ((T)-1 < (T)1 ? HALF(T) - 1 : 2 * HALF(T) - 1)

#define DMLK_BODY "resample.inc"
#include "each_type.inc"

typedef struct functions {
    void (*load)(const uint8_t *from, int64_t stride, const int64_t *columns, int64_t count, double *row);
    void (*put)(const taps *t, const double *row, uint8_t *to, int64_t stride);
    void (*pick)(const taps *t, const uint8_t *from, int64_t in_stride, uint8_t *to, int64_t stride);
} functions;

#define FUNCTIONS(type) {load_##type, put_##type, pick_##type}

static const functions by_type[] = {
    [DMLK_FLOAT16] = FUNCTIONS(float16), [DMLK_FLOAT32] = FUNCTIONS(float32), [DMLK_FLOAT64] = FUNCTIONS(float64),
    [DMLK_INT8] = FUNCTIONS(int8),       [DMLK_INT16] = FUNCTIONS(int16),     [DMLK_INT32] = FUNCTIONS(int32),
    [DMLK_INT64] = FUNCTIONS(int64),     [DMLK_UINT8] = FUNCTIONS(uint8),     [DMLK_UINT16] = FUNCTIONS(uint16),
    [DMLK_UINT32] = FUNCTIONS(uint32),   [DMLK_UINT64] = FUNCTIONS(uint64)};

/* --- the taps of one axis --- */

typedef struct axis {
    enum dmlk_resample_mode mode;
    double scale, outer, inner;
    int64_t from; /* elements that positions are computed for */
    int64_t to;   /* elements of the tensor that they lie in */
    int64_t work; /* see dmlk_stopped */
} axis;

static double position(const axis *a, int64_t o) {
    return fmin(fmax(((double)o - a->outer) / a->scale - a->inner, -FAR), FAR); /* a NaN becomes -FAR */
}

static int64_t clamped(const axis *a, double i) { return (int64_t)fmin(fmax(i, 0), (double)(a->to - 1)); }

/* The sum of 1 - |i - p| / s over the integers from `first` to `last`. */
static double triangle(double first, double last, double p, double s) {
    const double top = floor(p), below = fmin(last, top), above = fmax(first, top + 1);
    const double n = fmax(below - first + 1, 0), m = fmax(last - above + 1, 0);
    return n * (1 - (p - (first + below) / 2) / s) + m * (1 - ((above + last) / 2 - p) / s);
}

/* Taps of the linear filter stretched by `s`; positions outside count as the element at the edge. */
static int64_t antialiased_taps(axis *a, double p, int64_t *index, double *weight) {
    const double s = fmax(1, 1 / a->scale), edge = (double)(a->to - 1);
    const double first = floor(p - s) + 1, last = ceil(p + s) - 1;
    const int64_t begin = clamped(a, first), end = clamped(a, last);
    if (index != NULL) {
        const double all = triangle(first, last, p, s);
        for (int64_t i = begin; i <= end && !dmlk_stopped(&a->work, 1); i++) {
            const double least = i == 0 ? fmin(first, 0) : (double)i, most = i == a->to - 1 ? fmax(last, edge) : (double)i;
            index[i - begin] = i;
            weight[i - begin] = triangle(fmax(least, first), fmin(most, last), p, s) / all;
        }
    }
    return end - begin + 1;
}

/* The elements of weights other than 0 for element `o`; index == NULL: only their number. */
static int64_t taps_of(axis *a, int64_t o, int64_t *index, double *weight) {
    const double p = position(a, o);
    if (a->mode == DMLK_LINEAR_ANTIALIASED && a->scale < 1) {
        return antialiased_taps(a, p, index, weight);
    }
    const bool linear = a->mode == DMLK_LINEAR || a->mode == DMLK_LINEAR_ANTIALIASED;
    const double low = a->mode == DMLK_NEAREST_HALF_UP ? floor(p + 0.5) : a->mode == DMLK_NEAREST_UP ? ceil(p) : floor(p);
    const int64_t one = clamped(a, low), other = clamped(a, low + 1);
    const double w = linear && one != other ? p - low : 0;
    if (index != NULL) {
        index[0] = one;
        weight[0] = 1 - w;
    }
    if (w == 0) {
        return 1;
    }
    if (index != NULL) {
        index[1] = other;
        weight[1] = w;
    }
    return 2;
}

/* Turns taps by position into taps by the element that they lie in.  False as make_taps. */
static bool transpose_taps(axis *a, taps *t) {
    const int64_t to = a->to;
    const int64_t n = t->start[t->count];
    taps by = {.count = to, .start = dmlk_take((to + 2) * 8), .index = dmlk_take(n * 8), .weight = dmlk_take(n * 8)};
    const bool fits = by.start != NULL && by.index != NULL && by.weight != NULL;
    if (fits) {
        memset(by.start, 0, (size_t)(to + 2) * 8);
        for (int64_t i = 0; i < n; i++) {
            by.start[t->index[i] + 2]++;
        }
        for (int64_t x = 0; x < to; x++) {
            by.start[x + 2] += by.start[x + 1];
        }
        for (int64_t o = 0; o < t->count && !dmlk_stopped(&a->work, t->start[o + 1] - t->start[o] + 1); o++) {
            for (int64_t i = t->start[o]; i < t->start[o + 1]; i++) {
                const int64_t place = by.start[t->index[i] + 1]++;
                by.index[place] = o;
                by.weight[place] = t->weight[i];
            }
        }
    }
    dmlk_give(t->start);
    dmlk_give(t->index);
    dmlk_give(t->weight);
    *t = by;
    return fits && !dmlk_stopped(&a->work, 0);
}

/* False: out of memory, or stopped; what was allocated is in `t`. */
static bool make_taps(axis *a, taps *t) {
    int64_t n = 0;
    t->count = a->from;
    t->start = dmlk_take((a->from + 1) * 8);
    if (t->start == NULL) {
        return false;
    }
    for (int64_t o = 0; o < a->from; o++) {
        t->start[o] = n;
        n += taps_of(a, o, NULL, NULL);
        if (n > MOST_TAPS || dmlk_stopped(&a->work, 1)) {
            return false;
        }
    }
    t->start[a->from] = n;
    t->index = dmlk_take(n * 8);
    t->weight = dmlk_take(n * 8);
    if (t->index == NULL || t->weight == NULL) {
        return false;
    }
    for (int64_t o = 0; o < a->from && !dmlk_stopped(&a->work, 1); o++) {
        taps_of(a, o, t->index + t->start[o], t->weight + t->start[o]);
    }
    return !dmlk_stopped(&a->work, 0);
}

/* The indices of an axis of `size` elements that are read, rising.  False as make_taps. */
static bool find_columns(axis *a, taps *t, int64_t size) {
    const int64_t n = t->start[t->count];
    int64_t *place = dmlk_take(size * 8);
    t->columns = dmlk_take(size * 8);
    t->column = dmlk_take(n * 8);
    const bool fits = place != NULL && t->columns != NULL && t->column != NULL;
    if (fits) {
        memset(place, 0, (size_t)size * 8);
        for (int64_t i = 0; i < n && !dmlk_stopped(&a->work, 1); i++) {
            place[t->index[i]] = 1;
        }
        t->column_count = 0;
        for (int64_t i = 0; i < size; i++) {
            if (place[i]) {
                place[i] = t->column_count;
                t->columns[t->column_count++] = i;
            }
        }
        for (int64_t i = 0; i < n && !dmlk_stopped(&a->work, 1); i++) {
            t->column[i] = place[t->index[i]];
        }
    }
    dmlk_give(place);
    return fits && !dmlk_stopped(&a->work, 0);
}

static void free_taps(taps *all, uint32_t rank) {
    for (uint32_t d = 0; d < rank; d++) {
        dmlk_give(all[d].start);
        dmlk_give(all[d].index);
        dmlk_give(all[d].weight);
        dmlk_give(all[d].columns);
        dmlk_give(all[d].column);
    }
}

static int make_all_taps(const dmlk_resample *k, const dmlk_view *in, const dmlk_view *out, taps *all) {
    memset(all, 0, k->rank * sizeof *all);
    for (uint32_t d = 0; d < k->rank; d++) {
        axis a = {k->mode, (double)k->scales[d], (double)k->outer[d], (double)k->inner[d], out->sizes[d], in->sizes[d], 0};
        if (k->gradient) {
            a.from = in->sizes[d];
            a.to = out->sizes[d];
        }
        if (!make_taps(&a, &all[d]) || (k->gradient && !transpose_taps(&a, &all[d])) ||
            !find_columns(&a, &all[d], in->sizes[d])) {
            free_taps(all, k->rank);
            return dmlk_watch_stopped() ? DMLK_STOPPED : DMLK_OUT_OF_MEMORY;
        }
    }
    return DMLK_OK;
}

/* --- rows --- */

struct job {
    const dmlk_view *in, *out;
    functions f;
    taps all[DMLK_MAX_RANK];
    bool nearest;
    int64_t element; /* bytes */
    double *rows;    /* for each part, one for each axis */
};

typedef struct row_state {
    const struct job *job;
    const int64_t *index; /* of the output's row */
    double *rows;
    int64_t work;
    bool stopped;
} row_state;

/* The row of the input at `from`, mixed along axis d and those behind it but the last. */
static const double *mix(row_state *s, uint32_t d, const uint8_t *from) {
    const struct job *job = s->job;
    const uint32_t last = job->in->rank - 1;
    const taps *t = &job->all[last];
    double *sum = s->rows + d * t->column_count;
    if (d == last) {
        const bool dense = t->columns[t->column_count - 1] == t->column_count - 1;
        job->f.load(from, job->in->strides[last], dense ? NULL : t->columns, t->column_count, sum);
        s->stopped = s->stopped || dmlk_stopped(&s->work, t->column_count);
        return sum;
    }
    const taps *along = &job->all[d];
    const int64_t begin = along->start[s->index[d]], end = along->start[s->index[d] + 1];
    const int64_t step = job->in->strides[d] * job->element;
    if (end - begin == 1 && along->weight[begin] == 1) {
        return mix(s, d + 1, from + along->index[begin] * step);
    }
    memset(sum, 0, (size_t)(begin == end ? t->column_count : 0) * sizeof *sum);
    for (int64_t i = begin; i < end && !s->stopped; i++) {
        const double *row = mix(s, d + 1, from + along->index[i] * step), w = along->weight[i];
        for (int64_t x = 0; x < t->column_count; x++) {
            sum[x] = i == begin ? w * row[x] : sum[x] + w * row[x];
        }
    }
    return sum;
}

static void resample_rows(int64_t begin, int64_t end, int part, void *context) {
    const struct job *job = context;
    const dmlk_view *in = job->in, *out = job->out;
    const uint32_t last = in->rank - 1;
    int64_t index[DMLK_MAX_RANK];
    row_state s = {.job = job, .index = index, .rows = NULL};
    if (!job->nearest) {
        s.rows = job->rows + part * (int64_t)in->rank * job->all[last].column_count;
    }
    for (int64_t r = begin; r < end && !s.stopped; r++) {
        dmlk_row_start(out, last, r, index);
        uint8_t *to = dmlk_element(out, index);
        if (job->nearest) {
            const uint8_t *from = in->base;
            for (uint32_t d = 0; d < last; d++) {
                from += job->all[d].index[index[d]] * in->strides[d] * job->element;
            }
            job->f.pick(&job->all[last], from, in->strides[last], to, out->strides[last]);
        } else {
            job->f.put(&job->all[last], mix(&s, 0, in->base), to, out->strides[last]);
        }
        s.stopped = s.stopped || dmlk_stopped(&s.work, out->sizes[last]);
    }
}

static bool is_valid(const dmlk_call *call, dmlk_resample *k) {
    return dmlk_has_views(call, 2, 0) && dmlk_get_constants(call, k, sizeof *k) && k->rank >= 1 &&
           k->rank <= DMLK_MAX_RANK && k->rank == call->views[0].rank && k->rank == call->views[1].rank &&
           k->mode <= DMLK_LINEAR_ANTIALIASED;
}

/* Slices of the indices; more than there is room for become one that contains them. */
static uint32_t slices_of(const int64_t *indices, int64_t count, dmlk_slice *slices, bool *has_more) {
    uint32_t n = 0;
    for (int64_t i = 0; i < count; n++) {
        if (n == DMLK_MOST_SLICES) {
            slices[0] = (dmlk_slice){indices[0], 1, indices[count - 1] - indices[0] + 1};
            *has_more = true;
            return 1;
        }
        const int64_t first = i, step = i + 1 < count ? indices[i + 1] - indices[i] : 1;
        do {
            i++;
        } while (i < count && indices[i] - indices[i - 1] == step);
        slices[n] = (dmlk_slice){indices[first], step, i - first};
    }
    return n;
}

void dmlk_reads_resample(const dmlk_call *call, uint32_t tensor, dmlk_read_set *reads) {
    dmlk_resample k;
    taps all[DMLK_MAX_RANK];
    if (tensor != 0 || !is_valid(call, &k) || k.gradient ||
        make_all_taps(&k, &call->views[0], &call->views[1], all) != DMLK_OK) {
        return;
    }
    for (uint32_t d = 0; d < k.rank; d++) {
        reads->counts[d] = slices_of(all[d].columns, all[d].column_count, reads->slices[d], &reads->has_more);
    }
    free_taps(all, k.rank);
}

int dmlk_run_resample(const dmlk_call *call) {
    dmlk_resample k;
    if (!is_valid(call, &k)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *in = &call->views[0], *out = &call->views[1];
    struct job job = {.in = in, .out = out, .element = dmlk_type_bytes(in->type)};
    job.nearest = k.mode < DMLK_LINEAR && !k.gradient;
    const bool narrow = job.element < 8 || dmlk_type_kind(in->type) == DMLK_KIND_FLOAT;
    if (in->type != out->type || job.element == 0 || !(job.nearest || narrow)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    job.f = by_type[in->type];
    int status = make_all_taps(&k, in, out, job.all);
    if (status != DMLK_OK) {
        return status;
    }
    const int64_t columns = job.all[k.rank - 1].column_count, rows = dmlk_view_elements(out) / out->sizes[k.rank - 1];
    const int64_t cost = job.nearest ? out->sizes[k.rank - 1] : 4 * (columns + out->sizes[k.rank - 1]);
    const int parts = dmlk_row_parts(rows, cost);
    int64_t bytes;
    if (!job.nearest && (__builtin_mul_overflow(columns, (int64_t)sizeof(double) * k.rank * parts, &bytes) ||
                         (job.rows = dmlk_take(bytes)) == NULL)) {
        status = DMLK_OUT_OF_MEMORY;
    } else {
        dmlk_parallel(rows, parts, resample_rows, &job);
        dmlk_give(job.rows);
    }
    free_taps(job.all, k.rank);
    return status;
}

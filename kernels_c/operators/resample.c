/* resample: an element is the weighted sum of the input's elements near its position there, or the nearest of them.
 *
 * A weight is the product of one weight for each axis; the elements with weights along an axis are its taps.  Sums
 * are FLOAT64.  A row of the input is first mixed along the last axis, and kept until all output rows that contain it
 * are computed; then rows are mixed along the earlier axes, from the last to the first.  The gradient uses the same
 * taps in the other direction.
 *
 * Rows are computed in blocks of columns, so that only the taps of a block are kept.  If another axis is contiguous
 * and not scaled (channels last), its elements are part of the columns. */
#include "resample.h"

#include <math.h>

#include "ahead.h"
#include "boxes.h"
#include "cancellation.h"
#include "cpu.h"
#include "narrow.h"
#include "nontemporal.h"
#include "resample_windows.h"
#include "scratch.h"

#define FAR 0x1p52      /* positions beyond it are clamped like this one */
#define BLOCK 1024      /* elements of a block of a row */
#define KEPT (1 << 16)  /* weights that are kept for a block; if it has more, they are computed for each row */
#define FEW 256         /* weights that are computed at once */
#define LINES 256       /* elements of an axis whose taps are kept */
#define SHORT 8         /* taps; up to this many, their weights are kept, too */
#define SLOTS 64        /* rows of the input that are kept after they were mixed along the last axis */
#define LANES DMLK_MIXED
#define WINDOW DMLK_MIX_WINDOW
#define WIDE 8          /* elements of a column from which a loop over them pays */
#define STREAMED 1024   /* bytes; in shorter parts of rows, lines that are partly filled cost more than streaming gains */

/* --- the taps of one axis --- */

typedef struct axis {
    enum dmlk_resample_mode mode;
    bool gradient;
    float scale, outer, inner;
    int64_t from; /* size of the axis whose elements have positions: the output, or for gradients the input */
    int64_t to;   /* size of the axis in which these positions lie */
} axis;

/* The elements begin .. end - 1 whose weights are not 0.  From one position to the next, neither decreases. */
typedef struct span {
    int64_t begin, end;
} span;

/* Whether the position of each element is its own index, whatever the sizes. */
static bool is_unmoved(const axis *a) { return a->scale == 1 && a->outer + a->inner == 0; }

/* The position of element o.  In FLOAT32, as on GPUs: if the scale was rounded, FLOAT64 would miss the intended
 * element. */
static double position(const axis *a, int64_t o) {
    if (is_unmoved(a)) {
        return (double)o;
    }
    const float p = ((float)o - a->outer) / a->scale - a->inner;
    return fmin(fmax((double)p, -FAR), FAR); /* a NaN becomes -FAR */
}

/* The nearest element, or the first of those that are mixed. */
static double first_near(const axis *a, double p) {
    if (p == floor(p)) {
        return p;
    }
    return a->mode == DMLK_NEAREST_HALF_UP ? (double)floorf((float)p + 0.5F) : a->mode == DMLK_NEAREST_UP ? ceil(p) : floor(p);
}

static int64_t clamped(const axis *a, double i) { return (int64_t)fmin(fmax(i, 0), (double)(a->to - 1)); }

static bool is_stretched(const axis *a) { return a->mode == DMLK_LINEAR_ANTIALIASED && a->scale < 1; }

/* The linear filter stretched by `s`: the first and last integer inside. */
static double first_inside(double p, double s) { return floor(p - s) + 1; }
static double last_inside(double p, double s) { return ceil(p + s) - 1; }

/* The elements near the position of element `o`. */
static span reach(const axis *a, int64_t o) {
    const double p = position(a, o), s = 1 / (double)a->scale;
    if (is_stretched(a)) {
        return (span){clamped(a, first_inside(p, s)), clamped(a, last_inside(p, s)) + 1};
    }
    const double low = first_near(a, p);
    const int64_t one = clamped(a, low);
    return (span){one, a->mode < DMLK_LINEAR || p == low ? one + 1 : clamped(a, low + 1) + 1};
}

/* The sum of 1 - |i - p| / s over the integers from `first` to `last`. */
static double triangle(double first, double last, double p, double s) {
    const double top = floor(p), below = fmin(last, top), above = fmax(first, top + 1);
    const double n = fmax(below - first + 1, 0), m = fmax(last - above + 1, 0);
    return n * (1 - (p - (first + below) / 2) / s) + m * (1 - ((above + last) / 2 - p) / s);
}

/* The weights of a stretched filter; the weight of positions outside is added to that of the element at the edge. */
static void stretched_weights(const axis *a, int64_t o, int64_t first, int64_t count, double *weights) {
    const double p = position(a, o), s = 1 / (double)a->scale, edge = (double)(a->to - 1);
    const double begin = first_inside(p, s), end = last_inside(p, s), all = triangle(begin, end, p, s);
    for (int64_t i = first; i < first + count; i++) {
        const double least = i == 0 ? fmin(begin, 0) : (double)i, most = i == a->to - 1 ? fmax(end, edge) : (double)i;
        weights[i - first] = triangle(fmax(least, begin), fmin(most, end), p, s) / all;
    }
}

/* The weights of elements first .. first + count - 1 for element `o`. */
static void weights_at(const axis *a, int64_t o, int64_t first, int64_t count, double *weights) {
    if (is_stretched(a)) {
        stretched_weights(a, o, first, count, weights);
        return;
    }
    const span all = reach(a, o);
    const double p = position(a, o), high = all.end - all.begin == 2 ? p - floor(p) : 0;
    for (int64_t i = 0; i < count; i++) {
        weights[i] = first + i == all.begin ? 1 - high : high;
    }
}

/* The first position whose reach ends after x or, with `begins`, starts after x. */
static int64_t first_position(const axis *a, int64_t x, bool begins) {
    int64_t low = 0, high = a->from;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const span s = reach(a, middle);
        if ((begins ? s.begin : s.end - 1) >= x + begins) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/* The elements of the input whose weighted sum is element x of the output. */
static span taps_of(const axis *a, int64_t x) {
    if (!a->gradient) {
        return reach(a, x);
    }
    const int64_t begin = first_position(a, x, false), end = first_position(a, x, true);
    return (span){begin, end > begin ? end : begin};
}

static void weights_of(const axis *a, int64_t x, int64_t first, int64_t count, double *weights) {
    if (!a->gradient) {
        weights_at(a, x, first, count, weights);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        weights_at(a, first + i, x, 1, weights + i);
    }
}

/* Whether the output equals the input along the axis. */
static bool is_identity(const axis *a) { return is_unmoved(a) && a->from == a->to; }

/* --- blocks of rows --- */

/* A block of rows: `columns` columns of `width` elements, which are contiguous in the input and in the output. */
typedef struct block {
    int64_t number; /* -1: none */
    int64_t column, columns, first, width;
    int64_t stride; /* of columns of the input */
    int64_t ahead;  /* elements from a row of the input to a row that is prefetched */
    bool is_kept;   /* the weights of column x are kept[start[x]] and those after it */
    span taps[BLOCK];
    int64_t start[BLOCK];
    double kept[KEPT];
    bool is_pairs; /* each element has one or two taps: `low`, and `step` elements later (0: none) one with `weight` */
    int64_t low[BLOCK], step[BLOCK];
    double weight[BLOCK];
    int64_t window[BLOCK / LANES]; /* where the WINDOW elements with the first taps of LANES elements start; -1: none */
    int32_t lane[BLOCK];           /* which element of the window is the first tap */
} block;

/* The taps of an element, along an axis other than the last. */
typedef struct line {
    int64_t element; /* -1: none */
    span taps;
    double weights[SHORT]; /* if there are at most SHORT taps */
} line;

/* The state of one thread. */
typedef struct state {
    const struct job *job;
    int64_t work;
    bool stopped;
    line kept_lines[DMLK_MAX_RANK][LINES], *lines[DMLK_MAX_RANK]; /* lines: of the current row, for each axis */
    const uint8_t *rows[SLOTS]; /* the row of the input that is in each slot; NULL: none */
    double slots[SLOTS][BLOCK], sums[DMLK_MAX_RANK][BLOCK], results[BLOCK]; /* results: in the output's type */
    block block;
} state;

/* sum = w * row, or sum += w * row. */
DMLK_EACH_ISA(add_row, (double *restrict sum, const double *restrict row, double w, int64_t count, bool first),
              (sum, row, w, count, first)) {
    if (first) {
        for (int64_t i = 0; i < count; i++) {
            sum[i] = w * row[i];
        }
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        sum[i] += w * row[i];
    }
}

/* A row or, with `other`, two rows that are not mixed yet: w * row + v * other. */
typedef struct rows {
    const double *row, *other;
    double w, v;
} rows;

/* The limits of an integer type of at most 32 bits. */
#define HALF(T) ((double)((uint64_t)1 << (8 * sizeof(T) - 1)))
#define LEAST(T) ((T)-1 < (T)1 ? -HALF(T) : 0)
#define MOST(T) ((T)-1 < (T)1 ? HALF(T) - 1 : 2 * HALF(T) - 1)

#define DMLK_BODY "resample.inc"
#include "each_type.inc"

#ifndef DMLK_CHECKED
const struct dmlk_resample_form *dmlk_resample_form;

/* The same as mix_pairs_float32, for contiguous rows. */
static void mix_windows(const block *b, const uint8_t *from, double *row) {
    const int64_t count = b->columns * b->width;
    for (int64_t i = 0; i < count; i += LANES) {
        i = dmlk_resample_form->mix_windows((const float *)from, b->window, b->lane, b->weight, i, count, row);
        mix_pairs_float32(b, from, i, dmlk_min(i + LANES, count), row);
    }
}
#endif

static void mix_singles(state *s, const axis *a, const uint8_t *from, double *row) {
#ifndef DMLK_CHECKED
    if (s->block.is_pairs && s->block.stride == 1 && s->block.width == 1 && dmlk_resample_form != NULL) {
        mix_windows(&s->block, from, row);
        return;
    }
#endif
    mix_float32(s, a, from, row);
}

typedef struct functions {
    void (*mix)(state *s, const axis *a, const uint8_t *from, double *row);
    void (*put)(const rows *of, int64_t columns, int64_t width, uint8_t *to, int64_t stride);
    void (*pick)(const block *b, const uint8_t *from, void *row);
    void (*put_bits)(const void *row, int64_t columns, int64_t width, uint8_t *to, int64_t stride);
} functions;

#define FUNCTIONS(type) {mix_##type, put_##type, pick_##type, put_bits_##type}

static const functions by_type[] = {
    [DMLK_FLOAT16] = FUNCTIONS(float16), [DMLK_FLOAT32] = {mix_singles, put_float32, pick_float32, put_bits_float32}, [DMLK_FLOAT64] = FUNCTIONS(float64),
    [DMLK_INT8] = FUNCTIONS(int8),       [DMLK_INT16] = FUNCTIONS(int16),     [DMLK_INT32] = FUNCTIONS(int32),
    [DMLK_INT64] = FUNCTIONS(int64),     [DMLK_UINT8] = FUNCTIONS(uint8),     [DMLK_UINT16] = FUNCTIONS(uint16),
    [DMLK_UINT32] = FUNCTIONS(uint32),   [DMLK_UINT64] = FUNCTIONS(uint64)};

struct job {
    const dmlk_view *in, *out;
    functions f;
    axis axes[DMLK_MAX_RANK];
    bool nearest;
    bool streams;    /* the output bypasses the caches */
    int64_t element; /* bytes */
    uint32_t x;      /* the axis of the columns */
    uint32_t inner;  /* the axis of the elements of a column; the rank: a column has one element */
    dmlk_view rows;  /* the output at its first column */
    int64_t row_count, width, columns, column_blocks, width_blocks, blocks; /* columns, width: of a block */
    state *states;
};

/* Sets the pairs of taps of a block. */
static void set_pairs(block *b, const axis *a) {
    for (int64_t x = 0; x < b->columns; x++) {
        const span t = b->taps[x];
        const int64_t count = t.end - t.begin;
        double weights[] = {1, 0};
        weights_of(a, b->column + x, t.begin, count, weights);
        for (int64_t c = 0; c < b->width; c++) {
            const int64_t i = x * b->width + c;
            b->low[i] = t.begin * b->stride + c;
            b->step[i] = (count - 1) * b->stride;
            b->weight[i] = weights[1];
        }
    }
}

/* Sets the windows of a block, for contiguous rows of `size` elements. */
static void set_windows(block *b, int64_t size) {
    for (int64_t i = 0; i < b->columns; i += LANES) {
        const int64_t last_window = size - WINDOW - 1, window = dmlk_min(b->low[i], last_window);
        const bool fits = window >= 0 && i + LANES <= b->columns && b->low[i + LANES - 1] - window < WINDOW;
        b->window[i / LANES] = fits ? window : -1;
        for (int64_t k = i; fits && k < i + LANES; k++) {
            b->lane[k] = (int32_t)(b->low[k] - window);
        }
    }
}

static void keep_weights(block *b, const axis *a, int64_t *work) {
    int64_t count = 0;
    for (int64_t x = 0; x < b->columns; x++) {
        b->start[x] = count;
        count += dmlk_min(b->taps[x].end - b->taps[x].begin, KEPT);
    }
    b->is_kept = count <= KEPT;
    for (int64_t x = 0; x < b->columns && b->is_kept && !dmlk_stopped(work, FEW); x++) {
        weights_of(a, b->column + x, b->taps[x].begin, b->taps[x].end - b->taps[x].begin, b->kept + b->start[x]);
    }
}

/* The first axis from d on that is neither the columns' nor their inner axis; the rank: there is none. */
static uint32_t outer_axis(const struct job *job, uint32_t d) {
    while (d < job->in->rank && (d == job->x || d == job->inner)) {
        d++;
    }
    return d;
}

static void begin_block(state *s, int64_t number) {
    const struct job *job = s->job;
    const axis *a = &job->axes[job->x];
    const int64_t columns = job->out->sizes[job->x], width = job->inner < job->in->rank ? job->in->sizes[job->inner] : 1;
    block *b = &s->block;
    b->number = number;
    b->column = number / job->width_blocks * job->columns;
    b->columns = dmlk_min(job->columns, columns - b->column);
    b->first = number % job->width_blocks * job->width;
    b->width = dmlk_min(job->width, width - b->first);
    b->stride = job->in->strides[job->x];
    b->ahead = 0;
    for (uint32_t d = outer_axis(job, 0); d < job->in->rank; d = outer_axis(job, d + 1)) {
        b->ahead = job->in->sizes[d] > 1 ? 2 * job->in->strides[d] : 0; /* (if the size is 1, the stride may be huge) */
    }
    for (int64_t x = 0; x < b->columns; x++) {
        b->taps[x] = taps_of(a, b->column + x);
    }
    b->is_pairs = !a->gradient && !is_stretched(a);
    if (b->is_pairs) {
        set_pairs(b, a);
        set_windows(b, a->to);
    } else {
        keep_weights(b, a, &s->work);
    }
    memset(s->rows, 0, sizeof s->rows);
}

/* --- rows --- */

/* The row of the input at `from`, mixed along the last axis.  Rows with consecutive `key`s are in different slots. */
static const double *mixed_row(state *s, const uint8_t *from, uint64_t key) {
    const uint64_t slot = key % SLOTS;
    if (s->rows[slot] != from) {
        s->rows[slot] = from;
        s->job->f.mix(s, &s->job->axes[s->job->x], from, s->slots[slot]);
    }
    return s->slots[slot];
}

/* The same, but also mixed along axis `first` and the axes after it.  If `last` is not NULL, it may receive two rows
 * that are not mixed yet. */
static const double *mixed(state *s, uint32_t first, const uint8_t *from, uint64_t key, rows *last) {
    const struct job *job = s->job;
    const uint32_t d = outer_axis(job, first);
    if (d == job->in->rank) {
        return mixed_row(s, from, key);
    }
    const line *t = s->lines[d];
    const int64_t begin = t->taps.begin, count = t->taps.end - begin, step = job->in->strides[d] * job->element;
    if (count == 1 && t->weights[0] == 1) {
        return mixed(s, d + 1, from + begin * step, 3 * key + (uint64_t)begin, last);
    }
    if (count == 2 && last != NULL && outer_axis(job, d + 1) == job->in->rank) {
        last->w = t->weights[0];
        last->v = t->weights[1];
        last->other = mixed_row(s, from + (begin + 1) * step, 3 * key + (uint64_t)begin + 1);
        return mixed_row(s, from + begin * step, 3 * key + (uint64_t)begin);
    }
    const int64_t elements = s->block.columns * s->block.width;
    double *sum = s->sums[d], few[FEW];
    const double *weights = count > SHORT ? few : t->weights;
    memset(sum, 0, (size_t)(count == 0 ? elements : 0) * sizeof *sum);
    for (int64_t i = 0; i < count && !s->stopped; i++) {
        if (count > SHORT && i % FEW == 0) {
            weights_of(&job->axes[d], t->element, begin + i, dmlk_min(FEW, count - i), few);
        }
        add_row(sum, mixed(s, d + 1, from + (begin + i) * step, 3 * key + (uint64_t)(begin + i), NULL), weights[i % FEW],
                elements, i == 0);
        s->stopped = s->stopped || dmlk_stopped(&s->work, elements);
    }
    return sum;
}

/* The row of the nearest elements; not computed again if it is the same as before. */
static const double *picked(state *s) {
    const struct job *job = s->job;
    const uint8_t *from = job->in->base;
    for (uint32_t d = outer_axis(job, 0); d < job->in->rank; d = outer_axis(job, d + 1)) {
        from += s->lines[d]->taps.begin * job->in->strides[d] * job->element;
    }
    if (s->rows[0] != from) {
        s->rows[0] = from;
        job->f.pick(&s->block, from + s->block.first * job->element, s->slots[0]);
    }
    return s->slots[0];
}

static void set_lines(state *s, const int64_t *index) {
    const struct job *job = s->job;
    for (uint32_t d = outer_axis(job, 0); d < job->in->rank; d = outer_axis(job, d + 1)) {
        line *t = s->lines[d] = &s->kept_lines[d][index[d] % LINES];
        if (t->element != index[d]) {
            t->element = index[d];
            t->taps = taps_of(&job->axes[d], index[d]);
            weights_of(&job->axes[d], index[d], t->taps.begin, dmlk_min(SHORT, t->taps.end - t->taps.begin), t->weights);
        }
    }
}

static void begin_state(state *s, const struct job *job) {
    s->job = job;
    s->work = 0;
    s->stopped = false;
    s->block.number = -1;
    for (uint32_t d = 0; d < job->out->rank; d++) {
        for (int64_t i = 0; i < dmlk_min(LINES, job->out->sizes[d]); i++) {
            s->kept_lines[d][i].element = -1;
        }
    }
}

/* Computes the block's part of a row. */
static void put_row(state *s, uint8_t *to) {
    const struct job *job = s->job;
    const block *b = &s->block;
    const int64_t step = job->out->strides[job->x], bytes = b->columns * b->width * job->element;
    const bool lines = bytes >= STREAMED || ((uintptr_t)to | (uintptr_t)bytes) % DMLK_LINE == 0;
    const bool streams = job->streams && step == b->width && lines;
    const void *results = s->results;
    if (job->nearest) {
        results = picked(s);
    } else {
        rows last = {0};
        last.row = mixed(s, 0, job->in->base + b->first * job->element, 0, &last);
        job->f.put(&last, b->columns, b->width, streams ? (uint8_t *)s->results : to, step);
    }
    if (streams) {
        dmlk_stream_copy(to, results, (size_t)bytes);
    } else if (job->nearest) {
        job->f.put_bits(results, b->columns, b->width, to, step);
    }
}

static void resample_rows(int64_t begin, int64_t end, int part, void *context) {
    const struct job *job = context;
    const dmlk_view *out = job->out;
    state *s = &job->states[part];
    block *b = &s->block;
    int64_t index[DMLK_MAX_RANK];
    begin_state(s, job);
    dmlk_row_start(&job->rows, job->x, begin % job->row_count, index);
    for (int64_t r = begin; r < end && !s->stopped; r++, dmlk_next_row(&job->rows, job->x, index)) {
        if (b->number != r / job->row_count) {
            begin_block(s, r / job->row_count);
        }
        set_lines(s, index);
        const int64_t step = out->strides[job->x];
        put_row(s, dmlk_element(out, index) + (b->column * step + b->first) * job->element);
        s->stopped = s->stopped || dmlk_stopped(&s->work, b->columns * b->width);
    }
    dmlk_streamed();
}

static bool is_valid(const dmlk_call *call, dmlk_resample *k) {
    bool fits = dmlk_has_views(call, 2, 0) && dmlk_get_constants(call, k, sizeof *k) && k->rank >= 1 &&
                k->rank <= DMLK_MAX_RANK && k->rank == call->views[0].rank && k->rank == call->views[1].rank &&
                k->mode <= DMLK_LINEAR_ANTIALIASED;
    for (uint32_t d = 0; fits && d < k->rank; d++) {
        fits = k->scales[d] > 0;
    }
    return fits;
}

static void set_axes(const dmlk_resample *k, const dmlk_view *in, const dmlk_view *out, axis *axes) {
    for (uint32_t d = 0; d < k->rank; d++) {
        const int64_t from = k->gradient ? in->sizes[d] : out->sizes[d], to = k->gradient ? out->sizes[d] : in->sizes[d];
        axes[d] = (axis){k->mode, k->gradient != 0, k->scales[d], k->outer[d], k->inner[d], from, to};
    }
}

/* The slices of the indices that are read; if there are too many, one slice that contains all of them. */
static uint32_t slices_of(const axis *a, dmlk_slice *slices, bool *has_more) {
    uint32_t n = 0;
    int64_t next = 0, work = 0;
    for (int64_t o = 0; o < a->from && !dmlk_stopped(&work, 1); o++) {
        const span s = reach(a, o);
        for (int64_t i = s.begin > next ? s.begin : next; i < s.end && !dmlk_stopped(&work, 1); i++) {
            dmlk_slice *last = &slices[n - (n > 0)];
            if (n > 0 && (last->count == 1 || i == last->first + last->count * last->step)) {
                last->step = last->count == 1 ? i - last->first : last->step;
                last->count++;
            } else if (n < DMLK_MOST_SLICES) {
                slices[n++] = (dmlk_slice){i, 1, 1};
            } else {
                slices[0].step = 1;
                slices[0].count = reach(a, a->from - 1).end - slices[0].first;
                *has_more = true;
                return 1;
            }
            next = i + 1;
        }
    }
    return n;
}

void dmlk_reads_resample(const dmlk_call *call, uint32_t tensor, dmlk_read_set *reads) {
    dmlk_resample k;
    axis axes[DMLK_MAX_RANK];
    if (tensor != 0 || !is_valid(call, &k) || k.gradient) {
        return;
    }
    set_axes(&k, &call->views[0], &call->views[1], axes);
    for (uint32_t d = 0; d < k.rank; d++) {
        reads->counts[d] = slices_of(&axes[d], reads->slices[d], &reads->has_more);
    }
}

/* Chooses the axis of the columns, and the axis of the elements of a column. */
static void set_blocks(struct job *job) {
    const dmlk_view *in = job->in, *out = job->out;
    job->inner = out->rank;
    for (uint32_t d = 0; d < out->rank && out->rank > 1; d++) {
        const bool is_near = in->strides[d] == 1 && out->strides[d] == 1 && out->sizes[d] > 1;
        job->inner = is_near && is_identity(&job->axes[d]) ? d : job->inner;
    }
    job->x = out->rank - 1 - (job->inner == out->rank - 1);
    job->rows = *out;
    const int64_t width = job->inner < out->rank ? out->sizes[job->inner] : 1;
    if (job->inner < out->rank) {
        job->rows.sizes[job->inner] = 1;
    }
    job->width = dmlk_min(width, BLOCK);
    job->columns = dmlk_min(out->sizes[job->x], BLOCK / job->width);
    job->width_blocks = (width - 1) / job->width + 1;
    job->row_count = dmlk_rows_along(&job->rows, job->x);
    job->blocks = ((out->sizes[job->x] - 1) / job->columns + 1) * job->width_blocks;
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
    job.streams = dmlk_stream_pays(dmlk_view_elements(out), job.element);
    set_axes(&k, in, out, job.axes);
    set_blocks(&job);
    const int64_t count = job.row_count * job.blocks, length = job.columns * job.width;
    const int parts = dmlk_row_parts(count, job.nearest ? length : 4 * length);
    job.states = dmlk_take(parts * (int64_t)sizeof *job.states);
    if (job.states == NULL) {
        return DMLK_OUT_OF_MEMORY;
    }
    dmlk_parallel(count, parts, resample_rows, &job);
    dmlk_give(job.states);
    return DMLK_OK;
}

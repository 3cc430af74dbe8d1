/* convolution_integer: 8-bit cross-correlation with INT32 sums that wrap.
 *
 * For each output position, the inputs that its window covers (a patch) are collected in a row of int16s, with the
 * zero point subtracted and 0 for padding.  Filters are packed in the same order.  An output element is then the dot
 * product of a patch and a filter, a loop that does not depend on strides and padding.  Patches are built for a block
 * of positions at a time and used for all filters of their group. */
#include "convolution_integer.h"

#include <stdlib.h>

#include "convolve.h"

#include "kernel.h"
#include "windows.h"

/* Axes of a tensor, after a missing spatial axis was added with size 1. */
enum axis { N = DMLK_N, CHANNEL = DMLK_CHANNEL, Y = DMLK_Y, X = DMLK_X };

enum { INPUT, INPUT_ZERO, FILTER, FILTER_ZERO, FILTER_SUMS, OUTPUT, VIEWS };

#define PATCHES 2            /* patches that are multiplied at a time ... */
#define FILTERS 4            /* ... by this many filters */
#define MAX_BLOCK 64         /* positions */
#define MAX_PACKED (1 << 24) /* taps of a filter; larger filters are not packed */

struct job {
    dmlk_convolution c; /* arrays by enum axis */
    int64_t filters_per_group;
    int64_t taps;      /* elements of a patch: channels * window */
    int64_t row;       /* int16s of a patch: taps rounded up, padded with 0 */
    int64_t positions; /* N * Y * X of the output */
    int64_t block;     /* positions processed at once; even */
    int64_t blocks;    /* per group */
    int64_t group_rows; /* filters_per_group rounded up to FILTERS */
    int16_t *filters;  /* [groups][group_rows][row] */
    int16_t *patches;  /* [parts][block][row] */
};

/* An element minus its zero point.  Flipping the sign bit and subtracting it again sign-extends an INT8. */
static inline int16_t read(uint8_t bits, int sign_bit, int zero) {
    return (int16_t)((bits ^ sign_bit) - sign_bit - zero);
}

static inline int sign_bit(uint32_t type) { return type == DMLK_INT8 ? 0x80 : 0; }

/* A zero point; its view has one element or one per channel.  Absent: 0. */
static int read_zero(const dmlk_view *view, int64_t channel) {
    if (view->base == NULL) {
        return 0;
    }
    int64_t i = view->sizes[0] == 1 ? 0 : channel * view->strides[0];
    return read(DMLK_LOAD(view->base, i), sign_bit(view->type), 0);
}

/* Reads `count` elements minus the zero point; the loop over contiguous elements is vectorized. */
DMLK_EACH_ISA(read_row, (const uint8_t *from, int64_t stride, int64_t count, int sign, int zero, int16_t *to),
              (from, stride, count, sign, zero, to)) {
    if (stride == 1) {
        for (int64_t i = 0; i < count; i++) {
            to[i] = read(DMLK_LOAD(from, i), sign, zero);
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            to[i] = read(DMLK_LOAD(from, i * stride), sign, zero);
        }
    }
}

/* Packs the filter of one output channel; `taps` iterates over the first filter in the order of a patch. */
static void pack_filter(const struct job *job, const dmlk_iter *taps, int64_t channel, int zero, int16_t *to) {
    const int64_t offset = dmlk_filter_at(&job->c, channel);
    dmlk_cursor cursor;
    dmlk_iter_seek(taps, 0, &cursor);
    for (int64_t done = 0; done < taps->count;) {
        const int64_t count = dmlk_iter_row_left(taps, &cursor);
        read_row(cursor.at[0] + offset, dmlk_iter_row_strides(taps)[0], count, sign_bit(job->c.filter.type), zero,
                 to + done);
        dmlk_iter_advance(taps, &cursor, count);
        done += count;
    }
}

static int pack_filters(const struct job *job) {
    const dmlk_view one = dmlk_view_select(&job->c.filter, 0x3c); /* one filter: all axes but the first two */
    dmlk_iter taps;
    int status = dmlk_iter_init(&taps, DMLK_LOGICAL_ORDER, (const dmlk_view *[]){&one}, 1);
    int64_t work = 0;
    for (int64_t channel = 0;
         status == DMLK_OK && channel < job->c.filter_sizes[N] && !dmlk_stopped(&work, job->taps); channel++) {
        int64_t group = channel / job->filters_per_group, rank = channel % job->filters_per_group;
        int16_t *to = job->filters + (group * job->group_rows + rank) * job->row;
        pack_filter(job, &taps, channel, read_zero(job->c.filter_zero, channel), to);
    }
    return status;
}

/* `count` consecutive output positions along X. */
struct run {
    int64_t n, y, x, count;
};

/* Fills in one tap of the patches of a run.  `from` is the element at x = 0 of the input row that the tap reads. */
static void fill_tap(const struct job *job, const struct run *run, const uint8_t *from, int64_t tap_x, int16_t *to) {
    const int sign = sign_bit(job->c.input.type), zero = job->c.input_zero;
    const int64_t step = job->c.strides[X], stride = job->c.input.strides[X], size = job->c.input.sizes[X];
    int64_t x = run->x * step - job->c.start[X] + tap_x * job->c.dilations[X]; /* of the input */
    for (int64_t i = 0; i < run->count; i++, x += step) {
        if (x >= 0 && x < size) {
            to[i * job->row] = read(DMLK_LOAD(from, x * stride), sign, zero);
        }
    }
}

/* Fills in the patches of a run, one per row of `to`, which must be zeroed. */
static void fill_patches(const struct job *job, int64_t group, const struct run *run, int16_t *to, int64_t *work) {
    const dmlk_view *in = &job->c.input;
    const int64_t *sizes = job->c.filter_sizes, channels = sizes[CHANNEL], window = sizes[Y] * sizes[X];
    for (int64_t c = 0; c < channels && !dmlk_stopped(work, run->count * window); c++) {
        const uint8_t *plane = in->base + run->n * in->strides[N] + (group * channels + c) * in->strides[CHANNEL];
        for (int64_t tap_y = 0; tap_y < sizes[Y]; tap_y++) {
            const int64_t y = run->y * job->c.strides[Y] - job->c.start[Y] + tap_y * job->c.dilations[Y];
            if (y < 0 || y >= in->sizes[Y]) {
                to += sizes[X];
                continue;
            }
            for (int64_t tap_x = 0; tap_x < sizes[X]; tap_x++) {
                fill_tap(job, run, plane + y * in->strides[Y], tap_x, to++);
            }
        }
    }
}

/* sums[p][f] = the dot product of patch p and filter f; unsigned, because it may wrap. */
DMLK_EACH_ISA(multiply, (const int16_t *restrict patches, const int16_t *restrict filters, int64_t row,
                         uint32_t (*restrict sums)[FILTERS]),
              (patches, filters, row, sums)) {
    const int16_t *p0 = patches, *p1 = patches + row;
    const int16_t *f0 = filters, *f1 = filters + row, *f2 = filters + 2 * row, *f3 = filters + 3 * row;
    uint32_t s00 = 0, s01 = 0, s02 = 0, s03 = 0, s10 = 0, s11 = 0, s12 = 0, s13 = 0;
    for (int64_t i = 0; i < row; i++) {
        s00 += (uint32_t)(p0[i] * f0[i]);
        s01 += (uint32_t)(p0[i] * f1[i]);
        s02 += (uint32_t)(p0[i] * f2[i]);
        s03 += (uint32_t)(p0[i] * f3[i]);
        s10 += (uint32_t)(p1[i] * f0[i]);
        s11 += (uint32_t)(p1[i] * f1[i]);
        s12 += (uint32_t)(p1[i] * f2[i]);
        s13 += (uint32_t)(p1[i] * f3[i]);
    }
    memcpy(sums[0], (uint32_t[]){s00, s01, s02, s03}, sizeof sums[0]);
    memcpy(sums[1], (uint32_t[]){s10, s11, s12, s13}, sizeof sums[1]);
}

/* Multiplies `count` patches by all filters of a group; patch p belongs to the output element at[p] of channel 0. */
static void multiply_block(const struct job *job, int64_t group, const int16_t *patches, int64_t count,
                           const int64_t *at, int64_t *work) {
    const int16_t *filters = job->filters + group * job->group_rows * job->row;
    const int64_t stride = job->c.output.strides[CHANNEL], first_channel = group * job->filters_per_group;
    uint32_t *out = (uint32_t *)job->c.output.base;
    for (int64_t f = 0; f < job->filters_per_group && !dmlk_stopped(work, count * job->row); f += FILTERS) {
        const int64_t channels = dmlk_min(FILTERS, job->filters_per_group - f);
        for (int64_t p = 0; p < count; p += PATCHES) {
            uint32_t sums[PATCHES][FILTERS];
            multiply(patches + p * job->row, filters + f * job->row, job->row, sums);
            for (int64_t i = 0; i < dmlk_min(PATCHES, count - p); i++) {
                for (int64_t c = 0; c < channels; c++) {
                    DMLK_STORE(out, at[p + i] + (first_channel + f + c) * stride, sums[i][c]);
                }
            }
        }
    }
}

/* Computes positions first .. first + count - 1 (numbered over N, Y and X) of one group's output. */
static void run_block(const struct job *job, int64_t group, int64_t first, int64_t count, int16_t *patches,
                      int64_t *work) {
    const dmlk_view *out = &job->c.output;
    int64_t at[MAX_BLOCK];
    memset(patches, 0, (size_t)(job->block * job->row) * sizeof *patches);
    for (int64_t done = 0; done < count;) {
        const int64_t position = first + done, line = position / out->sizes[X];
        struct run run = {.n = line / out->sizes[Y], .y = line % out->sizes[Y], .x = position % out->sizes[X]};
        run.count = dmlk_min(count - done, out->sizes[X] - run.x);
        fill_patches(job, group, &run, patches + done * job->row, work);
        for (int64_t i = 0; i < run.count; i++) {
            at[done++] = run.n * out->strides[N] + run.y * out->strides[Y] + (run.x + i) * out->strides[X];
        }
    }
    multiply_block(job, group, patches, count, at, work);
}

static void convolution_part(int64_t begin, int64_t end, int part, void *context) {
    const struct job *job = context;
    int16_t *patches = job->patches + part * job->block * job->row;
    int64_t work = 0;
    for (int64_t item = begin; item < end && !dmlk_stopped(&work, 0); item++) {
        const int64_t first = item % job->blocks * job->block;
        run_block(job, item / job->blocks, first, dmlk_min(job->block, job->positions - first), patches, &work);
    }
}

/* --- filters that are too large to be packed: most of their taps are in the padding, or are the same elements in
 * memory --- */

/* Finds the taps of an axis that are inside the input, for one output; *from is the position of tap 0. */
static void find_inside(const dmlk_convolution *c, enum axis axis, int64_t output, int64_t *from, int64_t *begin,
                        int64_t *end) {
    const int64_t dilation = c->dilations[axis], size = c->input.sizes[axis];
    *from = output * c->strides[axis] - c->start[axis];
    *begin = *from >= 0 ? 0 : dmlk_ceil_div(-*from, dilation);
    *end = *from >= size ? 0 : dmlk_min(c->filter_sizes[axis], (size - 1 - *from) / dilation + 1);
}

/* Computes one output element; returns early when stopped. */
static uint32_t add_inside(const struct job *job, int64_t n, int64_t channel, int64_t y, int64_t x, int64_t *work) {
    const dmlk_convolution *c = &job->c;
    const dmlk_view *in = &c->input, *f = &c->filter;
    const int64_t channels = c->filter_sizes[CHANNEL], first = channel / job->filters_per_group * channels;
    const int zero = read_zero(c->filter_zero, channel);
    int64_t from_y, begin_y, end_y, from_x, begin_x, end_x;
    find_inside(c, Y, y, &from_y, &begin_y, &end_y);
    find_inside(c, X, x, &from_x, &begin_x, &end_x);
    if (begin_y >= end_y || begin_x >= end_x) {
        return 0;
    }
    uint32_t sum = 0;
    for (int64_t k = 0; k < channels; k++) {
        const uint8_t *plane = in->base + n * in->strides[N] + (first + k) * in->strides[CHANNEL];
        const uint8_t *filter = f->base + dmlk_filter_at(c, channel) + k / f->sizes[3] * f->strides[2] +
                                k % f->sizes[3] * f->strides[3];
        for (int64_t ty = begin_y; ty < end_y && !dmlk_stopped(work, end_x - begin_x); ty++) {
            const int64_t row = (from_y + ty * c->dilations[Y]) * in->strides[Y];
            for (int64_t tx = begin_x; tx < end_x; tx++) {
                const int64_t at = row + (from_x + tx * c->dilations[X]) * in->strides[X];
                const int a = read(DMLK_LOAD(plane, at), sign_bit(in->type), c->input_zero);
                const int b = read(DMLK_LOAD(filter, ty * f->strides[4] + tx * f->strides[5]), sign_bit(f->type), zero);
                sum += (uint32_t)(a * b);
            }
        }
    }
    return sum;
}

/* Items: output elements in logical order. */
static void inside_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct job *job = context;
    const dmlk_view *out = &job->c.output;
    int64_t work = 0;
    for (int64_t item = begin; item < end && !dmlk_stopped(&work, 1); item++) {
        const int64_t x = item % out->sizes[X], line = item / out->sizes[X], y = line % out->sizes[Y];
        const int64_t plane = line / out->sizes[Y], channel = plane % out->sizes[CHANNEL], n = plane / out->sizes[CHANNEL];
        const uint32_t sum = add_inside(job, n, channel, y, x, &work);
        DMLK_STORE((uint32_t *)out->base, n * out->strides[N] + channel * out->strides[CHANNEL] + y * out->strides[Y] +
                   x * out->strides[X], sum);
    }
}

static int run_inside(struct job *job) {
    const int64_t outputs = dmlk_view_elements(&job->c.output);
    dmlk_parallel(outputs, dmlk_parts(outputs, 1), inside_part, job);
    return DMLK_OK;
}

/* The view with rank 4; a missing Y axis gets size 1. */
static dmlk_view with_y_axis(const dmlk_view *view) {
    dmlk_view result = *view;
    if (view->rank == 3) {
        result.rank = 4;
        result.sizes[X] = view->sizes[Y];
        result.strides[X] = view->strides[Y];
        result.sizes[Y] = 1;
        result.strides[Y] = 0;
    }
    return result;
}

/* Sets the filter's view with rank 6: blocks of filters, filters in a block, blocks of channels, channels in a block,
 * Y, X. False: the view has another rank, or too many elements. */
static bool take_filter(dmlk_convolution *c, const dmlk_view *view, uint32_t spatial) {
    dmlk_view *f = &c->filter;
    const bool in_blocks = view->rank == spatial + 4;
    if (!in_blocks && view->rank != spatial + 2) {
        return false;
    }
    *f = *view;
    f->rank = 6;
    for (uint32_t axis = 0; axis < 6; axis++) {
        f->sizes[axis] = 1;
        f->strides[axis] = 0;
    }
    for (uint32_t d = 0; d < view->rank; d++) {
        const bool is_spatial = d >= view->rank - spatial;
        const uint32_t axis = is_spatial ? d + 6 - view->rank : in_blocks ? d : 2 * d;
        f->sizes[axis] = view->sizes[d];
        f->strides[axis] = view->strides[d];
    }
    for (int k = 0; k < 2; k++) {
        if (f->sizes[2 * k] < 1 || f->sizes[2 * k + 1] < 1 || f->sizes[2 * k] > UINT32_MAX / f->sizes[2 * k + 1]) {
            return false;
        }
        c->filter_sizes[k] = f->sizes[2 * k] * f->sizes[2 * k + 1];
        c->filter_sizes[Y + k] = f->sizes[4 + k];
    }
    return true;
}

/* Sets the sums with rank 3: filters, Y, X.  False: they do not fit the filter; absent ones do. */
static bool take_sums(dmlk_convolution *c, const dmlk_view *view, uint32_t spatial) {
    dmlk_view *sums = &c->filter_sums;
    if (view->base == NULL) {
        return true;
    }
    *sums = *view;
    if (view->rank == 2 && spatial == 1) {
        sums->rank = 3;
        sums->sizes[2] = view->sizes[1];
        sums->strides[2] = view->strides[1];
        sums->sizes[1] = 1;
        sums->strides[1] = 0;
    }
    return sums->rank == 3 && sums->sizes[0] == c->filter_sizes[N] && sums->sizes[1] == c->filter_sizes[Y] &&
           sums->sizes[2] == c->filter_sizes[X];
}

/* Cuts off the part of the input that no window reaches; false: the windows are not valid, or reach too far. */
static bool set_axis(dmlk_convolution *c, enum axis axis) {
    const int64_t stride = c->strides[axis];
    const int64_t reach = dmlk_windows_reach(c->output.sizes[axis], c->filter_sizes[axis], stride, c->dilations[axis]);
    c->input.sizes[axis] = dmlk_met_by_windows(c->input.sizes[axis], reach - 1 - c->start[axis], stride);
    return reach != 0;
}

static bool zero_point_fits(const dmlk_view *zero_point, int64_t most) {
    return zero_point->base == NULL ||
           (zero_point->rank == 1 && (zero_point->sizes[0] == 1 || zero_point->sizes[0] == most));
}

/* Sets the job from views and constants; false if they do not match. */
static bool set_up(struct job *job, const dmlk_convolution_integer *k, const dmlk_view *views) {
    const dmlk_view *in = &job->c.input, *out = &job->c.output;
    const int64_t *sizes = job->c.filter_sizes;
    const uint32_t rank = k->spatial + 2;
    if (k->spatial < 1 || k->spatial > 2 || k->groups < 1 || views[INPUT].rank != rank || views[OUTPUT].rank != rank ||
        !take_filter(&job->c, &views[FILTER], k->spatial) || !take_sums(&job->c, &views[FILTER_SUMS], k->spatial)) {
        return false;
    }
    job->c.input = with_y_axis(&views[INPUT]);
    job->c.output = with_y_axis(&views[OUTPUT]);
    job->c.groups = k->groups;
    job->c.strides[Y] = job->c.dilations[Y] = 1;
    for (uint32_t d = 0; d < k->spatial; d++) {
        const uint32_t axis = d + 4 - k->spatial;
        job->c.strides[axis] = k->strides[d];
        job->c.dilations[axis] = k->dilations[d];
        job->c.start[axis] = k->start_padding[d];
    }
    job->filters_per_group = sizes[N] / job->c.groups;
    return sizes[N] % job->c.groups == 0 && in->sizes[CHANNEL] == sizes[CHANNEL] * job->c.groups &&
           out->sizes[N] == in->sizes[N] && out->sizes[CHANNEL] == sizes[N] &&
           set_axis(&job->c, Y) && set_axis(&job->c, X) &&
           zero_point_fits(&views[INPUT_ZERO], 1) && zero_point_fits(&views[FILTER_ZERO], sizes[N]);
}

static bool types_fit(const dmlk_view *views) {
    for (int k = INPUT; k <= FILTER; k += 2) { /* each followed by its zero point */
        const uint32_t type = views[k].type;
        if ((type != DMLK_INT8 && type != DMLK_UINT8) || (views[k + 1].base != NULL && views[k + 1].type != type)) {
            return false;
        }
    }
    return views[OUTPUT].type == DMLK_INT32 && (views[FILTER_SUMS].base == NULL || views[FILTER_SUMS].type == DMLK_INT32);
}

/* Sizes and allocates the working memory. */
static int allocate(struct job *job, int *parts) {
    const int64_t *sizes = job->c.filter_sizes;
    const dmlk_view *out = &job->c.output;
    if (dmlk_view_elements(&job->c.filter) > INT64_C(1) << 40) {
        return DMLK_OUT_OF_MEMORY; /* so that the products below cannot overflow */
    }
    job->taps = sizes[CHANNEL] * sizes[Y] * sizes[X];
    job->row = (job->taps + 15) / 16 * 16;
    job->group_rows = (job->filters_per_group + FILTERS - 1) / FILTERS * FILTERS;
    job->positions = out->sizes[N] * out->sizes[Y] * out->sizes[X];
    const int64_t fit_in_cache = 32768 / job->row / PATCHES * PATCHES;
    job->block = fit_in_cache < 8 ? 8 : dmlk_min(fit_in_cache, MAX_BLOCK);
    if (job->c.groups == 1 && job->positions <= job->block) { /* one block for each of two threads */
        job->block = (job->positions + 3) / 4 * 2;
    }
    job->blocks = (job->positions + job->block - 1) / job->block;
    const int64_t multiplications = job->block * job->taps * job->filters_per_group;
    *parts = dmlk_parts(job->blocks * job->c.groups, 1000000 / multiplications);
    const size_t filter_bytes = (size_t)(job->c.groups * job->group_rows * job->row) * sizeof *job->filters;
    const size_t patch_bytes = (size_t)(*parts * job->block * job->row) * sizeof *job->patches;
    job->filters = calloc(filter_bytes, 1);
    job->patches = malloc(patch_bytes);
    return job->filters != NULL && job->patches != NULL ? DMLK_OK : DMLK_OUT_OF_MEMORY;
}

/* --- the elements of the input that are read --- */

void dmlk_reads_convolution_integer(const dmlk_call *call, uint32_t tensor, dmlk_read_set *reads) {
    dmlk_convolution_integer k;
    struct job job = {0};
    if (tensor != INPUT || call->view_count != VIEWS || !dmlk_get_constants(call, &k, sizeof k) ||
        !set_up(&job, &k, call->views)) {
        return;
    }
    for (uint32_t d = 0; d < k.spatial; d++) {
        const uint32_t axis = d + 4 - k.spatial;
        const dmlk_window_axis moved = {.input = job.c.input.sizes[axis],
                                        .output = job.c.output.sizes[axis],
                                        .window = job.c.filter_sizes[axis],
                                        .stride = job.c.strides[axis],
                                        .dilation = job.c.dilations[axis],
                                        .start = job.c.start[axis]};
        reads->counts[2 + d] = dmlk_window_slices(&moved, reads->slices[2 + d], &reads->has_more);
    }
}

#ifndef DMLK_CHECKED
/* Runs the convolution together with the packets that follow it; false: that is another one's task. */
static bool convolve_finished(const dmlk_call *call, dmlk_convolution c) {
    dmlk_sums_finish finish;
    const uint32_t count = dmlk_find_sums_finish(call->followers, &finish);
    if (count == 0) {
        return false;
    }
    c.finish = &finish;
    if (finish.scaling != NULL) {
        c.output = with_y_axis(finish.scaling->out);
    }
    if (!dmlk_convolve_bytes(&c)) {
        return false;
    }
    call->followers->done = count;
    return true;
}
#endif

int dmlk_run_convolution_integer(const dmlk_call *call) {
    dmlk_convolution_integer k;
    struct job job = {0};
    if (!dmlk_has_views(call, VIEWS, 1 << INPUT_ZERO | 1 << FILTER_ZERO | 1 << FILTER_SUMS) || !dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    if (!types_fit(call->views)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    if (!set_up(&job, &k, call->views)) {
        return DMLK_BAD_PACKET;
    }
    job.c.input_zero = read_zero(&call->views[INPUT_ZERO], 0);
    job.c.filter_zero = &call->views[FILTER_ZERO];
    const int64_t *sizes = job.c.filter_sizes;
    if ((double)sizes[CHANNEL] * (double)sizes[Y] * (double)sizes[X] > MAX_PACKED) {
        return run_inside(&job);
    }
#ifndef DMLK_CHECKED
    if (convolve_finished(call, job.c) || dmlk_convolve_bytes(&job.c)) {
        return DMLK_OK; /* the tuned kernel gives the same bits */
    }
#endif
    int parts;
    int status = allocate(&job, &parts);
    if (status == DMLK_OK) {
        status = pack_filters(&job);
    }
    if (status == DMLK_OUT_OF_MEMORY) {
        status = run_inside(&job);
    } else if (status == DMLK_OK) {
        dmlk_parallel(job.blocks * job.c.groups, parts, convolution_part, &job);
    }
    free(job.filters);
    free(job.patches);
    return status;
}

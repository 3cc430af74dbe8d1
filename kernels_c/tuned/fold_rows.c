/* fold_rows.c - see fold_rows.h.  The sums of 16 elements of an image stay in registers while all places of the
 * window are added; fold.c instead adds one place after the other to a band of sums in memory. */
#include "fold_rows.h"

#include "cpu.h"
#include "fold_piece.h"

#define MAX_PLACES DMLK_FOLD_MOST
#define LANES DMLK_FOLD_LANES
#define NEAR (1 << 16) /* elements that fit a second-level cache */

const struct dmlk_fold_rows_form *dmlk_fold_rows_form;

typedef double sums __attribute__((vector_size(32), aligned(8)));
typedef float floats __attribute__((vector_size(16), aligned(4), may_alias));

struct job {
    const dmlk_columns *c;
    const dmlk_view *in, *out;
    int64_t place_step;               /* columns from a place of the window to the next */
    int64_t row_steps[DMLK_MAX_RANK]; /* columns from a block to the next */
    int64_t shifts[MAX_PLACES];             /* of each place along the last axis */
    int64_t begins[MAX_PLACES], ends[MAX_PLACES]; /* elements of a row that blocks add to at this place */
    int64_t begin, end;               /* elements of a row that blocks add to at all places */
};

static inline __attribute__((always_inline)) void add_lanes(const dmlk_fold_taps *taps, int64_t at, double *to) {
    sums row[LANES / 4] = {{0}};
    for (int64_t t = 0; t < taps->count; t++) {
        __builtin_prefetch(taps->from[t] + at + taps->ahead, 0, 2);
        for (int k = 0; k < LANES / 4; k++) {
            row[k] += __builtin_convertvector(*(const floats *)(taps->from[t] + at + 4 * k), sums);
        }
    }
    memcpy(to, row, sizeof row);
}

DMLK_EACH_ISA(sum_piece, (DMLK_FOLD_PARAMETERS), (DMLK_FOLD_ARGUMENTS)) { dmlk_sum_piece(add_lanes, DMLK_FOLD_ARGUMENTS); }

/* The taps of the row at `index` of the image. */
static void find_taps(const struct job *job, const int64_t *index, dmlk_fold_taps *taps) {
    const dmlk_fold *k = &job->c->k;
    const uint32_t last = k->spatial - 1, wide = k->window[last];
    const float *plane = (const float *)job->in->base + index[0] * job->in->strides[0] +
                         index[1] * job->place_step * job->c->places;
    uint32_t place[6] = {0};
    taps->count = 0;
    for (int64_t number = 0; number < job->c->places; number += wide) {
        const float *from = plane + number * job->place_step;
        bool is_inside = true;
        for (uint32_t d = 0; d < last; d++) {
            const int64_t at = index[DMLK_IMAGE_AXES + d] + k->start_padding[d] - (int64_t)place[d] * k->dilations[d];
            const int64_t block = k->strides[d] == 1 ? at : at / k->strides[d];
            is_inside = is_inside && at >= 0 && block < k->blocks[d] && block * k->strides[d] == at;
            from += block * job->row_steps[d];
        }
        for (uint32_t w = 0; is_inside && w < wide; w++) {
            taps->from[taps->count] = from + w * job->place_step - job->shifts[w];
            taps->begins[taps->count] = job->begins[w];
            taps->ends[taps->count++] = job->ends[w];
        }
        place[last] = wide - 1; /* to the next place along the earlier axes */
        dmlk_next_window_place(job->c, place);
    }
}

static void sum_rows(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct job *job = context;
    const uint32_t last = job->out->rank - 1;
    const int64_t width = job->out->sizes[last];
    int64_t work = 0, index[DMLK_MAX_RANK];
    dmlk_fold_taps taps;
    void (*const sum)(DMLK_FOLD_PARAMETERS) = dmlk_fold_rows_form != NULL ? dmlk_fold_rows_form->sum_piece : sum_piece;
    taps.ahead = dmlk_min(job->place_step * job->c->places, NEAR); /* to the next channel */
    dmlk_row_start(job->out, last, begin, index);
    for (int64_t row = begin; row < end && !dmlk_stopped(&work, width * job->c->places); row++) {
        find_taps(job, index, &taps);
        float *out = (float *)dmlk_element(job->out, index);
        for (int64_t from = 0; from < width; from += DMLK_FOLD_PIECE) {
            sum(&taps, job->begin, job->end, from, dmlk_min(from + DMLK_FOLD_PIECE, width), out);
        }
        dmlk_next_row(job->out, last, index);
    }
}

bool dmlk_fold_rows(const dmlk_columns *c, const dmlk_view *columns, const dmlk_view *image) {
    const uint32_t last = c->k.spatial - 1;
    const int64_t width = image->sizes[image->rank - 1], *strides = &columns->strides[columns->rank - 3];
    if (image->type != DMLK_FLOAT32 || c->places > MAX_PLACES || c->k.strides[last] != 1 || strides[2] != 1 ||
        image->strides[image->rank - 1] != 1) {
        return false;
    }
    const dmlk_view in = dmlk_columns_of_place(c, columns, 0);
    struct job job = {.c = c, .in = &in, .out = image, .place_step = strides[1], .begin = 0, .end = width};
    for (uint32_t d = 0; d < last; d++) {
        job.row_steps[d] = in.strides[DMLK_IMAGE_AXES + d];
    }
    for (uint32_t w = 0; w < c->k.window[last]; w++) {
        int64_t first, count;
        const int64_t position = dmlk_blocks_inside(c, last, width, w, &first, &count);
        job.shifts[w] = position - first;
        job.begins[w] = position;
        job.ends[w] = position + count;
        job.begin = position > job.begin ? position : job.begin;
        job.end = dmlk_min(job.end, job.ends[w]);
    }
    if (job.end - job.begin < LANES) {
        return false;
    }
    const int64_t rows = dmlk_rows_along(image, image->rank - 1);
    dmlk_parallel(rows, dmlk_row_parts(rows, width * c->places), sum_rows, &job);
    return true;
}

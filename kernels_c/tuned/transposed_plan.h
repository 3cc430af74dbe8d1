/* transposed_plan.h - how a convolution whose axes have a step of 1, and perhaps a spread, is computed: see
 * convolve_transposed.c. */
#ifndef DMLK_TRANSPOSED_PLAN_H
#define DMLK_TRANSPOSED_PLAN_H

#include <stdatomic.h>

#include "convolve_float.h"
#include "staged_input.h"

/* Outputs o, o + spread, ... of an axis meet taps first, first + step, ... only: number j of these taps meets number i of
 * these outputs at place i + j * tap + place of the input.  Taps that meet none inside of it are left out. */
typedef struct dmlk_phase {
    int64_t outputs;
    int64_t first, step, taps; /* taps: their number, perhaps 0 */
    int64_t place, tap;
} dmlk_phase;

typedef struct dmlk_transposed_axis {
    int64_t phases, periods;
    int64_t box, boxes; /* periods at a time */
    int64_t low, reach; /* the first place that period 0 meets, and how many more it meets */
    dmlk_phase *phase;
} dmlk_transposed_axis;

typedef struct dmlk_transposed_plan {
    dmlk_float_convolution c; /* the spread of an axis may be another one, with the same results */
    dmlk_transposed_axis axes[DMLK_SPATIAL];
    int64_t groups, channels, filters; /* of a group */
    int64_t width, panels, parts;      /* filters of a panel; panels of a group; parts that panels are split into */
    int64_t taps, most_taps;           /* of a filter and a channel; of a phase */
    int64_t piece;                     /* channels at a time */
    int64_t phases;
    bool lanes_are_positions; /* of a tile; otherwise its lanes are filters */
    int64_t pitch;  /* lanes of a phase and a filter, if they are positions */
    bool in_place;  /* elements of a block of filters are lines of floats, which need not be lined up */
    bool is_contiguous; /* filters of a channel */
    int64_t line_step, block_step, channel_step; /* of lines in place or lined up: from tap to tap, block to block ... */
    bool has_one_place; /* each output meets at most the same one, by one tap; lanes are filters */
    bool by_filter;     /* then: filters are contiguous floats, and multiplied as they lie */
    bool pads;      /* some taps meet places outside of the input */
    dmlk_stage stage;
    int64_t *step_at; /* of each phase: [piece][taps], places from that of the first tap */
    int64_t *line_at; /* of each phase: [taps], elements of the filter from its first one */
    atomic_bool failed;
} dmlk_transposed_plan;

/* false: not applicable, or out of memory.  It must be freed in both cases. */
bool dmlk_plan_transposed(dmlk_transposed_plan *p, const dmlk_float_convolution *c);
void dmlk_free_transposed(dmlk_transposed_plan *p);

/* Outputs of a box. */
static inline int64_t dmlk_box_outputs(const dmlk_transposed_plan *p) {
    int64_t outputs = 1;
    for (int k = 0; k < DMLK_SPATIAL; k++) {
        outputs *= p->axes[k].box * p->axes[k].phases;
    }
    return outputs;
}

/* The taps of a phase, and along each axis. */
static inline int64_t dmlk_taps_of(const dmlk_transposed_plan *p, int64_t phase, const dmlk_phase *along[DMLK_SPATIAL]) {
    const int64_t y = p->axes[1].phases, x = p->axes[2].phases;
    const int64_t each[DMLK_SPATIAL] = {phase / x / y, phase / x % y, phase % x};
    int64_t taps = 1;
    for (int k = 0; k < DMLK_SPATIAL; k++) {
        along[k] = &p->axes[k].phase[each[k]];
        taps *= along[k]->taps;
    }
    return taps;
}

/* Places of the stage from the first position of a box to the last one. */
static inline int64_t dmlk_box_lanes(const dmlk_transposed_plan *p, const int64_t *box) {
    const int64_t *strides = p->stage.view.strides;
    return (box[0] - 1) * strides[2] + (box[1] - 1) * strides[3] + (box[2] - 1) * strides[4] + 1;
}

#endif

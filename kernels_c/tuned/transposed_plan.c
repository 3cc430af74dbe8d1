/* transposed_plan.c - see transposed_plan.h. */
#include "transposed_plan.h"

#include "kernel.h"
#include "microkernel_f32.h"
#include "scratch.h"
#include "slices.h"
#include "windows.h"

enum { N, CHANNEL, Z, Y, X };
enum { GROUP, FILTER, OF_GROUP, WINDOW };

#define FEW_FILTERS 6         /* in a group: as lanes, they would leave too much of a tile idle */
#define DEPTH 256             /* lines at a time: they fit into a first-level cache */
#define MOST_LINES 2048       /* of all phases, where they are transposed at once */
#define MOST_TAPS (1 << 16)   /* of a filter and a channel */
#define MOST_PHASES 4096
#define MOST_STEPS (1 << 20)  /* of all phases: numbers of a table */
#define MOST_SEPARATE 12      /* outputs of an axis with one place */
#define MOST_SUMS (1 << 15)   /* of a box, and a block of filters */
#define STAGED (1 << 17)      /* floats of a box: a second-level cache holds them */
#define LEAST_STAGED 128      /* places of a box: with fewer, packing filters takes too long */
#define MOST_STAGED (1 << 22) /* floats of a box */

/* --- phases --- */

/* Leaves out the taps that meet no place of the input. */
static void trim(const dmlk_taps_axis *axis, dmlk_phase *p) {
    const int64_t tap = p->tap < 0 ? -p->tap : p->tap;
    const int64_t low = 1 - p->outputs - p->place, high = axis->input - 1 - p->place; /* of j * tap */
    const int64_t from = p->tap < 0 ? -high : low, to = p->tap < 0 ? -low : high;
    const int64_t skipped = from > 0 ? dmlk_ceil_div(from, tap) : 0;
    const int64_t end = to < 0 ? 0 : dmlk_min(p->taps, to / tap + 1);
    p->first += skipped * p->step;
    p->place += skipped * p->tap;
    p->taps = dmlk_max(0, end - skipped);
}

/* The phases of an axis.  (Its step is 1.) */
static void find_phases(const dmlk_taps_axis *axis, dmlk_phase *phases, int64_t count) {
    const int64_t spread = axis->spread, apart = axis->tap < 0 ? -axis->tap : axis->tap;
    const int64_t q = spread / (int64_t)dmlk_gcd((uint64_t)spread, (uint64_t)apart);
    for (int64_t o = 0; o < count; o++) {
        phases[o] = (dmlk_phase){.outputs = (axis->output - o + spread - 1) / spread, .step = q, .tap = q * axis->tap / spread};
    }
    for (int64_t t = 0; t < dmlk_min(q, axis->window); t++) { /* the first tap of a phase */
        const int64_t at = t * axis->tap + axis->origin, rest = at % spread, o = rest > 0 ? spread - rest : -rest;
        if (o < count) {
            dmlk_phase *phase = &phases[o];
            phase->first = t;
            phase->taps = (axis->window - t + q - 1) / q;
            phase->place = (o + at) / spread;
            trim(axis, phase);
        }
    }
}

/* --- the plan --- */

/* Whether boxes are small enough, with `count` periods along axis k. */
static bool fits(dmlk_transposed_plan *p, int k, int64_t count) {
    const int64_t before = p->axes[k].box;
    p->axes[k].box = count;
    double staged = (double)p->channels;
    for (int a = 0; a < DMLK_SPATIAL; a++) {
        staged *= (double)(p->axes[a].box + p->axes[a].reach);
    }
    const int64_t lanes = p->lanes_are_positions ? p->filters : DMLK_F32_BLOCK;
    const bool fit = dmlk_box_outputs(p) * lanes <= MOST_SUMS && staged <= (double)dmlk_max(STAGED, p->channels * LEAST_STAGED);
    p->axes[k].box = before;
    return fit;
}

/* Boxes as large as they fit, of about the same size; first along the last axis. */
static void plan_boxes(dmlk_transposed_plan *p) {
    for (int k = 0; k < DMLK_SPATIAL; k++) {
        p->axes[k].box = 1;
    }
    for (int k = DMLK_SPATIAL - 1; k >= 0; k--) {
        dmlk_transposed_axis *axis = &p->axes[k];
        int64_t most = 1;
        while (most < axis->periods && fits(p, k, most + 1)) {
            most++;
        }
        axis->boxes = (axis->periods + most - 1) / most;
        axis->box = (axis->periods + axis->boxes - 1) / axis->boxes;
        axis->boxes = (axis->periods + axis->box - 1) / axis->box;
    }
}

/* The phases of axis k. */
static void plan_axis(dmlk_transposed_plan *p, int k) {
    const dmlk_taps_axis *along = &p->c.axes[k];
    dmlk_transposed_axis *axis = &p->axes[k];
    int64_t high = INT64_MIN;
    axis->low = INT64_MAX;
    find_phases(along, axis->phase, axis->phases);
    for (int64_t o = 0; o < axis->phases; o++) {
        const dmlk_phase phase = axis->phase[o];
        const int64_t last = phase.place + (phase.taps - 1) * phase.tap;
        if (phase.taps > 0) {
            axis->low = dmlk_min(axis->low, dmlk_min(phase.place, last));
            high = dmlk_max(high, dmlk_max(phase.place, last));
        }
    }
    if (high == INT64_MIN) {
        axis->low = high = 0;
    }
    axis->reach = high - axis->low;
    p->pads = p->pads || axis->low < 0 || high + axis->periods > along->input;
}

static void fill_tables(dmlk_transposed_plan *p) {
    const int64_t *steps = p->stage.view.strides, *strides = p->c.filter.strides;
    for (int64_t i = 0; i < p->phases; i++) {
        const dmlk_phase *along[DMLK_SPATIAL];
        const int64_t taps = dmlk_taps_of(p, i, along);
        int64_t *step_at = p->step_at + i * p->piece * p->most_taps, *line_at = p->line_at + i * p->most_taps;
        for (int64_t t = 0; t < taps; t++) {
            const int64_t y = along[1]->taps, x = along[2]->taps, tap[DMLK_SPATIAL] = {t / x / y, t / x % y, t % x};
            step_at[t] = line_at[t] = 0;
            for (int k = 0; k < DMLK_SPATIAL; k++) {
                step_at[t] += tap[k] * along[k]->tap * steps[Z + k];
                line_at[t] += (along[k]->first + tap[k] * along[k]->step) * strides[WINDOW + k];
            }
            if (!p->in_place) { /* they are lined up, one after the other */
                const int64_t *sizes = p->c.filter.sizes + WINDOW;
                line_at[t] = 0;
                for (int k = 0; k < DMLK_SPATIAL; k++) {
                    line_at[t] = line_at[t] * sizes[k] + along[k]->first + tap[k] * along[k]->step;
                }
                line_at[t] *= p->line_step;
            }
        }
        for (int64_t t = taps; t < p->piece * taps; t++) {
            step_at[t] = step_at[t - taps] + steps[CHANNEL];
        }
    }
}

/* Whether elements of a block of filters are lines that follow each other. */
static bool are_lines(const dmlk_float_convolution *c) {
    const int64_t *sizes = c->filter.sizes, *strides = c->filter.strides;
    int64_t step = DMLK_F32_BLOCK;
    bool follow = c->block == DMLK_F32_BLOCK && strides[FILTER] == 1;
    for (int axis = WINDOW + 2; axis >= OF_GROUP; axis--) {
        follow = follow && (sizes[axis] == 1 || strides[axis] == step);
        step *= sizes[axis];
    }
    return follow;
}

/* Whether the filters of a channel follow each other, element by element. */
static bool are_contiguous(const dmlk_view *filter) {
    int64_t step = 1;
    bool follow = true;
    for (int axis = WINDOW + 2; axis >= WINDOW; axis--) {
        follow = follow && (filter->sizes[axis] == 1 || filter->strides[axis] == step);
        step *= filter->sizes[axis];
    }
    return follow && (filter->sizes[FILTER] == 1 || filter->strides[FILTER] == step);
}

/* false: not applicable. */
static bool plan_sizes(dmlk_transposed_plan *p) {
    const dmlk_float_convolution *c = &p->c;
    const dmlk_view *filter = &c->filter;
    p->groups = filter->sizes[GROUP];
    p->channels = filter->sizes[OF_GROUP];
    p->filters = filter->sizes[FILTER];
    p->lanes_are_positions = p->filters <= FEW_FILTERS;
    p->width = p->lanes_are_positions ? DMLK_F32_BLOCK : dmlk_f32_width(true);
    p->panels = (p->filters + p->width - 1) / p->width;
    p->is_contiguous = c->block == 0 && are_contiguous(filter);
    p->in_place = filter->type == DMLK_FLOAT32 && c->block != 0;
    p->phases = p->taps = 1;
    for (int k = 0; k < DMLK_SPATIAL; k++) {
        dmlk_transposed_axis *axis = &p->axes[k];
        axis->phases = dmlk_min(c->axes[k].spread, c->axes[k].output);
        axis->periods = (c->axes[k].output + c->axes[k].spread - 1) / c->axes[k].spread;
        if (c->axes[k].step != 1 || c->axes[k].spread > MOST_PHASES || c->axes[k].window > MOST_TAPS) {
            return false;
        }
        p->phases *= axis->phases;
        p->taps *= c->axes[k].window;
    }
    const bool is_product = p->phases * p->taps == 1; /* of matrices in place */
    return p->phases <= MOST_PHASES && p->taps <= MOST_TAPS && !c->pads && (!is_product || c->block != 0) &&
           (c->block == 0 || are_lines(c));
}

/* The rest; false: not applicable. */
static bool plan_rest(dmlk_transposed_plan *p) {
    const dmlk_float_convolution *c = &p->c;
    dmlk_phase *phases = p->axes[0].phase;
    for (int k = 0; k < DMLK_SPATIAL; k++) {
        p->axes[k].phase = phases;
        phases += p->axes[k].phases;
        plan_axis(p, k);
    }
    p->most_taps = 1;
    for (int64_t i = 0; i < p->phases; i++) {
        const dmlk_phase *along[DMLK_SPATIAL];
        p->most_taps = dmlk_max(p->most_taps, dmlk_taps_of(p, i, along));
    }
    p->has_one_place = !p->lanes_are_positions && !p->pads && p->most_taps == 1;
    for (int k = 0; k < DMLK_SPATIAL; k++) {
        p->has_one_place = p->has_one_place && c->axes[k].input == 1 && p->axes[k].periods == 1;
    }
    p->by_filter = p->has_one_place && p->is_contiguous && c->filter.type == DMLK_FLOAT32;
    p->piece = dmlk_min(p->channels, dmlk_max(1, DEPTH / p->most_taps));
    if (!p->in_place) {
        p->piece = dmlk_min(p->piece, dmlk_max(1, MOST_LINES / p->taps));
    }
    p->line_step = c->block != 0 ? DMLK_F32_BLOCK : p->width;
    p->channel_step = p->in_place ? c->filter.strides[OF_GROUP] : p->taps * p->line_step;
    p->block_step = p->in_place ? c->block_step : c->block != 0 ? p->piece * p->channel_step : DMLK_F32_BLOCK;
    plan_boxes(p);
    p->stage.view = c->input;
    p->stage.view.sizes[N] = 1;
    p->stage.view.sizes[CHANNEL] = p->channels;
    for (int k = 0; k < DMLK_SPATIAL; k++) {
        p->stage.view.sizes[Z + k] = p->axes[k].box + p->axes[k].reach;
    }
    p->stage.last = c->input.strides[CHANNEL] == 1 && c->input.strides[X] != 1 && !p->lanes_are_positions;
    if (dmlk_stage_floats(&p->stage) > (double)MOST_STAGED ||
        (double)p->phases * (double)p->piece * (double)p->most_taps > (double)MOST_STEPS) {
        return false;
    }
    dmlk_lay_out_stage(&p->stage);
    const int64_t box[DMLK_SPATIAL] = {p->axes[0].box, p->axes[1].box, p->axes[2].box};
    p->pitch = (dmlk_box_lanes(p, box) + DMLK_F32_BLOCK - 1) / DMLK_F32_BLOCK * DMLK_F32_BLOCK;
    return true;
}

/* Along an axis with one place each output meets at most one tap: as phases they meet no others. */
static void separate(dmlk_float_convolution *c) {
    for (int k = 0; k < DMLK_SPATIAL; k++) {
        dmlk_taps_axis *axis = &c->axes[k];
        if (axis->input == 1 && axis->output <= MOST_SEPARATE) {
            axis->spread = dmlk_max(axis->spread, axis->output);
        }
    }
}

bool dmlk_plan_transposed(dmlk_transposed_plan *p, const dmlk_float_convolution *c) {
    *p = (dmlk_transposed_plan){.c = *c};
    separate(&p->c);
    if (!plan_sizes(p)) {
        return false;
    }
    p->axes[0].phase = dmlk_take((p->axes[0].phases + p->axes[1].phases + p->axes[2].phases) * (int64_t)sizeof(dmlk_phase));
    if (p->axes[0].phase == NULL || !plan_rest(p)) {
        return false;
    }
    const int64_t steps = p->phases * p->piece * p->most_taps, lines = p->phases * p->most_taps;
    p->step_at = dmlk_take((steps + lines) * (int64_t)sizeof *p->step_at);
    if (p->step_at == NULL) {
        return false;
    }
    p->line_at = p->step_at + steps;
    fill_tables(p);
    return true;
}

void dmlk_free_transposed(dmlk_transposed_plan *p) {
    dmlk_give(p->step_at);
    dmlk_give(p->axes[0].phase);
}

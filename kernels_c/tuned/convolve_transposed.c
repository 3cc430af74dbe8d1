/* convolve_transposed.c - see convolve_transposed.h.
 *
 * The outputs of a phase meet the same taps (see convolve_phases.h).  Outputs are computed in boxes: of some periods along
 * each axis, in which every phase has one output, all phases.  The places of the input that a box meets are staged; the
 * sums of a box and of a panel of filters, whose number is what a tile takes at a time, stay in memory until they have
 * all products.  Filters are packed for some channels at a time: each phase's elements of a panel become lines that follow
 * each other, in the order of the sums.  A tile multiplies them with the staged places, which it finds by two tables. */
#include "convolve_transposed.h"

#include <stdatomic.h>

#include "cancellation.h"
#include "convolve_phases.h"
#include "cpu.h"
#include "float16.h"
#include "gather.h"
#include "kernel.h"
#include "microkernel_f32.h"
#include "scratch.h"
#include "singles.h"
#include "staged_input.h"
#include "transpose.h"

enum { N, CHANNEL, Z, Y, X };
enum { GROUP, FILTER, OF_GROUP, WINDOW };

#define LEAST_FILTERS 6      /* in a group: fewer leave too much of a tile idle */
#define DEPTH 256            /* lines at a time: they fit into a first-level cache */
#define MOST_LINES 2048      /* of all phases, where they are transposed at once */
#define MOST_TAPS 4096       /* of a filter and a channel */
#define MOST_OUTPUTS 2048    /* of a box */
#define STAGED (1 << 16)     /* floats of a box: with the sums they fit into a second-level cache */
#define LEAST_STAGED 128     /* places of a box: with fewer, packing filters takes too long */
#define MOST_STAGED (1 << 22) /* floats */

struct axis {
    int64_t phases, periods;
    int64_t box, boxes; /* periods at a time */
    int64_t low, reach; /* the first place that period 0 meets, and how many more it meets */
    dmlk_phase *phase;
};

struct plan {
    const dmlk_float_convolution *c;
    struct axis axes[DMLK_SPATIAL];
    int64_t groups, channels, filters; /* of a group */
    int64_t width, panels, parts;      /* filters of a panel; panels of a group; parts that panels are split into */
    int64_t taps, most_taps;           /* of a filter and a channel; of a phase */
    int64_t piece;                     /* channels at a time */
    int64_t phases;
    bool in_blocks; /* panels of filters are lines of floats in memory */
    bool pads;      /* some taps meet places outside of the input */
    dmlk_stage stage;
    int64_t *step_at; /* of each phase: [piece][taps], places from that of the first tap */
    int64_t *line_at; /* of each phase: [taps], elements of the filter from its first one */
    atomic_bool failed;
};

/* What one thread works on, and its memory. */
struct item {
    const struct plan *p;
    dmlk_stage stage;
    int64_t first[DMLK_SPATIAL], count[DMLK_SPATIAL]; /* periods */
    int64_t image, group;
    int64_t filter, columns; /* the panel */
    int64_t channel, channels;
    int64_t *row_at;
    float *lines, *lined, *sums;
    uint16_t *halves;
    int64_t work;
};

/* --- the plan --- */

static int64_t outputs_of(const struct plan *p) {
    int64_t outputs = 1;
    for (int k = 0; k < DMLK_SPATIAL; k++) {
        outputs *= p->axes[k].box * p->axes[k].phases;
    }
    return outputs;
}

/* Whether boxes are small enough, with `count` periods along axis k. */
static bool fits(struct plan *p, int k, int64_t count) {
    const int64_t before = p->axes[k].box;
    p->axes[k].box = count;
    double staged = (double)p->channels;
    for (int a = 0; a < DMLK_SPATIAL; a++) {
        staged *= (double)(p->axes[a].box + p->axes[a].reach);
    }
    const bool fit = outputs_of(p) <= MOST_OUTPUTS && staged <= (double)dmlk_max(STAGED, p->channels * LEAST_STAGED);
    p->axes[k].box = before;
    return fit;
}

/* Boxes as large as they fit, of about the same size; first along the last axis. */
static void plan_boxes(struct plan *p) {
    for (int k = 0; k < DMLK_SPATIAL; k++) {
        p->axes[k].box = 1;
    }
    for (int k = DMLK_SPATIAL - 1; k >= 0; k--) {
        struct axis *axis = &p->axes[k];
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
static void plan_axis(struct plan *p, int k) {
    const dmlk_taps_axis *along = &p->c->axes[k];
    struct axis *axis = &p->axes[k];
    int64_t high = INT64_MIN;
    axis->low = INT64_MAX;
    for (int64_t o = 0; o < axis->phases; o++) {
        const dmlk_phase phase = axis->phase[o] = dmlk_phase_of(along, o);
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

static int64_t taps_of(const struct plan *p, int64_t phase, const dmlk_phase *along[DMLK_SPATIAL]) {
    const int64_t y = p->axes[1].phases, x = p->axes[2].phases;
    const int64_t each[DMLK_SPATIAL] = {phase / x / y, phase / x % y, phase % x};
    int64_t taps = 1;
    for (int k = 0; k < DMLK_SPATIAL; k++) {
        along[k] = &p->axes[k].phase[each[k]];
        taps *= along[k]->taps;
    }
    return taps;
}

static void fill_tables(struct plan *p) {
    const int64_t *steps = p->stage.view.strides, *strides = p->c->filter.strides;
    for (int64_t i = 0; i < p->phases; i++) {
        const dmlk_phase *along[DMLK_SPATIAL];
        const int64_t taps = taps_of(p, i, along);
        int64_t *step_at = p->step_at + i * p->piece * p->most_taps, *line_at = p->line_at + i * p->most_taps;
        for (int64_t t = 0; t < taps; t++) {
            const int64_t y = along[1]->taps, x = along[2]->taps, tap[DMLK_SPATIAL] = {t / x / y, t / x % y, t % x};
            step_at[t] = line_at[t] = 0;
            for (int k = 0; k < DMLK_SPATIAL; k++) {
                step_at[t] += tap[k] * along[k]->tap * steps[Z + k];
                line_at[t] += (along[k]->first + tap[k] * along[k]->step) * strides[WINDOW + k];
            }
            if (!p->in_blocks) { /* they are packed before, one after the other */
                const int64_t *sizes = p->c->filter.sizes + WINDOW;
                line_at[t] = 0;
                for (int k = 0; k < DMLK_SPATIAL; k++) {
                    line_at[t] = line_at[t] * sizes[k] + along[k]->first + tap[k] * along[k]->step;
                }
                line_at[t] *= p->width;
            }
        }
        for (int64_t t = taps; t < p->piece * taps; t++) {
            step_at[t] = step_at[t - taps] + steps[CHANNEL];
        }
    }
}

/* false: not applicable. */
static bool plan_sizes(struct plan *p) {
    const dmlk_float_convolution *c = p->c;
    const dmlk_view *filter = &c->filter;
    p->groups = filter->sizes[GROUP];
    p->channels = filter->sizes[OF_GROUP];
    p->filters = filter->sizes[FILTER];
    p->width = dmlk_f32_width(true);
    p->panels = (p->filters + p->width - 1) / p->width;
    p->in_blocks = filter->type == DMLK_FLOAT32 && c->block == DMLK_F32_BLOCK && filter->strides[FILTER] == 1;
    p->phases = p->taps = 1;
    for (int k = 0; k < DMLK_SPATIAL; k++) {
        struct axis *axis = &p->axes[k];
        axis->phases = dmlk_min(c->axes[k].spread, c->axes[k].output);
        axis->periods = (c->axes[k].output + c->axes[k].spread - 1) / c->axes[k].spread;
        if (c->axes[k].step != 1 || c->axes[k].spread > MOST_OUTPUTS || c->axes[k].window > MOST_TAPS) {
            return false;
        }
        p->phases *= axis->phases;
        p->taps *= c->axes[k].window;
    }
    return p->phases <= MOST_OUTPUTS && p->taps <= MOST_TAPS && p->filters >= LEAST_FILTERS && !c->pads &&
           (c->block == 0 || p->in_blocks);
}

/* The rest, with memory for the phases of axes; false: not applicable. */
static bool plan_rest(struct plan *p, dmlk_phase *phases) {
    const dmlk_float_convolution *c = p->c;
    for (int k = 0; k < DMLK_SPATIAL; k++) {
        p->axes[k].phase = phases;
        phases += p->axes[k].phases;
        plan_axis(p, k);
    }
    p->most_taps = 1;
    for (int64_t i = 0; i < p->phases; i++) {
        const dmlk_phase *along[DMLK_SPATIAL];
        p->most_taps = dmlk_max(p->most_taps, taps_of(p, i, along));
    }
    p->piece = dmlk_min(p->channels, dmlk_max(1, DEPTH / p->most_taps));
    if (!p->in_blocks) {
        p->piece = dmlk_min(p->piece, dmlk_max(1, MOST_LINES / p->taps));
    }
    plan_boxes(p);
    p->stage.view = c->input;
    p->stage.view.sizes[N] = 1;
    p->stage.view.sizes[CHANNEL] = p->channels;
    for (int k = 0; k < DMLK_SPATIAL; k++) {
        p->stage.view.sizes[Z + k] = p->axes[k].box + p->axes[k].reach;
    }
    p->stage.last = c->input.strides[CHANNEL] == 1 && c->input.strides[X] != 1;
    if (dmlk_stage_floats(&p->stage) > (double)MOST_STAGED) {
        return false;
    }
    dmlk_lay_out_stage(&p->stage);
    return true;
}

/* --- filters --- */

/* The elements of the panel for the item's channels, as [channel][tap][filter]. */
static void line_up(struct item *i) {
    const struct plan *p = i->p;
    const dmlk_view *f = &p->c->filter;
    const int64_t bytes = dmlk_type_bytes(f->type), *sizes = f->sizes + WINDOW, *strides = f->strides + WINDOW;
    const int64_t count = p->piece * p->taps * p->width;
    uint8_t *to = f->type == DMLK_FLOAT16 ? (uint8_t *)i->halves : (uint8_t *)i->lined;
    if (i->columns < p->width) {
        memset(to, 0, (size_t)(count * bytes));
    }
    const bool in_line = strides[1] == strides[2] * sizes[2] && strides[0] == strides[1] * sizes[1];
    const int64_t rows = in_line ? p->taps : sizes[2];
    for (int64_t channel = i->channel; channel < i->channel + i->channels; channel++) {
        const int64_t from = i->group * f->strides[GROUP] + i->filter * f->strides[FILTER] + channel * f->strides[OF_GROUP];
        for (int64_t line = 0; line < p->taps / rows; line++, to += rows * p->width * bytes) {
            const int64_t first = from + line / sizes[1] * strides[0] + line % sizes[1] * strides[1];
            dmlk_transpose_fetching(bytes, f->base + first * bytes, f->strides[FILTER] * bytes, strides[2] * bytes, to,
                                    p->width * bytes, rows, i->columns, f->strides[OF_GROUP] * bytes);
        }
    }
    if (f->type == DMLK_FLOAT16) {
        dmlk_widen_float16(i->halves, i->channels * p->taps * p->width, i->lined);
    }
}

/* Lines of blocks. */
struct lines {
    const uint32_t *from;
    const int64_t *line_at;
    int64_t channels, channel_step, taps;
    int64_t blocks, block_step, width;
    uint32_t *to;
    bool finite; /* set to false where one is an infinity or a NaN */
};

DMLK_EACH_ISA(copy_lines, (struct lines *l), (l)) {
    uint32_t *to = l->to, largest[DMLK_F32_BLOCK] = {0};
    for (int64_t c = 0; c < l->channels; c++) {
        for (int64_t t = 0; t < l->taps; t++, to += l->width) {
            const uint32_t *line = l->from + c * l->channel_step + l->line_at[t];
            for (int64_t b = 0; b < l->blocks; b++) {
                for (int lane = 0; lane < DMLK_F32_BLOCK; lane++) {
                    const uint32_t bits = line[b * l->block_step + lane];
                    to[b * DMLK_F32_BLOCK + lane] = bits;
                    largest[lane] |= (bits & 0x7fffffffu) + 0x00800000u; /* the sign: the exponent is all ones */
                }
            }
        }
    }
    for (int lane = 0; lane < DMLK_F32_BLOCK; lane++) {
        l->finite = l->finite && largest[lane] >> 31 == 0;
    }
}

/* The lines of a phase and the item's channels; false: one of its elements is not finite. */
static bool pack(struct item *i, int64_t phase, int64_t taps) {
    const struct plan *p = i->p;
    const dmlk_view *f = &p->c->filter;
    struct lines lines = {.from = (const uint32_t *)(const void *)i->lined,
                          .line_at = p->line_at + phase * p->most_taps,
                          .channels = i->channels,
                          .channel_step = p->taps * p->width,
                          .taps = taps,
                          .blocks = (i->columns + DMLK_F32_BLOCK - 1) / DMLK_F32_BLOCK,
                          .block_step = DMLK_F32_BLOCK,
                          .width = p->width,
                          .to = (uint32_t *)(void *)i->lines,
                          .finite = true};
    if (p->in_blocks) {
        lines.from = (const uint32_t *)(const void *)f->base + i->group * f->strides[GROUP] +
                     i->filter / DMLK_F32_BLOCK * p->c->block_step + i->channel * f->strides[OF_GROUP];
        lines.channel_step = f->strides[OF_GROUP];
        lines.block_step = p->c->block_step;
    }
    copy_lines(&lines);
    return lines.finite || !p->pads;
}

/* --- sums --- */

/* Those of output 0 of a line of periods z, y of the box. */
static float *sums_at(const struct item *i, int64_t phase_z, int64_t phase_y, int64_t z, int64_t y) {
    const struct axis *axes = i->p->axes;
    const int64_t area = (phase_z * axes[1].phases + phase_y) * i->count[0] + z;
    return i->sums + (area * i->count[1] + y) * i->count[2] * axes[2].phases * i->p->width;
}

/* Periods of the box in which phase o of axis k has an output. */
static int64_t periods_of(const struct item *i, int k, int64_t o) {
    const dmlk_taps_axis *axis = &i->p->c->axes[k];
    return dmlk_min(i->count[k], (axis->output - o + axis->spread - 1) / axis->spread - i->first[k]);
}

/* Adds the products of a phase and the item's channels. */
static void add_products(struct item *i, const dmlk_phase *const *along, const int64_t *o, int64_t depth, const int64_t *step_at) {
    const struct plan *p = i->p;
    const int64_t *strides = i->stage.view.strides, nz = periods_of(i, 0, o[0]), ny = periods_of(i, 1, o[1]);
    const float *row = (const float *)(const void *)i->stage.view.base + i->channel * strides[CHANNEL];
    for (int k = 0; k < DMLK_SPATIAL; k++) {
        row += (along[k]->place - p->axes[k].low) * strides[Z + k];
    }
    dmlk_f32_kernel tile = {.columns = i->columns,
                            .depth = depth,
                            .is_first = i->channel == 0,
                            .row = row,
                            .step_at = step_at,
                            .column = i->lines,
                            .column_step = p->width,
                            .sums_stride = p->axes[2].phases * p->width};
    const int64_t at_once = ny == i->count[1] ? nz : 1;
    for (int64_t z = 0; z < nz && ny > 0; z += at_once) {
        tile.rows = at_once * ny * i->count[2];
        tile.row_at = i->row_at + z * i->count[1] * i->count[2];
        tile.sums = sums_at(i, o[0], o[1], z, 0) + o[2] * p->width;
        dmlk_f32_tile(&tile);
    }
}

/* Outputs without taps are 0. */
static void clear_phase(struct item *i, const int64_t *o) {
    const int64_t width = i->p->width, step = i->p->axes[2].phases * width;
    float *sums = sums_at(i, o[0], o[1], 0, 0) + o[2] * width;
    for (int64_t k = 0; k < i->count[0] * i->count[1] * i->count[2]; k++) {
        memset(sums + k * step, 0, (size_t)width * sizeof *sums);
    }
}

/* All phases of the item's channels; false: a filter is not finite. */
static bool add_channels(struct item *i) {
    const struct plan *p = i->p;
    if (!p->in_blocks) {
        line_up(i);
    }
    for (int64_t phase = 0; phase < p->phases; phase++) {
        const dmlk_phase *along[DMLK_SPATIAL];
        const int64_t taps = taps_of(p, phase, along), y = p->axes[1].phases, x = p->axes[2].phases;
        const int64_t o[DMLK_SPATIAL] = {phase / x / y, phase / x % y, phase % x};
        if (dmlk_stopped(&i->work, outputs_of(p) / p->phases * p->width * (taps * i->channels + 1) / 16)) {
            return true;
        }
        if (taps == 0) {
            clear_phase(i, o);
            continue;
        }
        if (!pack(i, phase, taps)) {
            return false;
        }
        add_products(i, along, o, taps * i->channels, p->step_at + phase * p->piece * p->most_taps);
    }
    return true;
}

/* --- results --- */

/* Sums of `rows` outputs and all filters of a panel, whose bias is given, become results. */
DMLK_EACH_ISA(finish, (float *sums, int64_t rows, int64_t width, const float *bias), (sums, rows, width, bias)) {
    for (int64_t r = 0; r < rows; r++, sums += width) {
        for (int64_t lane = 0; lane < width; lane += 8) {
            for (int64_t k = lane; k < lane + 8; k++) {
                sums[k] = dmlk_one_nan(sums[k] + bias[k] + 0.0f);
            }
        }
    }
}

/* `count` outputs that follow each other along the last axis, of the panel. */
static void store_line(struct item *i, float *sums, int64_t count, uint8_t *to) {
    const struct plan *p = i->p;
    const dmlk_view *out = &p->c->output;
    const int64_t bytes = dmlk_type_bytes(out->type), step = out->strides[X] * bytes, apart = out->strides[CHANNEL] * bytes;
    const uint8_t *from = (const uint8_t *)sums;
    if (out->type == DMLK_FLOAT16) {
        dmlk_narrow_floats(sums, count * p->width, i->halves);
        from = (const uint8_t *)i->halves;
    }
    const int64_t from_step = p->width * bytes;
    if (step == bytes || count == 1) {
        dmlk_transpose(bytes, from, from_step, bytes, to, apart, i->columns, count);
        return;
    }
    for (int64_t k = 0; k < count; k++) {
        if (apart == bytes) {
            memcpy(to + k * step, from + k * from_step, (size_t)(i->columns * bytes));
        } else {
            dmlk_scatter(from + k * from_step, bytes, i->columns, to + k * step, apart);
        }
    }
}

/* The lines of the box. */
static void store_box(struct item *i) {
    const struct plan *p = i->p;
    const dmlk_view *out = &p->c->output, *bias = &p->c->bias;
    const int64_t channel = i->group * p->filters + i->filter, *strides = out->strides, phases = p->axes[2].phases;
    const int64_t x = i->first[2] * p->c->axes[2].spread, count = dmlk_min(i->count[2] * phases, out->sizes[X] - x);
    float added[DMLK_F32_COLUMNS] = {0};
    if (bias->base != NULL) {
        dmlk_load_singles(bias->type, bias->base + channel * bias->strides[0] * dmlk_type_bytes(bias->type), bias->strides[0],
                          i->columns, added);
    }
    for (int64_t k = 0; k < p->axes[0].phases * p->axes[1].phases; k++) {
        const int64_t o[2] = {k / p->axes[1].phases, k % p->axes[1].phases};
        const int64_t nz = periods_of(i, 0, o[0]), ny = periods_of(i, 1, o[1]);
        for (int64_t line = 0; line < nz * ny && ny > 0; line++) {
            float *sums = sums_at(i, o[0], o[1], line / ny, line % ny);
            const int64_t z = (i->first[0] + line / ny) * p->c->axes[0].spread + o[0];
            const int64_t y = (i->first[1] + line % ny) * p->c->axes[1].spread + o[1];
            uint8_t *to = out->base + (i->image * strides[N] + channel * strides[CHANNEL] + z * strides[Z] + y * strides[Y] +
                                       x * strides[X]) * dmlk_type_bytes(out->type);
            finish(sums, count, p->width, added);
            store_line(i, sums, count, to);
            dmlk_follow(p->c->followers, to, i->columns, strides[CHANNEL], count, strides[X]);
        }
    }
}

/* --- items --- */

/* Box, image, group and panels of an item; returns the last panel, exclusive. */
static int64_t begin_item(struct item *i, int64_t number) {
    const struct plan *p = i->p;
    const dmlk_float_convolution *c = p->c;
    const int64_t part = number % p->parts;
    int64_t rest = number / p->parts, *row_at = i->row_at;
    for (int k = DMLK_SPATIAL - 1; k >= 0; k--) {
        i->first[k] = rest % p->axes[k].boxes * p->axes[k].box;
        i->count[k] = dmlk_min(p->axes[k].box, p->axes[k].periods - i->first[k]);
        i->stage.low[k] = i->first[k] + p->axes[k].low;
        rest /= p->axes[k].boxes;
    }
    i->group = rest % p->groups;
    i->image = rest / p->groups;
    dmlk_view input = c->input;
    input.base += (i->image * input.strides[N] + i->group * p->channels * input.strides[CHANNEL]) * dmlk_type_bytes(input.type);
    i->stage.input = &input;
    dmlk_fill_stage(&i->stage, 0, dmlk_stage_lines(&i->stage));
    const int64_t *strides = i->stage.view.strides;
    for (int64_t k = 0; k < i->count[0] * i->count[1] * i->count[2]; k++) {
        const int64_t x = k % i->count[2], line = k / i->count[2];
        row_at[k] = line / i->count[1] * strides[Z] + line % i->count[1] * strides[Y] + x * strides[X];
    }
    i->filter = p->panels * part / p->parts * p->width;
    return p->panels * (part + 1) / p->parts * p->width;
}

static bool run_item(struct item *i, int64_t number) {
    const struct plan *p = i->p;
    const int64_t end = begin_item(i, number);
    for (; i->filter < end; i->filter += p->width) {
        i->columns = dmlk_min(p->width, p->filters - i->filter);
        for (i->channel = 0; i->channel < p->channels; i->channel += p->piece) {
            i->channels = dmlk_min(p->piece, p->channels - i->channel);
            if (!add_channels(i)) {
                return false;
            }
            if (dmlk_stopped(&i->work, 0)) {
                return true;
            }
        }
        store_box(i);
    }
    return true;
}

/* The memory of an item: sizes of its arrays, each a multiple of a line of the cache. */
static int64_t lines_of(int64_t bytes) { return (bytes + 63) / 64 * 64; }

static void run_items(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    struct plan *p = context;
    const int64_t outputs = outputs_of(p), floats = (int64_t)sizeof(float);
    const int64_t lined = p->in_blocks ? 0 : p->piece * p->taps * p->width;
    const int64_t halves = dmlk_max(lined, p->axes[2].box * p->axes[2].phases * p->width) * (int64_t)sizeof(uint16_t);
    const int64_t sizes[] = {lines_of(p->stage.view.strides[N] * floats), lines_of(outputs * p->width * floats),
                             lines_of(p->piece * p->most_taps * p->width * floats), lines_of(lined * floats),
                             lines_of(outputs / p->phases * (int64_t)sizeof(int64_t)), lines_of(halves)};
    uint8_t *memory = dmlk_take(sizes[0] + sizes[1] + sizes[2] + sizes[3] + sizes[4] + sizes[5]), *next = memory;
    if (memory == NULL) {
        atomic_store(&p->failed, true);
        return;
    }
    struct item i = {.p = p, .stage = p->stage};
    i.stage.view.base = next;
    i.sums = (float *)(void *)(next += sizes[0]);
    i.lines = (float *)(void *)(next += sizes[1]);
    i.lined = (float *)(void *)(next += sizes[2]);
    i.row_at = (int64_t *)(void *)(next += sizes[3]);
    i.halves = (uint16_t *)(void *)(next + sizes[4]);
    for (int64_t number = begin; number < end && !dmlk_stopped(&i.work, 0) && !atomic_load(&p->failed); number++) {
        if (!run_item(&i, number)) {
            atomic_store(&p->failed, true);
        }
    }
    dmlk_give(memory);
}

static bool run_plan(struct plan *p) {
    const int64_t steps = p->phases * p->piece * p->most_taps, lines = p->phases * p->most_taps;
    p->step_at = dmlk_take((steps + lines) * (int64_t)sizeof *p->step_at);
    if (p->step_at == NULL) {
        return false;
    }
    p->line_at = p->step_at + steps;
    fill_tables(p);
    const int64_t boxes = p->axes[0].boxes * p->axes[1].boxes * p->axes[2].boxes * p->groups * p->c->output.sizes[N];
    const double work = (double)dmlk_view_elements(&p->c->output) * (double)p->channels * (double)p->taps / (double)p->phases;
    const int threads = dmlk_parts(INT64_MAX, work < 4e6 ? INT64_MAX : 1);
    p->parts = boxes >= 4 * threads ? 1 : dmlk_min(p->panels, threads);
    dmlk_parallel(boxes * p->parts, (int)dmlk_min(threads, boxes * p->parts), run_items, p);
    dmlk_give(p->step_at);
    return !atomic_load(&p->failed);
}

bool dmlk_convolve_transposed(const dmlk_float_convolution *c) {
    struct plan p = {.c = c};
    if (!plan_sizes(&p)) {
        return false;
    }
    dmlk_phase *phases = dmlk_take((p.axes[0].phases + p.axes[1].phases + p.axes[2].phases) * (int64_t)sizeof *phases);
    const bool done = phases != NULL && plan_rest(&p, phases) && run_plan(&p);
    dmlk_give(phases);
    return done;
}

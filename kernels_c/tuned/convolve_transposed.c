/* convolve_transposed.c - see convolve_transposed.h.
 *
 * With a spread, output o meets tap t only where o * step + t * tap + origin is a multiple of the spread: outputs o, o +
 * spread, o + 2 * spread ... of an axis, a phase, meet the same taps, and neighbours among them meet neighbours of the
 * input.  The taps of a phase stay in order, so that it computes the same chains.
 *
 * In a period of an axis each phase has one output.  Outputs are computed in boxes, of some periods along each axis.  The
 * places of the input that a box meets are staged.  The sums of a box and a panel of filters, as many as a tile takes at a
 * time, stay in memory until they have all products.  Filters are packed for some channels at a time: what a panel has
 * for a phase becomes lines that follow each other in the order of the sums.  A tile multiplies them with staged places,
 * which it finds by tables.  Its lanes are the filters of the panel; if a group has few filters, they are positions.
 *
 * If the input has one position, each line is used once: none is packed, and those of all taps are multiplied together. */
#include "convolve_transposed.h"

#include "ahead.h"
#include "cancellation.h"
#include "cpu.h"
#include "few_rows.h"
#include "float16.h"
#include "gather.h"
#include "kernel.h"
#include "microkernel_f32.h"
#include "scratch.h"
#include "singles.h"
#include "transpose.h"
#include "transposed_plan.h"

enum { N, CHANNEL, Z, Y, X };
enum { GROUP, FILTER, OF_GROUP, WINDOW };

#define AHEAD 4 /* channels that are fetched before they are transposed */
#define WORTH_THREADS 4e6 /* products */

/* What one thread works on, and its memory. */
struct item {
    const dmlk_transposed_plan *p;
    dmlk_view input; /* from its first image and channel on */
    dmlk_stage stage;
    int64_t first[DMLK_SPATIAL], count[DMLK_SPATIAL]; /* periods */
    int64_t image, group;
    int64_t filter, columns; /* the panel */
    int64_t channel, channels;
    int64_t *row_at;
    float *lines, *lined, *sums, *products, bias[DMLK_F32_COLUMNS];
    uint16_t *halves;
    int64_t work;
};

/* --- filters --- */

/* The elements of the panel and of a channel as [tap][filter], bit by bit. */
static void turn(const struct item *i, int64_t channel, uint8_t *to) {
    const dmlk_transposed_plan *p = i->p;
    const dmlk_view *f = &p->c.filter;
    const int64_t bytes = dmlk_type_bytes(f->type), *sizes = f->sizes + WINDOW, *strides = f->strides + WINDOW;
    const int64_t step = sizes[2] == 1 ? strides[1] : strides[2]; /* from tap to tap, if they are in line */
    const bool in_line = (sizes[1] == 1 || strides[1] == step * sizes[2]) && (sizes[0] == 1 || strides[0] == step * sizes[1] * sizes[2]);
    const int64_t rows = in_line ? p->taps : sizes[2], line_bytes = p->width * bytes;
    const int64_t from = i->group * f->strides[GROUP] + i->filter * f->strides[FILTER] + channel * f->strides[OF_GROUP];
    const uint8_t *ahead = f->base + (from + AHEAD * f->strides[OF_GROUP]) * bytes;
    dmlk_fetch(ahead, p->is_contiguous ? i->columns * p->taps * bytes : 0);
    for (int64_t line = 0; line < p->taps / rows; line++, to += rows * line_bytes) {
        const int64_t first = from + line / sizes[1] * strides[0] + line % sizes[1] * strides[1];
        dmlk_transpose_fetching(bytes, f->base + first * bytes, f->strides[FILTER] * bytes, step * bytes, to, line_bytes,
                                rows, i->columns, p->is_contiguous ? 0 : AHEAD * f->strides[OF_GROUP] * bytes);
    }
}

/* The elements of the panel, of the item's channels, as floats: [channel][tap][filter], or the same of each block. */
static void line_up(struct item *i) {
    const dmlk_transposed_plan *p = i->p;
    const dmlk_view *f = &p->c.filter;
    const bool half = f->type == DMLK_FLOAT16;
    for (int64_t k = 0; k < i->columns && p->c.block != 0; k += DMLK_F32_BLOCK) { /* halves, which lie as lines do */
        const int64_t at = i->group * f->strides[GROUP] + dmlk_float_filter_at(&p->c, i->filter + k) + i->channel * f->strides[OF_GROUP];
        dmlk_widen_float16((const uint16_t *)(const void *)f->base + at, i->channels * p->channel_step,
                           i->lined + k / DMLK_F32_BLOCK * p->block_step);
    }
    for (int64_t c = 0; c < i->channels && p->c.block == 0; c++) {
        float *to = i->lined + c * p->channel_step;
        uint8_t *bits = half ? (uint8_t *)i->halves : (uint8_t *)to;
        if (i->columns < p->width) {
            memset(bits, 0, (size_t)(p->channel_step * dmlk_type_bytes(f->type)));
        }
        turn(i, i->channel + c, bits);
        if (half) {
            dmlk_widen_float16(i->halves, p->channel_step, to);
        }
    }
}

/* Lines of blocks. */
struct lines {
    const uint32_t *from;
    const int64_t *line_at;
    int64_t channels, channel_step, taps, line_step;
    int64_t blocks, block_step, width;
    const uint32_t *ahead; /* what is fetched meanwhile: as many lines */
    uint32_t *to;
    bool finite; /* set to false where one is an infinity or a NaN */
};

typedef uint32_t words __attribute__((vector_size(32)));
#define WORDS 8

DMLK_EACH_ISA(copy_lines, (struct lines *l), (l)) {
    const int64_t taps = l->taps, blocks = l->blocks, block_step = l->block_step, width = l->width, line_step = l->line_step;
    const uint32_t *ahead = l->ahead;
    uint32_t *to = l->to;
    words seen = {0};
    for (int64_t c = 0; c < l->channels; c++) {
        for (int64_t t = 0; t < taps; t++, to += width, ahead += line_step) {
            const uint32_t *line = l->from + c * l->channel_step + l->line_at[t];
            for (int64_t b = 0; b < blocks; b++) {
                __builtin_prefetch(ahead + b * block_step, 0, 2);
                for (int half = 0; half < DMLK_F32_BLOCK; half += WORDS) {
                    words bits;
                    memcpy(&bits, line + b * block_step + half, sizeof bits);
                    memcpy(to + b * DMLK_F32_BLOCK + half, &bits, sizeof bits);
                    seen |= (bits & 0x7fffffffu) + 0x00800000u; /* the sign: the exponent is all ones */
                }
            }
        }
    }
    for (int k = 0; k < WORDS; k++) {
        l->finite = l->finite && seen[k] >> 31 == 0;
    }
}

/* The first of the panel's lines of the item's channels, where they lie. */
static const float *lines_of(const struct item *i) {
    const dmlk_transposed_plan *p = i->p;
    const dmlk_view *f = &p->c.filter;
    const int64_t at = i->group * f->strides[GROUP] + i->filter / DMLK_F32_BLOCK * p->c.block_step + i->channel * f->strides[OF_GROUP];
    return p->in_place ? (const float *)(const void *)f->base + at : i->lined;
}

/* The lines of a phase and the item's channels, of which `before` were packed of other phases; false: one of its elements
 * is not finite. */
static bool pack(struct item *i, int64_t phase, int64_t taps, int64_t before) {
    const dmlk_transposed_plan *p = i->p;
    struct lines lines = {.from = (const uint32_t *)(const void *)lines_of(i),
                          .line_at = p->line_at + phase * p->most_taps,
                          .channels = i->channels,
                          .channel_step = p->channel_step,
                          .taps = taps,
                          .line_step = p->line_step,
                          .blocks = (i->columns + DMLK_F32_BLOCK - 1) / DMLK_F32_BLOCK,
                          .block_step = p->block_step,
                          .width = p->width,
                          .to = (uint32_t *)(void *)i->lines,
                          .finite = true};
    lines.ahead = lines.from + before * p->line_step;
    if (p->in_place) {
        lines.ahead += i->channels * p->channel_step; /* of the next channels, or block */
    }
    copy_lines(&lines);
    return lines.finite || !p->pads;
}

/* --- sums --- */

/* Those of a phase along the first two axes and of a line of periods z, y of the box: of each period, all phases along the
 * last axis.  (If lanes are filters.) */
static float *sums_at(const struct item *i, const int64_t *o, int64_t z, int64_t y) {
    const dmlk_transposed_axis *axes = i->p->axes;
    const int64_t area = (o[0] * axes[1].phases + o[1]) * i->count[0] + z;
    return i->sums + (area * i->count[1] + y) * i->count[2] * axes[2].phases * i->p->width;
}

/* Those of a phase.  (If lanes are positions.) */
static float *lanes_at(const struct item *i, const int64_t *o) {
    const dmlk_transposed_axis *axes = i->p->axes;
    const int64_t phase = (o[0] * axes[1].phases + o[1]) * axes[2].phases + o[2];
    return i->sums + phase * i->p->filters * i->p->pitch;
}

/* Periods of the box in which phase o of axis k has an output. */
static int64_t periods_of(const struct item *i, int k, int64_t o) {
    return dmlk_min(i->count[k], i->p->axes[k].phase[o].outputs - i->first[k]);
}

/* Adds the products of a phase and the item's channels. */
static void add_products(struct item *i, const dmlk_phase *const *along, const int64_t *o, int64_t depth, const int64_t *step_at) {
    const dmlk_transposed_plan *p = i->p;
    const int64_t *strides = i->stage.view.strides, nz = periods_of(i, 0, o[0]), ny = periods_of(i, 1, o[1]);
    const float *place = (const float *)(const void *)i->stage.view.base + i->channel * strides[CHANNEL];
    for (int k = 0; k < DMLK_SPATIAL; k++) {
        place += (along[k]->place - p->axes[k].low) * strides[Z + k];
    }
    dmlk_f32_kernel tile = {.depth = depth, .is_first = i->channel == 0};
    if (p->lanes_are_positions) {
        tile.rows = i->columns;
        tile.row = i->lines, tile.row_stride = 1, tile.row_step = p->width;
        tile.columns = dmlk_box_lanes(p, i->count);
        tile.column = place, tile.column_at = step_at;
        tile.sums = lanes_at(i, o), tile.sums_stride = p->pitch;
        dmlk_f32_tile(&tile);
        return;
    }
    tile.columns = i->columns;
    tile.column = i->lines, tile.column_step = p->width;
    tile.row = place, tile.step_at = step_at;
    tile.sums_stride = p->axes[2].phases * p->width;
    const int64_t at_once = ny == i->count[1] ? nz : 1;
    for (int64_t z = 0; z < nz && ny > 0; z += at_once) {
        tile.rows = at_once * ny * i->count[2];
        tile.row_at = i->row_at + z * i->count[1] * i->count[2];
        tile.sums = sums_at(i, o, z, 0) + o[2] * p->width;
        dmlk_f32_tile(&tile);
    }
}

/* Outputs without taps are 0. */
static void clear_phase(struct item *i, const int64_t *o) {
    const dmlk_transposed_plan *p = i->p;
    const int64_t width = p->width, step = p->axes[2].phases * width;
    if (p->lanes_are_positions) {
        memset(lanes_at(i, o), 0, (size_t)(p->filters * p->pitch) * sizeof *i->sums);
        return;
    }
    float *sums = sums_at(i, o, 0, 0) + o[2] * width;
    for (int64_t k = 0; k < i->count[0] * i->count[1] * i->count[2]; k++) {
        memset(sums + k * step, 0, (size_t)width * sizeof *sums);
    }
}

/* Adds the products of the only position and the item's channels, of `count` numbers of each channel. */
static void add_numbers(const struct item *i, const float *line, int64_t line_step, int64_t count, float *sums) {
    const int64_t step = i->stage.view.strides[CHANNEL];
    const float *place = (const float *)(const void *)i->stage.view.base + i->channel * step;
    float factors[DMLK_FEW_LINES];
    int64_t c = 0;
    if (i->channel == 0) {
        memset(sums, 0, (size_t)count * sizeof *sums);
    }
    for (; c + DMLK_FEW_LINES <= i->channels; c += DMLK_FEW_LINES, line += DMLK_FEW_LINES * line_step) {
        for (int64_t f = 0; f < DMLK_FEW_LINES; f++) {
            factors[f] = place[(c + f) * step];
        }
        dmlk_add_lines(factors, line, line_step, count, sums);
    }
    for (; c < i->channels; c++, line += line_step) {
        dmlk_f32_step(place[c * step], line, count, sums);
    }
}

/* The products of the panel: of each block of filters, or of all of them, [tap][filter]; or [filter][tap]. */
static void add_position(struct item *i) {
    const dmlk_transposed_plan *p = i->p;
    const dmlk_view *f = &p->c.filter;
    if (p->by_filter) {
        const int64_t at = i->group * f->strides[GROUP] + i->filter * p->taps + i->channel * f->strides[OF_GROUP];
        add_numbers(i, (const float *)(const void *)f->base + at, f->strides[OF_GROUP], i->columns * p->taps, i->products);
        return;
    }
    for (int64_t k = 0; k < i->columns; k += p->line_step) {
        const float *line = lines_of(i) + k / DMLK_F32_BLOCK * p->block_step;
        add_numbers(i, line, p->channel_step, p->taps * p->line_step, i->products + k * p->taps);
    }
}

/* The products of the only position as sums of the phases. */
static void take_products(struct item *i) {
    const dmlk_transposed_plan *p = i->p;
    const int64_t y = p->axes[1].phases, x = p->axes[2].phases, bytes = sizeof(float);
    const float *products = p->by_filter ? i->lined : i->products;
    if (p->by_filter) {
        dmlk_transpose(bytes, (const uint8_t *)i->products, p->taps * bytes, bytes, (uint8_t *)i->lined, p->width * bytes, p->taps,
                       i->columns);
    }
    for (int64_t phase = 0; phase < p->phases; phase++) {
        const dmlk_phase *along[DMLK_SPATIAL];
        const int64_t o[DMLK_SPATIAL] = {phase / x / y, phase / x % y, phase % x};
        if (dmlk_taps_of(p, phase, along) == 0) {
            clear_phase(i, o);
            continue;
        }
        float *to = sums_at(i, o, 0, 0) + o[2] * p->width;
        for (int64_t k = 0; k < i->columns; k += p->line_step) {
            const float *from = products + k * p->taps + p->line_at[phase * p->most_taps];
            memcpy(to + k, from, (size_t)p->line_step * sizeof *to);
        }
    }
}

/* All phases of the item's channels; false: a filter is not finite. */
static bool add_channels(struct item *i) {
    const dmlk_transposed_plan *p = i->p;
    if (!p->in_place && !p->by_filter) {
        line_up(i);
    }
    if (p->has_one_place) {
        add_position(i);
        return true;
    }
    int64_t before = 0;
    for (int64_t phase = 0; phase < p->phases; phase++) {
        const dmlk_phase *along[DMLK_SPATIAL];
        const int64_t taps = dmlk_taps_of(p, phase, along), y = p->axes[1].phases, x = p->axes[2].phases;
        const int64_t o[DMLK_SPATIAL] = {phase / x / y, phase / x % y, phase % x};
        if (dmlk_stopped(&i->work, dmlk_box_outputs(p) / p->phases * p->width * (taps * i->channels + 1) / 16)) {
            return true;
        }
        if (taps == 0) {
            clear_phase(i, o);
            continue;
        }
        if (!pack(i, phase, taps, before)) {
            return false;
        }
        before += taps * i->channels;
        add_products(i, along, o, taps * i->channels, p->step_at + phase * p->piece * p->most_taps);
    }
    return true;
}

/* --- results --- */

/* Sums of `rows` outputs and all filters of a panel, whose bias is given, become results. */
DMLK_EACH_ISA(finish, (float *sums, int64_t rows, int64_t width, const float *bias), (sums, rows, width, bias)) {
    for (int64_t r = 0; r < rows; r++, sums += width) {
        for (int64_t k = 0; k < width; k++) {
            sums[k] = dmlk_one_nan(sums[k] + bias[k] + 0.0f);
        }
    }
}

/* The same of outputs of one filter. */
DMLK_EACH_ISA(finish_lanes, (float *sums, int64_t count, float bias), (sums, count, bias)) {
    for (int64_t k = 0; k < count; k++) {
        sums[k] = dmlk_one_nan(sums[k] + bias + 0.0f);
    }
}

/* Results as elements of the output. */
static const uint8_t *as_elements(struct item *i, const float *results, int64_t count) {
    if (i->p->c.output.type == DMLK_FLOAT32) {
        return (const uint8_t *)results;
    }
    dmlk_narrow_floats(results, count, i->halves);
    return (const uint8_t *)i->halves;
}

/* `count` outputs that follow each other along the last axis, of the panel. */
static void store_line(struct item *i, float *sums, int64_t count, uint8_t *to) {
    const dmlk_transposed_plan *p = i->p;
    const dmlk_view *out = &p->c.output;
    const int64_t bytes = dmlk_type_bytes(out->type), step = out->strides[X] * bytes, apart = out->strides[CHANNEL] * bytes;
    const int64_t from_step = p->width * bytes;
    finish(sums, count, p->width, i->bias);
    const uint8_t *from = as_elements(i, sums, count * p->width);
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

/* Elements of two arrays by turns; the second one has as many as the first one, or one less. */
DMLK_EACH_ISA(by_turns, (const float *first, const float *second, int64_t count, float *restrict to), (first, second, count, to)) {
    for (int64_t k = 0; k < count / 2; k++) {
        to[2 * k] = first[k];
        to[2 * k + 1] = second[k];
    }
    if (count % 2 != 0) {
        to[count - 1] = first[count / 2];
    }
}

/* The same where lanes are positions: those of line `at` of the stage, beside its first place. */
static void store_lanes(struct item *i, const int64_t *o, int64_t at, int64_t count, uint8_t *to) {
    const dmlk_transposed_plan *p = i->p;
    const dmlk_view *out = &p->c.output;
    const int64_t bytes = dmlk_type_bytes(out->type), step = out->strides[X] * bytes, apart = p->filters * p->pitch;
    const bool in_pairs = p->axes[2].phases == 2 && out->type == DMLK_FLOAT32 && out->strides[X] == 1;
    float *sums = lanes_at(i, (int64_t[]){o[0], o[1], 0}) + at;
    for (int64_t filter = 0; filter < i->columns; filter++, sums += p->pitch, to += out->strides[CHANNEL] * bytes) {
        for (int64_t x = 0; x < p->axes[2].phases; x++) {
            const int64_t periods = periods_of(i, 2, x);
            if (periods > 0) {
                finish_lanes(sums + x * apart, periods, i->bias[filter]);
            }
            if (periods > 0 && !in_pairs) {
                const uint8_t *from = as_elements(i, sums + x * apart, periods);
                dmlk_scatter(from, bytes, periods, to + x * step, p->c.axes[2].spread * step);
            }
        }
        if (in_pairs) {
            by_turns(sums, sums + apart, count, (float *)(void *)to);
        }
    }
}

static void load_bias(struct item *i, int64_t channel) {
    const dmlk_view *bias = &i->p->c.bias;
    memset(i->bias, 0, sizeof i->bias);
    if (bias->base != NULL) {
        dmlk_load_singles(bias->type, bias->base + channel * bias->strides[0] * dmlk_type_bytes(bias->type), bias->strides[0],
                          i->columns, i->bias);
    }
}

/* The lines of a phase along the first two axes; `to`: the first one. */
static void store_phase(struct item *i, const int64_t *o, int64_t count, uint8_t *to) {
    const dmlk_transposed_plan *p = i->p;
    const dmlk_taps_axis *axes = p->c.axes;
    const int64_t *strides = p->c.output.strides, *steps = p->stage.view.strides, bytes = dmlk_type_bytes(p->c.output.type);
    const int64_t nz = periods_of(i, 0, o[0]), ny = periods_of(i, 1, o[1]);
    for (int64_t z = 0; z < nz; z++) {
        for (int64_t y = 0; y < ny; y++) {
            uint8_t *line = to + (z * axes[0].spread * strides[Z] + y * axes[1].spread * strides[Y]) * bytes;
            if (p->lanes_are_positions) {
                store_lanes(i, o, z * steps[Z] + y * steps[Y], count, line);
            } else {
                store_line(i, sums_at(i, o, z, y), count, line);
            }
            dmlk_follow(p->c.followers, line, i->columns, strides[CHANNEL], count, strides[X]);
        }
    }
}

static void store_box(struct item *i) {
    const dmlk_transposed_plan *p = i->p;
    const dmlk_view *out = &p->c.output;
    const int64_t *strides = out->strides, channel = i->group * p->filters + i->filter, *first = i->first;
    const int64_t x = first[2] * p->c.axes[2].spread, count = dmlk_min(i->count[2] * p->axes[2].phases, out->sizes[X] - x);
    int64_t o[2];
    load_bias(i, channel);
    for (o[0] = 0; o[0] < p->axes[0].phases; o[0]++) {
        for (o[1] = 0; o[1] < p->axes[1].phases; o[1]++) {
            const int64_t z = first[0] * p->c.axes[0].spread + o[0], y = first[1] * p->c.axes[1].spread + o[1];
            const int64_t at = i->image * strides[N] + channel * strides[CHANNEL] + z * strides[Z] + y * strides[Y] + x * strides[X];
            store_phase(i, o, count, out->base + at * dmlk_type_bytes(out->type));
        }
    }
}

/* --- items --- */

/* Box, image, group and panels of an item; returns the last panel, exclusive. */
static int64_t begin_item(struct item *i, int64_t number) {
    const dmlk_transposed_plan *p = i->p;
    const dmlk_float_convolution *c = &p->c;
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
    const int64_t *steps = c->input.strides, at = i->image * steps[N] + i->group * p->channels * steps[CHANNEL];
    i->input = c->input;
    i->input.base += at * dmlk_type_bytes(c->input.type);
    i->stage.input = &i->input;
    dmlk_fill_stage(&i->stage, 0, dmlk_stage_lines(&i->stage));
    const int64_t *strides = i->stage.view.strides;
    for (int64_t z = 0; z < i->count[0] && !p->lanes_are_positions; z++) {
        for (int64_t y = 0; y < i->count[1]; y++) {
            for (int64_t x = 0; x < i->count[2]; x++) {
                *row_at++ = z * strides[Z] + y * strides[Y] + x * strides[X];
            }
        }
    }
    i->filter = p->panels * part / p->parts * p->width;
    return p->panels * (part + 1) / p->parts * p->width;
}

static bool run_item(struct item *i, int64_t number) {
    const dmlk_transposed_plan *p = i->p;
    const int64_t end = begin_item(i, number);
    for (; i->filter < end; i->filter += p->width) {
        i->columns = dmlk_min(p->width, p->filters - i->filter);
        for (i->channel = 0; i->channel < p->channels; i->channel += p->piece) {
            i->channels = dmlk_min(p->piece, p->channels - i->channel);
            if (!add_channels(i)) {
                return false;
            }
            if (dmlk_stopped(&i->work, p->has_one_place ? i->channels * p->taps * p->width / 16 : 0)) {
                return true;
            }
        }
        if (p->has_one_place) {
            take_products(i);
        }
        store_box(i);
    }
    return true;
}

/* In whole lines of the cache. */
static int64_t rounded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

static void run_items(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    dmlk_transposed_plan *p = context;
    const int64_t outputs = dmlk_box_outputs(p), floats = (int64_t)sizeof(float);
    const int64_t sums = p->lanes_are_positions ? p->phases * p->filters * p->pitch : outputs * p->width;
    const int64_t lined = p->in_place ? 0 : p->piece * p->taps * p->width;
    const int64_t halves = dmlk_max(p->channel_step, p->axes[2].box * p->axes[2].phases * p->width) * (int64_t)sizeof(uint16_t);
    const int64_t sizes[] = {rounded(p->stage.view.strides[N] * floats), rounded(sums * floats),
                             rounded(p->piece * p->most_taps * p->width * floats), rounded(lined * floats),
                             rounded(outputs / p->phases * (int64_t)sizeof(int64_t)), rounded(halves),
                             p->has_one_place ? rounded(p->taps * p->width * floats) : 0};
    uint8_t *memory = dmlk_take(sizes[0] + sizes[1] + sizes[2] + sizes[3] + sizes[4] + sizes[5] + sizes[6]), *next = memory;
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
    i.halves = (uint16_t *)(void *)(next += sizes[4]);
    i.products = (float *)(void *)(next + sizes[5]);
    for (int64_t number = begin; number < end && !dmlk_stopped(&i.work, 0) && !atomic_load(&p->failed); number++) {
        if (!run_item(&i, number)) {
            atomic_store(&p->failed, true);
        }
    }
    dmlk_give(memory);
}

static bool run_plan(dmlk_transposed_plan *p) {
    const int64_t boxes = p->axes[0].boxes * p->axes[1].boxes * p->axes[2].boxes * p->groups * p->c.output.sizes[N];
    const double work = (double)dmlk_view_elements(&p->c.output) * (double)p->channels * (double)p->taps / (double)p->phases;
    const int threads = dmlk_parts(INT64_MAX, work < WORTH_THREADS ? INT64_MAX : 1);
    p->parts = boxes >= 4 * threads ? 1 : dmlk_min(p->panels, threads);
    dmlk_parallel(boxes * p->parts, (int)dmlk_min(threads, boxes * p->parts), run_items, p);
    return !atomic_load(&p->failed);
}

bool dmlk_convolve_transposed(const dmlk_float_convolution *convolution) {
    dmlk_transposed_plan p;
    const bool done = dmlk_plan_transposed(&p, convolution) && run_plan(&p);
    dmlk_free_transposed(&p);
    return done;
}

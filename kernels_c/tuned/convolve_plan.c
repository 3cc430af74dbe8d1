/* convolve_plan.c - see convolve_plan.h. */
#include "convolve_plan.h"

#include <stdlib.h>

#include "scratch.h"
#include "promoted.h"

enum { N = DMLK_N, CHANNEL = DMLK_CHANNEL, Y = DMLK_Y, X = DMLK_X };

#define ROWS DMLK_S8_ROWS
#define BLOCK DMLK_S8_BLOCK
#define LANES DMLK_S8_LANES
#define MOST_QUADS (INT64_C(1) << 16)

/* The largest part when `count` is divided evenly into parts of at most `most`. */
static int64_t even_part(int64_t count, int64_t most) {
    const int64_t parts = (count + most - 1) / most;
    return (count + parts - 1) / parts;
}

/* The source of a quad's first byte: a channel and a tap. */
struct quad {
    int64_t at[4]; /* by CHANNEL, Y, X */
};

/* Finds the elements begin .. end - 1 of a row that are inside the input; element i is at first + i * step. */
static void inside(int64_t first, int64_t step, int64_t size, int64_t count, int64_t *begin, int64_t *end) {
    *begin = first >= 0 ? 0 : dmlk_min((-first + step - 1) / step, count);
    *end = first >= size ? 0 : dmlk_min((size - 1 - first) / step + 1, count);
    *end = *end < *begin ? *begin : *end;
}

static void next_quad(const dmlk_plan *p, struct quad *quad) {
    const int64_t row = p->x.taps * p->channels;
    const int64_t ends[4] = {0, p->by_rows ? row : p->channels, p->y.taps, p->by_rows ? 1 : p->x.taps};
    for (int i = 0; i < 3; i++) {
        const int axis = p->order[i];
        quad->at[axis] += p->step[axis];
        if (quad->at[axis] < ends[axis]) {
            return;
        }
        quad->at[axis] = 0;
    }
}

/* Finds the sources of a quad's bytes: four elements of a filter; -1: none. */
static void find_taps(const dmlk_plan *p, const struct quad *quad, int64_t *at) {
    const int64_t *strides = p->c->filter.strides; /* channels without blocks */
    for (int64_t j = 0; j < 4; j++) {
        int64_t channel = quad->at[CHANNEL] + (p->by_taps ? 0 : j), tap_x = quad->at[X] + (p->by_taps ? j : 0);
        if (p->by_rows) {
            tap_x = channel / p->channels;
            channel %= p->channels;
        }
        const bool is_there = channel < p->channels && tap_x < p->x.taps;
        at[j] = is_there ? channel * strides[2] + quad->at[Y] * strides[4] + tap_x * strides[5] : -1;
    }
}

/* The offset of a quad from a position. */
static int64_t find_offset(const dmlk_plan *p, const struct quad *quad) {
    const int64_t channel = quad->at[CHANNEL], tap_y = quad->at[Y], tap_x = quad->at[X];
    if (p->direct || p->copied) {
        const int64_t *dilations = p->c->dilations;
        return channel + tap_y * dilations[Y] * p->line_step + tap_x * dilations[X] * p->element_step;
    }
    if (p->by_taps) {
        const int64_t plane = (channel * p->y.count + p->y.index[tap_y]) * p->fours + tap_x / 4;
        return plane * p->plane_bytes + p->y.shift[tap_y] * p->pitch * 4;
    }
    const int64_t plane = (channel / 4 * p->y.count + p->y.index[tap_y]) * p->x.count + p->x.index[tap_x];
    return plane * p->plane_bytes + (p->y.shift[tap_y] * p->pitch + p->x.shift[tap_x]) * 4;
}

/* Chooses the quads of a step in tile registers: those of evenly spaced quads, unless these are few. */
static int choose_depth(const dmlk_plan *p) {
    const int64_t distance = p->quads > 1 ? p->offsets[1] - p->offsets[0] : 0;
    int64_t run = 1;
    while (run < p->quads && p->offsets[run] == p->offsets[0] + run * distance) {
        run++;
    }
    const int64_t depth = even_part(run, DMLK_S8_DEPTH);
    return (int)(run % depth == 0 && depth >= 3 * DMLK_S8_DEPTH / 4 ? depth : even_part(p->quads, DMLK_S8_DEPTH));
}

static bool plan_quads(dmlk_plan *p) {
    const bool with_taps = (p->packed != NULL && !p->in_order) || p->needs_sums;
    p->offsets = dmlk_take(p->quads * (int64_t)sizeof *p->offsets);
    p->taps = with_taps ? dmlk_take(p->quads * (int64_t)sizeof *p->taps) : NULL;
    p->ones = p->needs_sums ? dmlk_take(p->quads * 4) : NULL;
    if (p->offsets == NULL || (with_taps && p->taps == NULL) || (p->needs_sums && p->ones == NULL)) {
        return false;
    }
    struct quad quad = {{0}};
    for (int64_t q = 0; q < p->quads; q++, next_quad(p, &quad)) {
        p->offsets[q] = p->patch > 0 ? 4 * q : find_offset(p, &quad);
        if (with_taps) {
            find_taps(p, &quad, p->taps[q]);
        }
        for (int j = 0; j < 4 && p->needs_sums; j++) {
            p->ones[4 * q + j] = p->taps[q][j] >= 0;
        }
    }
    p->depth = choose_depth(p);
    return true;
}

static bool plan_axis(dmlk_taps *axis, int64_t taps, int64_t dilation, int64_t stride) {
    *axis = (dmlk_taps){.taps = taps};
    axis->index = malloc((size_t)taps * sizeof *axis->index);
    axis->shift = malloc((size_t)taps * sizeof *axis->shift);
    axis->phases = malloc((size_t)taps * sizeof *axis->phases);
    if (axis->index == NULL || axis->shift == NULL || axis->phases == NULL) {
        return false;
    }
    for (int64_t k = 0; k < taps; k++) {
        const int64_t at = k * dilation, phase = at % stride;
        int64_t i = 0;
        while (i < axis->count && axis->phases[i] != phase) {
            i++;
        }
        axis->phases[i] = phase;
        axis->count += i == axis->count;
        axis->index[k] = i;
        axis->shift[k] = at / stride;
        axis->reach = axis->shift[k] > axis->reach ? axis->shift[k] : axis->reach;
    }
    return true;
}

void dmlk_free_plan(dmlk_plan *p) {
    free(p->x.index), free(p->x.shift), free(p->x.phases);
    free(p->y.index), free(p->y.shift), free(p->y.phases);
    free(p->windows), dmlk_give(p->offsets), dmlk_give(p->taps), dmlk_give(p->ones);
    dmlk_give(p->packed), dmlk_give(p->factor), dmlk_give(p->constant), dmlk_give(p->row_constant),
        dmlk_give(p->scales), dmlk_give(p->fits), dmlk_give(p->turned);
}

static int64_t round_up(int64_t count, int64_t step) { return (count + step - 1) / step * step; }

/* Chooses the kind of tile, whose lanes are contiguous in the output, unless the other kind leaves far fewer lanes
 * unused.  Returns whether lanes are filters. */
static bool choose_lanes(const dmlk_plan *p) {
    const int64_t *sizes = p->c->output.sizes;
    if (p->tiles.filters == NULL || p->filters < ROWS || p->pitch > DMLK_PANEL_BYTES) {
        return false;
    }
    const int64_t rows = dmlk_min(sizes[Y], 64), filters = p->filters; /* enough to compare */
    const bool in_lines = p->tiles.lines != NULL && filters >= BLOCK;
    const int64_t of_positions = in_lines ? rows * round_up(sizes[X], BLOCK) * round_up(filters, BLOCK)
                                          : round_up(rows * p->pitch, 16) * round_up(filters, ROWS);
    const int64_t of_filters = round_up(rows * sizes[X], p->tiles.rows) * round_up(filters, BLOCK);
    if (in_lines && !p->channels_close && p->quads > sizes[N] * sizes[Y] * sizes[X]) {
        return true; /* a position has fewer sums than a filter has bytes: it is sums that are transposed */
    }
    /* Tiles that widen filters which do not fit 16 bits widen positions in planes one by one, which takes longer. */
    const int64_t most_tenths = dmlk_microkernel_s8_form->fits != NULL ? 8 : 9;
    return p->channels_close ? of_filters <= 2 * of_positions : of_filters * 10 < of_positions * most_tenths;
}

/* Divides positions evenly between tile registers, so that as many as possible are evenly spaced in memory. */
static void divide_positions(dmlk_plan *p) {
    const int64_t *sizes = p->c->output.sizes, most = p->tiles.rows;
    const int64_t count = sizes[X] < 3 * most / 4 ? sizes[X] * dmlk_min(sizes[Y], most) : sizes[X];
    p->tiles.rows = (int)even_part(count, most);
}

/* Whether most elements of the input are in no window. */
static bool is_sparse(const dmlk_plan *p, int64_t rows) {
    const dmlk_convolution *c = p->c;
    const int64_t width = c->output.sizes[X];
    return dmlk_lines(p, rows) / 2 > rows * p->y.taps || p->line / 2 > width * p->x.taps;
}

/* The number of output rows whose input lines fit into a cache together. */
static int64_t direct_strip(const dmlk_plan *p) {
    const int64_t row_bytes = p->channels * p->c->input.sizes[X];
    return dmlk_min(p->c->output.sizes[Y], 1 + DMLK_PANEL_BYTES / row_bytes / p->c->strides[Y]);
}

/* Whether positions can be addresses in the input itself. */
static bool is_direct(const dmlk_plan *p) {
    const dmlk_convolution *c = p->c;
    bool is_inside = true;
    for (int axis = Y; axis <= X; axis++) {
        const int64_t last_window = (c->output.sizes[axis] - 1) * c->strides[axis];
        const int64_t last_tap = (c->filter_sizes[axis] - 1) * c->dilations[axis];
        is_inside = is_inside && c->start[axis] == 0 && last_window + last_tap < c->input.sizes[axis];
    }
    return is_inside && p->lanes_are_filters && !p->by_taps && p->channels % 4 == 0 &&
           c->input.strides[CHANNEL] == 1 && p->flip == 0 &&
           (!p->needs_sums || (p->channels <= DMLK_PANEL_BYTES / p->line && !is_sparse(p, direct_strip(p))));
}

/* Plans positions in the input itself. */
static void plan_direct(dmlk_plan *p) {
    const dmlk_convolution *c = p->c;
    p->strip = direct_strip(p);
    p->line_step = c->input.strides[Y];
    p->element_step = c->input.strides[X];
}

/* Plans patches of the positions of a copy, if a strip of them fits into a cache. */
static void plan_patches(dmlk_plan *p) {
    const int64_t bytes = round_up(p->quads * 4 + DMLK_PATCH_BYTES - 1, 64), row = p->c->output.sizes[X] * bytes;
    if (p->tiles.row_tiles > 1 && p->by_rows && p->y.taps > 1 && row <= DMLK_PANEL_BYTES) {
        p->patch = bytes;
        p->strip = dmlk_min(p->strip, DMLK_PANEL_BYTES / row);
    }
}

/* Plans positions in a copy of the input; false: another plan is better. */
static bool plan_copy(dmlk_plan *p) {
    const dmlk_convolution *c = p->c;
    const bool by_rows = p->channels % 4 != 0 && (c->dilations[X] == 1 || p->x.taps == 1);
    const int64_t row_quads = by_rows ? round_up(p->x.taps * p->channels, 4) / 4
                                      : p->x.taps * (round_up(p->channels, 4) / 4);
    const int64_t reach = (p->y.taps - 1) * c->dilations[Y], size = by_rows ? p->channels : round_up(p->channels, 4);
    const int64_t fitting = DMLK_PANEL_BYTES / (p->line * size) - reach; /* lines */
    const int64_t strip = fitting < 1 ? 0 : dmlk_min(c->output.sizes[Y], 1 + (fitting - 1) / c->strides[Y]);
    if (!p->lanes_are_filters || strip == 0 || is_sparse(p, strip) || p->y.taps * row_quads > p->quads ||
        (p->channels > 1 && c->input.strides[CHANNEL] != 1 && p->tiles.row_tiles < 2)) {
        return false;
    }
    p->copied = true;
    p->by_taps = false;
    p->by_rows = by_rows;
    p->quads = p->y.taps * row_quads;
    p->strip = strip;
    plan_patches(p);
    p->element_step = size;
    /* The last quads of a line may end after it: not in the next line, which another thread may be filling. */
    p->line_step = p->line * size + (by_rows ? 4 * row_quads - p->x.taps * p->channels : 0);
    p->planes = 1;
    p->plane_bytes = dmlk_lines(p, p->strip) * p->line_step;
    return true;
}

/* Whether four channels of the input are a word in memory. */
static bool is_transposed(const dmlk_plan *p) {
    const dmlk_view *in = &p->c->input;
    const uint64_t misaligned = (uintptr_t)in->base | (uint64_t)in->strides[N] | (uint64_t)in->strides[Y] |
                                (uint64_t)in->strides[X];
    return !p->by_taps && p->channels % 4 == 0 && in->strides[CHANNEL] == 1 && misaligned % 4 == 0;
}

/* Sets the sizes of the planes; false: even a single row would need too much memory. */
static bool plan_planes(dmlk_plan *p) {
    const dmlk_convolution *c = p->c;
    const int64_t by_channels = (p->channels + 3) / 4 * p->y.taps * p->x.taps;
    const int64_t by_taps = p->channels * p->y.taps * ((p->x.taps + 3) / 4);
    p->by_taps = by_taps < by_channels;
    p->quads = p->by_taps ? by_taps : by_channels;
    p->fours = p->by_taps ? (p->x.taps + 3) / 4 : (p->channels + 3) / 4;
    p->pitch = c->output.sizes[X] + (p->by_taps ? 0 : p->x.reach);
    const int64_t *strides = c->output.strides, *sizes = c->output.sizes;
    p->channels_close = strides[CHANNEL] < strides[X] || sizes[Y] * sizes[X] == 1;
    p->lanes_are_filters = choose_lanes(p);
    if (p->lanes_are_filters && p->tiles.row_tiles > 1) {
        divide_positions(p);
    }
    p->line = (sizes[X] - 1) * c->strides[X] + (p->x.taps - 1) * c->dilations[X] + 1;
    p->direct = is_direct(p);
    if (p->direct) {
        plan_direct(p);
    }
    if (p->direct || plan_copy(p)) {
        p->pitch = sizes[X];
        p->row_step = p->patch > 0 ? p->pitch * p->patch : c->strides[Y] * p->line_step;
        p->position_step = p->patch > 0 ? p->patch : c->strides[X] * p->element_step;
        p->sums = p->needs_sums ? p->strip * p->pitch + LANES + (dmlk_lines(p, p->strip) + p->strip) * p->line : 0;
        return p->quads <= MOST_QUADS;
    }
    p->line = 0;
    p->transposed = is_transposed(p);
    p->planes = p->by_taps ? p->channels * p->y.count * p->fours : p->fours * p->y.count * p->x.count;
    const int64_t most = DMLK_PANEL_BYTES;
    if (p->quads > MOST_QUADS || p->pitch > most || p->planes > most || p->y.reach > most) {
        return false;
    }
    p->position_step = 4;
    p->row_step = p->pitch * 4;
    const int64_t row_bytes = p->planes * p->row_step, fitting = most / row_bytes - p->y.reach;
    p->strip = dmlk_min(c->output.sizes[Y], fitting < 1 ? 1 : fitting);
    /* An odd number of lines, so that the quads of a position are not all in the same set of a cache. */
    p->sums = p->needs_sums ? p->strip * p->pitch + LANES : 0;
    p->plane_bytes = (((p->strip + p->y.reach) * p->row_step + 63) / 64 | 1) * 64;
    return p->planes * p->plane_bytes <= 2 * most;
}

static bool plan_windows(dmlk_plan *p) {
    const dmlk_convolution *c = p->c;
    const int64_t kinds = p->by_taps ? p->fours : p->x.count, step = c->strides[X];
    p->windows = malloc((size_t)kinds * sizeof *p->windows);
    for (int64_t k = 0; p->windows != NULL && k < kinds; k++) {
        dmlk_window *w = &p->windows[k];
        *w = (dmlk_window){.begin = 0, .end = p->pitch};
        for (int j = 0; j < 4; j++) {
            int64_t begin, end;
            w->x[j] = (p->by_taps ? (4 * k + j) * c->dilations[X] : p->x.phases[k]) - c->start[X];
            inside(w->x[j], step, c->input.sizes[X], p->pitch, &begin, &end);
            w->begin = begin > w->begin ? begin : w->begin;
            w->end = dmlk_min(w->end, end);
        }
        w->end = w->end < w->begin ? w->begin : w->end;
    }
    return p->windows != NULL;
}

/* Uses operands of the same sign as they are, if all tiles can be those of tile registers. */
static void plan_same_sign(dmlk_plan *p) {
    const int64_t *sizes = p->c->filter_sizes, most = MOST_QUADS / 4;
    if (p->flip == 0 || p->tiles.filters_of_same == NULL || p->needs_sums || p->filters < BLOCK || p->channels > most ||
        p->channels * sizes[Y] > most || p->channels * sizes[Y] * sizes[X] > most) {
        return;
    }
    p->tiles.filters = p->tiles.filters_of_same;
    p->tiles.lines = p->tiles.lines_of_same;
    p->flip = 0;
    p->zero = p->c->input_zero;
}

bool dmlk_plan_convolution(dmlk_plan *p, const dmlk_convolution *c) {
    *p = (dmlk_plan){.c = c};
    p->bytes = dmlk_type_bytes(c->output.type);
    p->channels = c->filter_sizes[CHANNEL];
    p->filters = c->filter_sizes[N] / c->groups;
    p->flip = dmlk_input_flip(c);
    p->zero = dmlk_flipped_zero(c);
    p->needs_sums = dmlk_has_filter_zeros(c);
    p->tiles = dmlk_microkernel_s8_form->tiles[c->filter.type == DMLK_INT8];
    plan_same_sign(p);
    p->padding = (uint8_t)p->zero;
    /* All sizes are below 2^32; with these limits, the products below do not overflow. */
    return c->filter_sizes[Y] <= 1 << 12 && c->filter_sizes[X] <= 1 << 12 && p->channels <= 1 << 20 &&
           plan_axis(&p->y, c->filter_sizes[Y], c->dilations[Y], c->strides[Y]) &&
           plan_axis(&p->x, c->filter_sizes[X], c->dilations[X], c->strides[X]) && plan_planes(p) &&
           (p->direct || p->copied || plan_windows(p)) && dmlk_plan_filters(p) && plan_quads(p);
}

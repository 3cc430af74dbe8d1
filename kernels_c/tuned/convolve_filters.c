/* convolve_filters.c - packs filters in the order in which tiles read them. */
#include "convolve_plan.h"

#include "cpu.h"
#include "scratch.h"
#include "cancellation.h"
#include "transpose.h"
#include "promoted.h"

const struct dmlk_convolve_filters_form *dmlk_convolve_filters_form;

enum { CHANNEL = DMLK_CHANNEL, Y = DMLK_Y, X = DMLK_X };

#define ROWS DMLK_S8_ROWS
#define BLOCK DMLK_S8_BLOCK
#define MOST_ROWS 16 /* rows of taps; with more, rows that are in the padding are not skipped */
#define FILTER_BYTES (INT64_C(1) << 21) /* bytes of filters that are packed at a time */
#define PACKED_QUADS 256                /* quads of a filter that are packed at a time */

/* Packs quads first .. first + count - 1 of a filter, one after the other. */
static void pack_any(const dmlk_plan *p, int64_t filter, int64_t first, int64_t count, uint8_t *to) {
    const uint8_t *base = p->c->filter.base + dmlk_filter_at(p->c, filter);
    for (int64_t q = first; q < first + count; q++, to += 4) {
        const int64_t *at = p->taps[q];
        for (int j = 0; j < 4; j++) {
            to[j] = at[j] < 0 ? 0 : base[at[j]];
        }
    }
}

/* Whether the form for this CPU can pack the filters. */
static bool can_pack_transposed(const dmlk_plan *p) {
    const int64_t window = p->y.taps * p->x.taps, *strides = p->c->filter.strides;
    return dmlk_convolve_filters_form != NULL && !p->by_taps && p->order[0] == X && p->channels % 4 == 0 && window <= 16 &&
           strides[5] == 1 && strides[4] == p->x.taps && strides[2] == window;
}

/* Packs quads of a block of filters of one tap per channel, whose bytes of a channel are contiguous. */
DMLK_EACH_ISA(interleave, (const uint8_t *restrict from, int64_t step, int64_t quads, uint8_t *restrict to),
              (from, step, quads, to)) {
    for (int64_t q = 0; q < quads; q++, from += 4 * step, to += 4 * BLOCK) {
        for (int64_t f = 0; f < BLOCK; f++) {
            to[4 * f] = from[f];
            to[4 * f + 1] = from[step + f];
            to[4 * f + 2] = from[2 * step + f];
            to[4 * f + 3] = from[3 * step + f];
        }
    }
}

/* The same for `count` filters of one tap per channel, whatever the stride of channels; the rest of `rows` is 0. */
static void pack_elements(const dmlk_plan *p, int64_t filter, int64_t first, int64_t quads, int64_t count,
                          uint8_t (*rows)[4 * PACKED_QUADS]) {
    const int64_t channels = dmlk_min(4 * quads, p->channels - 4 * first), *strides = p->c->filter.strides;
    const int64_t step = dmlk_filter_at(p->c, 1);
    memset(rows, 0, sizeof(uint8_t[BLOCK][4 * PACKED_QUADS]));
    dmlk_transpose(1, p->c->filter.base + dmlk_filter_at(p->c, filter) + 4 * first * strides[2], strides[2], step, rows[0],
                   sizeof rows[0], count, channels);
}

/* Packs all quads of `count` filters, from `filter` on, as a block. */
static void pack_block(const dmlk_plan *p, int64_t filter, int64_t count, uint8_t *to) {
    if (p->width == 1) {
        pack_any(p, filter, 0, p->quads, to);
        return;
    }
    if (p->in_order) {
        if (count < p->width) {
            memset(to, 0, (size_t)p->block_bytes);
        }
        dmlk_transpose(4, p->c->filter.base + dmlk_filter_at(p->c, filter), p->c->filter.strides[0], 4, to,
                       4 * p->width, p->quads, count);
        return;
    }
    const int64_t window = p->y.taps * p->x.taps;
    const int64_t whole = window == 1 && count == BLOCK && dmlk_filter_at(p->c, 1) == 1 ? p->channels / 4 : 0;
    if (whole > 0) {
        interleave(p->c->filter.base + dmlk_filter_at(p->c, filter), p->c->filter.strides[2], whole, to);
    }
    const int64_t most = window < PACKED_QUADS ? PACKED_QUADS / window * window : PACKED_QUADS;
    uint8_t rows[BLOCK][4 * PACKED_QUADS];
    for (int64_t first = whole; first < p->quads; first += most) {
        const int64_t quads = dmlk_min(most, p->quads - first);
        if (window == 1) {
            pack_elements(p, filter, first, quads, count, rows);
            dmlk_transpose(4, rows[0], sizeof rows[0], 4, to + first * 4 * p->width, 4 * p->width, quads, p->width);
            continue;
        }
        for (int64_t r = 0; r < p->width; r++) {
            if (r >= count) {
                memset(rows[r], 0, (size_t)(4 * quads));
                continue;
            }
            if (can_pack_transposed(p)) {
                dmlk_convolve_filters_form->pack_transposed(p, filter + r, first, quads, rows[r]);
                continue;
            }
            pack_any(p, filter + r, first, quads, rows[r]);
        }
        dmlk_transpose(4, rows[0], sizeof rows[0], 4, to + first * 4 * p->width, 4 * p->width, quads, p->width);
    }
}

/* Puts the quads of each filter of a block one after the other. */
static void turn_block(const dmlk_plan *p, int64_t i) {
    dmlk_transpose(4, p->blocks + i * p->block_bytes, 4 * BLOCK, 4, p->turned + i * BLOCK * p->row_bytes, p->row_bytes, BLOCK,
                   p->quads);
}

/* Stores the zero point corrections of `count` filters. */
static void note_zero_points(const dmlk_plan *p, int64_t filter, int64_t count, const uint32_t *sums, int64_t slot) {
    if (p->zero == 0 && !p->needs_sums) { /* no zero points, so no corrections */
        memset(p->factor + slot, 0, (size_t)p->width * sizeof *p->factor);
        memset(p->constant + slot, 0, (size_t)p->width * sizeof *p->constant);
        return;
    }
    const uint32_t taps = (uint32_t)(p->channels * p->y.taps * p->x.taps), a = (uint32_t)p->zero;
    for (int64_t i = 0; i < p->width; i++) {
        const int factor = i < count ? dmlk_filter_zero(p->c, filter + i) : 0;
        p->factor[slot + i] = factor;
        p->constant[slot + i] = (int32_t)(a * (taps * (uint32_t)factor - sums[i]));
    }
}

static void note_finish(const dmlk_plan *p, int64_t filter, int64_t count, int64_t slot) {
    const dmlk_sums_finish *finish = p->c->finish;
    const dmlk_scaling *s = finish == NULL ? NULL : finish->scaling;
    for (int64_t i = 0; s != NULL && i < count; i++) {
        p->constant[slot + i] = (int32_t)((uint32_t)p->constant[slot + i] + dmlk_scaling_bias(s, filter + i));
        p->scales[slot + i] = dmlk_scaling_factor(s, filter + i);
    }
    for (int64_t i = 0; finish != NULL && s == NULL && i < count; i++) {
        p->scales[slot + i] = finish->factor;
    }
}

/* Adds up the sums that are kept of `count` filters, over rows `row` .. `row` + `rows` - 1 of their taps. */
static void add_kept_sums(const dmlk_plan *p, int64_t filter, int64_t count, int64_t row, int64_t rows, uint32_t sums[BLOCK]) {
    const dmlk_view *kept = &p->c->filter_sums;
    const uint32_t *base = (const uint32_t *)(const void *)kept->base;
    memset(sums, 0, BLOCK * sizeof *sums);
    for (int64_t y = row; y < row + rows; y++) {
        for (int64_t x = 0; x < p->x.taps; x++) {
            const int64_t at = filter * kept->strides[0] + y * kept->strides[1] + x * kept->strides[2];
            for (int64_t k = 0; k < count; k++) {
                sums[k] += base[at + k * kept->strides[0]];
            }
        }
    }
}

/* Finds the sums of the bytes of `count` filters, of a block; separately for each row of taps that may be skipped. */
static void sum_block(const dmlk_plan *p, int64_t i, int64_t filter, int64_t count, uint32_t sums[BLOCK]) {
    const int64_t rows = p->row_constant != NULL ? p->y.taps : 1, quads = p->quads / rows;
    for (int64_t row = 0; row < rows; row++) {
        uint32_t of_row[BLOCK];
        if (p->c->filter_sums.base != NULL) {
            add_kept_sums(p, filter, count, row, p->y.taps / rows, of_row);
        } else {
            dmlk_microkernel_s8_form->sums(p->c->filter.type == DMLK_INT8,
                                           p->blocks + i * p->block_bytes + row * quads * 4 * p->width, quads, p->width, of_row);
        }
        for (int64_t k = 0; k < p->width; k++) {
            sums[k] += of_row[k];
            if (p->row_constant != NULL) {
                p->row_constant[row * p->row_constants + i * p->width + k] = (int32_t)((uint32_t)p->zero * of_row[k]);
            }
        }
    }
}

/* Items: the blocks that are packed at a time. */
static void pack_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const dmlk_plan *p = context;
    int64_t work = 0;
    for (int64_t i = begin; i < end && !dmlk_stopped(&work, p->quads * p->width); i++) {
        const int64_t block = p->first + i, of_group = block % p->group_blocks * p->width;
        const int64_t filter = block / p->group_blocks * p->filters + of_group;
        const int64_t count = dmlk_min(p->width, p->filters - of_group);
        if (p->packed != NULL) {
            pack_block(p, filter, count, p->packed + i * p->block_bytes);
        }
        if (p->fits != NULL) {
            p->fits[i] = dmlk_microkernel_s8_form->fits(p->c->filter.type == DMLK_INT8, p->blocks + i * p->block_bytes,
                                                        p->quads * 4 * p->width);
        }
        if (p->turned != NULL) {
            turn_block(p, i);
        }
        uint32_t sums[BLOCK] = {0};
        if (p->zero != 0) {
            sum_block(p, i, filter, count, sums);
        }
        note_zero_points(p, filter, count, sums, i * p->width);
        note_finish(p, filter, count, i * p->width);
    }
}

dmlk_pool_phase dmlk_pack_filters(dmlk_plan *p, int64_t first, int64_t count) {
    p->first = first;
    p->blocks = p->packed != NULL ? p->packed : p->c->filter.base + first * p->block_bytes;
    const bool sums = p->zero != 0 && p->c->filter_sums.base == NULL;
    const bool reads = p->packed != NULL || p->turned != NULL || sums || p->fits != NULL;
    const int64_t work = reads ? p->quads * p->width : 1;
    return (dmlk_pool_phase){
        .items = count, .parts = dmlk_parts(count, 1 + 8192 / work), .run = pack_part, .context = p};
}

/* Whether the filter tensor already consists of blocks of quads; if so, sets the order of the quads. */
static bool find_blocks(dmlk_plan *p) {
    const dmlk_view *f = &p->c->filter;
    const int64_t *strides = f->strides, y_step = strides[4], x_step = strides[5], tap = 16 * p->channels;
    const bool x_outside = x_step > y_step && p->y.taps > 1;
    p->order[0] = CHANNEL, p->order[1] = x_outside ? Y : X, p->order[2] = x_outside ? X : Y;
    return f->sizes[1] == BLOCK && f->sizes[3] == 4 && p->filters % BLOCK == 0 && !p->by_taps && strides[1] == 4 &&
           (p->channels == 4 || strides[2] == 64) && strides[3] == 1 &&
           (p->x.taps == 1 || x_step == tap * (x_outside ? p->y.taps : 1)) &&
           (p->y.taps == 1 || y_step == tap * (x_outside ? 1 : p->x.taps));
}

/* Whether unblocked filters are sequences of quads in memory. */
static bool is_in_order(const dmlk_plan *p) {
    const dmlk_view *f = &p->c->filter;
    const int64_t *strides = f->strides;
    return !p->by_taps && p->channels % 4 == 0 && p->width > 1 && strides[2] == 1 &&
           (p->x.taps == 1 || strides[5] == p->channels) && (p->y.taps == 1 || strides[4] == p->channels * p->x.taps) &&
           ((uintptr_t)f->base | (uint64_t)strides[0]) % 4 == 0;
}

/* Plans tiles of positions in tile registers, if they are available. */
static void plan_lines(dmlk_plan *p) {
    if (p->tiles.lines == NULL || p->lanes_are_filters || p->width != BLOCK || p->quads * 4 * BLOCK > FILTER_BYTES) {
        return;
    }
    const int64_t size = p->c->output.sizes[X];
    p->lines = (size + BLOCK - 1) / BLOCK;
    p->lanes = (size + p->lines - 1) / p->lines;
    /* An odd number of cache lines, so that the filters are not all in the same set of a cache. */
    p->row_bytes = ((p->quads * 4 + 63) / 64 | 1) * 64;
}

bool dmlk_plan_filters(dmlk_plan *p) {
    const dmlk_view *f = &p->c->filter;
    const bool in_place = find_blocks(p);
    if (!in_place && (f->sizes[1] > 1 || f->sizes[3] > 1)) {
        return false; /* filters have another block layout */
    }
    if (!in_place && !p->by_rows && (p->by_taps || f->strides[2] != 1)) {
        p->order[0] = X, p->order[1] = Y, p->order[2] = CHANNEL;
    } else if (!in_place) {
        p->order[1] = X, p->order[2] = Y;
    }
    p->row_quads = p->order[2] == Y && p->y.taps <= MOST_ROWS ? p->quads / p->y.taps : 0;
    p->step[CHANNEL] = p->by_taps ? 1 : 4, p->step[Y] = 1, p->step[X] = p->by_taps ? 4 : 1;
    p->width = p->lanes_are_filters || p->filters > BLOCK ? BLOCK : p->filters;
    p->group_blocks = (p->filters + p->width - 1) / p->width;
    p->in_order = is_in_order(p);
    p->block_bytes = in_place && p->group_blocks * p->c->groups > 1 ? f->strides[0] : p->quads * 4 * p->width;
    const int64_t all = p->c->groups * p->group_blocks;
    plan_lines(p);
    p->room = in_place && p->lanes == 0 ? all : dmlk_min(all, FILTER_BYTES / (p->quads * 4 * p->width));
    if (p->room < 1) {
        return false;
    }
    const int64_t more = p->width % ROWS != 0 ? ROWS : 0; /* tiles read past the last filter */
    if (!in_place) {
        p->packed = dmlk_take(p->room * p->block_bytes + 4 * more);
    }
    if (p->lanes > 0) {
        p->turned = dmlk_take(p->room * BLOCK * p->row_bytes);
    }
    p->factor = dmlk_take((p->room * p->width + more) * (int64_t)sizeof *p->factor);
    p->constant = dmlk_take((p->room * p->width + more) * (int64_t)sizeof *p->constant);
    const bool finishes = p->c->finish != NULL;
    const int64_t scales_read = p->room * p->width + DMLK_S8_LANES; /* sums are finished in whole tiles */
    p->scales = finishes ? dmlk_take(scales_read * (int64_t)sizeof *p->scales) : NULL;
    const bool with_fits = dmlk_microkernel_s8_form->fits != NULL;
    p->fits = with_fits ? dmlk_take(p->room * (int64_t)sizeof *p->fits) : NULL;
    const bool with_rows = p->row_quads != 0 && p->zero != 0;
    p->row_constants = p->room * p->width + more;
    p->row_constant = with_rows ? dmlk_take(p->y.taps * p->row_constants * (int64_t)sizeof *p->row_constant) : NULL;
    return (in_place || p->packed != NULL) && (p->lanes == 0 || p->turned != NULL) && p->factor != NULL &&
           p->constant != NULL && (!finishes || p->scales != NULL) && (!with_fits || p->fits != NULL) &&
           (!with_rows || p->row_constant != NULL);
}

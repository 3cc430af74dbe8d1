/* windows_in_channels.c - sliding windows (see window_taps.h) whose vectors hold adjacent channels of an output.
 *
 * Rows of the input are read in place, if its channels are adjacent floats, or from copies, [X][channels] each.  A ring
 * keeps as many copies as the window spans: a row is copied once for all rows of the output that read it. */
#include "window_taps.h"

#include <string.h>

#include "cancellation.h"
#include "cpu.h"
#include "float16.h"
#include "parallel.h"
#include "scratch.h"
#include "transpose.h"

#define RING 5120             /* floats of the copied rows, if possible: they fit the first-level cache */
#define FEWEST_CHANNELS LANES /* with fewer channels, this loop does not apply */
#define FEWEST_OF_BLOCK 48    /* channels of a block: with fewer, too little of each cache line of the input is used */
#define MAX_OUTPUTS 4        /* outputs that are computed at once */

struct channels {
    const window_taps *w;
    float *memory; /* of all threads, part_floats each */
    int64_t part_floats;
    float *outside;         /* [channels]: the element of every tap outside of the input */
    int64_t ring_z, ring_y; /* row (z, y) of the input is copied to slot (z % ring_z, y % ring_y); 0: none is copied */
    bool is_direct;         /* results are stored in place */
    int64_t block, blocks;  /* channels of a block; the last block has more if they do not divide all channels */
};

/* Channels first .. first + count - 1 of a row of the output. */
struct row {
    const float *const *lines; /* the rows of the input that its taps read, from the first channel on; NULL: outside */
    int64_t step;              /* floats between elements along X */
    int64_t first, count;
    float counted;             /* of AVERAGE: the product of the counts along Z and Y */
    float *to;
    int64_t to_step;
    int32_t *found;            /* [X][count], of MAXIMUM_AND_INDEX */
};

/* The element of each tap at some output, from the first channel on, and the distance to that of the next output. */
struct tap_pointers {
    const float *at[MOST_TAPS];
    int64_t step[MOST_TAPS];
};

/* Computes all channels of `outputs` adjacent outputs.  AVERAGE divides by `counts`, one for each output.  If the
 * channels are not a multiple of the vectors, the last vectors overlap others, with equal results.  Returns whether a
 * maximum is LOWEST. */
INLINE bool run_outputs(const enum window_operation operation, const struct channels *p, const struct row *r,
                        const struct tap_pointers *taps, const int outputs, const int vectors, const float *counts, float *to,
                        int32_t *to_found) {
    const window_taps *w = p->w;
    const int64_t size = vectors * LANES;
    const vector low = w->low - (vector){0}, high = w->high - (vector){0};
    mask are_lowest = {0};
    for (int64_t next = 0; next < r->count; next += size) {
        const int64_t first = dmlk_min(next, r->count - size);
        vector sums[MAX_OUTPUTS * 2];
        mask found[MAX_OUTPUTS * 2];
#pragma GCC unroll 8
        for (int i = 0; i < outputs * vectors; i++) {
            sums[i] = w->outside - (vector){0};
            found[i] = NO_TAP - (mask){0};
        }
        for (int64_t t = 0; t < w->taps; t++) {
            const float *weight = w->weights + t * w->channels + r->first + first;
            const float *from = taps->at[t] + first;
#pragma GCC unroll 4
            for (int i = 0; i < outputs; i++, from += taps->step[t]) {
#pragma GCC unroll 8
                for (int v = 0; v < vectors; v++) {
                    const vector *x = (const vector *)from + v;
                    if (operation == MAXIMUM_AND_INDEX) {
                        take_larger(x, w->tap_index[t], &sums[i * vectors + v], &found[i * vectors + v]);
                    } else {
                        add_tap(operation, (const vector *)weight + v, x, &sums[i * vectors + v]);
                    }
                }
            }
        }
#pragma GCC unroll 4
        for (int i = 0; i < outputs; i++) {
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++) {
                vector *sum = &sums[i * vectors + v];
                if (operation == CONVOLVE_AND_BOUND) {
                    finish_bounded((const vector *)(w->bias + r->first + first) + v, &low, &high, sum);
                } else if (operation == CONVOLVE_FLOATS || operation == CONVOLVE_BYTES) {
                    finish_convolution(operation, (const vector *)(w->bias + r->first + first) + v, sum);
                } else if (operation == AVERAGE) {
                    const vector count = counts[i] - (vector){0};
                    divide(&count, sum);
                } else {
                    are_lowest |= *sum == LOWEST - (vector){0};
                }
                *(vector *)(to + i * r->to_step + first + v * LANES) = *sum;
                if (operation == MAXIMUM_AND_INDEX) {
                    memcpy(to_found + i * r->count + first + v * LANES, &found[i * vectors + v], sizeof found[0]);
                }
            }
        }
    }
    int32_t any = 0;
    for (int l = 0; l < LANES; l++) {
        any |= are_lowest[l];
    }
    return any != 0;
}

/* Sets the taps of output x.  Without `tests`, all of them are known to lie between the ends of the rows. */
INLINE void set_taps(const struct channels *p, const struct row *r, int64_t x, const bool tests, struct tap_pointers *taps) {
    const dmlk_taps_axis *along = &p->w->c->axes[2];
    for (int64_t t = 0, row = 0; t < p->w->taps; row++) {
        int64_t at = x * along->step + along->origin;
        for (int64_t k = 0; k < along->window; k++, t++, at += along->tap) {
            const bool is_inside = r->lines[row] != NULL && (!tests || (at >= 0 && at < along->input));
            taps->at[t] = is_inside ? r->lines[row] + at * r->step : p->outside;
            taps->step[t] = is_inside ? along->step * r->step : 0;
        }
    }
}

INLINE void advance_taps(const window_taps *w, int64_t outputs, struct tap_pointers *taps) {
    for (int64_t t = 0; t < w->taps; t++) {
        taps->at[t] += outputs * taps->step[t];
    }
}

/* Returns whether a maximum is LOWEST. */
INLINE bool run_row_of(const enum window_operation operation, const struct channels *p, const struct row *r) {
    const window_taps *w = p->w;
    const dmlk_taps_axis *along = &w->c->axes[2];
    const int64_t first = along->origin + lowest_tap(along), last = along->input - tap_span(along) - first;
    bool is_lowest = false, was_inside = false;
    struct tap_pointers taps;
    for (int64_t x = 0, count = 1; x < along->output; x += count) {
        const bool is_inside = x * along->step + first >= 0 && (x + MAX_OUTPUTS - 1) * along->step <= last &&
                               x + MAX_OUTPUTS <= along->output;
        if (was_inside && is_inside) {
            advance_taps(w, MAX_OUTPUTS, &taps);
        } else {
            set_taps(p, r, x, !is_inside, &taps);
        }
        was_inside = is_inside;
        count = is_inside ? MAX_OUTPUTS : 1;
        float counts[MAX_OUTPUTS] = {0}, *to = r->to + x * r->to_step;
        int32_t *found = operation == MAXIMUM_AND_INDEX ? r->found + x * r->count : NULL;
        for (int64_t i = 0; i < count && operation == AVERAGE; i++) {
            counts[i] = r->counted * w->counts[2][x + i];
        }
        const bool shares_weights = count > 1 && w->weights != NULL;
        if (operation != MAXIMUM_AND_INDEX && r->count >= 8 * LANES && !shares_weights) {
            for (int64_t i = 0; i < count; i++) {
                is_lowest |= run_outputs(operation, p, r, &taps, 1, 8, counts + i, to + i * r->to_step, found);
                advance_taps(w, 1, &taps);
            }
            was_inside = false;
        } else if (count == 1) {
            is_lowest |= run_outputs(operation, p, r, &taps, 1, 1, counts, to, found);
        } else if (operation == MAXIMUM_AND_INDEX || r->count < 2 * LANES) {
            is_lowest |= run_outputs(operation, p, r, &taps, MAX_OUTPUTS, 1, counts, to, found);
        } else {
            is_lowest |= run_outputs(operation, p, r, &taps, MAX_OUTPUTS, 2, counts, to, found);
        }
    }
    return is_lowest;
}

DMLK_EACH_ISA(run_row, (const struct channels *p, const struct row *r, bool *is_lowest), (p, r, is_lowest)) {
    const window_taps *w = p->w;
    if (w->operation == CONVOLVE_FLOATS && w->is_bounded) {
        run_row_of(CONVOLVE_AND_BOUND, p, r);
    } else if (w->operation == CONVOLVE_FLOATS) {
        run_row_of(CONVOLVE_FLOATS, p, r);
    } else if (w->operation == CONVOLVE_BYTES) {
        run_row_of(CONVOLVE_BYTES, p, r);
    } else if (w->operation == AVERAGE) {
        run_row_of(AVERAGE, p, r);
    } else if (w->operation == MAXIMUM) {
        *is_lowest = run_row_of(MAXIMUM, p, r);
    } else {
        *is_lowest = run_row_of(MAXIMUM_AND_INDEX, p, r);
    }
}

/* Converts rows of `count` bytes, `step` apart, to contiguous floats. */
DMLK_EACH_ISA(widen_rows_of_bytes, (const window_taps *w, const uint8_t *from, int64_t step, int64_t rows, int64_t count,
                                    float *to),
              (w, from, step, rows, count, to)) {
    if (step == count) {
        count *= rows;
        rows = 1;
    }
    for (; rows > 0; rows--, from += step, to += count) {
        widen_bytes(w, from, count, to);
    }
}

/* Copies a row of the input as floats, [X][channels]; `halves` has room for as many FLOAT16s. */
static void load_row(const window_taps *w, int64_t at, int64_t channels, uint16_t *halves, float *to) {
    const dmlk_view *in = &w->c->input;
    const int64_t bytes = dmlk_type_bytes(in->type), *strides = in->strides, line = channels * bytes;
    const uint8_t *from = in->base + at * bytes;
    uint8_t *packed = in->type == DMLK_FLOAT32 ? (uint8_t *)to : (uint8_t *)halves;
    if (strides[CHANNEL] == 1 && w->operation == CONVOLVE_BYTES) {
        widen_rows_of_bytes(w, from, strides[X], in->sizes[X], channels, to);
        return;
    }
    if (strides[CHANNEL] != 1) {
        dmlk_transpose(bytes, from, strides[CHANNEL] * bytes, strides[X] * bytes, packed, line, in->sizes[X],
                       channels);
    } else {
        for (int64_t x = 0; x < in->sizes[X]; x++) {
            memcpy(packed + x * line, from + x * strides[X] * bytes, (size_t)line);
        }
    }
    if (in->type == DMLK_FLOAT16) {
        dmlk_widen_float16(halves, in->sizes[X] * channels, to);
    } else if (w->operation == CONVOLVE_BYTES) {
        widen_rows_of_bytes(w, packed, line, in->sizes[X], line, to);
    }
}

/* Copies a row of results, [X][channels], to the output; `halves` has room for as many FLOAT16s. */
static void store_row(const window_taps *w, int64_t at, int64_t channels, const float *from, uint16_t *halves) {
    const dmlk_view *out = &w->c->output;
    const int64_t bytes = dmlk_type_bytes(out->type), *strides = out->strides, line = channels * bytes;
    uint8_t *to = out->base + at * bytes;
    const uint8_t *packed = (const uint8_t *)from;
    if (out->type == DMLK_FLOAT16) {
        dmlk_narrow_floats(from, out->sizes[X] * channels, halves);
        packed = (const uint8_t *)halves;
    }
    if (strides[CHANNEL] != 1) {
        dmlk_transpose(bytes, packed, line, bytes, to, strides[CHANNEL] * bytes, channels, out->sizes[X]);
        return;
    }
    for (int64_t x = 0; x < out->sizes[X]; x++) {
        memcpy(to + x * strides[X] * bytes, packed + x * line, (size_t)line);
    }
}

/* The number of channels of the last block, which is the largest. */
static int64_t most_channels(const struct channels *p) { return p->w->channels - (p->blocks - 1) * p->block; }

/* The memory of a thread, and its channels. */
struct part {
    int64_t first, channels;
    float *ring;               /* copied rows of the input */
    int64_t number[MOST_TAPS]; /* the number of the row in each slot of the ring; -1: none */
    float *out;                /* a row of the output, */
    int32_t *found;            /* and what its maxima found */
    uint16_t *halves;          /* a row of FLOAT16s, of the input or of the output */
};

/* Returns row (z, y) of image n of the input, from the part's first channel on. */
static const float *input_row(const struct channels *p, struct part *part, int64_t n, int64_t z, int64_t y) {
    const window_taps *w = p->w;
    const dmlk_view *in = &w->c->input;
    const int64_t at = n * in->strides[N] + z * in->strides[Z] + y * in->strides[Y] + part->first * in->strides[CHANNEL];
    if (p->ring_y == 0) {
        return (const float *)(const void *)in->base + at;
    }
    const int64_t slot = z % p->ring_z * p->ring_y + y % p->ring_y;
    const int64_t number = (n * in->sizes[Z] + z) * in->sizes[Y] + y;
    float *copy = part->ring + slot * in->sizes[X] * part->channels;
    if (part->number[slot] != number) {
        load_row(w, at, part->channels, part->halves, copy);
        part->number[slot] = number;
    }
    return copy;
}

/* Computes row (z, y) of image n of the output. */
static void run_output_row(const struct channels *p, struct part *part, int64_t n, int64_t z, int64_t y) {
    const window_taps *w = p->w;
    const dmlk_float_convolution *c = w->c;
    const dmlk_view *in = &c->input, *out = &c->output;
    const dmlk_taps_axis *axes = c->axes;
    const float *lines[MOST_TAPS];
    for (int64_t row = 0; row < axes[0].window * axes[1].window; row++) {
        const int64_t from_z = z * axes[0].step + row / axes[1].window * axes[0].tap + axes[0].origin;
        const int64_t from_y = y * axes[1].step + row % axes[1].window * axes[1].tap + axes[1].origin;
        const bool is_inside = from_z >= 0 && from_z < axes[0].input && from_y >= 0 && from_y < axes[1].input;
        lines[row] = is_inside ? input_row(p, part, n, from_z, from_y) : NULL;
    }
    const int64_t channels = part->channels;
    const int64_t to = n * out->strides[N] + z * out->strides[Z] + y * out->strides[Y] + part->first * out->strides[CHANNEL];
    const struct row r = {.lines = lines,
                          .step = p->ring_y == 0 ? in->strides[X] : channels,
                          .first = part->first,
                          .count = channels,
                          .counted = w->operation == AVERAGE ? w->counts[0][z] * w->counts[1][y] : 0,
                          .to = p->is_direct ? (float *)(void *)out->base + to : part->out,
                          .to_step = p->is_direct ? out->strides[X] : channels,
                          .found = part->found};
    const bool has_indices = w->operation == MAXIMUM_AND_INDEX;
    bool is_lowest = false;
    run_row(p, &r, &is_lowest);
    for (int64_t i = 0; i < out->sizes[X] * channels && is_lowest; i++) {
        const int64_t output[DMLK_SPATIAL] = {z, y, i / channels}, channel = i % channels;
        float *maximum = r.to + output[2] * r.to_step + channel;
        if (*maximum == LOWEST) {
            int32_t unused;
            *maximum = dmlk_find_nan(w, n, part->first + channel, output, has_indices ? &part->found[i] : &unused);
        }
    }
    for (int64_t x = 0; x < out->sizes[X] && has_indices; x++) {
        const int64_t *strides = w->indices->strides;
        const int64_t at = n * strides[N] + z * strides[Z] + y * strides[Y] + part->first * strides[CHANNEL];
        store_indices(w->indices, at + x * strides[X], strides[CHANNEL], part->found + x * channels, channels,
                        first_index(w, n, part->first, z, y, x), w->packed_strides[CHANNEL]);
    }
    if (!p->is_direct) {
        store_row(w, to, channels, part->out, part->halves);
    }
    if (!w->is_bounded) {
        dmlk_follow(c->followers, out->base + to * dmlk_type_bytes(out->type), out->sizes[X], out->strides[X], channels,
                    out->strides[CHANNEL]);
    }
}

/* Items: the rows of the output of all images, for the first block of channels, then for the next one. */
static void rows_part(int64_t begin, int64_t end, int number, void *context) {
    const struct channels *p = context;
    const window_taps *w = p->w;
    const dmlk_view *in = &w->c->input, *out = &w->c->output;
    const int64_t rows = out->sizes[N] * out->sizes[Z] * out->sizes[Y];
    float *memory = p->memory + number * p->part_floats;
    const int64_t most = most_channels(p);
    const int64_t row_floats = out->sizes[X] * most;
    struct part part = {.out = memory, .found = (int32_t *)(void *)(memory + row_floats), .ring = memory + 2 * row_floats};
    part.halves = (uint16_t *)(void *)(part.ring + p->ring_z * p->ring_y * in->sizes[X] * most);
    const int64_t amount = out->sizes[X] * p->block * w->taps / 8 + 1;
    int64_t work = 0;
    for (int64_t item = begin; item < end && !dmlk_stopped(&work, amount); item++) {
        const int64_t block = item / rows, row = item % rows;
        if (item == begin || row == 0) {
            part.first = block * p->block;
            part.channels = block == p->blocks - 1 ? most : p->block;
            memset(part.number, -1, sizeof part.number);
        }
        run_output_row(p, &part, row / out->sizes[Y] / out->sizes[Z], row / out->sizes[Y] % out->sizes[Z],
                     row % out->sizes[Y]);
    }
}

/* Returns whether vectors of channels are possible, and better than vectors of a plane. */
static bool plan_channels(struct channels *p) {
    const window_taps *w = p->w;
    const dmlk_float_convolution *c = w->c;
    const dmlk_view *in = &c->input, *out = &c->output;
    const bool rows_are_contiguous =
        (in->strides[X] == 1 || in->sizes[X] == 1) && (out->strides[X] == 1 || out->sizes[X] == 1);
    const bool channels_are_contiguous = in->strides[CHANNEL] == 1 && out->strides[CHANNEL] == 1;
    if (c->filter.sizes[FILTER] != 1 || w->channels < FEWEST_CHANNELS || (rows_are_contiguous && !channels_are_contiguous) ||
        (out->strides[CHANNEL] != 1 && out->strides[X] != 1 && out->sizes[X] != 1)) {
        return false;
    }
    const bool is_copied = in->type != DMLK_FLOAT32 || in->strides[CHANNEL] != 1;
    p->is_direct = out->type != DMLK_FLOAT16 && out->strides[CHANNEL] == 1;
    const int64_t most = MOST_TAPS, widest = in->sizes[X] > out->sizes[X] ? in->sizes[X] : out->sizes[X];
    if (is_copied) {
        p->ring_z = dmlk_min(tap_span(&c->axes[0]), most + 1);
        p->ring_y = dmlk_min(tap_span(&c->axes[1]), most + 1);
    }
    if (p->ring_z * p->ring_y > MOST_TAPS) {
        return false;
    }
    p->block = w->channels;
    if (is_copied) {
        const double fit = RING / ((double)(p->ring_z * p->ring_y) * (double)in->sizes[X]);
        const int64_t block = (int64_t)fit / (2 * LANES) * 2 * LANES;
        p->block = dmlk_min(w->channels, block > FEWEST_OF_BLOCK ? block : FEWEST_OF_BLOCK);
    }
    p->blocks = w->channels / p->block;
    const double floats = ((double)(p->ring_z * p->ring_y) + 3) * (double)widest * (double)most_channels(p);
    const bool needs_memory = is_copied || !p->is_direct || w->operation == MAXIMUM_AND_INDEX;
    if (needs_memory && floats > MOST_COPIED) {
        return false;
    }
    p->part_floats = needs_memory ? (int64_t)floats : 0;
    return true;
}

bool dmlk_run_windows_in_channels(window_taps *w) {
    struct channels p = {.w = w};
    if (!plan_channels(&p)) {
        return false;
    }
    const dmlk_view *out = &w->c->output;
    const int64_t items = out->sizes[N] * out->sizes[Z] * out->sizes[Y] * p.blocks;
    const int parts = dmlk_window_parts(w, items);
    float *memory = dmlk_pack_window_weights(w, true, w->channels + parts * p.part_floats, &p.outside);
    if (memory == NULL) {
        return false;
    }
    p.memory = p.outside + w->channels;
    fill(p.outside, w->channels, w->outside);
    dmlk_parallel(items, parts, rows_part, &p);
    dmlk_give(memory);
    return true;
}

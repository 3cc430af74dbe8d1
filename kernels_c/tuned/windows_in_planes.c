/* windows_in_planes.c - sliding windows (see window_taps.h) whose vectors hold adjacent outputs of a plane.
 *
 * A strip is height x width outputs of a plane.  The input that it reads is copied first, in an order in which tap t of the
 * strip's output (y, x) is element y * pitch + x + offset[t] of the copy: so every tap is a contiguous run of the copy. */
#include "window_taps.h"

#include <string.h>

#include "ahead.h"
#include "cancellation.h"
#include "cpu.h"
#include "float16.h"
#include "parallel.h"
#include "scratch.h"
#include "shuffle.h"
#include "window_rows.h"

#define BLOCK 64   /* outputs of a strip that are computed at once */
#define STRIP 3072 /* floats of a copy, if possible: the copy and the sums then fit the first-level cache */

/* Of strips that are not copied. */
#define NEAR 8192         /* bytes of the planes that are computed in one call; larger ones are divided: */
#define ROWS_IN_PLACE 16  /* a multiple of the rows of all tiles */
#define WIDTH_IN_PLACE 512

const struct dmlk_window_rows_form *dmlk_window_rows_form;

struct planes {
    const window_taps *w;
    float *memory; /* of all threads, part_floats each */
    int64_t part_floats;
    int64_t height, width;      /* outputs of a strip */
    int64_t step_y, step_x;     /* the strides of the window */
    int64_t rows, pitch;        /* of a phase of the copy (see place_of): rows, and floats from row to row */
    int64_t offset[MOST_TAPS];
    int64_t copied; /* floats of the copy */
    bool in_place;  /* there is no copy: outputs are computed from the rows of the input, see window_rows.h, */
    int64_t at_once; /* of so many planes, if a strip is a whole plane */
    bool clears;    /* several strips, one below the other, use the same copy: rows outside of the input are filled anew */
};

struct strip {
    int64_t z, y, x, height, width; /* its first output, and how many there are */
    int64_t to;                     /* where its first element is in the output */
};

INLINE void copy_floats(const float *from, int64_t from_step, int64_t rows, int64_t count, float *to, int64_t to_step) {
    for (; rows > 0; rows--, from += from_step, to += to_step) {
        if (count < LANES) {
            for (int64_t i = 0; i < count; i++) {
                to[i] = from[i];
            }
            continue;
        }
        for (int64_t i = 0; i + LANES < count; i += LANES) {
            *(vector *)(to + i) = *(const vector *)(from + i);
        }
        *(vector *)(to + count - LANES) = *(const vector *)(from + count - LANES);
    }
}

/* Where element (z, y, x) of a strip's input is in the copy.  With a stride, the coordinates of an axis have `stride`
 * phases, which are copied separately: then the elements of a tap are contiguous, too. */
INLINE int64_t place_of(const struct planes *p, int64_t z, int64_t y, int64_t x) {
    if (p->step_y == 1 && p->step_x == 1) { /* no division */
        return (z * p->rows + y) * p->pitch + x;
    }
    const int64_t phase = (z * p->step_y + y % p->step_y) * p->step_x + x % p->step_x;
    return (phase * p->rows + y / p->step_y) * p->pitch + x / p->step_x;
}

/* Sets the layout of the copy for strips of height x width; false: more than `most` floats would be copied. */
static bool set_strip(struct planes *p, int64_t height, int64_t width, int64_t most) {
    const window_taps *w = p->w;
    const dmlk_taps_axis *axes = w->c->axes, *y = &axes[1], *x = &axes[2];
    const double floats = ((double)height * (double)y->step + (double)tap_span(y)) *
                          ((double)width * (double)x->step + (double)tap_span(x)) * (double)axes[0].window;
    if (floats > (double)most) {
        return false;
    }
    p->height = height;
    p->width = width;
    p->rows = ((height - 1) * y->step + tap_span(y) - 1) / y->step + 1;
    p->pitch = ((width - 1) * x->step + tap_span(x) - 1) / x->step + 1;
    p->copied = axes[0].window * y->step * x->step * p->rows * p->pitch + BLOCK;
    return true;
}

static bool plan_strips(struct planes *p) {
    const window_taps *w = p->w;
    const dmlk_taps_axis *axes = w->c->axes, *y = &axes[1], *x = &axes[2];
    int64_t width = x->output;
    while (width > BLOCK && !set_strip(p, 1, width, STRIP)) {
        width = (width + 1) / 2;
    }
    if (!set_strip(p, 1, width, MOST_COPIED)) {
        return false;
    }
    while (p->height < y->output && set_strip(p, p->height + 1, width, STRIP)) {
    }
    for (int64_t t = 0; t < w->taps; t++) {
        const int64_t row = t / x->window, at_y = row % y->window * y->tap - lowest_tap(y);
        p->offset[t] = place_of(p, row / y->window, at_y, t % x->window * x->tap - lowest_tap(x));
    }
    p->clears = p->height < y->output || axes[0].output > 1;
    p->part_floats = 2 * p->copied + 2 * (p->height * p->pitch + BLOCK);
    return true;
}

/* Copies `count` elements: the even ones to `to`, the odd ones to `other`. */
INLINE void copy_pairs(const float *from, int64_t count, float *to, float *other) {
    int64_t i = 0;
    for (; 2 * (i + LANES) <= count; i += LANES) {
        const vector a = *(const vector *)(from + 2 * i), b = *(const vector *)(from + 2 * i + LANES);
        *(vector *)(to + i) = DMLK_SHUFFLE(mask, a, b, 0, 2, 4, 6, 8, 10, 12, 14);
        *(vector *)(other + i) = DMLK_SHUFFLE(mask, a, b, 1, 3, 5, 7, 9, 11, 13, 15);
    }
    for (; 2 * i < count; i++) {
        to[i] = from[2 * i];
        if (2 * i + 1 < count) {
            other[i] = from[2 * i + 1];
        }
    }
}

/* Copies `count` elements of a row of the input to column `begin` of a row of the copy; `line` has room for them. */
INLINE void copy_row(const struct planes *p, const uint8_t *base, int64_t at, int64_t stride, int64_t count, int64_t begin,
                     float *line, float *row) {
    const window_taps *w = p->w;
    const int64_t step = p->step_x, phase = p->rows * p->pitch;
    const float *from = (const float *)(const void *)base + at;
    if (w->c->input.type == DMLK_FLOAT16) {
        const uint16_t *halves = (const uint16_t *)(const void *)base + at;
        if (stride == 1) {
            dmlk_widen_float16(halves, count, line);
        } else {
            for (int64_t i = 0; i < count; i++) {
                line[i] = dmlk_float16_to_float(halves[i * stride]);
            }
        }
        from = line;
        stride = 1;
    }
    if (w->operation == CONVOLVE_BYTES) {
        const uint8_t *single = base + at;
        if (stride == 1) {
            widen_bytes(w, single, count, line);
        } else {
            for (int64_t i = 0; i < count; i++) {
                line[i] = (float)((single[i * stride] ^ w->flip) - w->zero);
            }
        }
        from = line;
        stride = 1;
    }
    if (stride == 1 && step == 1) {
        copy_floats(from, 0, 1, count, row + begin, 0);
    } else if (stride == 1 && step == 2) {
        float *even = row + begin / 2, *odd = row + phase + begin / 2; /* columns */
        copy_pairs(from, count, begin % 2 == 0 ? even : odd, begin % 2 == 0 ? odd : even + 1);
    } else {
        int64_t of_phase = begin % step, column = begin / step;
        for (int64_t i = 0; i < count; i++) {
            row[of_phase * phase + column] = from[i * stride];
            of_phase = of_phase + 1 < step ? of_phase + 1 : 0;
            column += of_phase == 0;
        }
    }
}

/* Fills a row of the copy with the value of taps outside the input. */
INLINE void clear_row(const struct planes *p, int64_t z, int64_t y, float *copy) {
    const window_taps *w = p->w;
    for (int64_t phase = 0; phase < p->step_x; phase++) {
        fill(copy + place_of(p, z, y, phase), p->pitch, w->outside);
    }
}

INLINE void widen_rows(const uint16_t *from, int64_t step, int64_t rows, int64_t count, float *to) {
    if (step == count) { /* one call, since short rows take longer */
        count *= rows;
        rows = 1;
    }
    for (; rows > 0; rows--, from += step, to += count) {
        dmlk_widen_float16(from, count, to);
    }
}

/* Copies the part of its plane that the strip reads.  Columns outside the input were filled before; rows outside are
 * filled here if other strips use their memory. */
INLINE void copy_strip(const struct planes *p, const struct strip *s, int64_t plane, float *line, float *copy) {
    const window_taps *w = p->w;
    const dmlk_float_convolution *c = w->c;
    const dmlk_taps_axis *axes = c->axes, *along = &axes[2];
    const int64_t *strides = c->input.strides;
    const int64_t first_y = s->y * axes[1].step + axes[1].origin + lowest_tap(&axes[1]);
    const int64_t first_x = s->x * along->step + along->origin + lowest_tap(along);
    const int64_t rows = (s->height - 1) * axes[1].step + tap_span(&axes[1]);
    const int64_t columns = (s->width - 1) * along->step + tap_span(along);
    const int64_t begin = first_x < 0 ? -first_x : 0, count = dmlk_min(columns, along->input - first_x) - begin;
    const int64_t top = first_y < 0 ? dmlk_min(-first_y, rows) : 0, bottom = dmlk_min(rows, axes[1].input - first_y);
    const bool is_plain = strides[X] == 1 && along->step == 1 && axes[1].step == 1;
    for (int64_t z = 0; z < axes[0].window && count > 0; z++) {
        const int64_t at_z = s->z * axes[0].step + z * axes[0].tap + axes[0].origin;
        const bool is_there = at_z >= 0 && at_z < axes[0].input && top < bottom;
        int64_t y = 0, at = plane + at_z * strides[Z] + (first_y + top) * strides[Y] + (first_x + begin) * strides[X];
        for (; p->clears && y < (is_there ? top : rows); y++) {
            clear_row(p, z, y, copy);
        }
        if (is_there && is_plain && c->input.type == DMLK_FLOAT16) {
            widen_rows((const uint16_t *)(const void *)c->input.base + at, strides[Y], bottom - top, count, line);
            copy_floats(line, count, bottom - top, count, copy + place_of(p, z, top, begin), p->pitch);
        } else if (is_there && is_plain && w->operation == CONVOLVE_BYTES) {
            for (y = top; y < bottom; y++, at += strides[Y]) {
                widen_bytes(w, c->input.base + at, count, copy + place_of(p, z, y, begin));
            }
        } else if (is_there && is_plain) {
            copy_floats((const float *)(const void *)c->input.base + at, strides[Y], bottom - top, count,
                        copy + place_of(p, z, top, begin), p->pitch);
        } else {
            for (y = top; y < bottom && is_there; y++, at += strides[Y]) {
                copy_row(p, c->input.base, at, strides[X], count, begin, line, copy + place_of(p, z, y, 0));
            }
        }
        for (y = bottom; p->clears && is_there && y < rows; y++) {
            clear_row(p, z, y, copy);
        }
    }
}

/* Computes `count` outputs, and more, up to a whole block: results between the rows and after them are not used. */
INLINE void run_taps(const enum window_operation operation, const struct planes *p, const float *copy, const float *weights,
                     float bias, int64_t count, float *sums) {
    const window_taps *w = p->w;
    for (int64_t first = 0; first < count; first += BLOCK) {
        vector sum[BLOCK / LANES];
#pragma GCC unroll 8
        for (int v = 0; v < BLOCK / LANES; v++) {
            sum[v] = w->outside - (vector){0};
        }
        for (int64_t t = 0; t < w->taps; t++) {
            const vector weight = (weights == NULL ? 0 : weights[t]) - (vector){0};
            const float *from = copy + first + p->offset[t];
#pragma GCC unroll 8
            for (int v = 0; v < BLOCK / LANES; v++) {
                add_tap(operation, &weight, (const vector *)(from + v * LANES), &sum[v]);
            }
        }
        const vector offset = bias - (vector){0}, low = w->low - (vector){0}, high = w->high - (vector){0};
#pragma GCC unroll 8
        for (int v = 0; v < BLOCK / LANES; v++) {
            if (operation == CONVOLVE_AND_BOUND) {
                finish_bounded(&offset, &low, &high, &sum[v]);
            } else if (operation == CONVOLVE_FLOATS || operation == CONVOLVE_BYTES) {
                finish_convolution(operation, &offset, &sum[v]);
            }
            *(vector *)(sums + first + v * LANES) = sum[v];
        }
    }
}

/* The same for MAXIMUM_AND_INDEX. */
INLINE void run_taps_with_index(const struct planes *p, const float *copy, int64_t count, float *maxima, int32_t *found) {
    const window_taps *w = p->w;
    enum { VECTORS = BLOCK / LANES / 2 }; /* of maxima, and as many of indices: they fit the registers */
    for (int64_t first = 0; first < count; first += VECTORS * LANES) {
        vector maximum[VECTORS];
        mask index[VECTORS];
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++) {
            maximum[v] = w->outside - (vector){0};
            index[v] = NO_TAP - (mask){0};
        }
        for (int64_t t = 0; t < w->taps; t++) {
            const float *from = copy + first + p->offset[t];
#pragma GCC unroll 4
            for (int v = 0; v < VECTORS; v++) {
                take_larger((const vector *)(from + v * LANES), w->tap_index[t], &maximum[v], &index[v]);
            }
        }
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++) {
            *(vector *)(maxima + first + v * LANES) = maximum[v];
            memcpy(found + first + v * LANES, &index[v], sizeof index[v]);
        }
    }
}

/* Stores the results of a strip from element `at` of the output on; `line` has room for them. */
INLINE void store_rows(const struct planes *p, const struct strip *s, int64_t at, const float *from, float *line) {
    const window_taps *w = p->w;
    const dmlk_view *out = &w->c->output;
    const int64_t stride = out->strides[X];
    float *floats = (float *)(void *)out->base + at;
    if (stride == 1 && out->type != DMLK_FLOAT16) { /* or INT32, which is only copied */
        copy_floats(from, p->pitch, s->height, s->width, floats, out->strides[Y]);
        return;
    }
    uint16_t *halves = (uint16_t *)(void *)out->base + at;
    if (stride == 1 && out->strides[Y] == s->width) { /* one call, since short rows take longer */
        copy_floats(from, p->pitch, s->height, s->width, line, s->width);
        dmlk_narrow_floats(line, s->height * s->width, halves);
        return;
    }
    for (int64_t y = 0; y < s->height; y++, from += p->pitch, floats += out->strides[Y], halves += out->strides[Y]) {
        if (stride == 1) {
            dmlk_narrow_floats(from, s->width, halves);
            continue;
        }
        for (int64_t x = 0; x < s->width; x++) {
            if (out->type != DMLK_FLOAT16) {
                floats[x * stride] = from[x];
            } else {
                halves[x * stride] = dmlk_float_to_float16(from[x]);
            }
        }
    }
}

/* Replaces the sums of a strip by means. */
INLINE void divide_strip(const struct planes *p, const struct strip *s, float *sums) {
    const window_taps *w = p->w;
    const float *along = w->counts[2] + s->x;
    for (int64_t y = 0; y < s->height; y++, sums += p->pitch) {
        const float others = w->counts[0][s->z] * w->counts[1][s->y + y];
        for (int64_t x = 0; x < s->width; x += LANES) {
            const int64_t lanes = dmlk_min(LANES, s->width - x);
            vector count = {0}, sum = *(const vector *)(sums + x);
            if (lanes == LANES) {
                count = others * *(const vector *)(along + x);
                divide(&count, &sum);
                *(vector *)(sums + x) = sum;
                continue;
            }
            for (int64_t l = 0; l < lanes; l++) {
                count[l] = others * along[x + l];
            }
            divide(&count, &sum);
            for (int64_t l = 0; l < lanes; l++) {
                sums[x + l] = sum[l];
            }
        }
    }
}

INLINE void find_nans(const struct planes *p, const struct strip *s, int64_t image, int64_t channel, float *maxima,
                      int32_t *found) {
    const window_taps *w = p->w;
    for (int64_t y = 0; y < s->height; y++, maxima += p->pitch, found += p->pitch) {
        uint32_t are_lowest = 0;
        for (int64_t x = 0; x < s->width; x++) {
            are_lowest |= maxima[x] == LOWEST;
        }
        for (int64_t x = 0; x < s->width && are_lowest; x++) {
            const int64_t output[DMLK_SPATIAL] = {s->z, s->y + y, s->x + x};
            maxima[x] = maxima[x] == LOWEST ? dmlk_find_nan(w, image, channel, output, &found[x]) : maxima[x];
        }
    }
}

INLINE void store_strip_indices(const struct planes *p, const struct strip *s, int64_t image, int64_t channel,
                                  const int32_t *found) {
    const window_taps *w = p->w;
    const int64_t *strides = w->indices->strides;
    int64_t at = image * strides[N] + channel * strides[CHANNEL] + s->z * strides[Z] + s->y * strides[Y] + s->x * strides[X];
    for (int64_t y = s->y; y < s->y + s->height; y++, at += strides[Y], found += p->pitch) {
        store_indices(w->indices, at, strides[X], found, s->width, first_index(w, image, channel, s->z, y, s->x),
                      (uint64_t)w->c->axes[2].step * w->packed_strides[X]);
    }
}

/* Whether outputs are computed from the rows of the input in place. */
static bool are_in_place(const window_taps *w) {
    const dmlk_float_convolution *c = w->c;
    const dmlk_taps_axis *z = &c->axes[0], *y = &c->axes[1], *x = &c->axes[2];
    return dmlk_window_rows_form != NULL && w->operation == CONVOLVE_FLOATS && c->input.type == c->output.type &&
           c->input.strides[X] == 1 && c->output.strides[X] == 1 && z->input == 1 && z->output == 1 && z->window == 1 &&
           z->origin == 0 && y->window == x->window && (x->window == 3 || x->window == 5) && y->tap == 1 && y->step == x->step &&
           (x->step == 1 || (x->step == 2 && x->tap == 1));
}

static void plan_strips_in_place(struct planes *p) {
    const dmlk_float_convolution *c = p->w->c;
    const dmlk_taps_axis *y = &c->axes[1], *x = &c->axes[2];
    const bool is_small = (double)y->input * (double)x->input * (double)dmlk_type_bytes(c->input.type) <= NEAR;
    p->height = is_small ? y->output : dmlk_min(y->output, ROWS_IN_PLACE);
    p->width = p->pitch = dmlk_min(x->output, WIDTH_IN_PLACE);
    if (is_small && p->width == x->output && c->filter.sizes[FILTER] == 1) {
        p->at_once = NEAR / (y->input * x->input * dmlk_type_bytes(c->input.type));
    }
}

/* What the next strip reads, while this one is computed: columns of vectors are no order that CPUs would foresee. */
static void fetch_rows(const uint8_t *from, int64_t step, int64_t rows, int64_t bytes) {
    if (step == bytes) { /* one call, since short rows take longer */
        bytes *= rows;
        rows = 1;
    }
    for (; rows > 0; rows--, from += step) {
        dmlk_fetch(from, bytes);
    }
}

/* The strip at the same place of `planes` channels. */
static void run_strip_in_place(const struct planes *p, const struct strip *s, int64_t image, int64_t channel, int64_t planes) {
    const window_taps *w = p->w;
    const dmlk_float_convolution *c = w->c;
    const dmlk_taps_axis *axes = &c->axes[1];
    const int64_t *strides = c->input.strides, bytes = dmlk_type_bytes(c->input.type);
    const int64_t plane = image * strides[N] + channel / c->filter.sizes[FILTER] * strides[CHANNEL];
    const int64_t next = planes > 1 ? planes * strides[CHANNEL] : (s->y + s->height) * p->step_y * strides[Y] + s->x * p->step_x;
    fetch_rows(c->input.base + (plane + next) * bytes, strides[Y] * bytes, planes * s->height * p->step_y,
               s->width * p->step_x * bytes);
    dmlk_window_rows_form->convolve(&(dmlk_window_rows){.axes = axes,
                                                        .planes = planes,
                                                        .plane = c->input.base + plane * bytes,
                                                        .halves = c->input.type == DMLK_FLOAT16,
                                                        .to = c->output.base + s->to * bytes,
                                                        .plane_step = strides[CHANNEL],
                                                        .to_plane_step = c->output.strides[CHANNEL],
                                                        .row_step = strides[Y],
                                                        .to_step = c->output.strides[Y],
                                                        .first = {s->y * p->step_y + axes[0].origin,
                                                                  s->x * p->step_x + axes[1].origin},
                                                        .weights = w->weights + channel * w->taps,
                                                        .bias = w->bias + channel,
                                                        .is_bounded = w->is_bounded,
                                                        .low = w->low,
                                                        .high = w->high,
                                                        .height = s->height,
                                                        .width = s->width});
}

DMLK_EACH_ISA(run_strip, (const struct planes *p, const struct strip *s, int64_t image, int64_t channel, float *memory),
              (p, s, image, channel, memory)) {
    const window_taps *w = p->w;
    const dmlk_view *in = &w->c->input;
    float *sums = memory + p->copied, *line = sums + 2 * (p->height * p->pitch + BLOCK);
    int32_t *found = (int32_t *)(void *)(sums + p->height * p->pitch + BLOCK);
    const int64_t filters = w->c->filter.sizes[FILTER], of_input = filters == 1 ? channel : channel / filters;
    const int64_t lanes = (s->height - 1) * p->pitch + s->width;
    copy_strip(p, s, image * in->strides[N] + of_input * in->strides[CHANNEL], line, memory);
    if (w->operation == CONVOLVE_FLOATS && w->is_bounded) {
        run_taps(CONVOLVE_AND_BOUND, p, memory, w->weights + channel * w->taps, w->bias[channel], lanes, sums);
    } else if (w->operation == CONVOLVE_FLOATS) {
        run_taps(CONVOLVE_FLOATS, p, memory, w->weights + channel * w->taps, w->bias[channel], lanes, sums);
    } else if (w->operation == CONVOLVE_BYTES) {
        run_taps(CONVOLVE_BYTES, p, memory, w->weights + channel * w->taps, 0, lanes, sums);
    } else if (w->operation == AVERAGE) {
        run_taps(AVERAGE, p, memory, NULL, 0, lanes, sums);
        divide_strip(p, s, sums);
    } else if (w->operation == MAXIMUM) {
        run_taps(MAXIMUM, p, memory, NULL, 0, lanes, sums);
        find_nans(p, s, image, channel, sums, found);
    } else {
        run_taps_with_index(p, memory, lanes, sums, found);
        find_nans(p, s, image, channel, sums, found);
        store_strip_indices(p, s, image, channel, found);
    }
    store_rows(p, s, s->to, sums, line);
}

/* Items: the strips of all planes in one column of strips, then those in the next column: so the columns of the copy that
 * are outside of the input are filled once for many strips. */
static void strips_part(int64_t begin, int64_t end, int part, void *context) {
    const struct planes *p = context;
    const window_taps *w = p->w;
    const dmlk_view *out = &w->c->output;
    const int64_t down = (out->sizes[Y] - 1) / p->height + 1, of_plane = down * out->sizes[Z];
    const int64_t of_column = of_plane * out->sizes[N] * w->channels;
    float *memory = p->memory + part * p->part_floats;
    int64_t work = 0;
    for (int64_t item = begin, planes; item < end; item += planes) {
        const int64_t plane = item % of_column / of_plane, strip = item % of_plane;
        struct strip s = {.z = strip / down, .y = strip % down * p->height, .x = item / of_column * p->width};
        s.height = dmlk_min(p->height, out->sizes[Y] - s.y);
        s.width = dmlk_min(p->width, out->sizes[X] - s.x);
        if (item == begin || item % of_column == 0) {
            fill(memory, p->copied, w->outside);
        }
        const int64_t image = plane / w->channels, channel = plane % w->channels;
        planes = dmlk_min(p->at_once, dmlk_min(end - item, w->channels - channel));
        if (dmlk_stopped(&work, planes * s.height * p->pitch * w->taps / 8 + 1)) {
            return;
        }
        s.to = image * out->strides[N] + channel * out->strides[CHANNEL] + s.z * out->strides[Z] + s.y * out->strides[Y] +
               s.x * out->strides[X];
        p->in_place ? run_strip_in_place(p, &s, image, channel, planes) : run_strip(p, &s, image, channel, memory);
        for (int64_t k = 0; k < planes && !w->is_bounded; k++, s.to += out->strides[CHANNEL]) {
            dmlk_follow(w->c->followers, out->base + s.to * dmlk_type_bytes(out->type), s.height, out->strides[Y], s.width,
                        out->strides[X]);
        }
    }
}

bool dmlk_run_windows_in_planes(window_taps *w) {
    struct planes p = {.w = w,
                       .in_place = are_in_place(w),
                       .at_once = 1,
                       .step_y = w->c->axes[1].step,
                       .step_x = w->c->axes[2].step};
    const bool is_convolution = w->operation == CONVOLVE_FLOATS || w->operation == CONVOLVE_BYTES;
    if (p.in_place) {
        plan_strips_in_place(&p);
    } else if (!plan_strips(&p) || (!is_convolution && p.height * p.width < LANES)) { /* most lanes would be empty */
        return false;
    }
    const dmlk_view *out = &w->c->output;
    const int64_t down = (out->sizes[Y] - 1) / p.height + 1, across = (out->sizes[X] - 1) / p.width + 1;
    const int64_t items = out->sizes[N] * w->channels * out->sizes[Z] * down * across;
    const int parts = dmlk_window_parts(w, items);
    float *memory = dmlk_pack_window_weights(w, false, parts * p.part_floats, &p.memory);
    if (memory == NULL) {
        return false;
    }
    dmlk_parallel(items, parts, strips_part, &p);
    dmlk_give(memory);
    return true;
}

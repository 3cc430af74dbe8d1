/* depthwise_float.c - what windows of one channel make of floats: convolutions whose groups have one channel each (see
 * convolve_float.h), and poolings (see pool_float.h).
 *
 * The lanes of a vector are adjacent outputs of a plane or, if channels are adjacent, the channels of an output.  Each is
 * one chain over the taps: of fused multiply-adds, sums or maxima.  FLOAT16s are widened as they are copied, and so are
 * bytes (see convolve.h), less their zero point: 128 products of at most 255 x 255 have an exact sum. */
#include "convolve.h"
#include "convolve_float.h"
#include "pool_float.h"

#include <math.h>
#include <string.h>

#include "cancellation.h"
#include "cpu.h"
#include "element.h"
#include "float16.h"
#include "parallel.h"
#include "promoted.h"
#include "scratch.h"
#include "transpose.h"

enum { N, CHANNEL, Z, Y, X };
enum { GROUP, FILTER, OF_GROUP, WINDOW };

#define MOST_TAPS 128
#define LANES 8
#define BLOCK 64                  /* lanes of a plane that are computed at once */
#define STRIP 3072                /* floats of a copy, if possible: with the sums they fit the first-level cache */
#define MOST_COPIED (1 << 19)     /* floats of a copy */
#define KEPT 5120                 /* floats of copies of rows, if possible: they fit the first-level cache */
#define FEWEST_CHANNELS LANES
#define FEWEST_OF_BLOCK 48        /* with fewer, too little is used of each line of the input's cache */
#define NOWHERE (-1)              /* the place of no tap */
#define POSITIONS 4               /* outputs whose channels are computed at once */

typedef float vector __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));
typedef int32_t mask __attribute__((vector_size(LANES * sizeof(float))));
typedef uint8_t vector_of_bytes __attribute__((vector_size(LANES), aligned(1), may_alias));
#define INLINE static inline __attribute__((always_inline))

/* BYTES: products of bytes, stored as INT32; PLACES: maxima, and where they are. */
enum what { PRODUCTS, BYTES, SUMS, MAXIMA, PLACES };

struct job {
    const dmlk_float_convolution *c;
    enum what what;
    const dmlk_convolution *bytes;              /* of BYTES */
    uint8_t flip;                               /* a byte of the input is (byte ^ flip) - zero */
    int32_t zero;
    float outside;                              /* what taps meet outside of the input */
    const float *counts[DMLK_SPATIAL];          /* of poolings; NULL: of maxima */
    const dmlk_view *positions;                 /* of PLACES */
    uint64_t packed[5];                         /* elements between neighbours of the packed input */
    int32_t place[MOST_TAPS];                   /* such elements from tap 0 to each tap */
    int64_t taps, channels; /* of the output */
    float *weights;         /* lanes are channels: [taps][channels]; otherwise [channels][taps] */
    float *bias;            /* [channels] */
    float *memory;          /* of the parts, part_floats each */
    int64_t part_floats;
    /* Lanes are outputs of a plane: a strip is height x width of them.  What it reads is copied in such an order that
     * tap t meets the strip's output (y, x) at place y * pitch + x + offset[t]. */
    int64_t height, width, pitch, rows;
    int64_t offset[MOST_TAPS];
    int64_t copied; /* floats */
    bool clears;    /* there is more than one strip from top to bottom */
    /* Lanes are channels. */
    float *around;              /* [channels]: what is outside */
    int64_t kept_z, kept_y;     /* copies of input rows: row (z, y) is number (z % kept_z, y % kept_y); 0: none is copied */
    bool is_direct;             /* results are stored in place */
    int64_t block, blocks;      /* channels at once; the last block has more if they do not divide all */
};

/* Lanes are channels: channels first .. first + count - 1 of a row of the output. */
struct row {
    const float *const *lines; /* the input's rows that it meets, from the first channel on; NULL: outside */
    int64_t step;              /* floats between places along X */
    int64_t first, count;
    float of_row;              /* what the counts along X are multiplied by */
    float *to;
    int64_t to_step;
    int32_t *places;           /* [X][count], of PLACES */
};

INLINE void add_products(const vector *a, const vector *b, vector *sum) {
    vector result;
    for (int l = 0; l < LANES; l++) {
        result[l] = fmaf((*a)[l], (*b)[l], (*sum)[l]);
    }
    *sum = result;
}

/* The first of the largest elements stays; `number` is where x is. */
INLINE void take_larger(const vector *x, int32_t number, vector *maximum, mask *place) {
    vector larger;
    mask its_place;
    for (int l = 0; l < LANES; l++) {
        its_place[l] = (*x)[l] > (*maximum)[l] ? number : (*place)[l];
    }
    for (int l = 0; l < LANES; l++) {
        larger[l] = (*x)[l] > (*maximum)[l] ? (*x)[l] : (*maximum)[l];
    }
    *maximum = larger;
    *place = its_place;
}

/* One more tap; `weight` is that of products. */
INLINE void add_tap(const enum what what, const vector *weight, const vector *x, vector *sum) {
    if (what == PRODUCTS || what == BYTES) {
        add_products(weight, x, sum);
    } else if (what == SUMS) {
        *sum += *x;
    } else {
        vector result;
        for (int l = 0; l < LANES; l++) {
            result[l] = (*x)[l] > (*sum)[l] ? (*x)[l] : (*sum)[l];
        }
        *sum = result;
    }
}

INLINE void finish(const enum what what, const vector *bias, vector *sum) {
    if (what == BYTES) {
        *sum = (vector)__builtin_convertvector(*sum, mask);
        return;
    }
    const vector y = *sum + *bias + 0.0f;
    const mask is_number = y == y;
    *sum = (vector)(((mask)y & is_number) | (~is_number & (int32_t)DMLK_NAN_BITS));
}

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

INLINE void widen(const uint8_t *from, const vector_of_bytes *flip, const mask *zero, float *to) {
    const mask x = __builtin_convertvector(*(const vector_of_bytes *)from ^ *flip, mask) - *zero;
    *(vector *)to = __builtin_convertvector(x, vector);
}

INLINE void widen_bytes(const struct job *job, const uint8_t *from, int64_t count, float *to) {
    const vector_of_bytes flip = job->flip - (vector_of_bytes){0};
    const mask zero = job->zero - (mask){0};
    if (count < LANES) {
        for (int64_t i = 0; i < count; i++) {
            to[i] = (float)((from[i] ^ job->flip) - job->zero);
        }
        return;
    }
    for (int64_t i = 0; i + LANES < count; i += LANES) {
        widen(from + i, &flip, &zero, to + i);
    }
    widen(from + count - LANES, &flip, &zero, to + count - LANES);
}

static float read(const dmlk_view *view, int64_t at) {
    return view->type == DMLK_FLOAT32 ? ((const float *)(const void *)view->base)[at]
                                      : dmlk_float16_to_float(((const uint16_t *)(const void *)view->base)[at]);
}

/* The lowest place that taps meet, from that of tap 0; and how many places they span. */
static int64_t low_of(const dmlk_taps_axis *axis) { return axis->tap < 0 ? (axis->window - 1) * axis->tap : 0; }
static int64_t span_of(const dmlk_taps_axis *axis) {
    return (axis->window - 1) * (axis->tap < 0 ? -axis->tap : axis->tap) + 1;
}

/* --- lanes are outputs of a plane --- */

/* A stride makes `step` phases of an axis, which are copied to different places. */
INLINE int64_t place_of(const struct job *job, int64_t z, int64_t y, int64_t x) {
    const int64_t step_y = job->c->axes[1].step, step_x = job->c->axes[2].step;
    if (step_y == 1 && step_x == 1) { /* no division */
        return (z * job->rows + y) * job->pitch + x;
    }
    const int64_t phase = (z * step_y + y % step_y) * step_x + x % step_x;
    return (phase * job->rows + y / step_y) * job->pitch + x / step_x;
}

/* Sets the places for strips of that size; false: too much would be copied. */
static bool set_strip(struct job *job, int64_t height, int64_t width, int64_t most) {
    const dmlk_taps_axis *axes = job->c->axes, *y = &axes[1], *x = &axes[2];
    const double floats = ((double)height * (double)y->step + (double)span_of(y)) *
                          ((double)width * (double)x->step + (double)span_of(x)) * (double)axes[0].window;
    if (floats > (double)most) {
        return false;
    }
    job->height = height;
    job->width = width;
    job->rows = ((height - 1) * y->step + span_of(y) - 1) / y->step + 1;
    job->pitch = ((width - 1) * x->step + span_of(x) - 1) / x->step + 1;
    job->copied = axes[0].window * y->step * x->step * job->rows * job->pitch + BLOCK;
    return true;
}

static bool plan_strips(struct job *job) {
    const dmlk_taps_axis *axes = job->c->axes, *y = &axes[1], *x = &axes[2];
    int64_t width = x->output;
    while (width > BLOCK && !set_strip(job, 1, width, STRIP)) {
        width = (width + 1) / 2;
    }
    if (!set_strip(job, 1, width, MOST_COPIED)) {
        return false;
    }
    while (job->height < y->output && set_strip(job, job->height + 1, width, STRIP)) {
    }
    for (int64_t t = 0; t < job->taps; t++) {
        const int64_t row = t / x->window, at_y = row % y->window * y->tap - low_of(y);
        job->offset[t] = place_of(job, row / y->window, at_y, t % x->window * x->tap - low_of(x));
    }
    job->clears = job->height < y->output || axes[0].output > 1;
    job->part_floats = 2 * job->copied + 2 * (job->height * job->pitch + BLOCK);
    return true;
}

/* to[i] = from[2 * i] and other[i] = from[2 * i + 1], of `count` elements of `from`. */
INLINE void copy_pairs(const float *from, int64_t count, float *to, float *other) {
    const mask even = {0, 2, 4, 6, 8, 10, 12, 14}, odd = {1, 3, 5, 7, 9, 11, 13, 15};
    int64_t i = 0;
    for (; 2 * (i + LANES) <= count; i += LANES) {
        const vector a = *(const vector *)(from + 2 * i), b = *(const vector *)(from + 2 * i + LANES);
        *(vector *)(to + i) = __builtin_shuffle(a, b, even);
        *(vector *)(other + i) = __builtin_shuffle(a, b, odd);
    }
    for (; 2 * i < count; i++) {
        to[i] = from[2 * i];
        if (2 * i + 1 < count) {
            other[i] = from[2 * i + 1];
        }
    }
}

/* `count` elements of a row of the input to column `begin` of a row of the copy; `line` is memory for it. */
INLINE void copy_row(const struct job *job, const uint8_t *base, int64_t at, int64_t stride, int64_t count, int64_t begin,
                     float *line, float *row) {
    const int64_t step = job->c->axes[2].step, phase = job->rows * job->pitch;
    const float *from = (const float *)(const void *)base + at;
    if (job->c->input.type == DMLK_FLOAT16) {
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
    if (job->what == BYTES) {
        const uint8_t *single = base + at;
        if (stride == 1) {
            widen_bytes(job, single, count, line);
        } else {
            for (int64_t i = 0; i < count; i++) {
                line[i] = (float)((single[i * stride] ^ job->flip) - job->zero);
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

/* A strip of the output from (z, y, x) on. */
struct strip {
    int64_t z, y, x, height, width;
    int64_t to; /* where its first element is in the output */
};

/* The sum of `count` elements becomes their mean. */
INLINE void divide(const vector *count, vector *sum) {
    const vector y = *sum / *count;
    const mask is_number = y == y, are_some = *count > (vector){0};
    *sum = (vector)((((mask)y & is_number) | (~is_number & (int32_t)DMLK_NAN_BITS)) & are_some);
}

INLINE void fill(float *to, int64_t count, float x) {
    for (int64_t i = 0; i < count; i++) {
        to[i] = x;
    }
}

INLINE void clear_row(const struct job *job, int64_t z, int64_t y, float *copy) {
    for (int64_t phase = 0; phase < job->c->axes[2].step; phase++) {
        fill(copy + place_of(job, z, y, phase), job->pitch, job->outside);
    }
}

INLINE void widen_rows(const uint16_t *from, int64_t step, int64_t rows, int64_t count, float *to) {
    if (step == count) { /* short rows take longer */
        count *= rows;
        rows = 1;
    }
    for (; rows > 0; rows--, from += step, to += count) {
        dmlk_widen_float16(from, count, to);
    }
}

/* What the strip reads of one plane.  Columns outside of the input stay as they are; rows are cleared if other strips
 * use their places. */
INLINE void copy_strip(const struct job *job, const struct strip *s, int64_t plane, float *line, float *copy) {
    const dmlk_float_convolution *c = job->c;
    const dmlk_taps_axis *axes = c->axes, *along = &axes[2];
    const int64_t *strides = c->input.strides;
    const int64_t first_y = s->y * axes[1].step + axes[1].origin + low_of(&axes[1]);
    const int64_t first_x = s->x * along->step + along->origin + low_of(along);
    const int64_t rows = (s->height - 1) * axes[1].step + span_of(&axes[1]);
    const int64_t columns = (s->width - 1) * along->step + span_of(along);
    const int64_t begin = first_x < 0 ? -first_x : 0, count = dmlk_min(columns, along->input - first_x) - begin;
    const int64_t top = first_y < 0 ? dmlk_min(-first_y, rows) : 0, bottom = dmlk_min(rows, axes[1].input - first_y);
    const bool is_plain = strides[X] == 1 && along->step == 1 && axes[1].step == 1;
    for (int64_t z = 0; z < axes[0].window && count > 0; z++) {
        const int64_t at_z = s->z * axes[0].step + z * axes[0].tap + axes[0].origin;
        const bool is_there = at_z >= 0 && at_z < axes[0].input && top < bottom;
        int64_t y = 0, at = plane + at_z * strides[Z] + (first_y + top) * strides[Y] + (first_x + begin) * strides[X];
        for (; job->clears && y < (is_there ? top : rows); y++) {
            clear_row(job, z, y, copy);
        }
        if (is_there && is_plain && c->input.type == DMLK_FLOAT16) {
            widen_rows((const uint16_t *)(const void *)c->input.base + at, strides[Y], bottom - top, count, line);
            copy_floats(line, count, bottom - top, count, copy + place_of(job, z, top, begin), job->pitch);
        } else if (is_there && is_plain && job->what == BYTES) {
            for (y = top; y < bottom; y++, at += strides[Y]) {
                widen_bytes(job, c->input.base + at, count, copy + place_of(job, z, y, begin));
            }
        } else if (is_there && is_plain) {
            copy_floats((const float *)(const void *)c->input.base + at, strides[Y], bottom - top, count,
                        copy + place_of(job, z, top, begin), job->pitch);
        } else {
            for (y = top; y < bottom && is_there; y++, at += strides[Y]) {
                copy_row(job, c->input.base, at, strides[X], count, begin, line, copy + place_of(job, z, y, 0));
            }
        }
        for (y = bottom; job->clears && is_there && y < rows; y++) {
            clear_row(job, z, y, copy);
        }
    }
}

/* Sums of `count` lanes, and of more, up to a whole block: those between the rows and after them mean nothing. */
INLINE void add_taps(const enum what what, const struct job *job, const float *copy, const float *weights, float bias,
                     int64_t count, float *sums) {
    for (int64_t first = 0; first < count; first += BLOCK) {
        vector sum[BLOCK / LANES];
#pragma GCC unroll 8
        for (int v = 0; v < BLOCK / LANES; v++) {
            sum[v] = job->outside - (vector){0};
        }
        for (int64_t t = 0; t < job->taps; t++) {
            const vector weight = (weights == NULL ? 0 : weights[t]) - (vector){0};
            const float *from = copy + first + job->offset[t];
#pragma GCC unroll 8
            for (int v = 0; v < BLOCK / LANES; v++) {
                add_tap(what, &weight, (const vector *)(from + v * LANES), &sum[v]);
            }
        }
        const vector offset = bias - (vector){0};
#pragma GCC unroll 8
        for (int v = 0; v < BLOCK / LANES; v++) {
            if (what == PRODUCTS || what == BYTES) {
                finish(what, &offset, &sum[v]);
            }
            *(vector *)(sums + first + v * LANES) = sum[v];
        }
    }
}

/* The same of maxima and their places. */
INLINE void add_places(const struct job *job, const float *copy, int64_t count, float *maxima, int32_t *places) {
    enum { VECTORS = BLOCK / LANES / 2 }; /* of each in registers */
    for (int64_t first = 0; first < count; first += VECTORS * LANES) {
        vector maximum[VECTORS];
        mask place[VECTORS];
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++) {
            maximum[v] = job->outside - (vector){0};
            place[v] = NOWHERE - (mask){0};
        }
        for (int64_t t = 0; t < job->taps; t++) {
            const float *from = copy + first + job->offset[t];
#pragma GCC unroll 4
            for (int v = 0; v < VECTORS; v++) {
                take_larger((const vector *)(from + v * LANES), job->place[t], &maximum[v], &place[v]);
            }
        }
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++) {
            *(vector *)(maxima + first + v * LANES) = maximum[v];
            memcpy(places + first + v * LANES, &place[v], sizeof place[v]);
        }
    }
}

/* Rows of a strip's results to the output, from element `at` on. */
INLINE void store_rows(const struct job *job, const struct strip *s, int64_t at, const float *from, float *line) {
    const dmlk_view *out = &job->c->output;
    const int64_t stride = out->strides[X];
    float *floats = (float *)(void *)out->base + at;
    if (stride == 1 && out->type != DMLK_FLOAT16) { /* (INT32s are only copied) */
        copy_floats(from, job->pitch, s->height, s->width, floats, out->strides[Y]);
        return;
    }
    uint16_t *halves = (uint16_t *)(void *)out->base + at;
    if (stride == 1 && out->strides[Y] == s->width) { /* short rows take longer */
        copy_floats(from, job->pitch, s->height, s->width, line, s->width);
        dmlk_narrow_floats(line, s->height * s->width, halves);
        return;
    }
    for (int64_t y = 0; y < s->height; y++, from += job->pitch, floats += out->strides[Y], halves += out->strides[Y]) {
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

/* --- poolings --- */

#define LOWEST (-INFINITY)

/* The maximum of an output whose taps are all -infinity, NaN or outside: NaN if a tap is inside and no number.  `found`:
 * where the first number is, or else the first NaN. */
static float find_nan(const struct job *job, int64_t image, int64_t channel, const int64_t *output, int32_t *found) {
    const dmlk_float_convolution *c = job->c;
    const dmlk_taps_axis *axes = c->axes;
    bool is_nan = false;
    *found = NOWHERE;
    for (int64_t t = 0; t < job->taps; t++) {
        const int64_t row = t / axes[2].window;
        const int64_t tap[DMLK_SPATIAL] = {row / axes[1].window, row % axes[1].window, t % axes[2].window};
        int64_t at = image * c->input.strides[N] + channel * c->input.strides[CHANNEL];
        bool is_inside = true;
        for (int k = 0; k < DMLK_SPATIAL; k++) {
            const int64_t place = output[k] * axes[k].step + tap[k] * axes[k].tap + axes[k].origin;
            is_inside = is_inside && place >= 0 && place < axes[k].input;
            at += is_inside ? place * c->input.strides[Z + k] : 0;
        }
        if (is_inside && !isnan(read(&c->input, at))) {
            *found = job->place[t];
            return LOWEST;
        }
        *found = is_inside && !is_nan ? job->place[t] : *found;
        is_nan |= is_inside;
    }
    return is_nan ? (float)NAN : LOWEST;
}

/* Sums of a strip become means. */
INLINE void divide_strip(const struct job *job, const struct strip *s, float *sums) {
    const float *along = job->counts[2] + s->x;
    for (int64_t y = 0; y < s->height; y++, sums += job->pitch) {
        const float others = job->counts[0][s->z] * job->counts[1][s->y + y];
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

INLINE void find_nans(const struct job *job, const struct strip *s, int64_t image, int64_t channel, float *maxima,
                      int32_t *places) {
    for (int64_t y = 0; y < s->height; y++, maxima += job->pitch, places += job->pitch) {
        uint32_t are_lowest = 0;
        for (int64_t x = 0; x < s->width; x++) {
            are_lowest |= maxima[x] == LOWEST;
        }
        for (int64_t x = 0; x < s->width && are_lowest; x++) {
            const int64_t output[DMLK_SPATIAL] = {s->z, s->y + y, s->x + x};
            maxima[x] = maxima[x] == LOWEST ? find_nan(job, image, channel, output, &places[x]) : maxima[x];
        }
    }
}

/* Where the first tap of an output is in the packed input. */
INLINE uint64_t origin_of(const struct job *job, int64_t image, int64_t channel, int64_t z, int64_t y, int64_t x) {
    const int64_t output[DMLK_SPATIAL] = {z, y, x};
    uint64_t at = (uint64_t)image * job->packed[N] + (uint64_t)channel * job->packed[CHANNEL];
    for (int k = 0; k < DMLK_SPATIAL; k++) {
        at += (uint64_t)(output[k] * job->c->axes[k].step + job->c->axes[k].origin) * job->packed[Z + k];
    }
    return at;
}

/* Positions from element `at` of theirs on: each output's first tap is `step` after that of the one before. */
INLINE void store_positions(const dmlk_view *to, int64_t at, int64_t stride, const int32_t *places, int64_t count,
                            uint64_t origin, uint64_t step) {
    if (to->type == DMLK_UINT32) {
        uint32_t *narrow = (uint32_t *)(void *)to->base + at;
        const uint32_t first = (uint32_t)origin, next = (uint32_t)step;
        for (int64_t i = 0; i < count && stride == 1; i++) { /* a loop of vectors */
            narrow[i] = places[i] < 0 ? 0 : first + (uint32_t)i * next + (uint32_t)places[i];
        }
        for (int64_t i = 0; i < count && stride != 1; i++) {
            narrow[i * stride] = places[i] < 0 ? 0 : first + (uint32_t)i * next + (uint32_t)places[i];
        }
        return;
    }
    uint64_t *wide = (uint64_t *)(void *)to->base + at;
    for (int64_t i = 0; i < count; i++, origin += step) {
        wide[i * stride] = places[i] < 0 ? 0 : origin + (uint64_t)places[i];
    }
}

INLINE void store_strip_positions(const struct job *job, const struct strip *s, int64_t image, int64_t channel,
                                  const int32_t *places) {
    const int64_t *strides = job->positions->strides;
    int64_t at = image * strides[N] + channel * strides[CHANNEL] + s->z * strides[Z] + s->y * strides[Y] + s->x * strides[X];
    for (int64_t y = s->y; y < s->y + s->height; y++, at += strides[Y], places += job->pitch) {
        store_positions(job->positions, at, strides[X], places, s->width, origin_of(job, image, channel, s->z, y, s->x),
                        (uint64_t)job->c->axes[2].step * job->packed[X]);
    }
}

/* --- lanes are outputs of a plane, continued --- */

DMLK_EACH_ISA(run_strip, (const struct job *job, const struct strip *s, int64_t image, int64_t channel, float *memory),
              (job, s, image, channel, memory)) {
    const dmlk_view *in = &job->c->input;
    float *sums = memory + job->copied, *line = sums + 2 * (job->height * job->pitch + BLOCK);
    int32_t *places = (int32_t *)(void *)(sums + job->height * job->pitch + BLOCK);
    const int64_t filters = job->c->filter.sizes[FILTER], of_input = filters == 1 ? channel : channel / filters;
    const int64_t lanes = (s->height - 1) * job->pitch + s->width;
    copy_strip(job, s, image * in->strides[N] + of_input * in->strides[CHANNEL], line, memory);
    if (job->what == PRODUCTS) {
        add_taps(PRODUCTS, job, memory, job->weights + channel * job->taps, job->bias[channel], lanes, sums);
    } else if (job->what == BYTES) {
        add_taps(BYTES, job, memory, job->weights + channel * job->taps, 0, lanes, sums);
    } else if (job->what == SUMS) {
        add_taps(SUMS, job, memory, NULL, 0, lanes, sums);
        divide_strip(job, s, sums);
    } else if (job->what == MAXIMA) {
        add_taps(MAXIMA, job, memory, NULL, 0, lanes, sums);
        find_nans(job, s, image, channel, sums, places);
    } else {
        add_places(job, memory, lanes, sums, places);
        find_nans(job, s, image, channel, sums, places);
        store_strip_positions(job, s, image, channel, places);
    }
    store_rows(job, s, s->to, sums, line);
}

/* Items: strips of all planes, from left to right last, so that columns outside of the input stay the same. */
static void strips_part(int64_t begin, int64_t end, int part, void *context) {
    const struct job *job = context;
    const dmlk_view *out = &job->c->output;
    const int64_t down = (out->sizes[Y] - 1) / job->height + 1, of_plane = down * out->sizes[Z];
    const int64_t of_column = of_plane * out->sizes[N] * job->channels;
    float *memory = job->memory + part * job->part_floats;
    int64_t work = 0;
    for (int64_t item = begin; item < end; item++) {
        const int64_t plane = item % of_column / of_plane, strip = item % of_plane;
        struct strip s = {.z = strip / down, .y = strip % down * job->height, .x = item / of_column * job->width};
        s.height = dmlk_min(job->height, out->sizes[Y] - s.y);
        s.width = dmlk_min(job->width, out->sizes[X] - s.x);
        if (item == begin || item % of_column == 0) {
            fill(memory, job->copied, job->outside);
        }
        if (dmlk_stopped(&work, s.height * job->pitch * job->taps / 8 + 1)) {
            return;
        }
        const int64_t image = plane / job->channels, channel = plane % job->channels;
        s.to = image * out->strides[N] + channel * out->strides[CHANNEL] + s.z * out->strides[Z] + s.y * out->strides[Y] +
               s.x * out->strides[X];
        run_strip(job, &s, image, channel, memory);
        dmlk_follow(job->c->followers, out->base + s.to * dmlk_type_bytes(out->type), s.height, out->strides[Y], s.width,
                    out->strides[X]);
    }
}

/* --- lanes are channels --- */

/* What each tap meets at some output, from the first channel on, and how far away at the next output. */
struct places {
    const float *at[MOST_TAPS];
    int64_t step[MOST_TAPS];
};

/* The channels of `positions` outputs; of SUMS, the means of `counts` elements.  The last vectors overlap others if they
 * must: results are the same.  Whether a maximum is LOWEST. */
INLINE bool run_positions(const enum what what, const struct job *job, const struct row *r, const struct places *p,
                          const int positions, const int vectors, const float *counts, float *to, int32_t *to_places) {
    const int64_t size = vectors * LANES;
    mask are_lowest = {0};
    for (int64_t next = 0; next < r->count; next += size) {
        const int64_t first = dmlk_min(next, r->count - size);
        vector sums[POSITIONS * 2];
        mask found[POSITIONS * 2];
#pragma GCC unroll 8
        for (int i = 0; i < positions * vectors; i++) {
            sums[i] = job->outside - (vector){0};
            found[i] = NOWHERE - (mask){0};
        }
        for (int64_t t = 0; t < job->taps; t++) {
            const float *weight = job->weights + t * job->channels + r->first + first;
            const float *from = p->at[t] + first;
#pragma GCC unroll 4
            for (int i = 0; i < positions; i++, from += p->step[t]) {
#pragma GCC unroll 8
                for (int v = 0; v < vectors; v++) {
                    const vector *x = (const vector *)from + v;
                    if (what == PLACES) {
                        take_larger(x, job->place[t], &sums[i * vectors + v], &found[i * vectors + v]);
                    } else {
                        add_tap(what, (const vector *)weight + v, x, &sums[i * vectors + v]);
                    }
                }
            }
        }
#pragma GCC unroll 4
        for (int i = 0; i < positions; i++) {
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++) {
                vector *sum = &sums[i * vectors + v];
                if (what == PRODUCTS || what == BYTES) {
                    finish(what, (const vector *)(job->bias + r->first + first) + v, sum);
                } else if (what == SUMS) {
                    const vector count = counts[i] - (vector){0};
                    divide(&count, sum);
                } else {
                    are_lowest |= *sum == LOWEST - (vector){0};
                }
                *(vector *)(to + i * r->to_step + first + v * LANES) = *sum;
                if (what == PLACES) {
                    memcpy(to_places + i * r->count + first + v * LANES, &found[i * vectors + v], sizeof found[0]);
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

/* What the taps meet at output x.  Without `tests` they are all between the ends of the rows. */
INLINE void find_places(const struct job *job, const struct row *r, int64_t x, const bool tests, struct places *p) {
    const dmlk_taps_axis *along = &job->c->axes[2];
    for (int64_t t = 0, row = 0; t < job->taps; row++) {
        int64_t at = x * along->step + along->origin;
        for (int64_t k = 0; k < along->window; k++, t++, at += along->tap) {
            const bool is_there = r->lines[row] != NULL && (!tests || (at >= 0 && at < along->input));
            p->at[t] = is_there ? r->lines[row] + at * r->step : job->around;
            p->step[t] = is_there ? along->step * r->step : 0;
        }
    }
}

INLINE void move_places(const struct job *job, int64_t outputs, struct places *p) {
    for (int64_t t = 0; t < job->taps; t++) {
        p->at[t] += outputs * p->step[t];
    }
}

/* Whether a maximum is LOWEST. */
INLINE bool run_row_of(const enum what what, const struct job *job, const struct row *r) {
    const dmlk_taps_axis *along = &job->c->axes[2];
    const int64_t first = along->origin + low_of(along), last = along->input - span_of(along) - first;
    bool is_lowest = false, was_inside = false;
    struct places p;
    for (int64_t x = 0, count = 1; x < along->output; x += count) {
        const bool is_inside = x * along->step + first >= 0 && (x + POSITIONS - 1) * along->step <= last &&
                               x + POSITIONS <= along->output;
        if (was_inside && is_inside) {
            move_places(job, POSITIONS, &p);
        } else {
            find_places(job, r, x, !is_inside, &p);
        }
        was_inside = is_inside;
        count = is_inside ? POSITIONS : 1;
        float counts[POSITIONS] = {0}, *to = r->to + x * r->to_step;
        int32_t *places = what == PLACES ? r->places + x * r->count : NULL;
        for (int64_t i = 0; i < count && what == SUMS; i++) {
            counts[i] = r->of_row * job->counts[2][x + i];
        }
        if (what != PLACES && r->count >= 8 * LANES && (count == 1 || job->weights == NULL)) { /* no weights to share */
            for (int64_t i = 0; i < count; i++) {
                is_lowest |= run_positions(what, job, r, &p, 1, 8, counts + i, to + i * r->to_step, places);
                move_places(job, 1, &p);
            }
            was_inside = false;
        } else if (count == 1) {
            is_lowest |= run_positions(what, job, r, &p, 1, 1, counts, to, places);
        } else if (what == PLACES || r->count < 2 * LANES) {
            is_lowest |= run_positions(what, job, r, &p, POSITIONS, 1, counts, to, places);
        } else {
            is_lowest |= run_positions(what, job, r, &p, POSITIONS, 2, counts, to, places);
        }
    }
    return is_lowest;
}

DMLK_EACH_ISA(run_row, (const struct job *job, const struct row *r, bool *is_lowest), (job, r, is_lowest)) {
    if (job->what == PRODUCTS) {
        run_row_of(PRODUCTS, job, r);
    } else if (job->what == BYTES) {
        run_row_of(BYTES, job, r);
    } else if (job->what == SUMS) {
        run_row_of(SUMS, job, r);
    } else if (job->what == MAXIMA) {
        *is_lowest = run_row_of(MAXIMA, job, r);
    } else {
        *is_lowest = run_row_of(PLACES, job, r);
    }
}

/* Bytes as floats, `count` at each of `rows` places. */
DMLK_EACH_ISA(widen_rows_of_bytes, (const struct job *job, const uint8_t *from, int64_t step, int64_t rows, int64_t count,
                                    float *to),
              (job, from, step, rows, count, to)) {
    if (step == count) {
        count *= rows;
        rows = 1;
    }
    for (; rows > 0; rows--, from += step, to += count) {
        widen_bytes(job, from, count, to);
    }
}

/* A row of the input as floats, [X][channels]; `halves` is memory for as many FLOAT16s. */
static void load_row(const struct job *job, int64_t at, int64_t channels, uint16_t *halves, float *to) {
    const dmlk_view *in = &job->c->input;
    const int64_t bytes = dmlk_type_bytes(in->type), *strides = in->strides, line = channels * bytes;
    const uint8_t *from = in->base + at * bytes;
    uint8_t *packed = in->type == DMLK_FLOAT32 ? (uint8_t *)to : (uint8_t *)halves;
    if (strides[CHANNEL] == 1 && job->what == BYTES) {
        widen_rows_of_bytes(job, from, strides[X], in->sizes[X], channels, to);
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
    } else if (job->what == BYTES) {
        widen_rows_of_bytes(job, packed, line, in->sizes[X], line, to);
    }
}

/* The reverse, of the output. */
static void unload_row(const struct job *job, int64_t at, int64_t channels, const float *from, uint16_t *halves) {
    const dmlk_view *out = &job->c->output;
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

/* Of the last block. */
static int64_t most_channels(const struct job *job) { return job->channels - (job->blocks - 1) * job->block; }

/* Memory of a part: kept rows, a row of the output, and a row of halves of either. */
struct part {
    int64_t first, channels;
    float *kept, *out;
    int32_t *places;
    uint16_t *halves;
    int64_t number[MOST_TAPS]; /* of each kept row, in the input; -1: none */
};

/* The row of the input at (z, y) of image `n`, from the part's first channel on. */
static const float *find_row(const struct job *job, struct part *part, int64_t n, int64_t z, int64_t y) {
    const dmlk_view *in = &job->c->input;
    const int64_t at = n * in->strides[N] + z * in->strides[Z] + y * in->strides[Y] + part->first * in->strides[CHANNEL];
    if (job->kept_y == 0) {
        return (const float *)(const void *)in->base + at;
    }
    const int64_t slot = z % job->kept_z * job->kept_y + y % job->kept_y;
    const int64_t number = (n * in->sizes[Z] + z) * in->sizes[Y] + y;
    float *kept = part->kept + slot * in->sizes[X] * part->channels;
    if (part->number[slot] != number) {
        load_row(job, at, part->channels, part->halves, kept);
        part->number[slot] = number;
    }
    return kept;
}

/* Row (z, y) of image `n` of the output. */
static void run_channels(const struct job *job, struct part *part, int64_t n, int64_t z, int64_t y) {
    const dmlk_float_convolution *c = job->c;
    const dmlk_view *in = &c->input, *out = &c->output;
    const dmlk_taps_axis *axes = c->axes;
    const float *lines[MOST_TAPS];
    for (int64_t row = 0; row < axes[0].window * axes[1].window; row++) {
        const int64_t from_z = z * axes[0].step + row / axes[1].window * axes[0].tap + axes[0].origin;
        const int64_t from_y = y * axes[1].step + row % axes[1].window * axes[1].tap + axes[1].origin;
        const bool is_inside = from_z >= 0 && from_z < axes[0].input && from_y >= 0 && from_y < axes[1].input;
        lines[row] = is_inside ? find_row(job, part, n, from_z, from_y) : NULL;
    }
    const int64_t channels = part->channels;
    const int64_t to = n * out->strides[N] + z * out->strides[Z] + y * out->strides[Y] + part->first * out->strides[CHANNEL];
    const struct row r = {.lines = lines,
                          .step = job->kept_y == 0 ? in->strides[X] : channels,
                          .first = part->first,
                          .count = channels,
                          .of_row = job->what == SUMS ? job->counts[0][z] * job->counts[1][y] : 0,
                          .to = job->is_direct ? (float *)(void *)out->base + to : part->out,
                          .to_step = job->is_direct ? out->strides[X] : channels,
                          .places = part->places};
    bool is_lowest = false;
    run_row(job, &r, &is_lowest);
    for (int64_t i = 0; i < out->sizes[X] * channels && is_lowest; i++) {
        const int64_t output[DMLK_SPATIAL] = {z, y, i / channels}, channel = i % channels;
        float *maximum = r.to + output[2] * r.to_step + channel;
        if (*maximum == LOWEST) {
            int32_t unused;
            *maximum = find_nan(job, n, part->first + channel, output, job->what == PLACES ? &part->places[i] : &unused);
        }
    }
    for (int64_t x = 0; x < out->sizes[X] && job->what == PLACES; x++) {
        const int64_t *strides = job->positions->strides;
        const int64_t at = n * strides[N] + z * strides[Z] + y * strides[Y] + part->first * strides[CHANNEL];
        store_positions(job->positions, at + x * strides[X], strides[CHANNEL], part->places + x * channels, channels,
                        origin_of(job, n, part->first, z, y, x), job->packed[CHANNEL]);
    }
    if (!job->is_direct) {
        unload_row(job, to, channels, part->out, part->halves);
    }
    dmlk_follow(c->followers, out->base + to * dmlk_type_bytes(out->type), out->sizes[X], out->strides[X], channels,
                out->strides[CHANNEL]);
}

/* Items: rows of the output of all images, for one block of channels after the other. */
static void rows_part(int64_t begin, int64_t end, int number, void *context) {
    const struct job *job = context;
    const dmlk_view *in = &job->c->input, *out = &job->c->output;
    const int64_t rows = out->sizes[N] * out->sizes[Z] * out->sizes[Y];
    float *memory = job->memory + number * job->part_floats;
    const int64_t most = most_channels(job);
    const int64_t row_floats = out->sizes[X] * most;
    struct part part = {.out = memory, .places = (int32_t *)(void *)(memory + row_floats), .kept = memory + 2 * row_floats};
    part.halves = (uint16_t *)(void *)(part.kept + job->kept_z * job->kept_y * in->sizes[X] * most);
    const int64_t amount = out->sizes[X] * job->block * job->taps / 8 + 1;
    int64_t work = 0;
    for (int64_t item = begin; item < end && !dmlk_stopped(&work, amount); item++) {
        const int64_t block = item / rows, row = item % rows;
        if (item == begin || row == 0) {
            part.first = block * job->block;
            part.channels = block == job->blocks - 1 ? most : job->block;
            memset(part.number, -1, sizeof part.number);
        }
        run_channels(job, &part, row / out->sizes[Y] / out->sizes[Z], row / out->sizes[Y] % out->sizes[Z],
                     row % out->sizes[Y]);
    }
}

/* Whether lanes can be channels, and are better. */
static bool plan_rows(struct job *job) {
    const dmlk_float_convolution *c = job->c;
    const dmlk_view *in = &c->input, *out = &c->output;
    const bool rows_lie = (in->strides[X] == 1 || in->sizes[X] == 1) && (out->strides[X] == 1 || out->sizes[X] == 1);
    const bool channels_lie = in->strides[CHANNEL] == 1 && out->strides[CHANNEL] == 1;
    if (c->filter.sizes[FILTER] != 1 || job->channels < FEWEST_CHANNELS || (rows_lie && !channels_lie) ||
        (out->strides[CHANNEL] != 1 && out->strides[X] != 1 && out->sizes[X] != 1)) {
        return false;
    }
    const bool is_copied = in->type != DMLK_FLOAT32 || in->strides[CHANNEL] != 1;
    job->is_direct = out->type != DMLK_FLOAT16 && out->strides[CHANNEL] == 1;
    const int64_t most = MOST_TAPS, widest = in->sizes[X] > out->sizes[X] ? in->sizes[X] : out->sizes[X];
    if (is_copied) {
        job->kept_z = dmlk_min(span_of(&c->axes[0]), most + 1);
        job->kept_y = dmlk_min(span_of(&c->axes[1]), most + 1);
    }
    if (job->kept_z * job->kept_y > MOST_TAPS) {
        return false;
    }
    job->block = job->channels;
    if (is_copied) {
        const double fit = KEPT / ((double)(job->kept_z * job->kept_y) * (double)in->sizes[X]);
        const int64_t block = (int64_t)fit / (2 * LANES) * 2 * LANES;
        job->block = dmlk_min(job->channels, block > FEWEST_OF_BLOCK ? block : FEWEST_OF_BLOCK);
    }
    job->blocks = job->channels / job->block;
    const double floats = ((double)(job->kept_z * job->kept_y) + 3) * (double)widest * (double)most_channels(job);
    const bool needs_memory = is_copied || !job->is_direct || job->what == PLACES;
    if (needs_memory && floats > MOST_COPIED) {
        return false;
    }
    job->part_floats = needs_memory ? (int64_t)floats : 0;
    return true;
}

/* --- both --- */

static void pack(const struct job *job, bool by_channel) {
    const dmlk_float_convolution *c = job->c;
    const dmlk_view *f = &c->filter;
    int64_t offsets[MOST_TAPS];
    for (int64_t t = 0; t < job->taps; t++) {
        const int64_t row = t / f->sizes[WINDOW + 2];
        offsets[t] = row / f->sizes[WINDOW + 1] * f->strides[WINDOW] +
                     row % f->sizes[WINDOW + 1] * f->strides[WINDOW + 1] +
                     t % f->sizes[WINDOW + 2] * f->strides[WINDOW + 2];
    }
    const int64_t step = by_channel ? job->channels : 1;
    for (int64_t channel = 0; channel < job->channels; channel++) {
        const int64_t from = job->bytes != NULL ? dmlk_filter_at(job->bytes, channel)
                                                : channel / f->sizes[FILTER] * f->strides[GROUP] +
                                                      channel % f->sizes[FILTER] * f->strides[FILTER];
        const int sign = f->type == DMLK_INT8 ? 0x80 : 0;
        const int zero = job->bytes != NULL ? sign + dmlk_filter_zero(job->bytes, channel) : 0;
        float *to = job->weights + (by_channel ? channel : channel * job->taps);
        for (int64_t t = 0; t < job->taps; t++) {
            const int64_t at = from + offsets[t];
            to[t * step] = job->bytes != NULL ? (float)((f->base[at] ^ sign) - zero) : read(f, at);
        }
        job->bias[channel] = c->bias.base == NULL ? 0 : read(&c->bias, channel * c->bias.strides[0]);
    }
}

static bool run(struct job *job) {
    const dmlk_view *out = &job->c->output;
    const bool by_channel = plan_rows(job);
    if (!by_channel && !plan_strips(job)) {
        return false;
    }
    const bool multiplies = job->what == PRODUCTS || job->what == BYTES;
    if (!by_channel && !multiplies && job->height * job->width < LANES) {
        return false; /* most lanes would be empty */
    }
    int64_t items = out->sizes[N] * out->sizes[Z] * out->sizes[Y] * job->blocks; /* rows */
    if (!by_channel) {
        const int64_t down = (out->sizes[Y] - 1) / job->height + 1, across = (out->sizes[X] - 1) / job->width + 1;
        items = out->sizes[N] * job->channels * out->sizes[Z] * down * across;
    }
    const int64_t products = dmlk_view_elements(out) * job->taps / items;
    const int parts = dmlk_parts(items, 500000 / (products + 1) + 1); /* some 0.1 ms for each */
    const int64_t weights = multiplies ? (job->taps + 1) * job->channels : 0;
    float *memory = dmlk_take((weights + job->channels + parts * job->part_floats) * (int64_t)sizeof *memory);
    if (memory == NULL) {
        return false;
    }
    job->weights = multiplies ? memory : NULL;
    job->bias = memory + job->taps * job->channels;
    job->around = memory + weights;
    job->memory = job->around + job->channels;
    fill(job->around, job->channels, job->outside);
    if (multiplies) {
        pack(job, by_channel);
    }
    dmlk_parallel(items, parts, by_channel ? rows_part : strips_part, job);
    dmlk_give(memory);
    return true;
}

bool dmlk_convolve_floats_by_channel(const dmlk_float_convolution *c) {
    const int64_t *f = c->filter.sizes;
    struct job job = {.c = c, .channels = c->output.sizes[CHANNEL], .taps = f[WINDOW] * f[WINDOW + 1] * f[WINDOW + 2]};
    return f[OF_GROUP] == 1 && job.taps <= MOST_TAPS && run(&job);
}

/* The places of all taps; false: 32 bits do not hold them. */
static bool find_taps(struct job *job) {
    const dmlk_taps_axis *axes = job->c->axes;
    double most = 0;
    uint64_t step = 1;
    for (int a = X; a >= N; step *= (uint64_t)job->c->input.sizes[a], a--) {
        job->packed[a] = step;
        most += a >= Z ? (double)step * (double)(axes[a - Z].window - 1) * (double)axes[a - Z].tap : 0;
    }
    for (int64_t t = 0; t < job->taps && most <= INT32_MAX; t++) {
        const int64_t row = t / axes[2].window;
        const int64_t tap[DMLK_SPATIAL] = {row / axes[1].window, row % axes[1].window, t % axes[2].window};
        for (int k = 0; k < DMLK_SPATIAL; k++) {
            job->place[t] += (int32_t)(tap[k] * axes[k].tap * (int64_t)job->packed[Z + k]);
        }
    }
    return most <= INT32_MAX;
}

bool dmlk_pool_floats(const dmlk_float_convolution *c, const float *const *counts, const dmlk_view *positions) {
    const enum what what = counts != NULL ? SUMS : positions == NULL ? MAXIMA : PLACES;
    struct job job = {.c = c, .channels = c->output.sizes[CHANNEL], .what = what, .positions = positions, .taps = 1};
    for (int k = 0; k < DMLK_SPATIAL; k++) {
        if (c->axes[k].window > MOST_TAPS) {
            return false;
        }
        job.taps *= c->axes[k].window;
        job.counts[k] = counts == NULL ? NULL : counts[k];
    }
    job.outside = counts == NULL ? LOWEST : 0;
    return job.taps <= MOST_TAPS && (positions == NULL || find_taps(&job)) && run(&job);
}

/* The view with a Z axis of size 1. */
static dmlk_view with_z_axis(const dmlk_view *view) {
    dmlk_view result = *view;
    result.rank = 5;
    result.sizes[Z] = 1;
    result.strides[Z] = 0;
    for (int k = 0; k < 2; k++) {
        result.sizes[Y + k] = view->sizes[DMLK_Y + k];
        result.strides[Y + k] = view->strides[DMLK_Y + k];
    }
    return result;
}

bool dmlk_convolve_bytes_by_channel(const dmlk_convolution *convolution) {
    const dmlk_view *f = &convolution->filter;
    dmlk_float_convolution c = {
        .input = with_z_axis(&convolution->input),
        .output = with_z_axis(&convolution->output),
        .filter = {.base = f->base,
                   .type = f->type,
                   .rank = 6,
                   .sizes = {convolution->groups, convolution->filter_sizes[N] / convolution->groups, 1, 1, f->sizes[4], f->sizes[5]},
                   .strides = {0, 0, 0, 0, f->strides[4], f->strides[5]}},
        .axes = {{.input = 1, .output = 1, .window = 1, .step = 1, .tap = 1, .spread = 1}},
    };
    for (int k = 1; k < DMLK_SPATIAL; k++) {
        const int axis = DMLK_Y + k - 1;
        c.axes[k] = (dmlk_taps_axis){.input = convolution->input.sizes[axis],
                                     .output = convolution->output.sizes[axis],
                                     .window = convolution->filter_sizes[axis],
                                     .step = convolution->strides[axis],
                                     .tap = convolution->dilations[axis],
                                     .origin = -convolution->start[axis],
                                     .spread = 1};
    }
    struct job job = {.c = &c,
                      .what = BYTES,
                      .bytes = convolution,
                      .flip = convolution->input.type == DMLK_INT8 ? 0x80 : 0,
                      .zero = convolution->input_zero + (convolution->input.type == DMLK_INT8 ? 0x80 : 0),
                      .channels = convolution->output.sizes[DMLK_CHANNEL],
                      .taps = f->sizes[4] * f->sizes[5]};
    return convolution->filter_sizes[DMLK_CHANNEL] == 1 && dmlk_isa() != DMLK_ISA_GENERIC && /* without FMA slower than tiles */
           job.taps <= MOST_TAPS && run(&job);
}

/* convolve_input.c - planes of the input: see convolve_plan.h. */
#include "convolve_plan.h"

#include "cpu.h"
#include "cancellation.h"
#include "transpose.h"
#include "promoted.h"

const struct dmlk_convolve_input_form *dmlk_convolve_input_form;

enum { N = DMLK_N, CHANNEL = DMLK_CHANNEL, Y = DMLK_Y, X = DMLK_X };

#define LANES DMLK_S8_LANES
#define GRAIN 4096 /* bytes of planes that justify a part: 0.3 to 0.5 us; it waits for none, and others only for it */

/* Fills in quads begin .. end - 1, for any layout. */
static void fill_any(const dmlk_plan *p, const uint8_t *const from[4], const dmlk_window *w, int64_t begin,
                     int64_t end, uint8_t *to) {
    const int64_t size = p->c->input.sizes[X], stride = p->c->input.strides[X], step = p->c->strides[X];
    for (int64_t i = begin; i < end; i++) {
        for (int j = 0; j < 4; j++) {
            const int64_t x = w->x[j] + i * step;
            to[4 * i + j] = x < 0 || x >= size ? p->padding : from[j][x * stride] ^ p->flip;
        }
    }
}

/* Fills in quads without padding, from bytes that are `step` apart. */
DMLK_EACH_ISA(fill_inside, (const uint8_t *const from[4], int64_t step, int64_t count, uint8_t flip, uint8_t *to),
              (from, step, count, flip, to)) {
    const uint8_t *restrict a = from[0], *restrict b = from[1], *restrict c = from[2], *restrict d = from[3];
    uint8_t *restrict quad = to;
    if (step == 1) {
        for (int64_t i = 0; i < count; i++) {
            quad[4 * i] = a[i] ^ flip;
            quad[4 * i + 1] = b[i] ^ flip;
            quad[4 * i + 2] = c[i] ^ flip;
            quad[4 * i + 3] = d[i] ^ flip;
        }
    } else if (step == 2) {
        for (int64_t i = 0; i < count; i++) {
            quad[4 * i] = a[2 * i] ^ flip;
            quad[4 * i + 1] = b[2 * i] ^ flip;
            quad[4 * i + 2] = c[2 * i] ^ flip;
            quad[4 * i + 3] = d[2 * i] ^ flip;
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            quad[4 * i] = a[step * i] ^ flip;
            quad[4 * i + 1] = b[step * i] ^ flip;
            quad[4 * i + 2] = c[step * i] ^ flip;
            quad[4 * i + 3] = d[step * i] ^ flip;
        }
    }
}

/* The row of the input that row `row` of planes of a Y phase contains, at channel 0 of the group; NULL: padding. */
static const uint8_t *find_row(const dmlk_strip *s, int64_t y_phase, int64_t row) {
    const dmlk_convolution *c = s->p->c;
    const int64_t y = (s->first + row) * c->strides[Y] + s->p->y.phases[y_phase] - c->start[Y];
    return y < 0 || y >= c->input.sizes[Y] ? NULL : s->input + y * c->input.strides[Y];
}

/* Fills in one row of a plane. */
static void fill_row(const dmlk_strip *s, int64_t plane, int64_t row, uint8_t *to) {
    const dmlk_plan *p = s->p;
    const dmlk_convolution *c = p->c;
    const int64_t kinds = p->by_taps ? p->fours : p->x.count;
    const uint8_t *base = find_row(s, plane / kinds % p->y.count, row);
    if (base == NULL) {
        memset(to, p->padding, (size_t)p->pitch * 4);
        return;
    }
    const dmlk_window *w = &p->windows[plane % kinds];
    const int64_t channel = plane / kinds / p->y.count * (p->by_taps ? 1 : 4);
    const uint8_t *from[4], *inner[4];
    const int64_t step = c->strides[X] * c->input.strides[X], count = w->end - w->begin;
    for (int j = 0; j < 4; j++) {
        /* Bytes of missing channels and taps are arbitrary: they are multiplied by 0 in the filter. */
        const int64_t of = p->by_taps ? channel : dmlk_min(channel + j, p->channels - 1);
        from[j] = base + of * c->input.strides[CHANNEL];
    }
    if (dmlk_convolve_input_form != NULL && !p->by_taps && step == 1) {
        dmlk_convolve_input_form->fill_packed(from, w, p, to);
        return;
    }
    for (int j = 0; j < 4; j++) {
        inner[j] = from[j] + w->x[j] * c->input.strides[X] + w->begin * step;
    }
    fill_any(p, from, w, 0, w->begin, to);
    fill_any(p, from, w, w->end, p->pitch, to);
    to += 4 * w->begin;
    const int64_t next = inner[1] - inner[0];
    const bool even = inner[2] - inner[1] == next && inner[3] - inner[2] == next && next >= 0;
    if (dmlk_convolve_input_form != NULL && even && step >= 0 && step < 128 && 15 * step + 3 * next < 128) {
        dmlk_convolve_input_form->fill_close(inner[0], step, next, count, p->flip, to);
        return;
    }
    fill_inside(inner, step, count, p->flip, to);
}

DMLK_EACH_ISA(flip_bytes, (uint8_t *bytes, int64_t count, uint8_t flip), (bytes, count, flip)) {
    for (int64_t i = 0; i < count; i++) {
        bytes[i] ^= flip;
    }
}

/* Fills in one row of all planes of a phase of Y and X; the channels of each element are contiguous. */
static void fill_transposed(const dmlk_strip *s, int64_t phase, int64_t row, uint8_t *to) {
    const dmlk_plan *p = s->p;
    const int64_t four_step = p->y.count * p->x.count * p->plane_bytes, stride = p->c->input.strides[X];
    const dmlk_window *w = &p->windows[phase % p->x.count];
    const uint8_t *base = find_row(s, phase / p->x.count, row);
    const int64_t begin = base == NULL ? 0 : w->begin, end = base == NULL ? 0 : w->end, step = p->c->strides[X];
    if (end > begin) {
        dmlk_transpose(4, base + (w->x[0] + begin * step) * stride, step * stride, 4, to + 4 * begin, four_step,
                       p->fours, end - begin);
    }
    for (int64_t i = 0; i < p->fours; i++, to += four_step) {
        memset(to, p->padding, (size_t)(4 * begin));
        memset(to + 4 * end, p->padding, (size_t)(4 * (p->pitch - end)));
        if (p->flip != 0) {
            flip_bytes(to + 4 * begin, 4 * (end - begin), p->flip);
        }
    }
}

/* --- copies --- */

DMLK_EACH_ISA(copy_flipped, (const uint8_t *restrict from, int64_t count, uint8_t flip, uint8_t *restrict to),
              (from, count, flip, to)) {
    for (int64_t i = 0; i < count; i++) {
        to[i] = from[i] ^ flip;
    }
}

static void copy_bytes(const uint8_t *from, int64_t count, uint8_t flip, uint8_t *to) {
    if (flip == 0) {
        memcpy(to, from, (size_t)count);
    } else {
        copy_flipped(from, count, flip, to);
    }
}

/* Copies one line. */
static void copy_line(const dmlk_strip *s, int64_t line, uint8_t *to) {
    const dmlk_plan *p = s->p;
    const dmlk_view *in = &p->c->input;
    const int64_t step = p->element_step, stride = in->strides[X], *start = p->c->start;
    const int64_t y = s->first * p->c->strides[Y] - start[Y] + line;
    const bool is_inside = y >= 0 && y < in->sizes[Y];
    const int64_t begin = is_inside ? dmlk_min(start[X], p->line) : p->line; /* of the elements inside the input */
    const int64_t end = is_inside ? dmlk_min(start[X] + in->sizes[X], p->line) : p->line;
    const uint8_t *from = s->input + y * in->strides[Y];
    memset(to, p->padding, (size_t)(begin * step));
    if (p->channels > 1 && in->strides[CHANNEL] != 1 && end > begin) {
        dmlk_transpose(1, from + (begin - start[X]) * stride, in->strides[CHANNEL], stride, to + begin * step, step,
                       end - begin, p->channels);
        if (p->flip != 0) {
            flip_bytes(to + begin * step, (end - begin) * step, p->flip);
        }
    } else if (stride == step && end > begin) { /* the last element has no gap after its channels */
        const int64_t count = (end - begin - 1) * step + p->channels;
        copy_bytes(from + (begin - start[X]) * stride, count, p->flip, to + begin * step);
    } else {
        for (int64_t i = begin; i < end; i++) {
            copy_bytes(from + (i - start[X]) * stride, p->channels, p->flip, to + i * step);
        }
    }
    memset(to + end * step, p->padding, (size_t)((p->line - end) * step));
}

static void copy_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const dmlk_strip *s = context;
    const int64_t step = s->p->line_step;
    int64_t work = 0;
    for (int64_t i = begin; i < end && !dmlk_stopped(&work, step); i++) {
        copy_line(s, i, s->planes + i * step);
    }
}

/* Copies the rows of the windows of a row of the output, one after the other; each may end with bytes of the next. */
static void copy_patches(const dmlk_strip *s, int64_t y) {
    const dmlk_plan *p = s->p;
    const dmlk_convolution *c = p->c;
    const int64_t bytes = 4 * p->quads / p->y.taps, step = c->strides[X] * p->element_step;
    uint8_t *patch = s->patches + y * p->row_step;
    for (int64_t x = 0; x < p->pitch; x++, patch += p->patch) {
        const uint8_t *from = s->planes + y * c->strides[Y] * p->line_step + x * step;
        for (int64_t tap = 0; tap < p->y.taps; tap++, from += c->dilations[Y] * p->line_step) {
            for (int64_t b = 0; b < bytes; b += DMLK_PATCH_BYTES) {
                memcpy(patch + tap * bytes + b, from + b, DMLK_PATCH_BYTES);
            }
        }
    }
}

/* Items: rows of the output. */
static void patches_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const dmlk_strip *s = context;
    int64_t work = 0;
    for (int64_t y = begin; y < end && !dmlk_stopped(&work, s->p->row_step / 8); y++) {
        copy_patches(s, y);
    }
}

/* Sums the channels of each element of a line. */
static void sum_elements(const dmlk_plan *p, const uint8_t *from, int32_t *to) {
    for (int64_t x = 0; x < p->line; x++, from += p->element_step) {
        int32_t sum = 0;
        for (int64_t b = 0; b < p->channels; b++) {
            sum += dmlk_s8_number(from[b], p->c->filter.type != DMLK_INT8);
        }
        to[x] = sum;
    }
}

static void sum_lines(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const dmlk_strip *s = context;
    const dmlk_plan *p = s->p;
    int64_t work = 0;
    for (int64_t i = begin; i < end && !dmlk_stopped(&work, p->line * (1 + p->channels / 8)); i++) {
        const uint8_t *from = (p->direct ? s->positions : s->planes) + i * p->line_step;
        (dmlk_convolve_input_form != NULL ? dmlk_convolve_input_form->sum_elements : sum_elements)(
            p, from, s->elements + i * p->line);
    }
}

DMLK_EACH_ISA(add, (const int32_t *restrict from, int64_t step, int64_t count, int32_t *restrict to),
              (from, step, count, to)) {
    for (int64_t i = 0; i < count; i++) {
        to[i] += from[i * step];
    }
}

/* Sums the elements of each window, row by row of the output: first of each column of a window, then of the columns. */
static void sum_windows(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const dmlk_strip *s = context;
    const dmlk_plan *p = s->p;
    const dmlk_convolution *c = p->c;
    int64_t work = 0;
    for (int64_t y = begin; y < end && !dmlk_stopped(&work, p->line * p->y.taps + p->pitch * p->x.taps); y++) {
        int32_t *columns = s->columns + y * p->line, *sums = s->sums + y * p->pitch;
        memset(columns, 0, (size_t)p->line * sizeof *columns);
        memset(sums, 0, (size_t)p->pitch * sizeof *sums);
        for (int64_t tap = 0; tap < p->y.taps; tap++) {
            add(s->elements + (y * c->strides[Y] + tap * c->dilations[Y]) * p->line, 1, p->line, columns);
        }
        for (int64_t tap = 0; tap < p->x.taps; tap++) {
            add(columns + tap * c->dilations[X], c->strides[X], p->pitch, sums);
        }
    }
}

/* --- all planes --- */

/* Items: rows of all planes. */
static void fill_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const dmlk_strip *s = context;
    const dmlk_plan *p = s->p;
    const int64_t planes = p->transposed ? p->y.count * p->x.count : p->planes;
    const int64_t row_work = p->pitch * (p->transposed ? p->fours : 1);
    int64_t work = 0;
    for (int64_t plane = 0; plane < planes; plane++) {
        for (int64_t row = begin; row < end && !dmlk_stopped(&work, row_work); row++) {
            uint8_t *to = s->planes + plane * p->plane_bytes + row * p->pitch * 4;
            if (p->transposed) {
                fill_transposed(s, plane, row, to);
            } else {
                fill_row(s, plane, row, to);
            }
        }
    }
}

/* Sums the elements of the window of each position of planes, by a convolution with a filter of ones. */
static void sum_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const dmlk_strip *s = context;
    const int32_t zero = 0;
    const dmlk_s8_start start = {.constants = &zero, .fits = true};
    int64_t work = 0;
    for (int64_t t = begin; t < end && !dmlk_stopped(&work, s->p->quads); t++) {
        int32_t *const sums[] = {s->sums + t * LANES};
        s->p->tiles.one_filter(s->planes + t * LANES * 4, s->p->offsets, s->p->quads, s->p->ones, 4, LANES, &start,
                               sums);
    }
}

/* --- phases --- */

static void same_lines(int64_t begin, int64_t end, void *context, int64_t *first, int64_t *last) {
    (void)context;
    *first = begin;
    *last = end;
}

/* The lines that rows of windows read. */
static void lines_of_rows(int64_t begin, int64_t end, void *context, int64_t *first, int64_t *last) {
    const dmlk_strip *s = context;
    *first = begin * s->p->c->strides[Y];
    *last = *first + dmlk_lines(s->p, end - begin);
}

/* The rows of planes that tiles of sums read: they run past row ends, and past the last row to the next plane. */
static void rows_of_tiles(int64_t begin, int64_t end, void *context, int64_t *first, int64_t *last) {
    const dmlk_strip *s = context;
    const dmlk_plan *p = s->p;
    const int64_t reached = (end * LANES - 1 + p->x.reach) / p->pitch + 1;
    *first = reached > s->rows ? 0 : begin * LANES / p->pitch;
    *last = dmlk_min(reached, s->rows) + p->y.reach;
}

int dmlk_fill_planes(dmlk_strip *s, int most_parts, dmlk_pool_phase *phases) {
    const dmlk_plan *p = s->p;
    s->filled = p->direct ? DMLK_NOTHING : p->copied ? DMLK_LINES : DMLK_PLANE_ROWS;
    if (p->copied) {
        const int64_t lines = dmlk_lines(p, s->rows);
        const int parts = dmlk_parts(lines, 1 + GRAIN / p->line_step);
        *phases = (dmlk_pool_phase){
            .items = lines, .parts = (int)dmlk_min(most_parts, parts), .run = copy_part, .context = s};
    } else if (!p->direct) {
        const int64_t rows = s->rows + p->y.reach, row_bytes = p->pitch * 4 * p->planes;
        const int parts = dmlk_parts(rows, 1 + GRAIN / row_bytes);
        *phases = (dmlk_pool_phase){
            .items = rows, .parts = (int)dmlk_min(most_parts, parts), .run = fill_part, .context = s};
    }
    return !p->direct;
}

dmlk_pool_phase dmlk_fill_patches(dmlk_strip *s, int most_parts, unsigned after) {
    s->filled = DMLK_PATCH_ROWS;
    return (dmlk_pool_phase){.items = s->rows,
                             .parts = (int)dmlk_min(most_parts, dmlk_parts(s->rows, 1 + GRAIN / s->p->row_step)),
                             .run = patches_part,
                             .context = s,
                             .after = after};
}

int dmlk_sum_windows(dmlk_strip *s, int most_parts, dmlk_pool_phase *phases) {
    const dmlk_plan *p = s->p;
    if (p->direct || p->copied) {
        const int64_t lines = dmlk_lines(p, s->rows), line_grain = 1 + 50000 / (p->line * (1 + p->channels / 64));
        const int64_t row_grain = 1 + 200000 / (p->line * (p->y.taps + p->x.taps));
        phases[0] = (dmlk_pool_phase){.items = lines,
                                      .parts = (int)dmlk_min(most_parts, dmlk_parts(lines, line_grain)),
                                      .run = sum_lines,
                                      .context = s,
                                      .reads = p->copied ? same_lines : NULL};
        phases[1] = (dmlk_pool_phase){.items = s->rows,
                                      .parts = (int)dmlk_min(most_parts, dmlk_parts(s->rows, row_grain)),
                                      .run = sum_windows,
                                      .context = s,
                                      .reads = lines_of_rows};
        s->filled = DMLK_SUM_ROWS;
        return 2;
    }
    const int64_t tiles = (s->rows * p->pitch + LANES - 1) / LANES, grain = 1 + 40000 / p->quads / DMLK_S8_ROWS;
    phases[0] = (dmlk_pool_phase){.items = tiles,
                                  .parts = (int)dmlk_min(most_parts, dmlk_parts(tiles, grain)),
                                  .run = sum_part,
                                  .context = s,
                                  .reads = rows_of_tiles};
    s->filled = DMLK_SUM_TILES;
    return 1;
}

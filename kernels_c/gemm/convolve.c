/* convolve.c - convolutions of bytes as sums of products of quads (see dot8.h).
 *
 * The lanes of a tile are output positions that follow each other.  The input is laid out anew so that the quads
 * that one step multiplies with lie next to each other too, whatever its strides, and whatever stride and
 * dilation the convolution has: one plane for each way a tap can fall between the window's steps,
 *
 *     quads of channels:  plane[channels / 4][y phase][x phase], position = 4 channels of one element;
 *     quads of taps:      plane[channel][y phase][taps / 4],     position = 4 taps of one window row.
 *
 * Within a plane, a tap is a constant distance from the position; rows follow each other without a gap, so that
 * tiles run on over their ends (what they compute between two rows is thrown away).
 *
 * Zero points: with u = input as unsigned byte and w = filter as signed byte, both shifted by 128 where the type
 * is the other one, sum (u - A)(w - B) = sum uw - B sum u + (taps A B - A sum w).  Padding is A. */
#include "convolve.h"

#include <stdlib.h>

#include "dot8.h"
#include "isa.h"
#include "parallel.h"
#include "stop.h"
#include "wide.h"

#ifdef DMLK_X86
#include <immintrin.h>
#endif

enum { N, CHANNEL, Y, X };

#define ROWS DMLK_DOT8_ROWS
#define LANES DMLK_DOT8_LANES
#define PANEL_BYTES (INT64_C(3) << 19)  /* of planes: they fit into a second-level cache and a half */
#define FILTER_BYTES (INT64_C(1) << 21) /* of packed filters */

/* How the taps of an axis fall: tap k is in the plane of phase index[k], shift[k] positions on. */
struct axis {
    int64_t taps;
    int64_t *index, *shift; /* [taps] */
    int64_t *phases;        /* [count], each from 0 to before the stride */
    int64_t count;
    int64_t reach; /* the largest shift */
};

struct plan {
    const dmlk_convolution *c;
    struct axis y, x;
    bool by_taps;
    int64_t channels, filters; /* of a group */
    int64_t groups_of_4;       /* of channels, or of taps along X */
    int64_t quads;
    int64_t pitch;       /* positions in a row of a plane */
    int64_t strip;       /* rows of the output worked on at once */
    int64_t planes;
    int64_t plane_bytes;
    int64_t blocks;      /* of ROWS filters, in a group */
    int64_t chunk;       /* of them, that are packed at once */
    int64_t *offsets;    /* [quads] */
    int64_t (*taps)[4];  /* [quads]: the elements of each in a filter, -1: 0 */
    int32_t *rows;       /* [chunk][quads][ROWS] */
    int32_t *ones;       /* [quads]: 1 for each tap that there is */
    int32_t *factor;     /* [chunk * ROWS]: B */
    int32_t *constant;   /* [chunk * ROWS]: taps A B - A sum w */
    uint8_t flip_input, flip_filter, padding;
    bool needs_sums; /* some B is not 0 */
    dmlk_dot8 *tile, *row_tile;
};

/* What is computed at once: rows first .. first + rows - 1 of the output of one group of one image. */
struct strip {
    const struct plan *p;
    int64_t n, group, first, rows;
    int64_t positions; /* of all its rows, with what lies between them */
    int64_t first_block, blocks;
    uint8_t *planes;
    int32_t *sums; /* [positions rounded up to LANES]: of u */
};

/* --- laying out the input --- */

/* Elements begin .. end - 1 of a row are inside the input; element i is `step` on from the one before. */
static void inside(int64_t first, int64_t step, int64_t size, int64_t count, int64_t *begin, int64_t *end) {
    *begin = first >= 0 ? 0 : dmlk_min((-first + step - 1) / step, count);
    *end = first >= size ? 0 : dmlk_min((size - 1 - first) / step + 1, count);
    *end = *end < *begin ? *begin : *end;
}

/* Where a byte of the quads of a row comes from: elements x, x + step, ... of the row that begins at `from`. */
struct source {
    const uint8_t *from; /* element 0 of the input's row */
    int64_t x;
};

/* Quads begin .. end - 1, wherever they are. */
static void fill_any(const struct plan *p, const struct source sources[4], int64_t begin, int64_t end, uint8_t *to) {
    const int64_t size = p->c->input.sizes[X], stride = p->c->input.strides[X], step = p->c->strides[X];
    for (int64_t i = begin; i < end; i++) {
        for (int j = 0; j < 4; j++) {
            const int64_t x = sources[j].x + i * step;
            to[4 * i + j] = x < 0 || x >= size ? p->padding : sources[j].from[x * stride] ^ p->flip_input;
        }
    }
}

/* Quads whose bytes are all there, `step` bytes apart from each to the next. */
DMLK_CLONES static void fill_inside(const uint8_t *const from[4], int64_t step, int64_t count, uint8_t flip, uint8_t *to) {
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

/* The same where the four bytes follow each other in memory. */
DMLK_CLONES static void fill_quads(const uint8_t *from, int64_t step, int64_t count, uint8_t flip, uint8_t *to) {
    const uint32_t flips = flip * 0x01010101u;
    for (int64_t i = 0; i < count; i++) {
        uint32_t quad;
        memcpy(&quad, from + i * step, 4);
        quad ^= flips;
        memcpy(to + 4 * i, &quad, 4);
    }
}

#ifdef DMLK_X86
/* 16 quads at a time: `step` is at most 4. */
DMLK_AVX512 static void fill_quads_avx512(const uint8_t *from, int64_t step, int64_t count, uint8_t flip, uint8_t *to) {
    uint8_t order[64];
    for (int k = 0; k < 64; k++) {
        order[k] = (uint8_t)(k / 4 * step + k % 4);
    }
    const __m512i index = _mm512_loadu_si512(order), flips = _mm512_set1_epi8((char)flip);
    for (int64_t i = 0; i < count; i += 16) {
        const int64_t quads = dmlk_min(16, count - i);
        const __mmask64 there = ~(__mmask64)0 >> (64 - ((quads - 1) * step + 4));
        const __m512i bytes = _mm512_maskz_loadu_epi8(there, from + i * step);
        const __m512i result = _mm512_xor_si512(_mm512_permutexvar_epi8(index, bytes), flips);
        _mm512_mask_storeu_epi32(to + 4 * i, (__mmask16)(0xffff >> (16 - quads)), result);
    }
}
#endif

/* A row of quads. */
static void fill_quads_of(const struct plan *p, const struct source sources[4], uint8_t *to) {
    const int64_t stride = p->c->input.strides[X], step = p->c->strides[X];
    const uint8_t *from[4];
    int64_t begin = 0, end = p->pitch;
    bool together = true;
    for (int j = 0; j < 4; j++) {
        int64_t first, last;
        inside(sources[j].x, step, p->c->input.sizes[X], p->pitch, &first, &last);
        begin = first > begin ? first : begin;
        end = dmlk_min(end, last);
        from[j] = sources[j].from + sources[j].x * stride;
        together = together && from[j] == from[0] + j;
    }
    if (begin >= end) {
        fill_any(p, sources, 0, p->pitch, to);
        return;
    }
    fill_any(p, sources, 0, begin, to);
    fill_any(p, sources, end, p->pitch, to);
    for (int j = 0; j < 4; j++) {
        from[j] += begin * step * stride;
    }
#ifdef DMLK_X86
    if (together && step * stride >= 1 && step * stride <= 4 && dmlk_isa() == DMLK_ISA_AVX512) {
        fill_quads_avx512(from[0], step * stride, end - begin, p->flip_input, to + 4 * begin);
        return;
    }
#endif
    if (together) {
        fill_quads(from[0], step * stride, end - begin, p->flip_input, to + 4 * begin);
    } else {
        fill_inside(from, step * stride, end - begin, p->flip_input, to + 4 * begin);
    }
}

/* One row of a plane. */
static void fill_row(const struct strip *s, int64_t plane, int64_t row, uint8_t *to) {
    const struct plan *p = s->p;
    const dmlk_convolution *c = p->c;
    const int64_t x_phase = p->by_taps ? 0 : plane % p->x.count;
    const int64_t kq = p->by_taps ? plane % p->groups_of_4 : 0;
    const int64_t rest = plane / (p->by_taps ? p->groups_of_4 : p->x.count);
    const int64_t y_phase = rest % p->y.count, group_or_channel = rest / p->y.count;
    const int64_t y = (s->first + row) * c->strides[Y] + p->y.phases[y_phase] - c->start[Y];
    if (y < 0 || y >= c->input.sizes[Y]) {
        memset(to, p->padding, (size_t)p->pitch * 4);
        return;
    }
    const uint8_t *base = c->input.base + s->n * c->input.strides[N] + y * c->input.strides[Y];
    struct source sources[4];
    for (int64_t j = 0; j < 4; j++) {
        /* Bytes of channels and taps that are not there meet a 0 in the filter, whatever they are. */
        const int64_t channel = p->by_taps ? group_or_channel : dmlk_min(group_or_channel * 4 + j, p->channels - 1);
        const int64_t x = p->by_taps ? (4 * kq + j) * c->dilations[X] : p->x.phases[x_phase];
        sources[j].from = base + (s->group * p->channels + channel) * c->input.strides[CHANNEL];
        sources[j].x = x - c->start[X];
    }
    fill_quads_of(p, sources, to);
}

/* Rows of planes, numbered. */
static void fill_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct strip *s = context;
    const int64_t rows = s->rows + s->p->y.reach;
    int64_t work = 0;
    for (int64_t i = begin; i < end && !dmlk_stopped(&work, s->p->pitch); i++) {
        fill_row(s, i / rows, i % rows, s->planes + i / rows * s->p->plane_bytes + i % rows * s->p->pitch * 4);
    }
}

/* --- computing --- */

static void sum_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct strip *s = context;
    int64_t work = 0;
    for (int64_t t = begin; t < end && !dmlk_stopped(&work, s->p->quads); t++) {
        s->p->row_tile(s->planes + t * LANES * 4, s->p->offsets, s->p->quads, s->p->ones, LANES,
                       (int32_t (*)[LANES])(s->sums + t * LANES));
    }
}

/* Lanes of a tile that are stored one after the other: `count` from lane `lane` on, to element `to` of a filter's
 * output and on along X. */
struct run {
    int64_t lane, count, to;
};

/* The runs of a tile from position `first` on; returns how many there are. */
static int find_runs(const struct strip *s, int64_t first, int64_t count, struct run runs[LANES]) {
    const int64_t pitch = s->p->pitch, size = s->p->c->output.sizes[X];
    const int64_t *strides = s->p->c->output.strides;
    int64_t y = first / pitch, x = first % pitch;
    int found = 0;
    for (int64_t lane = 0; lane < count; y++, x = 0) {
        if (x < size) {
            const int64_t to = (s->first + y) * strides[Y] + x * strides[X];
            runs[found++] = (struct run){lane, dmlk_min(count - lane, size - x), to};
        }
        lane += pitch - x;
    }
    return found;
}

/* to[i] = sums[i] + constant - factor * inputs[i] */
static inline void finish(const int32_t *sums, const int32_t *inputs, uint32_t constant, uint32_t factor,
                          int64_t count, int32_t *to, int64_t stride) {
    for (int64_t i = 0; i < count; i++) {
        const uint32_t rest = inputs != NULL ? factor * (uint32_t)inputs[i] : 0;
        to[i * stride] = (int32_t)((uint32_t)sums[i] + constant - rest);
    }
}

#ifdef DMLK_X86
DMLK_AVX512 static void finish_avx512(const int32_t *sums, const int32_t *inputs, uint32_t constant, uint32_t factor,
                                      int64_t count, int32_t *to) {
    const __m512i constants = _mm512_set1_epi32((int32_t)constant), factors = _mm512_set1_epi32((int32_t)factor);
    for (int64_t i = 0; i < count; i += 16) {
        const __mmask16 there = (__mmask16)(0xffff >> (16 - dmlk_min(16, count - i)));
        __m512i sum = _mm512_add_epi32(_mm512_maskz_loadu_epi32(there, sums + i), constants);
        if (inputs != NULL) {
            const __m512i input = _mm512_maskz_loadu_epi32(there, inputs + i);
            sum = _mm512_sub_epi32(sum, _mm512_mullo_epi32(input, factors));
        }
        _mm512_mask_storeu_epi32(to + i, there, sum);
    }
}
#endif

/* Writes a tile: `rows` filters from `filter` on, positions from `first` on. */
static void store_tile(const struct strip *s, int64_t filter, int64_t rows, int64_t first, int64_t count,
                       int32_t sums[][LANES]) {
    const struct plan *p = s->p;
    const dmlk_view *out = &p->c->output;
    int32_t *base = (int32_t *)out->base + s->n * out->strides[N] + (s->group * p->filters + filter) * out->strides[CHANNEL];
    const int64_t in_chunk = filter - s->first_block * ROWS, stride = out->strides[X];
    struct run runs[LANES];
    const int run_count = find_runs(s, first, count, runs);
    for (int64_t r = 0; r < rows; r++, base += out->strides[CHANNEL]) {
        const uint32_t constant = (uint32_t)p->constant[in_chunk + r], factor = (uint32_t)p->factor[in_chunk + r];
        for (int k = 0; k < run_count; k++) {
            const struct run run = runs[k];
            const int32_t *inputs = p->needs_sums ? s->sums + first + run.lane : NULL;
#ifdef DMLK_X86
            if (stride == 1 && dmlk_isa() == DMLK_ISA_AVX512) {
                finish_avx512(sums[r] + run.lane, inputs, constant, factor, run.count, base + run.to);
                continue;
            }
#endif
            finish(sums[r] + run.lane, inputs, constant, factor, run.count, base + run.to, stride);
        }
    }
}

/* Tiles: position by position, all blocks of filters for each. */
static void compute_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct strip *s = context;
    const struct plan *p = s->p;
    int64_t work = 0;
    for (int64_t i = begin; i < end && !dmlk_stopped(&work, p->quads * ROWS * LANES / 8); i++) {
        const int64_t block = i % s->blocks, first = i / s->blocks * LANES;
        const int64_t filter = (s->first_block + block) * ROWS, rows = dmlk_min(ROWS, p->filters - filter);
        const int64_t count = dmlk_min(LANES, s->positions - first);
        int32_t sums[ROWS][LANES];
        dmlk_dot8 *tile = rows == 1 ? p->row_tile : p->tile;
        tile(s->planes + first * 4, p->offsets, p->quads, p->rows + block * p->quads * ROWS,
             (int)(count + 15) / 16 * 16, sums);
        store_tile(s, filter, rows, first, count, sums);
    }
}

static void run_strip(struct strip *s, int most_parts) {
    const struct plan *p = s->p;
    const int64_t tiles = (s->positions + LANES - 1) / LANES, rows = p->planes * (s->rows + p->y.reach);
    const int fill_parts = (int)dmlk_min(most_parts, dmlk_parts(rows, 1 + 32768 / (p->pitch * 4)));
    dmlk_parallel(rows, fill_parts, fill_part, s);
    const int64_t items = tiles * s->blocks, grain = 1 + 40000 / p->quads / ROWS;
    if (p->needs_sums) {
        dmlk_parallel(tiles, (int)dmlk_min(most_parts, dmlk_parts(tiles, grain)), sum_part, s);
    }
    dmlk_parallel(items, (int)dmlk_min(most_parts, dmlk_parts(items, grain)), compute_part, s);
}

/* --- the filters --- */

/* Where the quad with number q of a filter comes from: its four elements, -1 for none. */
static void find_taps(const struct plan *p, int64_t q, int64_t *at) {
    const dmlk_view *f = &p->c->filter;
    for (int64_t j = 0; j < 4; j++) {
        int64_t channel, tap_y, tap_x;
        if (p->by_taps) {
            tap_x = q % p->groups_of_4 * 4 + j;
            tap_y = q / p->groups_of_4 % p->y.taps;
            channel = q / p->groups_of_4 / p->y.taps;
        } else {
            tap_x = q % p->x.taps;
            tap_y = q / p->x.taps % p->y.taps;
            channel = q / p->x.taps / p->y.taps * 4 + j;
        }
        const bool is_there = channel < p->channels && tap_x < p->x.taps;
        at[j] = is_there ? channel * f->strides[CHANNEL] + tap_y * f->strides[Y] + tap_x * f->strides[X] : -1;
    }
}

static int64_t find_offset(const struct plan *p, int64_t q) {
    if (p->by_taps) {
        const int64_t kq = q % p->groups_of_4, tap_y = q / p->groups_of_4 % p->y.taps;
        const int64_t channel = q / p->groups_of_4 / p->y.taps;
        const int64_t plane = (channel * p->y.count + p->y.index[tap_y]) * p->groups_of_4 + kq;
        return plane * p->plane_bytes + p->y.shift[tap_y] * p->pitch * 4;
    }
    const int64_t tap_x = q % p->x.taps, tap_y = q / p->x.taps % p->y.taps, group = q / p->x.taps / p->y.taps;
    const int64_t plane = (group * p->y.count + p->y.index[tap_y]) * p->x.count + p->x.index[tap_x];
    return plane * p->plane_bytes + (p->y.shift[tap_y] * p->pitch + p->x.shift[tap_x]) * 4;
}

static int32_t join(const int8_t bytes[4]) {
    int32_t quad;
    memcpy(&quad, bytes, 4);
    return quad;
}

/* Quads of `lines` filters; the ones past `count` are 0. */
static void pack_block(const struct plan *p, int64_t filter, int64_t count, int64_t lines, int32_t *rows) {
    const dmlk_view *f = &p->c->filter;
    const uint8_t *base = f->base + filter * f->strides[N];
    const int32_t flips = (int32_t)(p->flip_filter * 0x01010101u);
    for (int64_t q = 0; q < p->quads; q++) {
        const int64_t *at = p->taps[q];
        int32_t *to = rows + q * lines;
        for (int64_t r = 0; r < count; r++) {
            const uint8_t *from = base + r * f->strides[N];
            int32_t quad;
            if (at[1] == at[0] + 1 && at[2] == at[0] + 2 && at[3] == at[0] + 3) {
                memcpy(&quad, from + at[0], 4);
                to[r] = quad ^ flips;
                continue;
            }
            uint8_t bytes[4];
            for (int j = 0; j < 4; j++) {
                bytes[j] = at[j] < 0 ? 0 : from[at[j]] ^ p->flip_filter;
            }
            memcpy(&to[r], bytes, 4);
        }
        memset(to + count, 0, (size_t)(lines - count) * sizeof *to);
    }
}

/* What the zero points of filter `filter`, row in_chunk of those that are packed, take from its sums. */
static void note_zero_points(struct plan *p, int64_t filter, int64_t in_chunk, uint32_t sum) {
    const dmlk_view *zero = p->c->filter_zero;
    int factor = p->flip_filter != 0 ? -128 : 0;
    if (zero->base != NULL) {
        const uint8_t bits = zero->base[zero->sizes[0] == 1 ? 0 : filter * zero->strides[0]];
        factor = (int8_t)(bits ^ p->flip_filter); /* a UINT8's 128 is what its filters have lost too */
    }
    const int64_t taps = p->channels * p->y.taps * p->x.taps;
    const uint32_t a = p->padding;
    p->factor[in_chunk] = factor;
    p->constant[in_chunk] = (int32_t)(a * ((uint32_t)taps * (uint32_t)factor - sum));
}

struct packing {
    struct plan *p;
    int64_t group, first_block;
};

static void pack_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct packing *k = context;
    struct plan *p = k->p;
    int64_t work = 0;
    for (int64_t block = begin; block < end && !dmlk_stopped(&work, p->quads * ROWS); block++) {
        const int64_t first = (k->first_block + block) * ROWS, count = dmlk_min(ROWS, p->filters - first);
        int32_t *rows = p->rows + block * p->quads * ROWS, sums[ROWS] = {0};
        const int64_t lines = count == 1 ? 1 : ROWS, filter = k->group * p->filters + first;
        pack_block(p, filter, count, lines, rows);
        if (p->padding != 0) {
            dmlk_dot8_sum_rows(rows, p->quads, (int)lines, sums);
        }
        for (int64_t r = 0; r < count; r++) {
            note_zero_points(p, filter + r, block * ROWS + r, (uint32_t)sums[r]);
        }
    }
}

/* --- planning --- */

static bool plan_axis(struct axis *axis, int64_t taps, int64_t dilation, int64_t stride) {
    *axis = (struct axis){.taps = taps};
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

static void free_plan(struct plan *p) {
    free(p->x.index), free(p->x.shift), free(p->x.phases);
    free(p->y.index), free(p->y.shift), free(p->y.phases);
    free(p->offsets), free(p->taps), free(p->rows), free(p->ones), free(p->factor), free(p->constant);
}

/* Sizes of the planes; false: there is no memory for a single row. */
static bool plan_planes(struct plan *p) {
    const dmlk_convolution *c = p->c;
    const int64_t by_channels = (p->channels + 3) / 4 * p->y.taps * p->x.taps;
    const int64_t by_taps = p->channels * p->y.taps * ((p->x.taps + 3) / 4);
    p->by_taps = by_taps < by_channels;
    p->quads = p->by_taps ? by_taps : by_channels;
    p->groups_of_4 = p->by_taps ? (p->x.taps + 3) / 4 : (p->channels + 3) / 4;
    p->planes = p->by_taps ? p->channels * p->y.count * p->groups_of_4 : p->groups_of_4 * p->y.count * p->x.count;
    p->pitch = c->output.sizes[X] + (p->by_taps ? 0 : p->x.reach);
    if (p->pitch > PANEL_BYTES || p->planes > PANEL_BYTES || p->y.reach > PANEL_BYTES) {
        return false;
    }
    const int64_t row_bytes = p->planes * p->pitch * 4, fitting = PANEL_BYTES / row_bytes - p->y.reach;
    p->strip = dmlk_min(c->output.sizes[Y], fitting < 1 ? 1 : fitting);
    p->plane_bytes = (p->strip + p->y.reach) * p->pitch * 4;
    return p->planes * p->plane_bytes <= 2 * PANEL_BYTES;
}

static bool plan_filters(struct plan *p) {
    p->blocks = (p->filters + ROWS - 1) / ROWS;
    const int64_t block_bytes = p->quads * ROWS * 4;
    p->chunk = dmlk_min(p->blocks, FILTER_BYTES / block_bytes);
    if (p->chunk < 1) {
        return false;
    }
    p->offsets = malloc((size_t)p->quads * sizeof *p->offsets);
    p->taps = malloc((size_t)p->quads * sizeof *p->taps);
    p->ones = malloc((size_t)p->quads * sizeof *p->ones);
    p->rows = malloc((size_t)(p->chunk * block_bytes));
    p->factor = calloc((size_t)(p->chunk * ROWS), sizeof *p->factor);
    p->constant = calloc((size_t)(p->chunk * ROWS), sizeof *p->constant);
    if (p->offsets == NULL || p->taps == NULL || p->ones == NULL || p->rows == NULL || p->factor == NULL || p->constant == NULL) {
        return false;
    }
    for (int64_t q = 0; q < p->quads; q++) {
        int64_t *at = p->taps[q];
        find_taps(p, q, at);
        p->ones[q] = join((const int8_t[]){at[0] >= 0, at[1] >= 0, at[2] >= 0, at[3] >= 0});
        p->offsets[q] = find_offset(p, q);
    }
    return true;
}

/* Is some B not 0? */
static bool has_factors(const dmlk_convolution *c) {
    const dmlk_view *zero = c->filter_zero;
    if (zero->base == NULL) {
        return c->filter.type == DMLK_UINT8;
    }
    for (int64_t i = 0; i < zero->sizes[0]; i++) {
        if ((zero->base[i * zero->strides[0]] ^ (c->filter.type == DMLK_UINT8 ? 0x80 : 0)) != 0) {
            return true;
        }
    }
    return false;
}

static bool make_plan(struct plan *p, const dmlk_convolution *c) {
    *p = (struct plan){.c = c};
    p->channels = c->filter.sizes[CHANNEL];
    p->filters = c->filter.sizes[N] / c->groups;
    p->flip_input = c->input.type == DMLK_INT8 ? 0x80 : 0;
    p->flip_filter = c->filter.type == DMLK_UINT8 ? 0x80 : 0;
    p->padding = (uint8_t)(c->input_zero + p->flip_input);
    p->needs_sums = has_factors(c);
    p->tile = dmlk_dot8_tile(0);
    p->row_tile = dmlk_dot8_tile(1);
    /* Sizes are below 2^32 each; the products below do not overflow. */
    return c->filter.sizes[Y] <= 1 << 12 && c->filter.sizes[X] <= 1 << 12 && p->channels <= 1 << 20 &&
           plan_axis(&p->y, c->filter.sizes[Y], c->dilations[Y], c->strides[Y]) &&
           plan_axis(&p->x, c->filter.sizes[X], c->dilations[X], c->strides[X]) && plan_planes(p) && plan_filters(p);
}

/* --- running --- */

static int64_t round_up(int64_t positions) { return (positions + LANES - 1) / LANES * LANES; }

/* All rows of one group of one image. */
static void run_group(const struct plan *p, int64_t n, int64_t group, int64_t first_block, int64_t blocks, int parts,
                      uint8_t *planes, int32_t *sums) {
    for (int64_t first = 0; first < p->c->output.sizes[Y]; first += p->strip) {
        const int64_t rows = dmlk_min(p->strip, p->c->output.sizes[Y] - first);
        const int64_t positions = rows * p->pitch - (p->pitch - p->c->output.sizes[X]);
        struct strip strip = {p, n, group, first, rows, positions, first_block, blocks, planes, sums};
        run_strip(&strip, parts);
    }
}

bool dmlk_convolve_bytes(const dmlk_convolution *c) {
    struct plan plan;
    bool done = make_plan(&plan, c);
    if (done) {
        const int64_t most = round_up(plan.strip * plan.pitch);
        uint8_t *planes = calloc(1, (size_t)(plan.planes * plan.plane_bytes + LANES * 4));
        int32_t *sums = malloc((size_t)most * sizeof *sums);
        done = planes != NULL && sums != NULL;
        for (int64_t group = 0; done && group < c->groups; group++) {
            for (int64_t block = 0; block < plan.blocks; block += plan.chunk) {
                const int64_t blocks = dmlk_min(plan.chunk, plan.blocks - block);
                struct packing packing = {&plan, group, block};
                dmlk_parallel(blocks, dmlk_parts(blocks, 1 + 8192 / plan.quads / ROWS), pack_part, &packing);
                for (int64_t n = 0; n < c->output.sizes[N]; n++) {
                    run_group(&plan, n, group, block, blocks, 64, planes, sums);
                }
            }
        }
        free(planes);
        free(sums);
    }
    free_plan(&plan);
    return done;
}

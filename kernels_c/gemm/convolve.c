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
#include "scratch.h"
#include "stop.h"
#include "wide.h"

#ifdef DMLK_X86
#include <immintrin.h>
#endif

enum { N, CHANNEL, Y, X };

#define ROWS DMLK_DOT8_ROWS
#define LANES DMLK_DOT8_LANES
#define PANEL_BYTES (INT64_C(3) << 19)  /* of planes: they fit into a second-level cache and a half */
#define MOST_QUADS (INT64_C(1) << 16)
#define MOST_ROW_TAPS 8
#define FILTER_BYTES (INT64_C(1) << 21) /* of packed filters */

/* How the taps of an axis fall: tap k is in the plane of phase index[k], shift[k] positions on. */
struct axis {
    int64_t taps;
    int64_t *index, *shift; /* [taps] */
    int64_t *phases;        /* [count], each from 0 to before the stride */
    int64_t count;
    int64_t reach; /* the largest shift */
};

/* Quads of one kind along a row: the elements that their bytes begin at, and which of them are all inside. */
struct window {
    int64_t x[4];
    int64_t begin, end;
    bool together; /* the four bytes follow each other in memory */
};

struct plan {
    const dmlk_convolution *c;
    enum dmlk_isa isa;
    struct axis y, x;
    bool by_taps;
    bool channels_last;        /* the order of quads, if not by taps: so that filters need not be packed */
    int64_t channels, filters; /* of a group */
    int64_t fours;             /* groups of four channels, or of four taps along X */
    int64_t quads;
    int64_t pitch; /* positions in a row of a plane */
    int64_t strip; /* rows of the output worked on at once */
    int64_t planes;
    int64_t plane_bytes;
    struct window *windows; /* by taps: [fours]; by channels: [x.count] */
    int64_t *offsets;       /* [quads] */
    int64_t (*taps)[4];     /* [quads]: the elements of each in a filter, -1: none, it is 0 */
    uint8_t *ones;          /* [quads][4]: 1 for each tap that there is */
    const uint8_t *rows;    /* quads of the filters from `first` on, `row_bytes` apart */
    int64_t row_bytes;
    uint8_t *packed;   /* where they are, if not in the filter tensor itself: room for `room` */
    int64_t first, count, room; /* filters of all groups, numbered */
    int32_t *factor;   /* [room]: B */
    int32_t *constant; /* [room]: taps A B - A sum w */
    uint8_t flip_input, flip_filter, padding;
    bool needs_sums; /* some B is not 0 */
    bool in_order;   /* filters are their quads; read where they are, or with another sign bit ... */
    bool transposed; /* ... or packed by transposing four channels at a time */
    dmlk_dot8 *tile, *row_tile;
};

/* What is computed at once: rows first .. first + rows - 1 of the output of one group of one image. */
struct strip {
    const struct plan *p;
    int64_t n, group, first, rows;
    int64_t positions;           /* of all its rows, with what lies between them */
    int64_t first_filter, count; /* of the group */
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

/* Quads begin .. end - 1, wherever they are. */
static void fill_any(const struct plan *p, const uint8_t *const from[4], const struct window *w, int64_t begin,
                     int64_t end, uint8_t *to) {
    const int64_t size = p->c->input.sizes[X], stride = p->c->input.strides[X], step = p->c->strides[X];
    for (int64_t i = begin; i < end; i++) {
        for (int j = 0; j < 4; j++) {
            const int64_t x = w->x[j] + i * step;
            to[4 * i + j] = x < 0 || x >= size ? p->padding : from[j][x * stride] ^ p->flip_input;
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

/* One row of a plane. */
static void fill_row(const struct strip *s, int64_t plane, int64_t row, uint8_t *to) {
    const struct plan *p = s->p;
    const dmlk_convolution *c = p->c;
    const int64_t kinds = p->by_taps ? p->fours : p->x.count, y_phase = plane / kinds % p->y.count;
    const int64_t y = (s->first + row) * c->strides[Y] + p->y.phases[y_phase] - c->start[Y];
    if (y < 0 || y >= c->input.sizes[Y]) {
        memset(to, p->padding, (size_t)p->pitch * 4);
        return;
    }
    const struct window *w = &p->windows[plane % kinds];
    const int64_t channel = plane / kinds / p->y.count * (p->by_taps ? 1 : 4);
    const uint8_t *base = c->input.base + s->n * c->input.strides[N] + y * c->input.strides[Y];
    const uint8_t *from[4], *inner[4];
    const int64_t step = c->strides[X] * c->input.strides[X];
    for (int j = 0; j < 4; j++) {
        /* Bytes of channels and taps that are not there meet a 0 in the filter, whatever they are. */
        const int64_t of = s->group * p->channels + (p->by_taps ? channel : dmlk_min(channel + j, p->channels - 1));
        from[j] = base + of * c->input.strides[CHANNEL];
        inner[j] = from[j] + w->x[j] * c->input.strides[X] + w->begin * step;
    }
    fill_any(p, from, w, 0, w->begin, to);
    fill_any(p, from, w, w->end, p->pitch, to);
    to += 4 * w->begin;
    const int64_t count = w->end - w->begin;
    if (w->together && channel + 3 < p->channels + (p->by_taps ? 3 : 0)) {
#ifdef DMLK_X86
        if (p->isa == DMLK_ISA_AVX512 && step >= 1 && step <= 4) {
            fill_quads_avx512(inner[0], step, count, p->flip_input, to);
            return;
        }
#endif
        fill_quads(inner[0], step, count, p->flip_input, to);
    } else {
        fill_inside(inner, step, count, p->flip_input, to);
    }
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
        s->p->row_tile(s->planes + t * LANES * 4, s->p->offsets, s->p->quads, s->p->ones, 0, LANES,
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
    if (pitch == size && strides[Y] == size * strides[X]) { /* rows follow each other */
        runs[0] = (struct run){0, count, s->first * strides[Y] + first * strides[X]};
        return 1;
    }
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

#ifdef DMLK_X86
/* Eight rows of a tile where channels come last: eight lanes at a time become eight channels of a position each. */
DMLK_AVX512 static void finish_last_avx512(int32_t sums[][LANES], const int32_t *inputs, const int32_t *constants,
                                           const int32_t *factors, struct run run, int32_t *to, int64_t stride) {
    for (int64_t i = 0; i < run.count; i += 8) {
        const int64_t count = dmlk_min(8, run.count - i);
        const __mmask8 there = (__mmask8)(0xff >> (8 - count));
        __m256i r[8], t[8];
        for (int k = 0; k < 8; k++) {
            r[k] = _mm256_maskz_loadu_epi32(there, sums[k] + run.lane + i);
        }
        for (int k = 0; k < 8; k += 2) { /* pairs of rows, in each half of a register */
            t[k] = _mm256_unpacklo_epi32(r[k], r[k + 1]);
            t[k + 1] = _mm256_unpackhi_epi32(r[k], r[k + 1]);
        }
        for (int k = 0; k < 8; k += 4) { /* r[k + j]: column j of each half, of four rows */
            r[k] = _mm256_unpacklo_epi64(t[k], t[k + 2]);
            r[k + 1] = _mm256_unpackhi_epi64(t[k], t[k + 2]);
            r[k + 2] = _mm256_unpacklo_epi64(t[k + 1], t[k + 3]);
            r[k + 3] = _mm256_unpackhi_epi64(t[k + 1], t[k + 3]);
        }
        for (int k = 0; k < 4; k++) {
            t[k] = _mm256_permute2x128_si256(r[k], r[4 + k], 0x20);
            t[4 + k] = _mm256_permute2x128_si256(r[k], r[4 + k], 0x31);
        }
        const __m256i constant = _mm256_loadu_si256((const __m256i *)constants);
        const __m256i factor = _mm256_loadu_si256((const __m256i *)factors);
        for (int64_t k = 0; k < count; k++) {
            __m256i sum = _mm256_add_epi32(t[k], constant);
            if (inputs != NULL) {
                const __m256i input = _mm256_set1_epi32(inputs[run.lane + i + k]);
                sum = _mm256_sub_epi32(sum, _mm256_mullo_epi32(input, factor));
            }
            _mm256_storeu_si256((__m256i *)(to + (i + k) * stride), sum);
        }
    }
}
#endif

/* Writes a tile: `rows` filters from `filter` of the group on, positions from `first` on. */
static void store_tile(const struct strip *s, int64_t filter, int64_t rows, int64_t first, int64_t count,
                       int32_t sums[][LANES]) {
    const struct plan *p = s->p;
    const dmlk_view *out = &p->c->output;
    const int64_t channel = s->group * p->filters + filter, stride = out->strides[X];
    const int32_t *constants = p->constant + (channel - p->first), *factors = p->factor + (channel - p->first);
    int32_t *base = (int32_t *)out->base + s->n * out->strides[N] + channel * out->strides[CHANNEL];
    struct run runs[LANES];
    const int run_count = find_runs(s, first, count, runs);
    const int32_t *inputs = p->needs_sums ? s->sums + first : NULL;
#ifdef DMLK_X86
    if (p->isa == DMLK_ISA_AVX512 && rows == ROWS && out->strides[CHANNEL] == 1) {
        for (int k = 0; k < run_count; k++) {
            finish_last_avx512(sums, inputs, constants, factors, runs[k], base + runs[k].to, stride);
        }
        return;
    }
#endif
    for (int64_t r = 0; r < rows; r++, base += out->strides[CHANNEL]) {
        const uint32_t constant = (uint32_t)constants[r], factor = (uint32_t)factors[r];
        for (int k = 0; k < run_count; k++) {
            const struct run run = runs[k];
            const int32_t *of_run = inputs != NULL ? inputs + run.lane : NULL;
#ifdef DMLK_X86
            if (stride == 1 && p->isa == DMLK_ISA_AVX512) {
                finish_avx512(sums[r] + run.lane, of_run, constant, factor, run.count, base + run.to);
                continue;
            }
#endif
            finish(sums[r] + run.lane, of_run, constant, factor, run.count, base + run.to, stride);
        }
    }
}

/* Tiles: position by position, all filters for each, eight at a time. */
static void compute_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct strip *s = context;
    const struct plan *p = s->p;
    const int64_t blocks = (s->count + ROWS - 1) / ROWS;
    int64_t work = 0;
    for (int64_t i = begin; i < end && !dmlk_stopped(&work, p->quads * ROWS * LANES / 8); i++) {
        const int64_t block = i % blocks * ROWS, first = i / blocks * LANES;
        const int64_t rows = dmlk_min(ROWS, s->count - block), count = dmlk_min(LANES, s->positions - first);
        const int64_t filter = s->first_filter + block;
        int32_t sums[ROWS][LANES];
        dmlk_dot8 *tile = rows == 1 ? p->row_tile : p->tile;
        tile(s->planes + first * 4, p->offsets, p->quads,
             p->rows + (s->group * p->filters + filter - p->first) * p->row_bytes, p->row_bytes,
             (int)(count + 15) / 16 * 16, sums);
        store_tile(s, filter, rows, first, count, sums);
    }
}

#ifdef DMLK_X86
/* Few filters of a single channel: the quads of 16 positions at a time are picked from the input's rows when they
 * are needed, and no planes are made.  The window is at most four taps wide. */
DMLK_AVX512 static void convolve_row(const struct plan *p, int64_t n, int64_t filter, int64_t y, const __m512i index) {
    const dmlk_convolution *c = p->c;
    const int64_t size = c->input.sizes[X], channel = filter / p->filters, row = filter - p->first;
    const __m512i flips = _mm512_set1_epi8((char)p->flip_input);
    const __m512i padding = _mm512_set1_epi8((char)(p->padding ^ p->flip_input));
    const __m512i constant = _mm512_set1_epi32(p->constant[row]), factor = _mm512_set1_epi32(p->factor[row]);
    const uint8_t *base = c->input.base + n * c->input.strides[N] + channel * c->input.strides[CHANNEL];
    const uint8_t *from[MOST_ROW_TAPS]; /* NULL: in the padding */
    __m512i quads[MOST_ROW_TAPS];
    for (int64_t tap = 0; tap < p->y.taps; tap++) {
        const int64_t at = y * c->strides[Y] + tap * c->dilations[Y] - c->start[Y];
        from[tap] = at >= 0 && at < c->input.sizes[Y] ? base + at * c->input.strides[Y] : NULL;
        int32_t quad;
        memcpy(&quad, p->rows + row * p->row_bytes + 4 * tap, 4);
        quads[tap] = _mm512_set1_epi32(quad);
    }
    int32_t ones;
    memcpy(&ones, p->ones, 4);
    int32_t *to = (int32_t *)c->output.base + n * c->output.strides[N] + filter * c->output.strides[CHANNEL] +
                  y * c->output.strides[Y];
    for (int64_t x = 0; x < c->output.sizes[X]; x += 16) {
        const int64_t at = x * c->strides[X] - c->start[X]; /* of the input */
        const bool inside = at >= 0 && at + 64 <= size;
        const __mmask64 low = at >= 0 ? ~(__mmask64)0 : at <= -64 ? 0 : ~(__mmask64)0 << -at;
        const __mmask64 high = size - at >= 64 ? ~(__mmask64)0 : size <= at ? 0 : ~(__mmask64)0 >> (64 - (size - at));
        __m512i sum = constant, inputs = _mm512_setzero_si512();
        for (int64_t tap = 0; tap < p->y.taps; tap++) {
            __m512i bytes = padding;
            if (from[tap] != NULL) {
                bytes = inside ? _mm512_loadu_si512(from[tap] + at)
                               : _mm512_mask_loadu_epi8(padding, low & high, from[tap] + at);
            }
            bytes = _mm512_xor_si512(_mm512_permutexvar_epi8(index, bytes), flips);
            sum = _mm512_dpbusd_epi32(sum, bytes, quads[tap]);
            if (p->needs_sums) {
                inputs = _mm512_dpbusd_epi32(inputs, bytes, _mm512_set1_epi32(ones));
            }
        }
        if (p->needs_sums) {
            sum = _mm512_sub_epi32(sum, _mm512_mullo_epi32(inputs, factor));
        }
        _mm512_mask_storeu_epi32(to + x, (__mmask16)(0xffff >> (16 - dmlk_min(16, c->output.sizes[X] - x))), sum);
    }
}

/* Rows of all filters on all images, numbered. */
DMLK_AVX512 static void convolve_rows(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct plan *p = context;
    const dmlk_convolution *c = p->c;
    uint8_t order[64];
    for (int64_t k = 0; k < 64; k++) {
        order[k] = (uint8_t)(k / 4 * c->strides[X] + k % 4 * c->dilations[X]);
    }
    const __m512i index = _mm512_loadu_si512(order);
    const int64_t rows = c->output.sizes[Y], filters = c->output.sizes[CHANNEL];
    int64_t work = 0;
    for (int64_t i = begin; i < end && !dmlk_stopped(&work, c->output.sizes[X] * p->y.taps); i++) {
        convolve_row(p, i / rows / filters, i / rows % filters, i % rows, index);
    }
}
/* Is this a convolution for that? */
static bool is_by_rows(const struct plan *p) {
    const dmlk_convolution *c = p->c;
    return p->isa == DMLK_ISA_AVX512 && p->channels == 1 && p->filters <= 2 && p->x.taps <= 4 &&
           p->y.taps <= MOST_ROW_TAPS &&
           15 * c->strides[X] + 3 * c->dilations[X] < 64 && c->input.strides[X] == 1 && c->output.strides[X] == 1 &&
           p->room >= c->groups * p->filters;
}
#endif

#ifdef DMLK_X86
#define MOST_LAST_QUADS 4

/* One row of the output where channels come last and each has one filter of its own: 64 channels at a time.  Four
 * taps are four vectors of bytes; woven together they are the channels' quads, in the order in which
 * weave() leaves them: 16-byte piece L of result k has channels 16 L + 4 k and the next three. */
DMLK_AVX512 static void weave(const __m512i taps[4], __m512i quads[4]) {
    const __m512i low_01 = _mm512_unpacklo_epi8(taps[0], taps[1]), high_01 = _mm512_unpackhi_epi8(taps[0], taps[1]);
    const __m512i low_23 = _mm512_unpacklo_epi8(taps[2], taps[3]), high_23 = _mm512_unpackhi_epi8(taps[2], taps[3]);
    quads[0] = _mm512_unpacklo_epi16(low_01, low_23);
    quads[1] = _mm512_unpackhi_epi16(low_01, low_23);
    quads[2] = _mm512_unpacklo_epi16(high_01, high_23);
    quads[3] = _mm512_unpackhi_epi16(high_01, high_23);
}

/* Sums in that order, as 64 numbers in the order of the channels. */
DMLK_AVX512 static void unweave(const __m512i sums[4], __m512i channels[4]) {
    const __m512i a = _mm512_shuffle_i32x4(sums[0], sums[1], 0x88), b = _mm512_shuffle_i32x4(sums[2], sums[3], 0x88);
    const __m512i c = _mm512_shuffle_i32x4(sums[0], sums[1], 0xdd), d = _mm512_shuffle_i32x4(sums[2], sums[3], 0xdd);
    channels[0] = _mm512_shuffle_i32x4(a, b, 0x88);
    channels[2] = _mm512_shuffle_i32x4(a, b, 0xdd);
    channels[1] = _mm512_shuffle_i32x4(c, d, 0x88);
    channels[3] = _mm512_shuffle_i32x4(c, d, 0xdd);
}

/* 64 channels from `first` on (or how many there are) of one row. */
DMLK_AVX512 static void convolve_channels(const struct plan *p, int64_t n, int64_t y, int64_t first) {
    const dmlk_convolution *c = p->c;
    const int64_t count = dmlk_min(64, c->groups - first), size = c->input.sizes[X];
    const __mmask64 there = ~(__mmask64)0 >> (64 - count);
    const __m512i flips = _mm512_set1_epi8((char)p->flip_input);
    const __m512i padding = _mm512_set1_epi8((char)(p->padding ^ p->flip_input));
    __m512i filters[MOST_LAST_QUADS][4];
    int64_t offsets[MOST_LAST_QUADS], first_taps[MOST_LAST_QUADS]; /* of the quads: rows of the input, -1: padding */
    int32_t woven[64];
    for (int64_t q = 0; q < p->quads; q++) {
        const int64_t from_y = y * c->strides[Y] + q / p->fours * c->dilations[Y] - c->start[Y];
        offsets[q] = from_y >= 0 && from_y < c->input.sizes[Y] ? from_y * c->input.strides[Y] : -1;
        first_taps[q] = q % p->fours * 4;
        for (int64_t i = 0; i < 64; i++) {
            const int64_t channel = dmlk_min(i % 16 / 4 * 16 + i / 16 * 4 + i % 4, count - 1);
            memcpy(&woven[i], p->rows + (first + channel - p->first) * p->row_bytes + 4 * q, 4);
        }
        for (int k = 0; k < 4; k++) {
            filters[q][k] = _mm512_loadu_si512(woven + 16 * k);
        }
    }
    const uint8_t *base = c->input.base + n * c->input.strides[N] + first;
    int32_t *to = (int32_t *)c->output.base + n * c->output.strides[N] + y * c->output.strides[Y] + first;
    const int32_t *constants = p->constant + (first - p->first), *factors = p->factor + (first - p->first);
    for (int64_t x = 0; x < c->output.sizes[X]; x++, to += c->output.strides[X]) {
        __m512i sums[4] = {0}, inputs[4] = {0};
        for (int64_t q = 0; q < p->quads; q++) {
            __m512i taps[4], quads[4];
            int64_t from_x = x * c->strides[X] + first_taps[q] * c->dilations[X] - c->start[X];
            for (int64_t j = 0; j < 4; j++, from_x += c->dilations[X]) {
                const bool inside = offsets[q] >= 0 && from_x >= 0 && from_x < size && first_taps[q] + j < p->x.taps;
                const uint8_t *at = base + offsets[q] + from_x * c->input.strides[X];
                taps[j] = _mm512_xor_si512(inside ? _mm512_maskz_loadu_epi8(there, at) : padding, flips);
            }
            weave(taps, quads);
            for (int k = 0; k < 4; k++) {
                sums[k] = _mm512_dpbusd_epi32(sums[k], quads[k], filters[q][k]);
                if (p->needs_sums) {
                    int32_t ones;
                    memcpy(&ones, p->ones + 4 * q, 4);
                    inputs[k] = _mm512_dpbusd_epi32(inputs[k], quads[k], _mm512_set1_epi32(ones));
                }
            }
        }
        __m512i results[4], input_sums[4];
        unweave(sums, results);
        unweave(inputs, input_sums);
        for (int64_t k = 0; 16 * k < count; k++) {
            const __mmask16 stored = (__mmask16)(0xffff >> (16 - dmlk_min(16, count - 16 * k)));
            const __m512i factor = _mm512_maskz_loadu_epi32(stored, factors + 16 * k);
            __m512i result = _mm512_add_epi32(results[k], _mm512_maskz_loadu_epi32(stored, constants + 16 * k));
            if (p->needs_sums) {
                result = _mm512_sub_epi32(result, _mm512_mullo_epi32(input_sums[k], factor));
            }
            _mm512_mask_storeu_epi32(to + 16 * k, stored, result);
        }
    }
}

/* Rows of all images, numbered. */
static void convolve_channels_last(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct plan *p = context;
    const int64_t rows = p->c->output.sizes[Y];
    int64_t work = 0;
    for (int64_t i = begin; i < end; i++) {
        for (int64_t first = 0; first < p->c->groups; first += 64) {
            if (dmlk_stopped(&work, p->c->output.sizes[X] * p->quads * 16)) {
                return;
            }
            convolve_channels(p, i / rows, i % rows, first);
        }
    }
}

/* Is this a convolution for that? */
static bool is_channels_last(const struct plan *p) {
    const dmlk_convolution *c = p->c;
    return p->isa == DMLK_ISA_AVX512 && p->channels == 1 && p->filters == 1 && p->quads <= MOST_LAST_QUADS &&
           p->by_taps && c->input.strides[CHANNEL] == 1 && c->output.strides[CHANNEL] == 1 && p->room >= c->groups;
}
#endif

static void run_strip(struct strip *s, int most_parts) {
    const struct plan *p = s->p;
    const int64_t tiles = (s->positions + LANES - 1) / LANES, rows = p->planes * (s->rows + p->y.reach);
    const int fill_parts = (int)dmlk_min(most_parts, dmlk_parts(rows, 1 + 32768 / (p->pitch * 4)));
    dmlk_parallel(rows, fill_parts, fill_part, s);
    const int64_t items = tiles * ((s->count + ROWS - 1) / ROWS), grain = 1 + 40000 / p->quads / ROWS;
    if (p->needs_sums) {
        dmlk_parallel(tiles, (int)dmlk_min(most_parts, dmlk_parts(tiles, grain)), sum_part, s);
    }
    dmlk_parallel(items, (int)dmlk_min(most_parts, dmlk_parts(items, grain)), compute_part, s);
}

/* --- the filters --- */

/* The quad with number q: taps, and channels from `channel` on or taps from tap_x on. */
struct quad {
    int64_t channel, tap_y, tap_x;
};

static struct quad find_quad(const struct plan *p, int64_t q) {
    if (p->by_taps) {
        return (struct quad){q / p->fours / p->y.taps, q / p->fours % p->y.taps, q % p->fours * 4};
    }
    if (p->channels_last) {
        return (struct quad){q % p->fours * 4, q / p->fours / p->x.taps, q / p->fours % p->x.taps};
    }
    return (struct quad){q / p->x.taps / p->y.taps * 4, q / p->x.taps % p->y.taps, q % p->x.taps};
}

/* Where its bytes come from: four elements of a filter, -1 for none. */
static void find_taps(const struct plan *p, int64_t q, int64_t *at) {
    const int64_t *strides = p->c->filter.strides;
    const struct quad quad = find_quad(p, q);
    for (int64_t j = 0; j < 4; j++) {
        const int64_t channel = quad.channel + (p->by_taps ? 0 : j), tap_x = quad.tap_x + (p->by_taps ? j : 0);
        const bool is_there = channel < p->channels && tap_x < p->x.taps;
        at[j] = is_there ? channel * strides[CHANNEL] + quad.tap_y * strides[Y] + tap_x * strides[X] : -1;
    }
}

/* Where its lanes begin, from the first position on. */
static int64_t find_offset(const struct plan *p, int64_t q) {
    const struct quad quad = find_quad(p, q);
    if (p->by_taps) {
        const int64_t plane = (quad.channel * p->y.count + p->y.index[quad.tap_y]) * p->fours + quad.tap_x / 4;
        return plane * p->plane_bytes + p->y.shift[quad.tap_y] * p->pitch * 4;
    }
    const int64_t plane = (quad.channel / 4 * p->y.count + p->y.index[quad.tap_y]) * p->x.count + p->x.index[quad.tap_x];
    return plane * p->plane_bytes + (p->y.shift[quad.tap_y] * p->pitch + p->x.shift[quad.tap_x]) * 4;
}

/* Quads of the filter with that number, one after the other. */
DMLK_CLONES static void pack_filter(const struct plan *p, int64_t filter, uint8_t *to) {
    const uint8_t *restrict base = p->c->filter.base + filter * p->c->filter.strides[N];
    const uint8_t flip = p->flip_filter;
    const int64_t bytes = 4 * p->quads;
    uint8_t *restrict result = to;
    if (p->in_order) {
        for (int64_t i = 0; i < bytes; i++) {
            result[i] = base[i] ^ flip;
        }
        return;
    }
    for (int64_t q = 0; q < p->quads; q++, to += 4) {
        const int64_t *at = p->taps[q];
        for (int j = 0; j < 4; j++) {
            to[j] = at[j] < 0 ? 0 : base[at[j]] ^ flip;
        }
    }
}

#ifdef DMLK_X86
/* The same for quads of channels of a filter without gaps in its layout, whose window has at most 16 taps: four
 * channels are 4 x taps bytes, transposed. */
DMLK_AVX512 static void pack_filter_avx512(const struct plan *p, int64_t filter, uint8_t *to) {
    const int64_t window = p->y.taps * p->x.taps, fours = p->channels / 4;
    const uint8_t *from = p->c->filter.base + filter * p->c->filter.strides[N];
    uint8_t order[64];
    for (int64_t k = 0; k < 64; k++) {
        order[k] = (uint8_t)(k / 4 + k % 4 * window);
    }
    const __m512i index = _mm512_loadu_si512(order), flips = _mm512_set1_epi8((char)p->flip_filter);
    const __mmask64 there = ~(__mmask64)0 >> (64 - 4 * window);
    for (int64_t i = 0; i < fours; i++, from += 4 * window, to += 4 * window) {
        const __m512i bytes = _mm512_xor_si512(_mm512_maskz_loadu_epi8(there, from), flips);
        _mm512_mask_storeu_epi8(to, there, _mm512_permutexvar_epi8(index, bytes));
    }
}
#endif

/* What the zero points take from the sums of a filter, whose bytes have the sum `sum`. */
static void note_zero_points(struct plan *p, int64_t filter, uint32_t sum) {
    const dmlk_view *zero = p->c->filter_zero;
    int factor = p->flip_filter != 0 ? -128 : 0;
    if (zero->base != NULL) {
        const uint8_t bits = zero->base[zero->sizes[0] == 1 ? 0 : filter * zero->strides[0]];
        factor = (int8_t)(bits ^ p->flip_filter); /* a UINT8's 128 is what its filters have lost too */
    }
    const uint32_t taps = (uint32_t)(p->channels * p->y.taps * p->x.taps), a = p->padding;
    p->factor[filter - p->first] = factor;
    p->constant[filter - p->first] = (int32_t)(a * (taps * (uint32_t)factor - sum));
}

/* Filters of those that are packed at once, numbered. */
static void pack_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    struct plan *p = context;
    int64_t work = 0;
    for (int64_t i = begin; i < end && !dmlk_stopped(&work, p->quads * 4); i++) {
        uint8_t *row = p->packed + (p->packed == NULL ? 0 : i * p->row_bytes);
#ifdef DMLK_X86
        if (p->transposed) {
            pack_filter_avx512(p, p->first + i, row);
        } else
#endif
        if (p->packed != NULL) {
            pack_filter(p, p->first + i, row);
        }
        const uint32_t sum = p->padding != 0 ? dmlk_dot8_sum(p->isa, p->rows + i * p->row_bytes, p->quads * 4) : 0;
        note_zero_points(p, p->first + i, sum);
    }
}

static void pack_filters(struct plan *p, int64_t first, int64_t count) {
    p->first = first;
    p->count = count;
    if (p->packed == NULL) {
        p->rows = p->c->filter.base + first * p->row_bytes;
    }
    dmlk_parallel(count, dmlk_parts(count, 1 + 8192 / p->quads), pack_part, p);
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
    free(p->windows), dmlk_give(p->offsets), dmlk_give(p->taps), dmlk_give(p->ones);
    dmlk_give(p->packed), dmlk_give(p->factor), dmlk_give(p->constant);
}

/* Sizes of the planes; false: there is no memory for a single row. */
static bool plan_planes(struct plan *p) {
    const dmlk_convolution *c = p->c;
    const int64_t by_channels = (p->channels + 3) / 4 * p->y.taps * p->x.taps;
    const int64_t by_taps = p->channels * p->y.taps * ((p->x.taps + 3) / 4);
    p->by_taps = by_taps < by_channels;
    p->channels_last = c->filter.strides[CHANNEL] == 1 && p->channels % 4 == 0;
    p->quads = p->by_taps ? by_taps : by_channels;
    p->fours = p->by_taps ? (p->x.taps + 3) / 4 : (p->channels + 3) / 4;
    p->planes = p->by_taps ? p->channels * p->y.count * p->fours : p->fours * p->y.count * p->x.count;
    p->pitch = c->output.sizes[X] + (p->by_taps ? 0 : p->x.reach);
    if (p->quads > MOST_QUADS || p->pitch > PANEL_BYTES || p->planes > PANEL_BYTES || p->y.reach > PANEL_BYTES) {
        return false;
    }
    const int64_t row_bytes = p->planes * p->pitch * 4, fitting = PANEL_BYTES / row_bytes - p->y.reach;
    p->strip = dmlk_min(c->output.sizes[Y], fitting < 1 ? 1 : fitting);
    p->plane_bytes = (p->strip + p->y.reach) * p->pitch * 4;
    return p->planes * p->plane_bytes <= 2 * PANEL_BYTES;
}

static bool plan_windows(struct plan *p) {
    const dmlk_convolution *c = p->c;
    const int64_t kinds = p->by_taps ? p->fours : p->x.count, step = c->strides[X];
    const int64_t next = p->by_taps ? c->dilations[X] * c->input.strides[X] : c->input.strides[CHANNEL];
    p->windows = malloc((size_t)kinds * sizeof *p->windows);
    for (int64_t k = 0; p->windows != NULL && k < kinds; k++) {
        struct window *w = &p->windows[k];
        *w = (struct window){.begin = 0, .end = p->pitch, .together = next == 1};
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

static bool plan_quads(struct plan *p) {
    p->offsets = dmlk_take(p->quads * (int64_t)sizeof *p->offsets);
    p->taps = dmlk_take(p->quads * (int64_t)sizeof *p->taps);
    p->ones = dmlk_take(p->quads * 4);
    if (p->offsets == NULL || p->taps == NULL || p->ones == NULL) {
        return false;
    }
    for (int64_t q = 0; q < p->quads; q++) {
        find_taps(p, q, p->taps[q]);
        p->offsets[q] = find_offset(p, q);
        for (int j = 0; j < 4; j++) {
            p->ones[4 * q + j] = p->taps[q][j] >= 0;
        }
    }
    return true;
}

/* Do the bytes of a filter lie in memory in the order of its quads? */
static bool is_in_order(const struct plan *p) {
    bool same = true;
    for (int64_t q = 0; same && q < p->quads; q++) {
        for (int j = 0; j < 4; j++) {
            same = same && p->taps[q][j] == 4 * q + j;
        }
    }
    return same;
}

static bool plan_filters(struct plan *p) {
    const int64_t all = p->c->groups * p->filters;
    const dmlk_view *f = &p->c->filter;
    p->in_order = is_in_order(p);
    const bool direct = p->in_order && p->flip_filter == 0 && p->filters % ROWS == 0;
    p->transposed = !p->in_order && !p->by_taps && !p->channels_last && p->isa == DMLK_ISA_AVX512 && p->channels % 4 == 0 &&
                    p->y.taps * p->x.taps <= 16 && f->strides[X] == 1 && f->strides[Y] == p->x.taps &&
                    f->strides[CHANNEL] == p->y.taps * p->x.taps;
    p->row_bytes = direct ? p->c->filter.strides[N] : p->quads * 4;
    p->room = direct ? all : dmlk_min(all, FILTER_BYTES / p->row_bytes / ROWS * ROWS);
    if (p->room < 1) {
        return false;
    }
    if (!direct) {
        p->packed = dmlk_take((p->room + ROWS) * p->row_bytes); /* tiles read rows that are no more */
        p->rows = p->packed;
    }
    p->factor = dmlk_take(p->room * (int64_t)sizeof *p->factor);
    p->constant = dmlk_take(p->room * (int64_t)sizeof *p->constant);
    return (direct || p->packed != NULL) && p->factor != NULL && p->constant != NULL;
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
    p->isa = dmlk_isa();
    p->tile = dmlk_dot8_tile(p->isa, 0);
    p->row_tile = dmlk_dot8_tile(p->isa, 1);
    /* Sizes are below 2^32 each; the products below do not overflow. */
    return c->filter.sizes[Y] <= 1 << 12 && c->filter.sizes[X] <= 1 << 12 && p->channels <= 1 << 20 &&
           plan_axis(&p->y, c->filter.sizes[Y], c->dilations[Y], c->strides[Y]) &&
           plan_axis(&p->x, c->filter.sizes[X], c->dilations[X], c->strides[X]) && plan_planes(p) &&
           plan_windows(p) && plan_quads(p) && plan_filters(p);
}

/* --- running --- */

/* Filters first .. first + count - 1 of one group, on all rows of one image. */
static void run_group(const struct plan *p, int64_t n, int64_t group, int64_t first_filter, int64_t count, int parts,
                      uint8_t *planes, int32_t *sums, int64_t *work) {
    const int64_t strip_work = p->strip * p->pitch * (p->quads + p->planes);
    for (int64_t first = 0; first < p->c->output.sizes[Y] && !dmlk_stopped(work, strip_work); first += p->strip) {
        const int64_t rows = dmlk_min(p->strip, p->c->output.sizes[Y] - first);
        const int64_t positions = rows * p->pitch - (p->pitch - p->c->output.sizes[X]);
        struct strip strip = {p, n, group, first, rows, positions, first_filter, count, planes, sums};
        run_strip(&strip, parts);
    }
}

/* Memory of each of so many threads that work on groups of their own, or of all together. */
struct scratch {
    int parts;
    uint8_t *planes;
    int64_t planes_bytes;
    int32_t *sums;
    int64_t sums_count;
};

struct groups {
    const struct plan *p;
    const struct scratch *scratch;
    int64_t first_group, count;
};

/* Groups of images, numbered: each by one thread. */
static void groups_part(int64_t begin, int64_t end, int part, void *context) {
    const struct groups *g = context;
    const struct scratch *s = g->scratch;
    int64_t work = 0;
    for (int64_t i = begin; i < end && !dmlk_watch_stopped(); i++) {
        run_group(g->p, i / g->count, g->first_group + i % g->count, 0, g->p->filters, 1,
                  s->planes + part * s->planes_bytes, s->sums + part * s->sums_count, &work);
    }
}

static void run(struct plan *p, const struct scratch *scratch, int parts) {
    const int64_t images = p->c->output.sizes[N], groups = p->c->groups;
    int64_t work = 0;
#ifdef DMLK_X86
    if (is_channels_last(p)) {
        pack_filters(p, 0, groups);
        dmlk_parallel(images * p->c->output.sizes[Y], parts, convolve_channels_last, p);
        return;
    }
    if (is_by_rows(p)) {
        pack_filters(p, 0, groups * p->filters);
        dmlk_parallel(images * groups * p->filters * p->c->output.sizes[Y], parts, convolve_rows, p);
        return;
    }
#endif
    const int64_t at_once = p->room >= p->filters ? p->room / p->filters : 0; /* groups */
    for (int64_t group = 0; at_once > 0 && group < groups && !dmlk_watch_stopped(); group += at_once) {
        const int64_t count = dmlk_min(at_once, groups - group);
        pack_filters(p, group * p->filters, count * p->filters);
        struct groups groups_at_once = {p, scratch, group, count};
        if (scratch->parts > 1 && images * count >= 4 * parts) {
            dmlk_parallel(images * count, parts, groups_part, &groups_at_once);
            continue;
        }
        for (int64_t i = 0; i < images * count && !dmlk_watch_stopped(); i++) {
            run_group(p, i / count, group + i % count, 0, p->filters, parts, scratch->planes, scratch->sums, &work);
        }
    }
    for (int64_t group = 0; at_once == 0 && group < groups && !dmlk_watch_stopped(); group++) {
        for (int64_t filter = 0; filter < p->filters && !dmlk_watch_stopped(); filter += p->room) {
            const int64_t count = dmlk_min(p->room, p->filters - filter);
            pack_filters(p, group * p->filters + filter, count);
            for (int64_t n = 0; n < images && !dmlk_watch_stopped(); n++) {
                run_group(p, n, group, filter, count, parts, scratch->planes, scratch->sums, &work);
            }
        }
    }
}

bool dmlk_convolve_bytes(const dmlk_convolution *c) {
    struct plan plan;
    struct scratch scratch = {0};
    bool done = make_plan(&plan, c);
    if (done) {
        const double products = (double)dmlk_view_elements(&c->output) * (double)plan.quads * 4;
        const int parts = dmlk_parts(INT64_MAX, products < (plan.channels == 1 ? 1e6 : 8e6) ? INT64_MAX : 1);
        scratch.planes_bytes = plan.planes * plan.plane_bytes + LANES * 4;
        scratch.sums_count = plan.strip * plan.pitch + LANES;
        scratch.parts = scratch.planes_bytes <= PANEL_BYTES / 2 ? parts : 1;
        scratch.planes = dmlk_take(scratch.parts * scratch.planes_bytes);
        scratch.sums = dmlk_take(scratch.parts * scratch.sums_count * (int64_t)sizeof *scratch.sums);
        done = scratch.planes != NULL && scratch.sums != NULL;
        if (done) {
            run(&plan, &scratch, parts);
        }
    }
    dmlk_give(scratch.planes);
    dmlk_give(scratch.sums);
    free_plan(&plan);
    return done;
}

/* depthwise.c - convolutions of bytes whose groups have one channel, for windows that are small.
 *
 * There is little to compute for each byte, so no planes are made (see convolve.c): quads of taps are put together
 * in registers from the input as it lies in memory, along its rows, or across channels that come last. */
#include "convolve.h"

#include "isa.h"
#include "parallel.h"
#include "scratch.h"
#include "stop.h"
#include "wide.h"

#ifdef DMLK_X86
#include <immintrin.h>

enum { N = DMLK_N, CHANNEL = DMLK_CHANNEL, Y = DMLK_Y, X = DMLK_X };

#define MOST_TAPS 8
#define AT_ONCE 64      /* channels, where they come last */
#define FEWEST_CHANNELS 5 /* of them that are worth it */
#define MOST_COLUMNS 64 /* of quads: 16 KiB, so that rows of the input stay in the first-level cache, too */

struct plan {
    const dmlk_convolution *c;
    int64_t multiplier; /* filters of a channel */
    int64_t y_quads;    /* groups of four taps along Y */
    uint8_t flip, padding;
    bool signed_filters, needs_sums;
    int32_t *factors, *constants; /* [filters]: see convolve.c */
    uint8_t *quads;   /* by rows: [filters][Y taps][4 of X]; by channels: [channels / 64][X taps][Y quads][64][4] */
    const uint8_t *padding_row; /* AT_ONCE bytes of the padding, before they are flipped */
};

/* Adds the products of the input and of filters, one of which is signed. */
DMLK_AVX512 static inline __m512i dot(__m512i sum, __m512i input, __m512i filters, const bool signed_filters) {
    return signed_filters ? _mm512_dpbusd_epi32(sum, input, filters) : _mm512_dpbusd_epi32(sum, filters, input);
}

/* --- along rows --- */

/* A row of the output: quads are four taps along X of 16 positions, picked from 64 bytes. */
DMLK_AVX512 static inline void convolve_row(const struct plan *p, int64_t n, int64_t filter, int64_t y, int64_t *work,
                                            const __m512i index, const bool signed_filters, const bool needs_sums) {
    const dmlk_convolution *c = p->c;
    const int64_t size = c->input.sizes[X], taps = c->filter_sizes[Y];
    const __m512i flips = _mm512_set1_epi8((char)p->flip);
    const __m512i padding = _mm512_set1_epi8((char)(p->padding ^ p->flip));
    const __m512i constant = _mm512_set1_epi32(p->constants[filter]), factor = _mm512_set1_epi32(p->factors[filter]);
    const __m512i ones = _mm512_set1_epi32((int32_t)(0x01010101u >> 8 * (4 - c->filter_sizes[X])));
    const uint8_t *base = c->input.base + n * c->input.strides[N] + filter / p->multiplier * c->input.strides[CHANNEL];
    const uint8_t *from[MOST_TAPS]; /* NULL: in the padding */
    __m512i quads[MOST_TAPS];
    for (int64_t tap = 0; tap < taps; tap++) {
        const int64_t at = y * c->strides[Y] + tap * c->dilations[Y] - c->start[Y];
        from[tap] = at >= 0 && at < c->input.sizes[Y] ? base + at * c->input.strides[Y] : NULL;
        int32_t quad;
        memcpy(&quad, p->quads + (filter * taps + tap) * 4, 4);
        quads[tap] = _mm512_set1_epi32(quad);
    }
    int32_t *to = (int32_t *)c->output.base + n * c->output.strides[N] + filter * c->output.strides[CHANNEL] +
                  y * c->output.strides[Y];
    for (int64_t x = 0; x < c->output.sizes[X] && !dmlk_stopped(work, 16 * taps); x += 16) {
        const int64_t at = x * c->strides[X] - c->start[X]; /* of the input */
        const bool inside = at >= 0 && at + 64 <= size;
        const __mmask64 low = at >= 0 ? ~(__mmask64)0 : at <= -64 ? 0 : ~(__mmask64)0 << -at;
        const __mmask64 high = size - at >= 64 ? ~(__mmask64)0 : size <= at ? 0 : ~(__mmask64)0 >> (64 - (size - at));
        __m512i sum = constant, inputs = _mm512_setzero_si512();
        for (int64_t tap = 0; tap < taps; tap++) {
            __m512i bytes = padding;
            if (from[tap] != NULL) {
                bytes = inside ? _mm512_loadu_si512(from[tap] + at)
                               : _mm512_mask_loadu_epi8(padding, low & high, from[tap] + at);
            }
            bytes = _mm512_xor_si512(_mm512_permutexvar_epi8(index, bytes), flips);
            sum = dot(sum, bytes, quads[tap], signed_filters);
            if (needs_sums) {
                inputs = dot(inputs, bytes, ones, signed_filters);
            }
        }
        if (needs_sums) {
            sum = _mm512_sub_epi32(sum, _mm512_mullo_epi32(inputs, factor));
        }
        _mm512_mask_storeu_epi32(to + x, (__mmask16)(0xffff >> (16 - dmlk_min(16, c->output.sizes[X] - x))), sum);
    }
}

/* Rows of all filters on all images, numbered. */
DMLK_AVX512 static void rows_part(int64_t begin, int64_t end, int part, void *context) {
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
    for (int64_t i = begin; i < end && !dmlk_watch_stopped(); i++) {
        const int64_t n = i / rows / filters, filter = i / rows % filters, y = i % rows;
        if (p->needs_sums) {
            convolve_row(p, n, filter, y, &work, index, p->signed_filters, true);
        } else if (p->signed_filters) {
            convolve_row(p, n, filter, y, &work, index, true, false);
        } else {
            convolve_row(p, n, filter, y, &work, index, false, false);
        }
    }
}

static bool is_by_rows(const struct plan *p) {
    const dmlk_convolution *c = p->c;
    return p->multiplier <= 2 && c->filter_sizes[X] <= 4 && c->filter_sizes[Y] <= MOST_TAPS &&
           15 * c->strides[X] + 3 * c->dilations[X] < 64 && c->input.strides[X] == 1 && c->output.strides[X] == 1;
}

/* --- across channels --- */

/* The quads of 64 channels at one X: four taps along Y are four vectors of bytes; woven together they are 4 vectors
 * of 16 quads.  Pieces of 16 bytes are woven, each giving one of its own to every result; so words change places
 * first, word 4 k + i with 4 i + k. */
DMLK_AVX512 static inline void weave(const __m512i taps[4], __m512i quads[4]) {
    const __m512i low_01 = _mm512_unpacklo_epi8(taps[0], taps[1]), high_01 = _mm512_unpackhi_epi8(taps[0], taps[1]);
    const __m512i low_23 = _mm512_unpacklo_epi8(taps[2], taps[3]), high_23 = _mm512_unpackhi_epi8(taps[2], taps[3]);
    _mm512_store_si512(quads, _mm512_unpacklo_epi16(low_01, low_23));
    _mm512_store_si512(quads + 1, _mm512_unpackhi_epi16(low_01, low_23));
    _mm512_store_si512(quads + 2, _mm512_unpacklo_epi16(high_01, high_23));
    _mm512_store_si512(quads + 3, _mm512_unpackhi_epi16(high_01, high_23));
}

/* Some channels of one row of the output. */
struct channels {
    int64_t first, count;
    const uint8_t *rows[MOST_TAPS]; /* of the input, for each tap along Y */
    int64_t steps[MOST_TAPS];       /* from each X to the next; 0: the row is padding */
    int32_t *to;
};

static struct channels find_channels(const struct plan *p, int64_t n, int64_t y, int64_t first) {
    const dmlk_convolution *c = p->c;
    struct channels s = {.first = first, .count = dmlk_min(AT_ONCE, c->groups - first)};
    for (int64_t tap = 0; tap < 4 * p->y_quads; tap++) {
        const int64_t at = y * c->strides[Y] + tap * c->dilations[Y] - c->start[Y];
        const bool is_there = tap < c->filter_sizes[Y] && at >= 0 && at < c->input.sizes[Y];
        s.rows[tap] = is_there ? c->input.base + n * c->input.strides[N] + at * c->input.strides[Y] + first
                               : p->padding_row;
        s.steps[tap] = is_there ? c->input.strides[X] : 0;
    }
    s.to = (int32_t *)c->output.base + n * c->output.strides[N] + y * c->output.strides[Y] + first;
    return s;
}

DMLK_AVX512 static void fill_padding(__m512i *quads, int64_t count, uint8_t padding) {
    for (int64_t i = 0; i < count; i++) {
        quads[i] = _mm512_set1_epi8((char)padding);
    }
}

/* Quads of `count` columns, y_quads x 4 vectors apart, of the four rows from `rows` on.  Only `there` taps are; what
 * stands for the others does not matter, the filters are 0. */
DMLK_AVX512 static inline void fill_inside(const uint8_t *const *rows, const int64_t *steps, int64_t x, int64_t count,
                                           __mmask64 channels, const int there, uint8_t flip,
                                           __m512i *quads, int64_t step) {
    const __m512i flips = _mm512_set1_epi8((char)flip);
    const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    const uint8_t *from[4];
    int64_t steps_of[4];
    for (int j = 0; j < 4; j++) {
        from[j] = rows[j] + x * steps[j];
        steps_of[j] = steps[j];
    }
    for (int64_t i = 0; i < count; i++, quads += step) {
        __m512i taps[4];
        for (int j = 0; j < there; j++, from[j - 1] += steps_of[j - 1]) {
            const __m512i bytes = _mm512_maskz_loadu_epi8(channels, from[j]);
            taps[j] = _mm512_xor_si512(_mm512_permutexvar_epi32(order, bytes), flips);
        }
        for (int j = there; j < 4; j++) {
            taps[j] = taps[there - 1];
        }
        weave(taps, quads);
    }
}

/* Columns of quads of elements begin .. end - 1 of the input's rows. */
DMLK_AVX512 static void fill_columns(const struct plan *p, const struct channels *s, int64_t begin, int64_t end,
                                     __m512i (*columns)[4]) {
    const int64_t y_quads = p->y_quads, first = begin < 0 ? dmlk_min(0, end) : begin, size = p->c->input.sizes[X];
    const int64_t last = dmlk_min(end, size) < first ? first : dmlk_min(end, size), count = last - first;
    const __mmask64 there = ~(__mmask64)0 >> (64 - s->count);
    fill_padding(columns[0], 4 * y_quads * (first - begin), p->padding);
    fill_padding(columns[(last - begin) * y_quads], 4 * y_quads * (end - last), p->padding);
    for (int64_t q = 0; q < y_quads; q++) {
        const uint8_t *const *rows = s->rows + 4 * q;
        const int64_t *steps = s->steps + 4 * q, step = 4 * y_quads;
        __m512i *quads = columns[(first - begin) * y_quads + q];
        if (p->c->filter_sizes[Y] == 3) {
            fill_inside(rows, steps, first, count, there, 3, p->flip, quads, step);
        } else {
            fill_inside(rows, steps, first, count, there, 4, p->flip, quads, step);
        }
    }
}

/* 16 channels of `count` positions; quads of one X are `step` vectors from those of the next position, and `tap_step`
 * from those of the next tap. */
DMLK_AVX512 static inline void convolve_16(const struct plan *p, const __m512i *columns, int64_t step,
                                           int64_t tap_step, int64_t first, __mmask16 there, int64_t count, int32_t *to,
                                           const int64_t taps, const int64_t y_quads, const bool signed_filters,
                                           const bool needs_sums) {
    const uint8_t *from = p->quads + first / AT_ONCE * AT_ONCE * 4 * taps * y_quads + first % AT_ONCE * 4;
    const __m512i constant = _mm512_maskz_loadu_epi32(there, p->constants + first);
    const __m512i factor = _mm512_maskz_loadu_epi32(there, p->factors + first);
    const int64_t stride = p->c->output.strides[X], last = (p->c->filter_sizes[Y] - 1) % 4;
    __m512i filters[MOST_TAPS * MOST_TAPS / 4], ones[MOST_TAPS / 4];
    for (int64_t k = 0; k < taps * y_quads; k++) {
        filters[k] = _mm512_loadu_si512(from + k * AT_ONCE * 4);
        const int64_t missing = k % y_quads + 1 < y_quads ? 0 : 3 - last;
        ones[k % y_quads] = _mm512_set1_epi32((int32_t)(0x01010101u >> 8 * missing));
    }
    for (int64_t i = 0; i < count; i++, columns += step, to += stride) {
        __m512i sum = constant, inputs = _mm512_setzero_si512();
        for (int64_t k = 0; k < taps; k++) {
            for (int64_t q = 0; q < y_quads; q++) {
                const __m512i input = columns[k * tap_step + 4 * q];
                sum = dot(sum, input, filters[k * y_quads + q], signed_filters);
                if (needs_sums) {
                    inputs = dot(inputs, input, ones[q], signed_filters);
                }
            }
        }
        if (needs_sums) {
            sum = _mm512_sub_epi32(sum, _mm512_mullo_epi32(inputs, factor));
        }
        _mm512_mask_storeu_epi32(to, there, sum);
    }
}

/* Channels of `count` positions, whose quads begin at `columns`. */
DMLK_AVX512 static void convolve_channels(const struct plan *p, const struct channels *s, __m512i (*columns)[4],
                                          int64_t count, int32_t *to) {
    const int64_t step = p->c->strides[X] * p->y_quads * 4, tap_step = p->c->dilations[X] * p->y_quads * 4;
    const int64_t taps = p->c->filter_sizes[X];
    for (int64_t k = 0; 16 * k < s->count; k++) {
        const int64_t first = s->first + 16 * k;
        const __mmask16 there = (__mmask16)(0xffff >> (16 - dmlk_min(16, s->count - 16 * k)));
        const __m512i *from = &columns[0][k];
        int32_t *result = to + 16 * k;
        if (taps != 3 || p->y_quads != 1 || p->needs_sums) {
            convolve_16(p, from, step, tap_step, first, there, count, result, taps, p->y_quads, p->signed_filters,
                        p->needs_sums);
        } else if (p->signed_filters) {
            convolve_16(p, from, step, tap_step, first, there, count, result, 3, 1, true, false);
        } else {
            convolve_16(p, from, step, tap_step, first, there, count, result, 3, 1, false, false);
        }
    }
}

/* Rows of all images, 64 channels of each, numbered. */
DMLK_AVX512 static void channels_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct plan *p = context;
    const dmlk_convolution *c = p->c;
    const int64_t rows = c->output.sizes[Y], size = c->output.sizes[X], blocks = (c->groups + AT_ONCE - 1) / AT_ONCE;
    const int64_t reach = (c->filter_sizes[X] - 1) * c->dilations[X] + 1;
    const int64_t most = (MOST_COLUMNS / p->y_quads - reach) / c->strides[X] + 1; /* positions */
    __m512i columns[MOST_COLUMNS][4];
    int64_t work = 0;
    for (int64_t i = begin; i < end && !dmlk_watch_stopped(); i++) {
        const struct channels s = find_channels(p, i / blocks / rows, i / blocks % rows, i % blocks * AT_ONCE);
        for (int64_t x = 0; x < size && !dmlk_stopped(&work, most * p->y_quads * 16); x += most) {
            const int64_t count = dmlk_min(most, size - x);
            const int64_t from = x * c->strides[X] - c->start[X];
            fill_columns(p, &s, from, from + (count - 1) * c->strides[X] + reach, columns);
            convolve_channels(p, &s, columns, count, s.to + x * c->output.strides[X]);
        }
    }
}

static bool is_across_channels(const struct plan *p) {
    const dmlk_convolution *c = p->c;
    return p->multiplier == 1 && c->groups >= FEWEST_CHANNELS && c->input.strides[CHANNEL] == 1 && c->output.strides[CHANNEL] == 1 &&
           c->filter_sizes[X] <= MOST_TAPS && c->filter_sizes[Y] <= MOST_TAPS &&
           (c->filter_sizes[X] - 1) * c->dilations[X] < MOST_COLUMNS / 4;
}

/* --- both --- */

/* Puts the quads of all filters where they are read, and notes what zero points take. */
static void pack(const struct plan *p, bool across) {
    const dmlk_convolution *c = p->c;
    const int64_t y_taps = c->filter_sizes[Y], x_taps = c->filter_sizes[X], y_quads = p->y_quads;
    const int64_t y_stride = c->filter.strides[4], x_stride = c->filter.strides[5];
    const uint8_t sign = p->signed_filters ? 0x80 : 0;
    const int32_t zero = dmlk_flipped_zero(c);
    for (int64_t f = 0; f < c->filter_sizes[N]; f++) {
        const uint8_t *from = c->filter.base + dmlk_filter_at(c, f);
        uint8_t *to = p->quads + (across ? f / AT_ONCE * AT_ONCE * x_taps * y_quads + f % AT_ONCE : f * y_taps) * 4;
        int32_t sum = 0;
        for (int64_t y = 0; y < y_taps; y++) {
            for (int64_t x = 0; x < x_taps; x++) {
                const uint8_t bits = from[y * y_stride + x * x_stride];
                to[across ? (x * y_quads + y / 4) * AT_ONCE * 4 + y % 4 : y * 4 + x] = bits;
                sum += (bits ^ sign) - sign;
            }
        }
        p->factors[f] = dmlk_filter_zero(c, f);
        p->constants[f] = (int32_t)((uint32_t)zero * ((uint32_t)(y_taps * x_taps * p->factors[f]) - (uint32_t)sum));
    }
}

static bool run(struct plan *p) {
    const dmlk_convolution *c = p->c;
    const bool by_rows = is_by_rows(p), across = !by_rows && is_across_channels(p);
    if (!across && !by_rows) {
        return false;
    }
    const int64_t filters = c->filter_sizes[N], blocks = (filters + AT_ONCE - 1) / AT_ONCE;
    const int64_t quads = across ? blocks * AT_ONCE * c->filter_sizes[X] * p->y_quads : filters * c->filter_sizes[Y];
    p->factors = dmlk_take(filters * (int64_t)sizeof *p->factors);
    p->constants = dmlk_take(filters * (int64_t)sizeof *p->constants);
    p->quads = dmlk_take(4 * quads);
    if (p->factors == NULL || p->constants == NULL || p->quads == NULL) {
        return false;
    }
    memset(p->quads, 0, (size_t)(4 * quads));
    pack(p, across);
    const int64_t rows = c->output.sizes[N] * c->output.sizes[Y], items = rows * (across ? blocks : filters);
    const int64_t work = c->output.sizes[X] * (across ? 16 : 1); /* vectors of an item, about */
    dmlk_parallel(items, dmlk_parts(items, 1 + 32768 / work), across ? channels_part : rows_part, p);
    return true;
}

bool dmlk_convolve_depthwise(const dmlk_convolution *c) {
    uint8_t padding[AT_ONCE];
    struct plan p = {.c = c, .multiplier = c->filter_sizes[N] / c->groups, .padding_row = padding};
    if (c->filter_sizes[CHANNEL] != 1 || dmlk_isa() != DMLK_ISA_AVX512) {
        return false;
    }
    p.y_quads = (c->filter_sizes[Y] + 3) / 4;
    p.flip = dmlk_input_flip(c);
    p.padding = (uint8_t)dmlk_flipped_zero(c);
    p.signed_filters = c->filter.type == DMLK_INT8;
    p.needs_sums = dmlk_has_filter_zeros(c);
    memset(padding, p.padding ^ p.flip, sizeof padding);
    const bool done = run(&p);
    dmlk_give(p.quads), dmlk_give(p.factors), dmlk_give(p.constants);
    return done;
}
#else
bool dmlk_convolve_depthwise(const dmlk_convolution *convolution) {
    (void)convolution;
    return false;
}
#endif

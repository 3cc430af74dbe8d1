/* convolve_input.c - planes of the input: see convolve_plan.h. */
#include "convolve_plan.h"

#include "cpu.h"
#include "parallel.h"
#include "cancellation.h"
#include "transpose.h"
#include "promoted.h"

#ifdef DMLK_X86
#include <immintrin.h>
#endif

enum { N = DMLK_N, CHANNEL = DMLK_CHANNEL, Y = DMLK_Y, X = DMLK_X };

#define LANES DMLK_S8_LANES

/* Quads begin .. end - 1, in any layout. */
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

/* Quads without padding, `step` bytes apart. */
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

#ifdef DMLK_X86
/* 16 quads within 128 bytes: byte j of quad i is at from + i * step + j * next. */
DMLK_AVX512 static void fill_close(const uint8_t *from, int64_t step, int64_t next, int64_t count, uint8_t flip,
                                   uint8_t *to) {
    uint8_t order[64];
    for (int k = 0; k < 64; k++) {
        order[k] = (uint8_t)(k / 4 * step + k % 4 * next);
    }
    const __m512i index = _mm512_loadu_si512(order), flips = _mm512_set1_epi8((char)flip);
    for (int64_t i = 0; i < count; i += 16) {
        const int64_t quads = dmlk_min(16, count - i), bytes = (quads - 1) * step + 3 * next + 1;
        const __mmask64 low = bytes >= 64 ? ~(__mmask64)0 : ~(__mmask64)0 >> (64 - bytes);
        const __mmask64 high = bytes <= 64 ? 0 : ~(__mmask64)0 >> (128 - bytes);
        const __m512i a = _mm512_maskz_loadu_epi8(low, from + i * step);
        const __m512i b = _mm512_maskz_loadu_epi8(high, from + i * step + 64);
        const __m512i result = _mm512_xor_si512(_mm512_permutex2var_epi8(a, index, b), flips);
        _mm512_mask_storeu_epi32(to + 4 * i, (__mmask16)(0xffff >> (16 - quads)), result);
    }
}

/* A whole row of a plane of channels that are contiguous along X: 64 positions at a time. */
DMLK_AVX512 static void fill_packed(const uint8_t *const from[4], const dmlk_window *w, const dmlk_plan *p,
                                    uint8_t *to) {
    uint8_t bytes[64];
    uint16_t words[32];
    for (int k = 0; k < 64; k++) { /* alternating a and b */
        bytes[k] = (uint8_t)(k / 2 + k % 2 * 64);
    }
    for (int k = 0; k < 32; k++) {
        words[k] = (uint16_t)(k / 2 + k % 2 * 32);
    }
    const __m512i byte_low = _mm512_loadu_si512(bytes), word_low = _mm512_loadu_si512(words);
    const __m512i byte_high = _mm512_add_epi8(byte_low, _mm512_set1_epi8(32));
    const __m512i word_high = _mm512_add_epi16(word_low, _mm512_set1_epi16(16));
    const __m512i flips = _mm512_set1_epi8((char)p->flip), padding = _mm512_set1_epi8((char)(p->padding ^ p->flip));
    for (int64_t i = 0; i < p->pitch; i += 64) {
        const int64_t before = w->begin - i, until = w->end - i, count = dmlk_min(64, p->pitch - i);
        const __mmask64 inside = before >= 64 || until <= 0
                                     ? 0
                                     : (until >= 64 ? ~(__mmask64)0 : ~(~(__mmask64)0 << until)) &
                                           (before <= 0 ? ~(__mmask64)0 : ~(__mmask64)0 << before);
        __m512i row[4], quads[4];
        for (int j = 0; j < 4; j++) {
            row[j] = _mm512_mask_loadu_epi8(padding, inside, from[j] + w->x[j] + i);
            row[j] = _mm512_xor_si512(row[j], flips);
        }
        const __m512i ab_low = _mm512_permutex2var_epi8(row[0], byte_low, row[1]);
        const __m512i cd_low = _mm512_permutex2var_epi8(row[2], byte_low, row[3]);
        const __m512i ab_high = _mm512_permutex2var_epi8(row[0], byte_high, row[1]);
        const __m512i cd_high = _mm512_permutex2var_epi8(row[2], byte_high, row[3]);
        quads[0] = _mm512_permutex2var_epi16(ab_low, word_low, cd_low);
        quads[1] = _mm512_permutex2var_epi16(ab_low, word_high, cd_low);
        quads[2] = _mm512_permutex2var_epi16(ab_high, word_low, cd_high);
        quads[3] = _mm512_permutex2var_epi16(ab_high, word_high, cd_high);
        for (int64_t k = 0; 16 * k < count; k++) {
            const __mmask16 there = (__mmask16)(0xffff >> (16 - dmlk_min(16, count - 16 * k)));
            _mm512_mask_storeu_epi32(to + 4 * i + 64 * k, there, quads[k]);
        }
    }
}
#endif

/* The input row for row `row` of planes with that Y phase, at channel 0 of the group; NULL: padding. */
static const uint8_t *find_row(const dmlk_strip *s, int64_t y_phase, int64_t row) {
    const dmlk_convolution *c = s->p->c;
    const int64_t y = (s->first + row) * c->strides[Y] + s->p->y.phases[y_phase] - c->start[Y];
    return y < 0 || y >= c->input.sizes[Y] ? NULL : s->input + y * c->input.strides[Y];
}

/* One row of a plane. */
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
        /* Bytes of missing channels and taps are arbitrary: they are multiplied with 0 in the filter. */
        const int64_t of = p->by_taps ? channel : dmlk_min(channel + j, p->channels - 1);
        from[j] = base + of * c->input.strides[CHANNEL];
    }
#ifdef DMLK_X86
    if (p->isa == DMLK_ISA_AVX512 && !p->by_taps && step == 1) {
        fill_packed(from, w, p, to);
        return;
    }
#endif
    for (int j = 0; j < 4; j++) {
        inner[j] = from[j] + w->x[j] * c->input.strides[X] + w->begin * step;
    }
    fill_any(p, from, w, 0, w->begin, to);
    fill_any(p, from, w, w->end, p->pitch, to);
    to += 4 * w->begin;
#ifdef DMLK_X86
    const int64_t next = inner[1] - inner[0];
    const bool even = inner[2] - inner[1] == next && inner[3] - inner[2] == next && next >= 0;
    if (p->isa == DMLK_ISA_AVX512 && even && step >= 0 && step < 128 && 15 * step + 3 * next < 128) {
        fill_close(inner[0], step, next, count, p->flip, to);
        return;
    }
#endif
    fill_inside(inner, step, count, p->flip, to);
}

DMLK_EACH_ISA(flip_bytes, (uint8_t *bytes, int64_t count, uint8_t flip), (bytes, count, flip)) {
    for (int64_t i = 0; i < count; i++) {
        bytes[i] ^= flip;
    }
}

/* One row of all planes of a phase of Y and X: the channels of each element are contiguous. */
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

/* One line of the copy. */
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
    if (stride == step && end > begin) { /* the last element has no gap after its channels */
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

#ifdef DMLK_X86
/* Sums of the channels of elements of a line. */
DMLK_AVX512 static void sum_elements(const dmlk_plan *p, const uint8_t *from, int32_t *to) {
    const bool is_signed = p->c->filter.type != DMLK_INT8;
    const __m512i ones = _mm512_set1_epi8(1), zero = _mm512_setzero_si512();
    for (int64_t x = 0; x < p->line; x++) {
        __m512i sum = zero;
        for (int64_t b = 0; b < p->channels; b += 64) {
            const __mmask64 there = ~(__mmask64)0 >> (64 - dmlk_min(64, p->channels - b));
            const __m512i bytes = _mm512_maskz_loadu_epi8(there, from + x * p->element_step + b);
            sum = is_signed ? _mm512_dpbusd_epi32(sum, ones, bytes) : _mm512_dpbusd_epi32(sum, bytes, ones);
        }
        to[x] = _mm512_reduce_add_epi32(sum);
    }
}

/* The same for elements of at most four bytes: 16 of them at once. */
DMLK_AVX512 static void sum_small_elements(const dmlk_plan *p, const uint8_t *from, int32_t *to) {
    const bool is_signed = p->c->filter.type != DMLK_INT8;
    const int64_t step = p->element_step;
    const __m512i ones = _mm512_set1_epi8(1), zero = _mm512_setzero_si512();
    const __mmask64 channels = 0x1111111111111111u * ((1u << p->channels) - 1);
    uint8_t order[64];
    for (int64_t k = 0; k < 64; k++) {
        order[k] = (uint8_t)(k / 4 * step + k % 4);
    }
    const __m512i index = _mm512_loadu_si512(order);
    for (int64_t x = 0; x < p->line; x += 16) {
        const int64_t count = dmlk_min(16, p->line - x);
        const __mmask64 there = ~(__mmask64)0 >> (64 - count * step);
        const __m512i all = _mm512_maskz_loadu_epi8(there, from + x * step);
        const __m512i bytes = _mm512_maskz_permutexvar_epi8(channels, index, all);
        const __m512i sums =
            is_signed ? _mm512_dpbusd_epi32(zero, ones, bytes) : _mm512_dpbusd_epi32(zero, bytes, ones);
        _mm512_mask_storeu_epi32(to + x, (__mmask16)(0xffff >> (16 - count)), sums);
    }
}

static void sum_lines(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const dmlk_strip *s = context;
    const dmlk_plan *p = s->p;
    int64_t work = 0;
    for (int64_t i = begin; i < end && !dmlk_stopped(&work, p->line * (1 + p->channels / 8)); i++) {
        const uint8_t *from = s->positions + i * p->line_step;
        if (p->copied && p->element_step <= 4) { /* (elements of the input itself may overlap) */
            sum_small_elements(p, from, s->elements + i * p->line);
        } else {
            sum_elements(p, from, s->elements + i * p->line);
        }
    }
}

DMLK_EACH_ISA(add, (const int32_t *restrict from, int64_t step, int64_t count, int32_t *restrict to),
              (from, step, count, to)) {
    for (int64_t i = 0; i < count; i++) {
        to[i] += from[i * step];
    }
}

/* Sums of windows, row by row of the output: first over the lines that they cover, one element wide. */
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
#endif

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

/* Sums of positions of planes, with a filter of ones. */
static void sum_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const dmlk_strip *s = context;
    const int32_t zero = 0;
    const dmlk_s8_start start = {.constants = &zero};
    int64_t work = 0;
    for (int64_t t = begin; t < end && !dmlk_stopped(&work, s->p->quads); t++) {
        int32_t *const sums[] = {s->sums + t * LANES};
        s->p->tiles.one_filter(s->planes + t * LANES * 4, s->p->offsets, s->p->quads, s->p->ones, 4, LANES, &start,
                               sums);
    }
}

void dmlk_fill_planes(dmlk_strip *s, int most_parts) {
    const dmlk_plan *p = s->p;
    if (p->copied) {
        const int64_t lines = dmlk_lines(p, s->rows);
        dmlk_parallel(lines, (int)dmlk_min(most_parts, dmlk_parts(lines, 1 + 65536 / p->line_step)), copy_part, s);
    } else if (!p->direct) {
        const int64_t rows = s->rows + p->y.reach, row_bytes = p->pitch * 4 * p->planes;
        dmlk_parallel(rows, (int)dmlk_min(most_parts, dmlk_parts(rows, 1 + 32768 / row_bytes)), fill_part, s);
    }
}

void dmlk_sum_windows(dmlk_strip *s, int most_parts) {
    const dmlk_plan *p = s->p;
#ifdef DMLK_X86
    if (p->direct || p->copied) {
        const int64_t lines = dmlk_lines(p, s->rows), line_grain = 1 + 50000 / (p->line * (1 + p->channels / 64));
        dmlk_parallel(lines, (int)dmlk_min(most_parts, dmlk_parts(lines, line_grain)), sum_lines, s);
        const int64_t row_grain = 1 + 200000 / (p->line * (p->y.taps + p->x.taps));
        dmlk_parallel(s->rows, (int)dmlk_min(most_parts, dmlk_parts(s->rows, row_grain)), sum_windows, s);
        return;
    }
#endif
    const int64_t tiles = (s->rows * p->pitch + LANES - 1) / LANES, grain = 1 + 40000 / p->quads / DMLK_S8_ROWS;
    dmlk_parallel(tiles, (int)dmlk_min(most_parts, dmlk_parts(tiles, grain)), sum_part, s);
}

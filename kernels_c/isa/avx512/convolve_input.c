#include "convolve_plan.h"

#include "permute_bytes.h"
#include "promoted.h"

/* Selects the bytes of 16 quads.  If four quads lie within 16 bytes (`near`), words are first permuted so that each
 * 16-byte lane contains the bytes of its quads. */
static void fill_close(const uint8_t *from, int64_t step, int64_t next, int64_t count, uint8_t flip, uint8_t *to) {
    const bool near = 3 * step + 3 * next < 16;
    uint8_t order[64];
    int32_t words[16];
    for (int k = 0; k < 64; k++) {
        order[k] = (uint8_t)((near ? k / 4 % 4 : k / 4) * step + k % 4 * next);
    }
    for (int k = 0; k < 16; k++) {
        words[k] = (int32_t)(k / 4 * step + k % 4);
    }
    const __m512i index = _mm512_loadu_si512(order), word = _mm512_loadu_si512(words), flips = _mm512_set1_epi8((char)flip);
    for (int64_t i = 0; i < count; i += 16) {
        const int64_t quads = dmlk_min(16, count - i), bytes = (quads - 1) * step + 3 * next + 1;
        const __mmask64 low = bytes >= 64 ? ~(__mmask64)0 : ~(__mmask64)0 >> (64 - bytes);
        const __mmask64 high = bytes <= 64 ? 0 : ~(__mmask64)0 >> (128 - bytes);
        const __m512i a = _mm512_maskz_loadu_epi8(low, from + i * step);
        const __m512i b = _mm512_maskz_loadu_epi8(high, from + i * step + 64);
        const __m512i result = near ? _mm512_shuffle_epi8(_mm512_permutex2var_epi32(a, word, b), index)
                                    : dmlk_permute_bytes_of_two(index, a, b);
        _mm512_mask_storeu_epi32(to + 4 * i, (__mmask16)(0xffff >> (16 - quads)), _mm512_xor_si512(result, flips));
    }
}

/* Fills in 64 positions at a time.  Interleaving works within 16-byte lanes, each of which contributes to every
 * result; so words are permuted first: word 4 k + i is exchanged with word 4 i + k. */
static void fill_packed(const uint8_t *const from[4], const dmlk_window *w, const dmlk_plan *p, uint8_t *to) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i flips = _mm512_set1_epi8((char)p->flip), padding = _mm512_set1_epi8((char)(p->padding ^ p->flip));
    for (int64_t i = 0; i < p->pitch; i += 64) {
        const int64_t before = w->begin - i, until = w->end - i, count = dmlk_min(64, p->pitch - i);
        const __mmask64 inside = before >= 64 || until <= 0
                                     ? 0
                                     : (until >= 64 ? ~(__mmask64)0 : ~(~(__mmask64)0 << until)) &
                                           (before <= 0 ? ~(__mmask64)0 : ~(__mmask64)0 << before);
        __m512i row[4];
        for (int j = 0; j < 4; j++) {
            row[j] = _mm512_mask_loadu_epi8(padding, inside, from[j] + w->x[j] + i);
            row[j] = _mm512_permutexvar_epi32(order, _mm512_xor_si512(row[j], flips));
        }
        const __m512i low_01 = _mm512_unpacklo_epi8(row[0], row[1]), low_23 = _mm512_unpacklo_epi8(row[2], row[3]);
        const __m512i high_01 = _mm512_unpackhi_epi8(row[0], row[1]), high_23 = _mm512_unpackhi_epi8(row[2], row[3]);
        const __m512i quads[4] = {_mm512_unpacklo_epi16(low_01, low_23), _mm512_unpackhi_epi16(low_01, low_23),
                                  _mm512_unpacklo_epi16(high_01, high_23), _mm512_unpackhi_epi16(high_01, high_23)};
        for (int64_t k = 0; 16 * k < count; k++) {
            const __mmask16 there = (__mmask16)(0xffff >> (16 - dmlk_min(16, count - 16 * k)));
            _mm512_mask_storeu_epi32(to + 4 * i + 64 * k, there, quads[k]);
        }
    }
}

/* The sum of every four bytes. */
static inline __m512i sum_quads(__m512i bytes, bool is_signed) {
    const __m512i ones = _mm512_set1_epi8(1);
    return _mm512_madd_epi16(is_signed ? _mm512_maddubs_epi16(ones, bytes) : _mm512_maddubs_epi16(bytes, ones),
                             _mm512_set1_epi16(1));
}

static void sum_large_elements(const dmlk_plan *p, const uint8_t *from, int32_t *to) {
    const bool is_signed = p->c->filter.type != DMLK_INT8;
    for (int64_t x = 0; x < p->line; x++) {
        __m512i sum = _mm512_setzero_si512();
        for (int64_t b = 0; b < p->channels; b += 64) {
            const __mmask64 there = ~(__mmask64)0 >> (64 - dmlk_min(64, p->channels - b));
            const __m512i bytes = _mm512_maskz_loadu_epi8(there, from + x * p->element_step + b);
            sum = _mm512_add_epi32(sum, sum_quads(bytes, is_signed));
        }
        to[x] = _mm512_reduce_add_epi32(sum);
    }
}

/* For elements of at most four bytes: sums 16 at a time, four in each 16-byte lane. */
static void sum_small_elements(const dmlk_plan *p, const uint8_t *from, int32_t *to) {
    const bool is_signed = p->c->filter.type != DMLK_INT8;
    const int64_t step = p->element_step;
    const __mmask64 channels = 0x1111111111111111u * ((1u << p->channels) - 1);
    uint8_t order[64];
    int32_t words[16];
    for (int k = 0; k < 64; k++) {
        order[k] = (uint8_t)(k / 4 % 4 * step + k % 4);
    }
    for (int k = 0; k < 16; k++) {
        words[k] = (int32_t)(k / 4 * step + k % 4);
    }
    const __m512i index = _mm512_loadu_si512(order), word = _mm512_loadu_si512(words);
    for (int64_t x = 0; x < p->line; x += 16) {
        const int64_t count = dmlk_min(16, p->line - x);
        const __mmask64 there = ~(__mmask64)0 >> (64 - count * step);
        const __m512i all = _mm512_permutexvar_epi32(word, _mm512_maskz_loadu_epi8(there, from + x * step));
        const __m512i bytes = _mm512_maskz_shuffle_epi8(channels, all, index);
        _mm512_mask_storeu_epi32(to + x, (__mmask16)(0xffff >> (16 - count)), sum_quads(bytes, is_signed));
    }
}

static void sum_elements(const dmlk_plan *p, const uint8_t *from, int32_t *to) {
    const bool is_small = p->copied && p->element_step <= 4; /* (elements of the input itself may overlap) */
    (is_small ? sum_small_elements : sum_large_elements)(p, from, to);
}

#ifndef FORM /* isa/avx512_vbmi includes this file under another name */
#define FORM dmlk_convolve_input_avx512
#endif
const struct dmlk_convolve_input_form FORM = {fill_close, fill_packed, sum_elements};

#include "convolve_plan.h"

#include <immintrin.h>

static void pack_transposed(const dmlk_plan *p, int64_t filter, int64_t first, int64_t count, uint8_t *to) {
    const int64_t window = p->y.taps * p->x.taps;
    const uint8_t *from = p->c->filter.base + dmlk_filter_at(p->c, filter) + 4 * first;
    const __mmask16 taps = (__mmask16)(0xffff >> (16 - window));
    const __mmask64 there = ~(__mmask64)0 >> (64 - 4 * window);
    for (int64_t i = 0; i < count; i += window, from += 4 * window, to += 4 * window) {
        __m128i channels[4];
        for (int j = 0; j < 4; j++) {
            channels[j] = _mm_maskz_loadu_epi8(taps, from + j * window);
        }
        const __m128i low_01 = _mm_unpacklo_epi8(channels[0], channels[1]), low_23 = _mm_unpacklo_epi8(channels[2], channels[3]);
        const __m128i high_01 = _mm_unpackhi_epi8(channels[0], channels[1]), high_23 = _mm_unpackhi_epi8(channels[2], channels[3]);
        __m512i quads = _mm512_castsi128_si512(_mm_unpacklo_epi16(low_01, low_23));
        quads = _mm512_inserti32x4(quads, _mm_unpackhi_epi16(low_01, low_23), 1);
        quads = _mm512_inserti32x4(quads, _mm_unpacklo_epi16(high_01, high_23), 2);
        quads = _mm512_inserti32x4(quads, _mm_unpackhi_epi16(high_01, high_23), 3);
        _mm512_mask_storeu_epi8(to, there, quads);
    }
}

const struct dmlk_convolve_filters_form dmlk_convolve_filters_avx512 = {pack_transposed};

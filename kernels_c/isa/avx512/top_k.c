#include "sorted_words.h"

#include <immintrin.h>

static void insert_word(uint64_t *words, int64_t count, uint64_t word) {
    const __m512i inserted = _mm512_set1_epi64((int64_t)word);
    __m512i before = _mm512_setzero_si512();
    for (int64_t i = 0; i < count; i += DMLK_WORDS) {
        const __m512i now = _mm512_loadu_si512(words + i);
        const __m512i moved = _mm512_alignr_epi64(now, before, DMLK_WORDS - 1);
        _mm512_storeu_si512(words + i, _mm512_max_epu64(moved, _mm512_min_epu64(now, inserted)));
        before = now;
    }
}

/* The words stay in registers.  Which keys are inserted cannot be predicted: a branch for each would take longer. */
static int64_t insert_keys(uint64_t *words, int64_t count, const uint32_t *keys, int64_t n, uint32_t bound,
                                       int64_t index) {
    const __mmask16 read = (__mmask16)((1u << n) - 1);
    const __m512i group = _mm512_maskz_loadu_epi32(read, keys);
    uint32_t passing = _mm512_mask_cmple_epu32_mask(read, group, _mm512_set1_epi32((int)bound));
    const int64_t passed = __builtin_popcount(passing);
    __m512i a = _mm512_loadu_si512(words), b = count > DMLK_WORDS ? _mm512_loadu_si512(words + DMLK_WORDS) : a;
    for (; passing != 0; passing &= passing - 1) {
        const int64_t i = __builtin_ctz(passing);
        const __m512i inserted = _mm512_set1_epi64((int64_t)((uint64_t)keys[i] << 32 | (uint64_t)(index + i)));
        const __m512i before_a = _mm512_alignr_epi64(a, _mm512_setzero_si512(), DMLK_WORDS - 1);
        const __m512i before_b = _mm512_alignr_epi64(b, a, DMLK_WORDS - 1);
        a = _mm512_max_epu64(before_a, _mm512_min_epu64(a, inserted));
        b = _mm512_max_epu64(before_b, _mm512_min_epu64(b, inserted));
    }
    _mm512_storeu_si512(words, a);
    if (count > DMLK_WORDS) {
        _mm512_storeu_si512(words + DMLK_WORDS, b);
    }
    return passed;
}

const struct dmlk_top_k_form dmlk_top_k_avx512 = {insert_word, insert_keys};

#include "bit_count.h"

#include <immintrin.h>

/* `store` stores the counts of at most `lanes` elements, selected by the mask m, to `to`. */
#define COUNT(name, lanes, in_bytes, out_bytes, mask, store)                                        \
    static void name(uint8_t *const *at, const int64_t *strides, int64_t count,              \
                            const void *context) {                                                  \
        (void)context;                                                                              \
        const uint8_t *from = at[0];                                                                \
        uint8_t *to = at[1];                                                                        \
        if (strides[0] != 1 || strides[1] != 1) { /* only in short rows */                          \
            for (; count > 0; count--, from += strides[0] * in_bytes, to += strides[1] * out_bytes) {\
                const mask m = 1;                                                                   \
                store;                                                                              \
            }                                                                                       \
            return;                                                                                 \
        }                                                                                           \
        for (; count >= lanes; count -= lanes, from += lanes * in_bytes, to += lanes * out_bytes) { \
            const mask m = (mask)-1;                                                                \
            store;                                                                                  \
        }                                                                                           \
        if (count > 0) {                                                                            \
            const mask m = (mask)(UINT64_MAX >> (64 - count));                                      \
            store;                                                                                  \
        }                                                                                           \
    }

COUNT(count_1_1, 64, 1, 1, __mmask64,
      _mm512_mask_storeu_epi8(to, m, _mm512_popcnt_epi8(_mm512_maskz_loadu_epi8(m, from))))
COUNT(count_1_4, 16, 1, 4, __mmask16,
      _mm512_mask_storeu_epi32(to, m, _mm512_cvtepu8_epi32(_mm_popcnt_epi8(_mm_maskz_loadu_epi8(m, from)))))
COUNT(count_2_1, 32, 2, 1, __mmask32,
      _mm256_mask_storeu_epi8(to, m, _mm512_cvtepi16_epi8(_mm512_popcnt_epi16(_mm512_maskz_loadu_epi16(m, from)))))
COUNT(count_2_4, 16, 2, 4, __mmask16,
      _mm512_mask_storeu_epi32(to, m, _mm512_cvtepu16_epi32(_mm256_popcnt_epi16(_mm256_maskz_loadu_epi16(m, from)))))
COUNT(count_4_1, 16, 4, 1, __mmask16,
      _mm_mask_storeu_epi8(to, m, _mm512_cvtepi32_epi8(_mm512_popcnt_epi32(_mm512_maskz_loadu_epi32(m, from)))))
COUNT(count_4_4, 16, 4, 4, __mmask16,
      _mm512_mask_storeu_epi32(to, m, _mm512_popcnt_epi32(_mm512_maskz_loadu_epi32(m, from))))
COUNT(count_8_1, 8, 8, 1, __mmask8,
      _mm_mask_storeu_epi8(to, m, _mm512_cvtepi64_epi8(_mm512_popcnt_epi64(_mm512_maskz_loadu_epi64(m, from)))))
COUNT(count_8_4, 8, 8, 4, __mmask8,
      _mm256_mask_storeu_epi32(to, m, _mm512_cvtepi64_epi32(_mm512_popcnt_epi64(_mm512_maskz_loadu_epi64(m, from)))))

static dmlk_row *row_of(uint32_t in, uint32_t out) {
    static dmlk_row *const rows[][2] = {
        [DMLK_UINT8] = {count_1_1, count_1_4},
        [DMLK_UINT16] = {count_2_1, count_2_4},
        [DMLK_UINT32] = {count_4_1, count_4_4},
        [DMLK_UINT64] = {count_8_1, count_8_4},
    };
    return rows[dmlk_bits_type(in)][out == DMLK_UINT32];
}

const struct dmlk_bit_count_form dmlk_bit_count_avx512_vbmi = {row_of};

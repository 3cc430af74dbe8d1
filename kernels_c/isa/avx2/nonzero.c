#include "nonzero_words.h"

#include <immintrin.h>

static inline __m256i zeros_of(const uint8_t *at, int i, int bytes, __m256i keep) {
    const __m256i x = _mm256_and_si256(_mm256_loadu_si256((const __m256i *)at + i), keep);
    const __m256i zero = _mm256_setzero_si256();
    return bytes == 1   ? _mm256_cmpeq_epi8(x, zero)
           : bytes == 2 ? _mm256_cmpeq_epi16(x, zero)
           : bytes == 4 ? _mm256_cmpeq_epi32(x, zero)
                        : _mm256_cmpeq_epi64(x, zero);
}

INLINE uint64_t find(const uint8_t *at, int64_t bytes, uint64_t keep) {
    const __m256i k = _mm256_set1_epi64x((int64_t)keep);
    uint64_t zeros = 0;
    switch (bytes) {
    case 1:
        for (int i = 0; i < 2; i++) {
            zeros |= (uint64_t)(uint32_t)_mm256_movemask_epi8(zeros_of(at, i, 1, k)) << 32 * i;
        }
        break;
    case 2: /* packs work within halves of vectors; the permutation restores the order */
        for (int i = 0; i < 2; i++) {
            const __m256i pack = _mm256_packs_epi16(zeros_of(at, 2 * i, 2, k), zeros_of(at, 2 * i + 1, 2, k));
            zeros |= (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_permute4x64_epi64(pack, 0xD8)) << 32 * i;
        }
        break;
    case 4:
        for (int i = 0; i < 8; i++) {
            zeros |= (uint64_t)_mm256_movemask_ps(_mm256_castsi256_ps(zeros_of(at, i, 4, k))) << 8 * i;
        }
        break;
    default:
        for (int i = 0; i < 16; i++) {
            zeros |= (uint64_t)_mm256_movemask_pd(_mm256_castsi256_pd(zeros_of(at, i, 8, k))) << 4 * i;
        }
    }
    return ~zeros;
}

/* For each byte, the indices of its set bits. */
static uint8_t bits_of_byte[256][8];

__attribute__((constructor)) static void make_bits_of_byte(void) {
    for (int byte = 0; byte < 256; byte++) {
        uint8_t *to = bits_of_byte[byte];
        for (uint8_t bit = 0; bit < 8; bit++) {
            if (byte >> bit & 1) {
                *to++ = bit;
            }
        }
    }
}

static uint32_t *spread(uint64_t word, uint32_t base, uint32_t *to) {
    for (uint32_t i = 0; i < DMLK_NONZERO_WORD; i += 8) {
        const uint8_t byte = (uint8_t)(word >> i);
        const __m256i bits = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)bits_of_byte[byte]));
        _mm256_storeu_si256((__m256i *)to, _mm256_add_epi32(bits, _mm256_set1_epi32((int)(base + i))));
        to += __builtin_popcount(byte);
    }
    return to;
}

DMLK_NONZERO_FORM(avx2, find, spread, divide, no_fours);

/* permute_bytes.h - permutations of the bytes of AVX-512 vectors.  VBMI has an instruction for them; otherwise words
 * are permuted, once for the even bytes of the result and once for the odd ones. */
#ifndef DMLK_PERMUTE_BYTES_H
#define DMLK_PERMUTE_BYTES_H

#include <immintrin.h>

#define DMLK_ODD_BYTES UINT64_C(0xAAAAAAAAAAAAAAAA)

/* Joins words that contain the result's even bytes with words that contain its odd bytes. */
static inline __m512i dmlk_join_bytes(__m512i index, __m512i even, __m512i odd) {
    const __m512i high = _mm512_set1_epi16(8); /* bits to shift, of the upper byte */
    even = _mm512_srlv_epi16(even, _mm512_and_si512(_mm512_slli_epi16(index, 3), high));
    odd = _mm512_sllv_epi16(odd, _mm512_andnot_si512(_mm512_srli_epi16(index, 5), high));
    return _mm512_mask_mov_epi8(even, DMLK_ODD_BYTES, odd);
}

/* Byte i is byte index[i] % 64 of x. */
static inline __m512i dmlk_permute_bytes(__m512i index, __m512i x) {
#ifdef __AVX512VBMI__
    return _mm512_permutexvar_epi8(index, x);
#else
    return dmlk_join_bytes(index, _mm512_permutexvar_epi16(_mm512_srli_epi16(index, 1), x),
                           _mm512_permutexvar_epi16(_mm512_srli_epi16(index, 9), x));
#endif
}

/* Byte i is byte index[i] % 128 of x and y. */
static inline __m512i dmlk_permute_bytes_of_two(__m512i index, __m512i x, __m512i y) {
#ifdef __AVX512VBMI__
    return _mm512_permutex2var_epi8(x, index, y);
#else
    return dmlk_join_bytes(index, _mm512_permutex2var_epi16(x, _mm512_srli_epi16(index, 1), y),
                           _mm512_permutex2var_epi16(x, _mm512_srli_epi16(index, 9), y));
#endif
}

#endif

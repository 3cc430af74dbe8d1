/* fused.c - fused multiply-adds of FLOAT32 on CPUs without instructions for them. */
#include "dmlk_float_math.h"

#ifdef DMLK_FMAF_OF_4

#include <emmintrin.h>

/* a b + c for two floats each, as doubles: the product is exact, the sum rounded to a double. */
static inline __m128d rounded_twice(__m128d a, __m128d b, __m128d c) { return _mm_add_pd(_mm_mul_pd(a, b), c); }

/* The same, but an inexact sum is rounded to odd: to the neighbour whose last bit is 1.  Rounding that to a float,
 * which has 29 bits less, gives the same result as rounding the exact sum once.  The exact sum is `sum` + `error`. */
static inline __m128d rounded_to_odd(__m128d a, __m128d b, __m128d c) {
    const __m128d product = _mm_mul_pd(a, b), sum = _mm_add_pd(product, c), back = _mm_sub_pd(sum, product);
    const __m128d error = _mm_add_pd(_mm_sub_pd(product, _mm_sub_pd(sum, back)), _mm_sub_pd(c, back)), zero = _mm_setzero_pd();
    /* (False for NaN, the error of an infinite sum.) */
    const __m128d is_inexact = _mm_or_pd(_mm_cmplt_pd(error, zero), _mm_cmpgt_pd(error, zero));
    const __m128i one = _mm_and_si128(_mm_castpd_si128(is_inexact), _mm_set1_epi64x(1));
    const __m128i is_too_far = _mm_and_si128(_mm_srli_epi64(_mm_castpd_si128(_mm_xor_pd(sum, error)), 63), one);
    return _mm_castsi128_pd(_mm_or_si128(_mm_sub_epi64(_mm_castpd_si128(sum), is_too_far), one));
}

/* Whether rounding one of these doubles to a float might differ from rounding the exact sum: the double is half-way
 * between two floats, or it is not 0 and below the normal floats, where floats have fewer bits. */
static inline bool is_any_doubtful(__m128d low, __m128d high) {
    const __m128 a = _mm_castpd_ps(low), b = _mm_castpd_ps(high);
    const __m128i last = _mm_castps_si128(_mm_shuffle_ps(a, b, 0x88)), first = _mm_castps_si128(_mm_shuffle_ps(a, b, 0xdd));
    const __m128i is_between = _mm_cmpeq_epi32(_mm_slli_epi32(last, 3), _mm_set1_epi32(INT32_MIN));
    /* The bits without the sign, minus 1, so that 0 becomes the largest. */
    const __m128i size = _mm_add_epi32(_mm_slli_epi32(first, 1), _mm_set1_epi32(INT32_MAX));
    const __m128i is_small = _mm_cmplt_epi32(size, _mm_set1_epi32((1023 - 126) * 0x200000 + INT32_MIN));
    return _mm_movemask_epi8(_mm_or_si128(is_between, is_small)) != 0;
}

dmlk_floats_of_4 dmlk_fmaf_of_4(dmlk_floats_of_4 a, dmlk_floats_of_4 b, dmlk_floats_of_4 c) {
#define LOW(x) _mm_cvtps_pd(x)
#define HIGH(x) _mm_cvtps_pd(_mm_movehl_ps(x, x))
    __m128d low = rounded_twice(LOW(a), LOW(b), LOW(c)), high = rounded_twice(HIGH(a), HIGH(b), HIGH(c));
    if (__builtin_expect(is_any_doubtful(low, high), 0)) {
        low = rounded_to_odd(LOW(a), LOW(b), LOW(c));
        high = rounded_to_odd(HIGH(a), HIGH(b), HIGH(c));
    }
    return _mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high));
}

#endif

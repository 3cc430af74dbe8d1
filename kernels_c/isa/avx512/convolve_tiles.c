#include "convolve_plan.h"

#include <immintrin.h>

static void store_lanes(int32_t sums[DMLK_S8_ROWS][DMLK_S8_LANES], uint64_t lanes, int64_t filters, int32_t *to,
                        int64_t step) {
    for (int64_t r = 0; r < filters; r++) {
        int32_t *next = to + r * step;
        for (int l = 0; l < DMLK_S8_LANES; l += 16) {
            const __mmask16 there = (__mmask16)(lanes >> l);
            const int count = __builtin_popcount(there);
            const __m512i packed = _mm512_maskz_compress_epi32(there, _mm512_loadu_si512(sums[r] + l));
            _mm512_mask_storeu_epi32(next, (__mmask16)((1u << count) - 1), packed);
            next += count;
        }
    }
}

/* The constants of dmlk_quantized_number. */
struct limits {
    __m512 low, high;
    __m512i base;
    __m128i flip;
};

static struct limits limits_of(const dmlk_scaling *s) {
    const int32_t base = s->zero ^ s->type.flip;
    return (struct limits){_mm512_set1_ps((float)-base), _mm512_set1_ps((float)(s->type.high - s->type.low - base)),
                           _mm512_set1_epi32(base - (int32_t)dmlk_float_bits(0x1.8p23f)),
                           _mm_set1_epi8((char)s->type.flip)};
}

static inline __m128i scale(const struct limits *k, __m512i sums, __m512 factors) {
    const __m512 x = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), factors);
    const __m512 near = _mm512_min_ps(_mm512_max_ps(x, k->low), k->high);
    const __m512 integer = _mm512_add_ps(near, _mm512_set1_ps(0x1.8p23f));
    const __m512i bytes = _mm512_add_epi32(_mm512_castps_si512(integer), k->base);
    return _mm_xor_si128(_mm512_cvtepi32_epi8(bytes), k->flip);
}

static void store_scaled(int32_t (*sums)[DMLK_S8_LANES], uint64_t lanes, const float *factors, bool of_lanes,
                         const dmlk_scaling *scaling, int64_t count, uint8_t *const *to) {
    const struct limits limits = limits_of(scaling);
    for (int l = 0; l < DMLK_S8_LANES; l += 16) {
        const __mmask16 there = (__mmask16)(lanes >> l);
        const int before = __builtin_popcountll(lanes & ((UINT64_C(1) << l) - 1));
        const __mmask16 stored = (__mmask16)((1u << __builtin_popcount(there)) - 1);
        const __m512 of_these = _mm512_maskz_loadu_ps(of_lanes ? there : 0, factors + l);
        for (int64_t r = 0; there != 0 && r < count; r++) {
            const __m512i row = _mm512_loadu_si512(sums[r] + l);
            const __m512i packed = there == stored ? row : _mm512_maskz_compress_epi32(there, row);
            const __m128i bytes = scale(&limits, packed, of_lanes ? of_these : _mm512_set1_ps(factors[r]));
            if (stored == 0xFFFF) {
                _mm_storeu_si128((__m128i *)(to[r] + before), bytes);
            } else {
                _mm_mask_storeu_epi8(to[r] + before, stored, bytes);
            }
        }
    }
}

const struct dmlk_convolve_tiles_form dmlk_convolve_tiles_avx512 = {store_lanes, store_scaled};

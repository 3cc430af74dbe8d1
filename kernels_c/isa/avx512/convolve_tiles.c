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

static struct limits limits_of(const dmlk_sums_finish *f) {
    const int32_t base = f->zero ^ f->integers.flip;
    return (struct limits){_mm512_set1_ps((float)-base), _mm512_set1_ps((float)(f->integers.high - f->integers.low - base)),
                           _mm512_set1_epi32(base - (int32_t)dmlk_float_bits(0x1.8p23f)),
                           _mm_set1_epi8((char)f->integers.flip)};
}

static inline __m128i quantized(const struct limits *k, __m512 x) {
    const __m512 near = _mm512_min_ps(_mm512_max_ps(x, k->low), k->high);
    const __m512 integer = _mm512_add_ps(near, _mm512_set1_ps(0x1.8p23f));
    const __m512i bytes = _mm512_add_epi32(_mm512_castps_si512(integer), k->base);
    return _mm_xor_si128(_mm512_cvtepi32_epi8(bytes), k->flip);
}

/* Replaces NaNs. */
static inline __m512 without_nans(__m512 x, float by) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x, _mm512_set1_ps(by));
}

/* Sums times their factors, up to the bounds. */
static inline __m512 finished(const dmlk_sums_finish *f, __m512i sums, __m512 factors, __mmask16 there, int64_t at) {
    __m512 x = _mm512_add_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(sums), factors), _mm512_set1_ps(f->summand));
    if (f->added != NULL) {
        x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(there, f->added + at));
    }
    if (f->is_bounded) {
        x = _mm512_min_ps(_mm512_max_ps(x, _mm512_set1_ps(f->low)), _mm512_set1_ps(f->high));
    }
    return x;
}

static void store_finished(int32_t (*sums)[DMLK_S8_LANES], uint64_t lanes, const float *factors, bool of_lanes,
                           const dmlk_sums_finish *finish, int64_t count, const int64_t *at) {
    const struct limits limits = limits_of(finish);
    const dmlk_sums_finish f = *finish;
    for (int l = 0; l < DMLK_S8_LANES; l += 16) {
        const __mmask16 there = (__mmask16)(lanes >> l);
        const int before = __builtin_popcountll(lanes & ((UINT64_C(1) << l) - 1));
        const __mmask16 stored = (__mmask16)((1u << __builtin_popcount(there)) - 1);
        const __m512 of_these = _mm512_maskz_loadu_ps(of_lanes ? there : 0, factors + l);
        for (int64_t r = 0; there != 0 && r < count; r++) {
            const __m512i row = _mm512_loadu_si512(sums[r] + l);
            const __m512i packed = there == stored ? row : _mm512_maskz_compress_epi32(there, row);
            const int64_t to = at[r] + before;
            const __m512 x = finished(&f, packed, of_lanes ? of_these : _mm512_set1_ps(factors[r]), stored, to);
            if (f.floats != NULL) {
                const __m512 kept = f.is_bounded ? x : without_nans(x, dmlk_bits_float(DMLK_NAN_BITS));
                _mm512_mask_storeu_ps(f.floats + to, stored, kept);
            }
            if (f.bytes != NULL) {
                const __m512 quotient = f.step == 1 ? x : _mm512_div_ps(x, _mm512_set1_ps(f.step));
                const __m128i bytes = quantized(&limits, without_nans(quotient, 0));
                if (stored == 0xFFFF) {
                    _mm_storeu_si128((__m128i *)(f.bytes + to), bytes);
                } else {
                    _mm_mask_storeu_epi8(f.bytes + to, stored, bytes);
                }
            }
        }
    }
}

const struct dmlk_convolve_tiles_form dmlk_convolve_tiles_avx512 = {store_lanes, store_finished};

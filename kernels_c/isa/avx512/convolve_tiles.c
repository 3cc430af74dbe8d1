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

/* The constants of a finish. */
struct constants {
    dmlk_sums_finish f;
    __m512 low, high; /* of dmlk_quantized_number */
    __m512i base;
    __m128i flip;
    bool divides; /* by the step; otherwise quotients are products with its reciprocal */
    float reciprocal;
};

static struct constants constants_of(const dmlk_sums_finish *f) {
    const int32_t base = f->zero ^ f->integers.flip;
    const uint32_t bits = dmlk_float_bits(f->step), exponent = bits >> 23 & 0xFF;
    const bool is_power = (bits & 0x7FFFFF) == 0 && exponent >= 1 && exponent <= 253; /* of 2: its reciprocal is exact */
    return (struct constants){.f = *f,
                              .low = _mm512_set1_ps((float)-base),
                              .high = _mm512_set1_ps((float)(f->integers.high - f->integers.low - base)),
                              .base = _mm512_set1_epi32(base - (int32_t)dmlk_float_bits(0x1.8p23f)),
                              .flip = _mm_set1_epi8((char)f->integers.flip),
                              .divides = !is_power,
                              .reciprocal = is_power ? 1 / f->step : 1};
}

/* Replaces NaNs. */
static inline __m512 without_nans(__m512 x, float by) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x, _mm512_set1_ps(by));
}

static inline __m128i quantized(const struct constants *k, __m512 x) {
    const __m512 quotient = k->divides ? _mm512_div_ps(x, _mm512_set1_ps(k->f.step))
                                       : _mm512_mul_ps(x, _mm512_set1_ps(k->reciprocal));
    const __m512 near = _mm512_min_ps(_mm512_max_ps(without_nans(quotient, 0), k->low), k->high);
    const __m512 integer = _mm512_add_ps(near, _mm512_set1_ps(0x1.8p23f));
    const __m512i bytes = _mm512_add_epi32(_mm512_castps_si512(integer), k->base);
    return _mm_xor_si128(_mm512_cvtepi32_epi8(bytes), k->flip);
}

/* Finishes 16 sums, or those in the mask, and stores them from element `at` on.  Stores with a mask are slow. */
static inline __attribute__((always_inline)) void finish(const struct constants *k, __m512i sums, __m512 factors, bool all,
                                                         __mmask16 mask, int64_t at) {
    __m512 x = _mm512_add_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(sums), factors), _mm512_set1_ps(k->f.summand));
    if (k->f.added != NULL) {
        const float *added = k->f.added + at;
        x = _mm512_add_ps(x, all ? _mm512_loadu_ps(added) : _mm512_maskz_loadu_ps(mask, added));
    }
    if (k->f.is_bounded) {
        x = _mm512_min_ps(_mm512_max_ps(x, _mm512_set1_ps(k->f.low)), _mm512_set1_ps(k->f.high));
    }
    if (k->f.floats != NULL) {
        const __m512 kept = k->f.is_bounded ? x : without_nans(x, dmlk_bits_float(DMLK_NAN_BITS));
        all ? _mm512_storeu_ps(k->f.floats + at, kept) : _mm512_mask_storeu_ps(k->f.floats + at, mask, kept);
    }
    if (k->f.bytes != NULL) {
        const __m128i bytes = quantized(k, x);
        all ? _mm_storeu_si128((__m128i *)(k->f.bytes + at), bytes) : _mm_mask_storeu_epi8(k->f.bytes + at, mask, bytes);
    }
}

static void store_finished(int32_t (*sums)[DMLK_S8_LANES], uint64_t lanes, const float *factors, bool of_lanes,
                           const dmlk_sums_finish *f, int64_t count, const int64_t *at) {
    const struct constants k = constants_of(f);
    for (int l = 0; l < DMLK_S8_LANES; l += 16) {
        const __mmask16 there = (__mmask16)(lanes >> l);
        const int before = __builtin_popcountll(lanes & ((UINT64_C(1) << l) - 1));
        const __mmask16 stored = (__mmask16)((1u << __builtin_popcount(there)) - 1);
        const __m512 of_these = _mm512_maskz_loadu_ps(of_lanes ? there : 0, factors + l);
        for (int64_t r = 0; there != 0 && r < count; r++) {
            const __m512i row = _mm512_loadu_si512(sums[r] + l);
            const __m512 of_row = of_lanes ? of_these : _mm512_set1_ps(factors[r]);
            if (stored == 0xFFFF) {
                finish(&k, row, of_row, true, stored, at[r] + before);
            } else {
                const __m512i packed = there == stored ? row : _mm512_maskz_compress_epi32(there, row);
                finish(&k, packed, of_row, false, stored, at[r] + before);
            }
        }
    }
}

const struct dmlk_convolve_tiles_form dmlk_convolve_tiles_avx512 = {store_lanes, store_finished};

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

const struct dmlk_convolve_tiles_form dmlk_convolve_tiles_avx512 = {store_lanes};

#include "fold_piece.h"

#include <immintrin.h>

/* (Written with intrinsics, because GCC 12 converts its own vectors of 8 in two halves.) */
static inline __attribute__((always_inline)) void add_lanes(const dmlk_fold_taps *taps, int64_t at, double *to) {
    __m512d low = _mm512_setzero_pd(), high = low;
    for (int64_t t = 0; t < taps->count; t++) {
        const float *from = taps->from[t] + at;
        __builtin_prefetch(from + taps->ahead, 0, 2);
        low = _mm512_add_pd(low, _mm512_cvtps_pd(_mm256_loadu_ps(from)));
        high = _mm512_add_pd(high, _mm512_cvtps_pd(_mm256_loadu_ps(from + 8)));
    }
    _mm512_storeu_pd(to, low);
    _mm512_storeu_pd(to + 8, high);
}

static void sum_piece(DMLK_FOLD_PARAMETERS) { dmlk_sum_piece(add_lanes, DMLK_FOLD_ARGUMENTS); }

const struct dmlk_fold_rows_form dmlk_fold_rows_avx512 = {sum_piece};

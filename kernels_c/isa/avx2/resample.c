#include "resample_windows.h"

#include <immintrin.h>

/* Selects elements of the window, which is in two vectors. */
static inline __m256 pick_lanes(const float *window, __m256i lane) {
    const __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(window), lane);
    const __m256 high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(window + DMLK_MIXED), lane);
    return _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(lane, 28))); /* bit 3 */
}

static inline __m256d mix_four(__m128 one, __m128 other, __m256d w) {
    const __m256d a = _mm256_cvtps_pd(one), b = _mm256_cvtps_pd(other), rest = _mm256_sub_pd(_mm256_set1_pd(1), w);
    const __m256d sum = _mm256_add_pd(_mm256_mul_pd(rest, a), _mm256_mul_pd(w, b));
    return _mm256_blendv_pd(sum, a, _mm256_cmp_pd(w, _mm256_setzero_pd(), _CMP_EQ_OQ));
}

static int64_t mix_windows(const float *from, const int64_t *window, const int32_t *lane, const double *weight,
                           int64_t first, int64_t count, double *row) {
    int64_t i = first;
    for (; i < count && window[i / DMLK_MIXED] >= 0; i += DMLK_MIXED) {
        const float *at = from + window[i / DMLK_MIXED];
        const __m256i lanes = _mm256_loadu_si256((const __m256i *)&lane[i]);
        const __m256 one = pick_lanes(at, lanes), other = pick_lanes(at + 1, lanes);
        const __m128 high[] = {_mm256_extractf128_ps(one, 1), _mm256_extractf128_ps(other, 1)};
        const __m256d w[] = {_mm256_loadu_pd(&weight[i]), _mm256_loadu_pd(&weight[i + 4])};
        _mm256_storeu_pd(&row[i], mix_four(_mm256_castps256_ps128(one), _mm256_castps256_ps128(other), w[0]));
        _mm256_storeu_pd(&row[i + 4], mix_four(high[0], high[1], w[1]));
    }
    return i;
}

const struct dmlk_resample_form dmlk_resample_avx2 = {mix_windows};

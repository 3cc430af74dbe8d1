#include "sums.h"

#include <immintrin.h>

/* The sums of `count` lines side by side. */
static inline __attribute__((always_inline)) void add_lines(const float *from, int64_t stride, int count, int64_t n, int64_t ahead,
                                                            double *results) {
    enum { HALF = DMLK_SUM_LANES / 2 };
    __m512d low[2] = {_mm512_setzero_pd(), _mm512_setzero_pd()}, high[2] = {low[0], low[0]}; /* halves of the lanes */
    int64_t i = 0;
    for (; i + DMLK_SUM_LANES <= n; i += DMLK_SUM_LANES) {
#pragma GCC unroll 2
        for (int k = 0; k < count; k++) {
            const float *x = from + k * stride + i;
            if (ahead != 0) {
                dmlk_fetch_line((const char *)x + ahead);
            }
            low[k] = _mm512_add_pd(low[k], _mm512_cvtps_pd(_mm256_loadu_ps(x)));
            high[k] = _mm512_add_pd(high[k], _mm512_cvtps_pd(_mm256_loadu_ps(x + HALF)));
        }
    }
    const uint32_t rest = (1u << (n - i)) - 1u; /* the remaining numbers, and zeros */
#pragma GCC unroll 2
    for (int k = 0; k < count; k++) {
        const float *x = from + k * stride + i;
        low[k] = _mm512_add_pd(low[k], _mm512_cvtps_pd(_mm256_maskz_loadu_ps((__mmask8)rest, x)));
        high[k] = _mm512_add_pd(high[k], _mm512_cvtps_pd(_mm256_maskz_loadu_ps((__mmask8)(rest >> HALF), x + HALF)));
        const __m512d sum = _mm512_add_pd(low[k], high[k]);
        const __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(sum), _mm512_extractf64x4_pd(sum, 1));
        results[k] = (four[0] + four[2]) + (four[1] + four[3]);
    }
}

/* Lines in a cache are added two at a time, as each addition waits for the one before. */
static void sum(const float *from, int64_t stride, int64_t lines, int64_t n, int64_t ahead, double *results) {
    int64_t line = 0;
    for (; ahead == 0 && line + 2 <= lines; line += 2) {
        add_lines(from + line * stride, stride, 2, n, 0, results + line);
    }
    for (; line < lines; line++) {
        add_lines(from + line * stride, stride, 1, n, ahead, results + line);
    }
}

const struct dmlk_sum_lines_form dmlk_sum_lines_avx512 = {sum};

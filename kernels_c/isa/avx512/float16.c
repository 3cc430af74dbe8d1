#include "float16.h"

#include <immintrin.h>

static int64_t widen(const uint16_t *from, int64_t count, float *to) {
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) {
        _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(from + i))));
    }
    return i;
}

static int64_t narrow(const float *from, int64_t count, uint16_t *to) {
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) {
        const __m256i halves = _mm512_maskz_cvtps_ph(0xFFFF, _mm512_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
        _mm256_storeu_si256((__m256i *)(to + i), halves);
    }
    return i;
}

const struct dmlk_float16_form dmlk_float16_avx512 = {widen, narrow};

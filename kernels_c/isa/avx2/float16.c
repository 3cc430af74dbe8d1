#include "float16.h"

#include <immintrin.h>

static int64_t widen(const uint16_t *from, int64_t count, float *to) {
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
    }
    return i;
}

static int64_t narrow(const float *from, int64_t count, uint16_t *to) {
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
        _mm_storeu_si128((__m128i *)(to + i), halves);
    }
    return i;
}

const struct dmlk_float16_form dmlk_float16_avx2 = {widen, narrow};

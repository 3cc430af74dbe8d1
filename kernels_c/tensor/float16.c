#include "float16.h"

#include "element.h"
#include "cpu.h"

static void widen(const uint16_t *from, int64_t count, float *to) {
    for (int64_t i = 0; i < count; i++) {
        to[i] = dmlk_float16_to_float(from[i]);
    }
}

static void narrow(const float *from, int64_t count, uint16_t *to) {
    for (int64_t i = 0; i < count; i++) {
        to[i] = dmlk_float_to_float16(from[i]);
    }
}

#ifdef DMLK_X86
#include <immintrin.h>

/* Each returns the number of elements converted. */

DMLK_AVX512 static int64_t widen_avx512(const uint16_t *from, int64_t count, float *to) {
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) {
        _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(from + i))));
    }
    return i;
}

DMLK_AVX512 static int64_t narrow_avx512(const float *from, int64_t count, uint16_t *to) {
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) {
        const __m256i halves = _mm512_maskz_cvtps_ph(0xFFFF, _mm512_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
        _mm256_storeu_si256((__m256i *)(to + i), halves);
    }
    return i;
}

DMLK_AVX2 static int64_t widen_avx2(const uint16_t *from, int64_t count, float *to) {
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
    }
    return i;
}

DMLK_AVX2 static int64_t narrow_avx2(const float *from, int64_t count, uint16_t *to) {
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
        _mm_storeu_si128((__m128i *)(to + i), halves);
    }
    return i;
}

void dmlk_widen_float16(const uint16_t *from, int64_t count, float *to) {
    const enum dmlk_isa isa = dmlk_isa();
    const int64_t done = isa == DMLK_ISA_AVX512 ? widen_avx512(from, count, to)
                         : isa == DMLK_ISA_AVX2 ? widen_avx2(from, count, to)
                                                : 0;
    widen(from + done, count - done, to + done);
}

void dmlk_narrow_floats(const float *from, int64_t count, uint16_t *to) {
    const enum dmlk_isa isa = dmlk_isa();
    const int64_t done = isa == DMLK_ISA_AVX512 ? narrow_avx512(from, count, to)
                         : isa == DMLK_ISA_AVX2 ? narrow_avx2(from, count, to)
                                                : 0;
    narrow(from + done, count - done, to + done);
}

#else

void dmlk_widen_float16(const uint16_t *from, int64_t count, float *to) { widen(from, count, to); }
void dmlk_narrow_floats(const float *from, int64_t count, uint16_t *to) { narrow(from, count, to); }

#endif

#include "nontemporal.h"

#include <immintrin.h>

#include "ahead.h"

static void copy_lines(uint8_t *to, const uint8_t *from, size_t bytes) {
    for (size_t i = 0; i < bytes; i += DMLK_LINE) {
        const __m256i a = _mm256_loadu_si256((const __m256i *)(from + i));
        const __m256i b = _mm256_loadu_si256((const __m256i *)(from + i + DMLK_LINE / 2));
        _mm256_stream_si256((__m256i *)(to + i), a);
        _mm256_stream_si256((__m256i *)(to + i + DMLK_LINE / 2), b);
    }
}

const struct dmlk_nontemporal_form dmlk_nontemporal_avx2 = {copy_lines};

#include "nontemporal.h"

#include <immintrin.h>

#include "ahead.h"

static void copy_lines(uint8_t *to, const uint8_t *from, size_t bytes) {
    for (size_t i = 0; i < bytes; i += DMLK_LINE) {
        _mm512_stream_si512((__m512i *)(to + i), _mm512_loadu_si512(from + i));
    }
}

const struct dmlk_nontemporal_form dmlk_nontemporal_avx512 = {copy_lines};

#include "gather_row.h"

#include <immintrin.h>

#include "ahead.h"
#include "view.h"

#define INLINE static inline __attribute__((always_inline)) /* const parameters are constants at the calls */

/* Loads eight indices once, and clamps them as dmlk_signed_index and dmlk_unsigned_index do. */
INLINE __m512i nearest_of(const uint8_t *at, const bool wide, const bool is_signed, __m512i size, __m512i last) {
    __m512i x = wide        ? _mm512_loadu_si512(at)
                : is_signed ? _mm512_cvtepi32_epi64(_mm256_loadu_si256((const __m256i *)at))
                            : _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *)at));
    if (!is_signed) {
        return _mm512_min_epu64(x, last);
    }
    x = _mm512_mask_add_epi64(x, _mm512_movepi64_mask(x), x, size);
    return _mm512_min_epi64(_mm512_max_epi64(x, _mm512_setzero_si512()), last);
}

/* Gathers elements of 4 or 8 bytes; returns how many.  With few instructions for each, a CPU can wait for many loads
 * at the same time.  (Without the zeros, each gather would depend on the previous one, whose lanes it keeps where the
 * mask is 0.) */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion" /* of the mask, in macros of GCC for builds without optimization */
INLINE int64_t gather(const dmlk_gather_row *row, const bool wide, const bool is_signed, const int64_t bytes) {
    const dmlk_gather_row r = *row; /* (compilers would load it again after each store) */
    const int64_t width = wide ? 8 : 4;
    const __m512i size = _mm512_set1_epi64(r.size), last = _mm512_set1_epi64(r.size - 1), none = _mm512_setzero_si512();
    const __m512i stride = _mm512_set1_epi64(r.stride), step = _mm512_set1_epi64(8 * r.step);
    __m512i first = _mm512_mullo_epi64(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7), _mm512_set1_epi64(r.step));
    int64_t i = 0;
    for (; i + 8 <= r.count; i += 8) {
        const __m512i x = _mm512_mul_epu32(nearest_of(r.indices + i * width, wide, is_signed, size, last), stride);
        const __m512i at = _mm512_add_epi64(first, x);
        dmlk_fetch_line_far(r.indices + i * width + DMLK_FETCHED);
        if (bytes == 4) {
            const __m256i y = _mm512_mask_i64gather_epi32(_mm256_setzero_si256(), 0xff, at, r.table, 4);
            _mm256_storeu_si256((__m256i *)(r.values + 4 * i), y);
        } else {
            _mm512_storeu_si512(r.values + 8 * i, _mm512_mask_i64gather_epi64(none, 0xff, at, r.table, 8));
        }
        first = _mm512_add_epi64(first, step);
    }
    return i;
}
#pragma GCC diagnostic pop

#define GATHER(wide, is_signed) \
    return bytes == 4 ? gather(row, wide, is_signed, 4) : gather(row, wide, is_signed, 8)

static int64_t gather_by_type(const dmlk_gather_row *row, uint32_t indices, int64_t bytes) {
    switch (indices) {
    case DMLK_INT32: GATHER(false, true);
    case DMLK_INT64: GATHER(true, true);
    case DMLK_UINT32: GATHER(false, false);
    default: GATHER(true, false);
    }
}

const struct dmlk_selection_form dmlk_selection_avx512 = {gather_by_type};

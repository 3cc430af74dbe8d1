#include "nonzero_words.h"

#include <immintrin.h>

INLINE uint64_t find(const uint8_t *at, int64_t bytes, uint64_t keep) {
    const __m512i k = _mm512_set1_epi64((int64_t)keep);
    uint64_t word = 0;
    switch (bytes) {
    case 1: return _mm512_test_epi8_mask(_mm512_loadu_si512(at), k);
    case 2:
        return _mm512_test_epi16_mask(_mm512_loadu_si512(at), k) |
               (uint64_t)_mm512_test_epi16_mask(_mm512_loadu_si512(at + 64), k) << 32;
    case 4:
        for (int i = 0; i < 4; i++) {
            word |= (uint64_t)_mm512_test_epi32_mask(_mm512_loadu_si512(at + 64 * i), k) << 16 * i;
        }
        return word;
    default:
        for (int i = 0; i < 8; i++) {
            word |= (uint64_t)_mm512_test_epi64_mask(_mm512_loadu_si512(at + 64 * i), k) << 8 * i;
        }
        return word;
    }
}

/* (Numbers are compressed in a register, as compressing stores are slow on some CPUs.) */
static uint32_t *spread(uint64_t word, uint32_t base, uint32_t *to) {
    const __m512i numbers = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (uint32_t i = 0; i < DMLK_NONZERO_WORD; i += 16) {
        const __mmask16 bits = (__mmask16)(word >> i);
        const __m512i places = _mm512_add_epi32(numbers, _mm512_set1_epi32((int)(base + i)));
        _mm512_storeu_si512(to, _mm512_maskz_compress_epi32(bits, places));
        to += __builtin_popcount(bits);
    }
    return to;
}

/* Divides with 64-bit products of the even places, then of the odd ones; replaces places by quotients, returns
 * remainders. */
static inline __m512i rest_of(const struct division *by, __m512i *places) {
    const __m512i factor = _mm512_set1_epi64(by->factor), size = _mm512_set1_epi32((int)by->size);
    const __m128i to_low = _mm_cvtsi32_si128((int)by->shift), to_high = _mm_cvtsi32_si128((int)by->shift - 32);
    const __m512i place = *places;
    const __m512i even = _mm512_srl_epi64(_mm512_mul_epu32(place, factor), to_low);
    const __m512i odd = _mm512_srl_epi64(_mm512_mul_epu32(_mm512_srli_epi64(place, 32), factor), to_high);
    *places = _mm512_mask_blend_epi32(0xAAAA, even, odd);
    return _mm512_sub_epi32(place, _mm512_mullo_epi32(*places, size));
}

static inline void divide_all(const struct division *by, uint32_t *restrict places, int64_t count,
                                             uint32_t *restrict rests) {
    for (int64_t i = 0; i < count; i += 16) {
        __m512i place = _mm512_loadu_si512(places + i);
        _mm512_storeu_si512(rests + i, rest_of(by, &place));
        _mm512_storeu_si512(places + i, place);
    }
}

static bool is_fours(const dmlk_nonzero_job *job, const uint32_t *to) {
    const dmlk_nonzero_table *table = job->table;
    return table->columns == 4 && table->row_stride == 4 && table->column_stride == 1 && (uintptr_t)to % 16 == 0;
}

/* Writes the rows of `count` places; `to` is the first row.  `stream`: `to` is aligned to a cache line, and the rows
 * bypass the caches. */
static void put_fours(const dmlk_nonzero_job *job, const uint32_t *places, int64_t count, uint32_t *to,
                                  bool stream) {
    /* Places are permuted so that unpacking within quarters of a vector restores the order. */
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    for (int64_t i = 0; i < count; i += 16) {
        dmlk_fetch_output(to + DMLK_FETCHED_OUTPUT / 4, stream ? 0 : 4 * DMLK_LINE);
        __m512i place = _mm512_permutexvar_epi32(order, _mm512_loadu_si512(places + i)), columns[4];
#pragma GCC unroll 4
        for (int c = 3; c >= 0; c--) {
            const struct division *axis = &job->axes[c];
            columns[c] = axis->size > 1 ? place : _mm512_setzero_si512();
            if (axis->factor != 0 && axis->size > 1) {
                columns[c] = rest_of(axis, &place);
            }
        }
        const __m512i a = _mm512_unpacklo_epi32(columns[0], columns[1]);
        const __m512i b = _mm512_unpackhi_epi32(columns[0], columns[1]);
        const __m512i c = _mm512_unpacklo_epi32(columns[2], columns[3]);
        const __m512i d = _mm512_unpackhi_epi32(columns[2], columns[3]);
        const __m512i rows[4] = {_mm512_unpacklo_epi64(a, c), _mm512_unpackhi_epi64(a, c), _mm512_unpacklo_epi64(b, d),
                                 _mm512_unpackhi_epi64(b, d)};
#pragma GCC unroll 4
        for (int64_t quarter = 0; quarter < 4; quarter++, to += 16) {
            const int64_t left = count - i - 4 * quarter;
            if (left >= 4 && stream) {
                _mm512_stream_si512((__m512i *)to, rows[quarter]);
            } else if (left >= 4) {
                _mm512_storeu_si512(to, rows[quarter]);
            } else if (left > 0) {
                _mm512_mask_storeu_epi32(to, (__mmask16)((1 << 4 * left) - 1), rows[quarter]);
            }
        }
    }
}

static bool write_rows_of_four(const dmlk_nonzero_job *job, const struct batch *batch, int64_t count, int64_t row) {
    uint32_t *to = job->table->base + 4 * row;
    if (!is_fours(job, to)) {
        return false;
    }
    const int64_t before = job->stream ? dmlk_before_line(to) / 16 : 0;
    const int64_t head = dmlk_min(before, count);
    put_fours(job, batch->places, head, to, false);
    put_fours(job, batch->places + head, count - head, to + 4 * head, job->stream);
    return true;
}

DMLK_NONZERO_FORM(avx512, find, spread, divide_all, write_rows_of_four);

/* element_wise_bit_count: out = number of bits set in the element of in, whatever its type. */
#include "isa.h"
#include "kernel.h"
#include "stream.h"

#ifdef DMLK_X86
#include <immintrin.h>
#endif

#define DMLK_ONLY_UNSIGNED
#define DMLK_BODY "element_wise_bit_count.inc"
#include "each_type.inc"

#ifdef DMLK_X86

#define COUNTS __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vpopcntdq,avx512bitalg")))

/* Elements and counts that lie next to each other. */
typedef void count_packed(const uint8_t *in, uint8_t *out, int64_t count);

/* `store` puts the counts of at most `lanes` elements, those in mask m, to `to`. */
#define COUNT(name, lanes, in_bytes, out_bytes, mask, store)                                   \
    COUNTS static void name(const uint8_t *from, uint8_t *to, int64_t count) {                 \
        for (; count >= lanes; count -= lanes, from += lanes * in_bytes, to += lanes * out_bytes) { \
            const mask m = (mask)-1;                                                           \
            store;                                                                             \
        }                                                                                      \
        if (count > 0) {                                                                       \
            const mask m = (mask)(UINT64_MAX >> (64 - count));                                 \
            store;                                                                             \
        }                                                                                      \
    }

COUNT(count_1_1, 64, 1, 1, __mmask64,
      _mm512_mask_storeu_epi8(to, m, _mm512_popcnt_epi8(_mm512_maskz_loadu_epi8(m, from))))
COUNT(count_1_4, 16, 1, 4, __mmask16,
      _mm512_mask_storeu_epi32(to, m, _mm512_cvtepu8_epi32(_mm_popcnt_epi8(_mm_maskz_loadu_epi8(m, from)))))
COUNT(count_2_1, 32, 2, 1, __mmask32,
      _mm256_mask_storeu_epi8(to, m, _mm512_cvtepi16_epi8(_mm512_popcnt_epi16(_mm512_maskz_loadu_epi16(m, from)))))
COUNT(count_2_4, 16, 2, 4, __mmask16,
      _mm512_mask_storeu_epi32(to, m, _mm512_cvtepu16_epi32(_mm256_popcnt_epi16(_mm256_maskz_loadu_epi16(m, from)))))
COUNT(count_4_1, 16, 4, 1, __mmask16,
      _mm_mask_storeu_epi8(to, m, _mm512_cvtepi32_epi8(_mm512_popcnt_epi32(_mm512_maskz_loadu_epi32(m, from)))))
COUNT(count_4_4, 16, 4, 4, __mmask16,
      _mm512_mask_storeu_epi32(to, m, _mm512_popcnt_epi32(_mm512_maskz_loadu_epi32(m, from))))
COUNT(count_8_1, 8, 8, 1, __mmask8,
      _mm_mask_storeu_epi8(to, m, _mm512_cvtepi64_epi8(_mm512_popcnt_epi64(_mm512_maskz_loadu_epi64(m, from)))))
COUNT(count_8_4, 8, 8, 4, __mmask8,
      _mm256_mask_storeu_epi32(to, m, _mm512_cvtepi64_epi32(_mm512_popcnt_epi64(_mm512_maskz_loadu_epi64(m, from)))))

struct counter {
    count_packed *count;
    int64_t in_bytes, out_bytes;
};

static void counted_row(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context) {
    const struct counter *job = context;
    if (strides[0] == 1 && strides[1] == 1) {
        job->count(at[0], at[1], count);
        return;
    }
    for (int64_t i = 0; i < count; i++) { /* a few */
        job->count(at[0] + i * strides[0] * job->in_bytes, at[1] + i * strides[1] * job->out_bytes, 1);
    }
}

static bool has_counts(void) {
    return dmlk_isa() == DMLK_ISA_AVX512 && __builtin_cpu_supports("avx512vpopcntdq") &&
           __builtin_cpu_supports("avx512bitalg");
}

#endif

int dmlk_run_element_wise_bit_count(const dmlk_call *call) {
    static dmlk_row *const rows[][2] = {
        [DMLK_UINT8] = {to_uint8_uint8, to_uint32_uint8},
        [DMLK_UINT16] = {to_uint8_uint16, to_uint32_uint16},
        [DMLK_UINT32] = {to_uint8_uint32, to_uint32_uint32},
        [DMLK_UINT64] = {to_uint8_uint64, to_uint32_uint64},
    };
    if (!dmlk_has_views(call, 2, 0)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *in = &call->views[0], *out = &call->views[1];
    uint32_t bits = dmlk_bits_type(in->type);
    if (bits == DMLK_UNKNOWN || (out->type != DMLK_UINT8 && out->type != DMLK_UINT32)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    const dmlk_view *const views[] = {in, out};
#ifdef DMLK_X86
    static count_packed *const counts[][2] = {
        [DMLK_UINT8] = {count_1_1, count_1_4},
        [DMLK_UINT16] = {count_2_1, count_2_4},
        [DMLK_UINT32] = {count_4_1, count_4_4},
        [DMLK_UINT64] = {count_8_1, count_8_4},
    };
    if (has_counts()) {
        const struct counter job = {.count = counts[bits][out->type == DMLK_UINT32],
                                    .in_bytes = dmlk_type_bytes(in->type),
                                    .out_bytes = dmlk_type_bytes(out->type)};
        return dmlk_packed_rows(views, 2, counted_row, &job);
    }
#endif
    return dmlk_packed_rows(views, 2, rows[bits][out->type == DMLK_UINT32], NULL);
}

#include "gather.h"

#include "isa.h"
#include "parallel.h"

/* Compilers take several elements at a time where they are told that it is every second one. */
#define GATHER(type)                                                       \
    {                                                                      \
        const type *restrict in = (const type *)from;                      \
        type *restrict out = (type *)to;                                   \
        const int64_t stride = step / (int64_t)sizeof(type);               \
        for (int64_t i = 0; stride == 2 && i < count; i++) {               \
            out[i] = in[2 * i];                                            \
        }                                                                  \
        for (int64_t i = 0; stride != 2 && i < count; i++) {               \
            out[i] = in[i * stride];                                       \
        }                                                                  \
        break;                                                             \
    }

#define GATHERS                    \
    {                              \
        switch (bytes) {           \
        case 1: GATHER(uint8_t)    \
        case 2: GATHER(uint16_t)   \
        case 4: GATHER(uint32_t)   \
        default: GATHER(uint64_t)  \
        }                          \
    }

DMLK_CLONES static void gather(const uint8_t *from, int64_t step, int64_t bytes, int64_t count, uint8_t *to) GATHERS

#define SCATTER(type)                                                      \
    {                                                                      \
        const type *restrict in = (const type *)from;                      \
        type *restrict out = (type *)to;                                   \
        const int64_t stride = step / (int64_t)sizeof(type);               \
        for (int64_t i = 0; i < count; i++) {                              \
            out[i * stride] = in[i];                                       \
        }                                                                  \
        break;                                                             \
    }

static void scatter(const uint8_t *from, int64_t bytes, int64_t count, uint8_t *to, int64_t step) {
    switch (bytes) {
    case 1: SCATTER(uint8_t)
    case 2: SCATTER(uint16_t)
    case 4: SCATTER(uint32_t)
    default: SCATTER(uint64_t)
    }
}

#ifdef DMLK_X86
#include <immintrin.h>

DMLK_AVX512 static void gather_avx512(const uint8_t *from, int64_t step, int64_t bytes, int64_t count,
                                      uint8_t *to) GATHERS

/* Every second element: `lanes` of them are spread and stored with a mask; returns how many were done. */
#define SECOND(name, lanes, size, spread, store)                                         \
    DMLK_AVX512 static int64_t name(const uint8_t *from, int64_t count, uint8_t *to) {   \
        int64_t i = 0;                                                                   \
        for (; i + lanes <= count; i += lanes) {                                         \
            const __m256i x = _mm256_loadu_si256((const __m256i *)(from + i * size));    \
            store(to + 2 * i * size, MASK_##lanes, spread(x)); \
        }                                                                                \
        return i;                                                                        \
    }
#define MASK_32 UINT64_C(0x5555555555555555)
#define MASK_16 0x55555555
#define MASK_8 0x5555
#define MASK_4 0x55
#define SPREAD_8(x) _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3), _mm512_castsi256_si512(x))

SECOND(second_1, 32, 1, _mm512_cvtepu8_epi16, _mm512_mask_storeu_epi8)
SECOND(second_2, 16, 2, _mm512_cvtepu16_epi32, _mm512_mask_storeu_epi16)
SECOND(second_4, 8, 4, _mm512_cvtepu32_epi64, _mm512_mask_storeu_epi32)
SECOND(second_8, 4, 8, SPREAD_8, _mm512_mask_storeu_epi64)

void dmlk_gather(const uint8_t *from, int64_t step, int64_t bytes, int64_t count, uint8_t *to) {
    (dmlk_isa() == DMLK_ISA_AVX512 ? gather_avx512 : gather)(from, step, bytes, count, to);
}

void dmlk_scatter(const uint8_t *from, int64_t bytes, int64_t count, uint8_t *to, int64_t step) {
    int64_t done = 0;
    if (dmlk_isa() == DMLK_ISA_AVX512 && step == 2 * bytes) {
        done = bytes == 1   ? second_1(from, count, to)
               : bytes == 2 ? second_2(from, count, to)
               : bytes == 4 ? second_4(from, count, to)
                            : second_8(from, count, to);
    }
    scatter(from + done * bytes, bytes, count - done, to + done * step, step);
}

#else

void dmlk_gather(const uint8_t *from, int64_t step, int64_t bytes, int64_t count, uint8_t *to) {
    gather(from, step, bytes, count, to);
}

void dmlk_scatter(const uint8_t *from, int64_t bytes, int64_t count, uint8_t *to, int64_t step) {
    scatter(from, bytes, count, to, step);
}

#endif

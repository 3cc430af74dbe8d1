#include "gather.h"

#include <stdbool.h>

#include "isa.h"
#include "parallel.h"

#define GATHER(type)                                                       \
    {                                                                      \
        const type *restrict in = (const type *)from;                      \
        type *restrict out = (type *)to;                                   \
        const int64_t stride = step / (int64_t)sizeof(type);               \
        for (int64_t i = 0; stride == 2 && i < count; i++) {               \
            out[i] = in[2 * i]; /* compilers take several at a time */     \
        }                                                                  \
        for (int64_t i = 0; stride != 2 && i < count; i++) {               \
            out[i] = in[i * stride];                                       \
        }                                                                  \
        break;                                                             \
    }

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

DMLK_CLONES static void gather(const uint8_t *from, int64_t step, int64_t bytes, int64_t count, uint8_t *to) {
    switch (bytes) {
    case 1: GATHER(uint8_t)
    case 2: GATHER(uint16_t)
    case 4: GATHER(uint32_t)
    default: GATHER(uint64_t)
    }
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

/* Every second element of a line, `lanes` of them.  Both return how many they did. */
#define SECOND(gather_name, scatter_name, lanes, size, pick, spread, mask, store)                 \
    DMLK_AVX512 static int64_t gather_name(const uint8_t *from, int64_t count, uint8_t *to) {     \
        int64_t i = 0;                                                                            \
        for (; i + lanes < count; i += lanes) { /* the last gap belongs to nobody */              \
            const __m256i x = pick(_mm512_loadu_si512(from + 2 * i * size));                      \
            _mm256_storeu_si256((__m256i *)(to + i * size), x);                                   \
        }                                                                                         \
        return i;                                                                                 \
    }                                                                                             \
    DMLK_AVX512 static int64_t scatter_name(const uint8_t *from, int64_t count, uint8_t *to) {    \
        int64_t i = 0;                                                                            \
        for (; i + lanes <= count; i += lanes) {                                                  \
            const __m256i x = _mm256_loadu_si256((const __m256i *)(from + i * size));             \
            store(to + 2 * i * size, mask, spread(x));                                            \
        }                                                                                         \
        return i;                                                                                 \
    }
#define PICK_8(x) _mm512_castsi512_si256(_mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 0, 2, 4, 6), x))
#define SPREAD_8(x) _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3), _mm512_castsi256_si512(x))

SECOND(gather_1, scatter_1, 32, 1, _mm512_cvtepi16_epi8, _mm512_cvtepu8_epi16, 0x5555555555555555,
       _mm512_mask_storeu_epi8)
SECOND(gather_2, scatter_2, 16, 2, _mm512_cvtepi32_epi16, _mm512_cvtepu16_epi32, 0x55555555, _mm512_mask_storeu_epi16)
SECOND(gather_4, scatter_4, 8, 4, _mm512_cvtepi64_epi32, _mm512_cvtepu32_epi64, 0x5555, _mm512_mask_storeu_epi32)
SECOND(gather_8, scatter_8, 4, 8, PICK_8, SPREAD_8, 0x55, _mm512_mask_storeu_epi64)

typedef int64_t second(const uint8_t *from, int64_t count, uint8_t *to);
static second *const gathers[] = {[1] = gather_1, [2] = gather_2, [4] = gather_4, [8] = gather_8};
static second *const scatters[] = {[1] = scatter_1, [2] = scatter_2, [4] = scatter_4, [8] = scatter_8};

void dmlk_gather(const uint8_t *from, int64_t step, int64_t bytes, int64_t count, uint8_t *to) {
    const bool tuned = dmlk_isa() == DMLK_ISA_AVX512 && step == 2 * bytes;
    const int64_t done = tuned ? gathers[bytes](from, count, to) : 0;
    gather(from + done * step, step, bytes, count - done, to + done * bytes);
}

void dmlk_scatter(const uint8_t *from, int64_t bytes, int64_t count, uint8_t *to, int64_t step) {
    const bool tuned = dmlk_isa() == DMLK_ISA_AVX512 && step == 2 * bytes;
    const int64_t done = tuned ? scatters[bytes](from, count, to) : 0;
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

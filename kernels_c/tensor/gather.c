#include "gather.h"

#include <stdbool.h>

#include "ahead.h"
#include "cpu.h"

/* For a constant stride compilers vectorize the loop. */
#define GATHER(type)                                                       \
    {                                                                      \
        const type *restrict in = (const type *)from;                      \
        type *restrict out = (type *)to;                                   \
        const int64_t stride = step / (int64_t)sizeof(type);               \
        for (int64_t i = 0; stride == 0 && i < count; i++) {               \
            out[i] = in[0];                                                \
        }                                                                  \
        for (int64_t i = 0; stride == 2 && i < count; i++) {               \
            out[i] = in[2 * i];                                            \
        }                                                                  \
        for (int64_t i = 0; stride != 0 && stride != 2 && i < count; i++) { \
            out[i] = in[i * stride];                                       \
        }                                                                  \
        break;                                                             \
    }

#define AHEAD 2048 /* bytes between what is stored and what is fetched meanwhile: lines stored in part are read first */
#define ROUND 8    /* elements */

#define STORE_APART(type, from_stride, count, to_stride)                   \
    {                                                                      \
        const type *restrict in = (const type *)from;                      \
        type *restrict out = (type *)to;                                   \
        int64_t i = 0;                                                     \
        for (; i + ROUND <= (count); i += ROUND) {                         \
            for (int64_t b = 0; b < near; b += DMLK_LINE) {                \
                __builtin_prefetch(to + i * step + AHEAD + b, 1);          \
            }                                                              \
            for (int64_t k = 0; k < ROUND; k++) {                          \
                out[(i + k) * (to_stride)] = in[(i + k) * (from_stride)];  \
            }                                                              \
        }                                                                  \
        for (; i < (count); i++) {                                         \
            out[i * (to_stride)] = in[i * (from_stride)];                  \
        }                                                                  \
        break;                                                             \
    }
#define SCATTER(type) STORE_APART(type, 1, count, step / (int64_t)sizeof(type))
#define COPY(type) STORE_APART(type, step / (int64_t)sizeof(type), elements, step / (int64_t)sizeof(type))

DMLK_EACH_ISA(gather_any_step, (const uint8_t *from, int64_t step, int64_t bytes, int64_t count, uint8_t *to),
              (from, step, bytes, count, to)) {
    switch (bytes) {
    case 1: GATHER(uint8_t)
    case 2: GATHER(uint16_t)
    case 4: GATHER(uint32_t)
    default: GATHER(uint64_t)
    }
}

static void scatter(const uint8_t *from, int64_t bytes, int64_t count, uint8_t *to, int64_t step) {
    const int64_t near = step <= DMLK_LINE / 2 ? ROUND * step : 0;
    switch (bytes) {
    case 1: SCATTER(uint8_t)
    case 2: SCATTER(uint16_t)
    case 4: SCATTER(uint32_t)
    default: SCATTER(uint64_t)
    }
}

static void copy(const uint8_t *from, uint8_t *to, int64_t step, int64_t bytes, int64_t count) {
    const int64_t near = step <= DMLK_LINE / 2 ? ROUND * step : 0, elements = (count * bytes + step - 1) / step;
    switch (bytes) {
    case 1: COPY(uint8_t)
    case 2: COPY(uint16_t)
    case 4: COPY(uint32_t)
    default: COPY(uint64_t)
    }
}

#ifdef DMLK_X86
#include <immintrin.h>

#define MOST 4 /* largest stride in elements */
#define INLINE DMLK_AVX512 static inline __attribute__((always_inline)) /* strides are constants at the call */
#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)

#define BYTES 1
#define T uint8_t
#define MASK __mmask64
#define SUFFIX epi8
#include "gather.inc"

#define BYTES 2
#define T uint16_t
#define MASK __mmask32
#define SUFFIX epi16
#include "gather.inc"

#define BYTES 4
#define T uint32_t
#define MASK __mmask16
#define SUFFIX epi32
#include "gather.inc"

#define BYTES 8
#define T uint64_t
#define MASK __mmask8
#define SUFFIX epi64
#include "gather.inc"

#define STRIDES(function, bytes)                                     \
    switch (stride) {                                                \
    case 2: return function##_##bytes(from, 2, count, to);           \
    case 3: return function##_##bytes(from, 3, count, to);           \
    case 4: return function##_##bytes(from, 4, count, to);           \
    default: return 0;                                               \
    }

#define WIDTHS(function)                                                                                       \
    DMLK_AVX512 static int64_t function##_avx512(const uint8_t *from, int64_t stride, int64_t bytes,           \
                                                 int64_t count, uint8_t *to) {                                 \
        switch (bytes) {                                                                                       \
        case 1: STRIDES(function, 1)                                                                           \
        case 2: STRIDES(function, 2)                                                                           \
        case 4: STRIDES(function, 4)                                                                           \
        default: STRIDES(function, 8)                                                                          \
        }                                                                                                      \
    }

/* The stride in elements, if it is one of those; otherwise 0.  (Division takes longer.) */
static inline int64_t short_stride(int64_t step, int64_t bytes) {
    return step == 2 * bytes ? 2 : step == 3 * bytes ? 3 : step == 4 * bytes ? 4 : 0;
}

WIDTHS(gather)
WIDTHS(scatter)
WIDTHS(copy)

void dmlk_gather(const uint8_t *from, int64_t step, int64_t bytes, int64_t count, uint8_t *to) {
    const int64_t stride = dmlk_isa() == DMLK_ISA_AVX512 ? short_stride(step, bytes) : 0;
    const int64_t done = stride > 0 ? gather_avx512(from, stride, bytes, count, to) : 0;
    if (done < count) {
        gather_any_step(from + done * step, step, bytes, count - done, to + done * bytes);
    }
}

void dmlk_scatter(const uint8_t *from, int64_t bytes, int64_t count, uint8_t *to, int64_t step) {
    const int64_t stride = dmlk_isa() == DMLK_ISA_AVX512 ? short_stride(step, bytes) : 0;
    const int64_t done = stride > 0 ? scatter_avx512(from, stride, bytes, count, to) : 0;
    scatter(from + done * bytes, bytes, count - done, to + done * step, step);
}

void dmlk_copy_apart(const uint8_t *from, uint8_t *to, int64_t step, int64_t bytes, int64_t count) {
    const int64_t stride = dmlk_isa() == DMLK_ISA_AVX512 ? short_stride(step, bytes) : 0;
    const int64_t done = stride > 0 ? copy_avx512(from, stride, bytes, count, to) : 0;
    copy(from + done * bytes, to + done * bytes, step, bytes, count - done);
}

#else

void dmlk_gather(const uint8_t *from, int64_t step, int64_t bytes, int64_t count, uint8_t *to) {
    gather_any_step(from, step, bytes, count, to);
}

void dmlk_scatter(const uint8_t *from, int64_t bytes, int64_t count, uint8_t *to, int64_t step) {
    scatter(from, bytes, count, to, step);
}

void dmlk_copy_apart(const uint8_t *from, uint8_t *to, int64_t step, int64_t bytes, int64_t count) {
    copy(from, to, step, bytes, count);
}

#endif

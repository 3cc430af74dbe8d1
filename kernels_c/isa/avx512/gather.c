#include "gather.h"

#include "permute_bytes.h"

#define AHEAD 2048 /* bytes from stores to the lines that are prefetched, as in tensor/gather.c */
#define MOST 4 /* largest stride in elements */
#define INLINE static inline __attribute__((always_inline)) /* strides are constants at the call */
#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)

#define BYTES 1
#define T uint8_t
#define MASK __mmask64
#define SUFFIX epi8
#define PERMUTE dmlk_permute_bytes
#include "gather.inc"

#define BYTES 2
#define T uint16_t
#define MASK __mmask32
#define SUFFIX epi16
#define PERMUTE _mm512_permutexvar_epi16
#include "gather.inc"

#define BYTES 4
#define T uint32_t
#define MASK __mmask16
#define SUFFIX epi32
#define PERMUTE _mm512_permutexvar_epi32
#include "gather.inc"

#define BYTES 8
#define T uint64_t
#define MASK __mmask8
#define SUFFIX epi64
#define PERMUTE _mm512_permutexvar_epi64
#include "gather.inc"

#define STRIDES(function, bytes)                                     \
    switch (stride) {                                                \
    case 2: return function##_##bytes(from, 2, count, to);           \
    case 3: return function##_##bytes(from, 3, count, to);           \
    case 4: return function##_##bytes(from, 4, count, to);           \
    default: return 0;                                               \
    }

#define WIDTHS(function)                                                                                       \
    static int64_t function(const uint8_t *from, int64_t stride, int64_t bytes, int64_t count, uint8_t *to) {  \
        switch (bytes) {                                                                                       \
        case 1: STRIDES(function, 1)                                                                           \
        case 2: STRIDES(function, 2)                                                                           \
        case 4: STRIDES(function, 4)                                                                           \
        default: STRIDES(function, 8)                                                                          \
        }                                                                                                      \
    }

WIDTHS(gather)
WIDTHS(scatter)
WIDTHS(copy)

#ifndef FORM /* isa/avx512_vbmi includes this file under another name */
#define FORM dmlk_gather_avx512
#endif
const struct dmlk_gather_form FORM = {gather, scatter, copy};

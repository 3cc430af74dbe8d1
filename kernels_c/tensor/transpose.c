/* transpose.c - see transpose.h. */
#include "transpose.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "ahead.h"
#include "gather.h"
#include "cpu.h"

#define CROWDED 1024 /* bytes: 16 lines at this distance conflict in a first-level cache */
#define STRIP 512 /* bytes of a row */

typedef void square(const uint8_t *from, int64_t from_step, uint8_t *to, int64_t to_step);

/* Squares of `size` x `size` elements; 0: there are none. */
struct squares {
    int64_t size;
    square *run;
};

#if defined(__GNUC__) && !defined(__clang__)

/* Permutation indices that interleave two vectors of N lane by lane, by N and the number of lanes; the second vector's
 * elements are numbered from N. */
#define LOW_2_1 0, 2
#define HIGH_2_1 1, 3
#define LOW_4_1 0, 4, 1, 5
#define HIGH_4_1 2, 6, 3, 7
#define LOW_4_2 0, 4, 2, 6
#define HIGH_4_2 1, 5, 3, 7
#define LOW_8_1 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_8_1 4, 12, 5, 13, 6, 14, 7, 15
#define LOW_8_2 0, 8, 1, 9, 4, 12, 5, 13
#define HIGH_8_2 2, 10, 3, 11, 6, 14, 7, 15
#define LOW_8_4 0, 8, 2, 10, 4, 12, 6, 14
#define HIGH_8_4 1, 9, 3, 11, 5, 13, 7, 15
#define LOW_16_1 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_16_1 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define LOW_16_2 0, 16, 1, 17, 2, 18, 3, 19, 8, 24, 9, 25, 10, 26, 11, 27
#define HIGH_16_2 4, 20, 5, 21, 6, 22, 7, 23, 12, 28, 13, 29, 14, 30, 15, 31
#define LOW_16_4 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29
#define HIGH_16_4 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31
#define DMLK_INDICES_(which, n, lanes) which##_##n##_##lanes
#define DMLK_INDICES(which, n, lanes) DMLK_INDICES_(which, n, lanes)

typedef uint8_t half_lane __attribute__((vector_size(8)));
typedef uint8_t whole_lane __attribute__((vector_size(16)));

static inline __attribute__((always_inline)) half_lane load_half(const uint8_t *from, int64_t step) {
    half_lane x;
    (void)step;
    memcpy(&x, from, sizeof x);
    return x;
}

static inline __attribute__((always_inline)) whole_lane load_1(const uint8_t *from, int64_t step) {
    whole_lane x;
    (void)step;
    memcpy(&x, from, sizeof x);
    return x;
}

#define SQUARE generic_1
#define T uint8_t
#define N 8
#define LANES 1
#define LOAD load_half
#define INSTRUCTIONS
#include "transpose.inc"

#define SQUARE generic_2
#define T uint16_t
#define N 8
#define LANES 1
#define LOAD load_1
#define INSTRUCTIONS
#include "transpose.inc"

#define SQUARE generic_4
#define T uint32_t
#define N 4
#define LANES 1
#define LOAD load_1
#define INSTRUCTIONS
#include "transpose.inc"

#define SQUARE generic_8
#define T uint64_t
#define N 2
#define LANES 1
#define LOAD load_1
#define INSTRUCTIONS
#include "transpose.inc"

#ifdef DMLK_X86
#include <immintrin.h>

DMLK_AVX2 static inline __attribute__((always_inline)) __m128i load_lane(const uint8_t *from) {
    return _mm_loadu_si128((const __m128i *)from);
}

DMLK_AVX2 static inline __attribute__((always_inline)) __m256i load_2(const uint8_t *from, int64_t step) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load_lane(from)), load_lane(from + step), 1);
}

DMLK_AVX512 static inline __attribute__((always_inline)) __m512i load_4(const uint8_t *from, int64_t step) {
    __m512i x = _mm512_castsi128_si512(load_lane(from));
    x = _mm512_inserti32x4(x, load_lane(from + step), 1);
    x = _mm512_inserti32x4(x, load_lane(from + 2 * step), 2);
    return _mm512_inserti32x4(x, load_lane(from + 3 * step), 3);
}

#define SQUARE avx2_1
#define T uint8_t
#define N 16
#define LANES 1
#define LOAD load_1
#define INSTRUCTIONS DMLK_AVX2
#include "transpose.inc"

#define SQUARE avx2_2
#define T uint16_t
#define N 16
#define LANES 2
#define LOAD load_2
#define INSTRUCTIONS DMLK_AVX2
#include "transpose.inc"

#define SQUARE avx2_4
#define T uint32_t
#define N 8
#define LANES 2
#define LOAD load_2
#define INSTRUCTIONS DMLK_AVX2
#include "transpose.inc"

#define SQUARE avx2_8
#define T uint64_t
#define N 4
#define LANES 2
#define LOAD load_2
#define INSTRUCTIONS DMLK_AVX2
#include "transpose.inc"

#define SQUARE avx512_4
#define T uint32_t
#define N 16
#define LANES 4
#define LOAD load_4
#define INSTRUCTIONS DMLK_AVX512
#include "transpose.inc"

#define SQUARE avx512_8
#define T uint64_t
#define N 8
#define LANES 4
#define LOAD load_4
#define INSTRUCTIONS DMLK_AVX512
#include "transpose.inc"

#endif
#endif

/* By the bytes of an element and by enum dmlk_isa. */
static const struct squares squares[9][3] = {
#if defined(__GNUC__) && !defined(__clang__)
    [1][DMLK_ISA_GENERIC] = {8, generic_1},
    [2][DMLK_ISA_GENERIC] = {8, generic_2},
    [4][DMLK_ISA_GENERIC] = {4, generic_4},
    [8][DMLK_ISA_GENERIC] = {2, generic_8},
#ifdef DMLK_X86
    [1][DMLK_ISA_AVX2] = {16, avx2_1},
    [2][DMLK_ISA_AVX2] = {16, avx2_2},
    [4][DMLK_ISA_AVX2] = {8, avx2_4},
    [8][DMLK_ISA_AVX2] = {4, avx2_8},
    [4][DMLK_ISA_AVX512] = {16, avx512_4},
    [8][DMLK_ISA_AVX512] = {8, avx512_8},
#endif
#endif
};

/* The largest squares that a block holds and the CPU can handle. */
static struct squares choose(int64_t bytes, int64_t rows, int64_t columns) {
    struct squares none = {0, NULL};
    for (int isa = (int)dmlk_isa(); isa >= 0; isa--) {
        const struct squares s = squares[bytes][isa];
        if (s.size > 0 && s.size <= rows && s.size <= columns) {
            return s;
        }
    }
    return none;
}

#define PLAIN(T)                                                                                \
    for (int64_t j = 0; j < rows; j++) {                                                        \
        for (int64_t i = 0; i < columns; i++) {                                                 \
            ((T *)(to + j * to_step))[i] = *(const T *)(from + i * from_step + j * from_stride); \
        }                                                                                       \
    }                                                                                           \
    break

static void transpose_plain(int64_t bytes, const uint8_t *from, int64_t from_step, int64_t from_stride, uint8_t *to,
                            int64_t to_step, int64_t rows, int64_t columns) {
    switch (bytes) {
    case 1: PLAIN(uint8_t);
    case 2: PLAIN(uint16_t);
    case 4: PLAIN(uint32_t);
    default: PLAIN(uint64_t);
    }
}

/* What is done besides. */
struct besides {
    int64_t ahead;  /* bytes from a block to one that is fetched meanwhile; 0: none */
    bool to_memory; /* lines of the result are fetched before they are written */
};

/* Copies a strided row to contiguous elements. */
static inline void copy_row(int64_t bytes, const uint8_t *from, int64_t stride, uint8_t *to, int64_t count) {
    const int64_t size = count * bytes;
    if (stride != bytes) {
        dmlk_gather(from, stride, bytes, count, to);
    } else if (size < DMLK_LINE) {
        memcpy(to, from, (size_t)size);
    } else {
        for (int64_t b = 0; b < size; b += DMLK_LINE) {
            b = b < size - DMLK_LINE ? b : size - DMLK_LINE;
            memcpy(to + b, from + b, DMLK_LINE);
        }
    }
}

/* Rows of at most STRIP bytes.  If the rows of a square would evict each other from the cache, as with steps that
 * are multiples of a power of two, or if their elements are strided, they are first copied to a strip. */
static void transpose_block(int64_t bytes, const uint8_t *from, int64_t from_step, int64_t from_stride, uint8_t *to,
                            int64_t to_step, int64_t rows, int64_t columns, struct besides besides) {
    _Alignas(DMLK_LINE) uint8_t strip[16 * STRIP];
    const struct squares s = choose(bytes, rows, columns);
    if (s.size == 0) {
        transpose_plain(bytes, from, from_step, from_stride, to, to_step, rows, columns);
        return;
    }
    const bool to_strip = from_stride != bytes || from_step % CROWDED == 0;
    const int64_t step = to_strip ? (rows * bytes + DMLK_LINE - 1) / DMLK_LINE * DMLK_LINE : from_step;
    /* The last squares end with the block and overlap the previous ones. */
    for (int64_t i = 0; i < columns; i += s.size) {
        i = i < columns - s.size ? i : columns - s.size;
        const uint8_t *first = from + i * from_step;
        for (int64_t k = 0; k < s.size; k++) {
            dmlk_fetch(first + k * from_step + besides.ahead, besides.ahead != 0 ? rows * from_stride : 0);
            if (to_strip) {
                copy_row(bytes, first + k * from_step, from_stride, strip + k * step, rows);
            }
        }
        for (int64_t j = 0; j < rows; j += s.size) {
            j = j < rows - s.size ? j : rows - s.size;
            uint8_t *at = to + j * to_step + i * bytes;
            for (int64_t k = 0; k < s.size && besides.to_memory; k++) { /* for the squares of the next i */
                __builtin_prefetch(at + k * to_step + s.size * bytes, 1);
            }
            s.run((to_strip ? strip : first) + j * bytes, step, at, to_step);
        }
    }
}

static void transpose(int64_t bytes, const uint8_t *from, int64_t from_step, int64_t from_stride, uint8_t *to,
                      int64_t to_step, int64_t rows, int64_t columns, struct besides besides) {
    const int64_t ahead = besides.ahead;
    if (from_step == bytes) { /* nothing to transpose */
        for (int64_t j = 0; j < rows; j++) {
            dmlk_fetch(from + j * from_stride + ahead, ahead != 0 ? columns * bytes : 0);
            copy_row(bytes, from + j * from_stride, bytes, to + j * to_step, columns);
        }
        return;
    }
    const int64_t most = STRIP / bytes;
    for (int64_t j = 0; j < rows; j += most) {
        transpose_block(bytes, from + j * from_stride, from_step, from_stride, to + j * to_step, to_step,
                        rows - j < most ? rows - j : most, columns, besides);
    }
}

void dmlk_transpose(int64_t bytes, const uint8_t *from, int64_t from_step, int64_t from_stride, uint8_t *to,
                    int64_t to_step, int64_t rows, int64_t columns) {
    transpose(bytes, from, from_step, from_stride, to, to_step, rows, columns, (struct besides){0});
}

void dmlk_transpose_fetching(int64_t bytes, const uint8_t *from, int64_t from_step, int64_t from_stride, uint8_t *to,
                             int64_t to_step, int64_t rows, int64_t columns, int64_t ahead) {
    transpose(bytes, from, from_step, from_stride, to, to_step, rows, columns, (struct besides){.ahead = ahead});
}

void dmlk_transpose_to_memory(int64_t bytes, const uint8_t *from, int64_t from_step, int64_t from_stride, uint8_t *to,
                              int64_t to_step, int64_t rows, int64_t columns) {
    transpose(bytes, from, from_step, from_stride, to, to_step, rows, columns, (struct besides){.to_memory = true});
}

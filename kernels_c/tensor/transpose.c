/* transpose.c - see transpose.h. */
#include "transpose.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "gather.h"
#include "cpu.h"

#define LINE 64
#define CROWDED 1024 /* bytes: 16 lines at this distance conflict in a first-level cache */
#define STRIP 512 /* bytes of a row */

typedef void square(const uint8_t *from, int64_t from_step, uint8_t *to, int64_t to_step);

/* Squares of `size` x `size` elements; 0: there are none. */
struct squares {
    int64_t size;
    square *run;
};

#if defined(__GNUC__) && !defined(__clang__)

/* Permutation indices that interleave two vectors of N; the second vector's elements are numbered from N. */
#define LOW_2 0, 2
#define HIGH_2 1, 3
#define LOW_4 0, 4, 1, 5
#define HIGH_4 2, 6, 3, 7
#define LOW_8 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_8 4, 12, 5, 13, 6, 14, 7, 15
#define LOW_16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define DMLK_JOIN_(a, b) a##_##b
#define DMLK_JOIN(a, b) DMLK_JOIN_(a, b)

#define SQUARE generic_1
#define T uint8_t
#define N 8
#define INSTRUCTIONS
#include "transpose.inc"

#define SQUARE generic_2
#define T uint16_t
#define N 8
#define INSTRUCTIONS
#include "transpose.inc"

#define SQUARE generic_4
#define T uint32_t
#define N 4
#define INSTRUCTIONS
#include "transpose.inc"

#define SQUARE generic_8
#define T uint64_t
#define N 2
#define INSTRUCTIONS
#include "transpose.inc"

#ifdef DMLK_X86

#define SQUARE avx2_1
#define T uint8_t
#define N 16
#define INSTRUCTIONS DMLK_AVX2
#include "transpose.inc"

#define SQUARE avx2_4
#define T uint32_t
#define N 8
#define INSTRUCTIONS DMLK_AVX2
#include "transpose.inc"

#define SQUARE avx2_8
#define T uint64_t
#define N 4
#define INSTRUCTIONS DMLK_AVX2
#include "transpose.inc"

#define SQUARE avx512_2
#define T uint16_t
#define N 16
#define INSTRUCTIONS DMLK_AVX512
#include "transpose.inc"

#define SQUARE avx512_4
#define T uint32_t
#define N 16
#define INSTRUCTIONS DMLK_AVX512
#include "transpose.inc"

#define SQUARE avx512_8
#define T uint64_t
#define N 8
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
    [4][DMLK_ISA_AVX2] = {8, avx2_4},
    [8][DMLK_ISA_AVX2] = {4, avx2_8},
    [2][DMLK_ISA_AVX512] = {16, avx512_2},
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

/* Prefetches, but not into the first-level cache, which cannot hold a whole tile. */
static inline void fetch(const uint8_t *from, int64_t bytes) {
    for (int64_t b = 0; b < bytes; b += LINE) {
        __builtin_prefetch(from + b, 0, 2);
    }
}

/* Copies a strided row to contiguous elements. */
static inline void copy_row(int64_t bytes, const uint8_t *from, int64_t stride, uint8_t *to, int64_t count) {
    const int64_t size = count * bytes;
    if (stride != bytes) {
        dmlk_gather(from, stride, bytes, count, to);
    } else if (size < LINE) {
        memcpy(to, from, (size_t)size);
    } else {
        for (int64_t b = 0; b < size; b += LINE) {
            b = b < size - LINE ? b : size - LINE;
            memcpy(to + b, from + b, LINE);
        }
    }
}

/* Rows of at most STRIP bytes.  If the rows of a square would evict each other from the cache, as with steps that
 * are multiples of a power of two, or if their elements are strided, they are first copied to a strip. */
static void transpose_block(int64_t bytes, const uint8_t *from, int64_t from_step, int64_t from_stride, uint8_t *to,
                            int64_t to_step, int64_t rows, int64_t columns, int64_t ahead) {
    _Alignas(LINE) uint8_t strip[16 * STRIP];
    const struct squares s = choose(bytes, rows, columns);
    if (s.size == 0) {
        transpose_plain(bytes, from, from_step, from_stride, to, to_step, rows, columns);
        return;
    }
    const bool to_strip = from_stride != bytes || from_step % CROWDED == 0;
    const int64_t step = to_strip ? (rows * bytes + LINE - 1) / LINE * LINE : from_step;
    /* The last squares end with the block and overlap the previous ones. */
    for (int64_t i = 0; i < columns; i += s.size) {
        i = i < columns - s.size ? i : columns - s.size;
        const uint8_t *first = from + i * from_step;
        for (int64_t k = 0; k < s.size; k++) {
            fetch(first + k * from_step + ahead, ahead != 0 ? rows * from_stride : 0);
            if (to_strip) {
                copy_row(bytes, first + k * from_step, from_stride, strip + k * step, rows);
            }
        }
        for (int64_t j = 0; j < rows; j += s.size) {
            j = j < rows - s.size ? j : rows - s.size;
            s.run((to_strip ? strip : first) + j * bytes, step, to + j * to_step + i * bytes, to_step);
        }
    }
}

void dmlk_transpose(int64_t bytes, const uint8_t *from, int64_t from_step, int64_t from_stride, uint8_t *to,
                    int64_t to_step, int64_t rows, int64_t columns, int64_t ahead) {
    if (from_step == bytes) { /* nothing to transpose */
        for (int64_t j = 0; j < rows; j++) {
            fetch(from + j * from_stride + ahead, ahead != 0 ? columns * bytes : 0);
            copy_row(bytes, from + j * from_stride, bytes, to + j * to_step, columns);
        }
        return;
    }
    const int64_t most = STRIP / bytes;
    for (int64_t j = 0; j < rows; j += most) {
        transpose_block(bytes, from + j * from_stride, from_step, from_stride, to + j * to_step, to_step,
                        rows - j < most ? rows - j : most, columns, ahead);
    }
}

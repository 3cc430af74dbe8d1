/* dot32.c - see dot32.h.  The generic tile is the definition; the others give the same bits. */
#include "dot32.h"

#include <math.h>

#define ROWS DMLK_DOT32_ROWS
#define COLUMNS DMLK_DOT32_COLUMNS

#define PARAMETERS \
    const float(*columns)[COLUMNS], const float *rows, int64_t row_stride, int64_t depth, float(*sums)[COLUMNS]

static void generic(PARAMETERS) {
    for (int64_t k = 0; k < depth; k++) {
        for (int r = 0; r < ROWS; r++) {
            for (int j = 0; j < COLUMNS; j++) {
                sums[r][j] = fmaf(rows[r * row_stride + k], columns[k][j], sums[r][j]);
            }
        }
    }
}

#ifdef DMLK_X86
#include <immintrin.h>

/* --- AVX2 and FMA: four rows by 24 columns at a time, 12 of 16 registers --- */

#define FOUR_ROWS(DO) DO(0) DO(1) DO(2) DO(3)
#define LOAD(r)                                      \
    __m256 a##r = _mm256_loadu_ps(sums[r] + j),      \
           b##r = _mm256_loadu_ps(sums[r] + j + 8),  \
           c##r = _mm256_loadu_ps(sums[r] + j + 16);
#define STEP(r)                                                              \
    {                                                                        \
        const __m256 row = _mm256_broadcast_ss(rows + r * row_stride + k);   \
        a##r = _mm256_fmadd_ps(row, columns_0, a##r);                        \
        b##r = _mm256_fmadd_ps(row, columns_8, b##r);                        \
        c##r = _mm256_fmadd_ps(row, columns_16, c##r);                       \
    }
#define STORE(r)                                  \
    _mm256_storeu_ps(sums[r] + j, a##r);          \
    _mm256_storeu_ps(sums[r] + j + 8, b##r);      \
    _mm256_storeu_ps(sums[r] + j + 16, c##r);

DMLK_AVX2 static void avx2_4x24(PARAMETERS, int j) {
    FOUR_ROWS(LOAD)
    for (int64_t k = 0; k < depth; k++) {
        const float *at = columns[k] + j;
        const __m256 columns_0 = _mm256_loadu_ps(at), columns_8 = _mm256_loadu_ps(at + 8);
        const __m256 columns_16 = _mm256_loadu_ps(at + 16);
        FOUR_ROWS(STEP)
    }
    FOUR_ROWS(STORE)
}

DMLK_AVX2 static void avx2(PARAMETERS) {
    for (int j = 0; j < COLUMNS; j += 24) {
        avx2_4x24(columns, rows, row_stride, depth, sums, j);
        avx2_4x24(columns, rows + 4 * row_stride, row_stride, depth, sums + 4, j);
    }
}

#undef LOAD
#undef STEP
#undef STORE

/* --- AVX-512 --- */

/* Written as instructions: left to themselves, compilers keep the sums in memory. */
#define SPREAD(to, from) __asm__("vbroadcastss %1, %0" : "=v"(to) : "m"(*(from)))
#define MULTIPLY(sum, row, columns) __asm__("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(row), "v"(columns))

#define EIGHT_ROWS(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#define LOAD(r) \
    __m512 a##r = _mm512_loadu_ps(sums[r]), b##r = _mm512_loadu_ps(sums[r] + 16), c##r = _mm512_loadu_ps(sums[r] + 32);
#define STEP(r)                              \
    {                                        \
        __m512 row;                          \
        SPREAD(row, at_row + r * row_stride); \
        MULTIPLY(a##r, row, columns_0);      \
        MULTIPLY(b##r, row, columns_16);     \
        MULTIPLY(c##r, row, columns_32);     \
    }
#define STORE(r)                          \
    _mm512_storeu_ps(sums[r], a##r);      \
    _mm512_storeu_ps(sums[r] + 16, b##r); \
    _mm512_storeu_ps(sums[r] + 32, c##r);

DMLK_AVX512 static void avx512(PARAMETERS) {
    EIGHT_ROWS(LOAD)
    for (int64_t k = 0; k < depth; k++) {
        const float *at = columns[k], *at_row = rows + k;
        const __m512 columns_0 = _mm512_loadu_ps(at), columns_16 = _mm512_loadu_ps(at + 16);
        const __m512 columns_32 = _mm512_loadu_ps(at + 32);
        EIGHT_ROWS(STEP)
    }
    EIGHT_ROWS(STORE)
}

static dmlk_dot32 *const tiles[] = {generic, avx2, avx512};
#else
static dmlk_dot32 *const tiles[] = {generic};
#endif

dmlk_dot32 *dmlk_dot32_tile(enum dmlk_isa isa) { return tiles[isa]; }

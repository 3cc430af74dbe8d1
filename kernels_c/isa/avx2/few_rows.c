#include "few_rows.h"

#include <immintrin.h>

#define MOST_ROWS 4 /* rows at a time; their sums and eight columns fill the registers */
#define AHEAD 128   /* elements of a column between the multiplied and the prefetched ones */

/* Loads eight elements of eight columns, transposed: to[k] has element k of each column. */
static inline void load_square(const float *from, int64_t stride, __m256 to[8]) {
    __m256 pairs[8], x[8];
    for (int i = 0; i < 8; i++) {
        x[i] = _mm256_loadu_ps(from + i * stride);
    }
    for (int i = 0; i < 8; i += 2) {
        pairs[i] = _mm256_unpacklo_ps(x[i], x[i + 1]);
        pairs[i + 1] = _mm256_unpackhi_ps(x[i], x[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) { /* x[i + k]: elements k and k + 4 of four columns */
        x[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
        x[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xee);
        x[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
        x[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xee);
    }
    for (int k = 0; k < 4; k++) {
        to[k] = _mm256_permute2f128_ps(x[k], x[k + 4], 0x20);
        to[k + 4] = _mm256_permute2f128_ps(x[k], x[k + 4], 0x31);
    }
}

static inline __attribute__((always_inline)) void add_columns(const int count, const float *rows, int64_t row_stride,
                                                                        const float *columns, int64_t stride, int64_t depth,
                                                                        float *sums, int64_t sums_stride) {
    __m256 sum[MOST_ROWS], square[8];
    int64_t k = 0;
    for (int r = 0; r < count; r++) {
        sum[r] = _mm256_loadu_ps(sums + r * sums_stride);
    }
    for (; k + 8 <= depth; k += 8) {
        for (int i = 0; i < 8 && k % 16 == 0; i++) {
            _mm_prefetch((const char *)(columns + i * stride + k + AHEAD), _MM_HINT_T0);
        }
        load_square(columns + k, stride, square);
        for (int i = 0; i < 8; i++) {
            for (int r = 0; r < count; r++) {
                sum[r] = _mm256_fmadd_ps(_mm256_broadcast_ss(rows + r * row_stride + k + i), square[i], sum[r]);
            }
        }
    }
    for (; k < depth; k++) {
        float column[8];
        for (int i = 0; i < 8; i++) {
            column[i] = columns[i * stride + k];
        }
        for (int r = 0; r < count; r++) {
            sum[r] = _mm256_fmadd_ps(_mm256_broadcast_ss(rows + r * row_stride + k), _mm256_loadu_ps(column), sum[r]);
        }
    }
    for (int r = 0; r < count; r++) {
        _mm256_storeu_ps(sums + r * sums_stride, sum[r]);
    }
}

static void add_columns_any(int64_t count, const float *rows, int64_t row_stride, const float *columns, int64_t stride,
                                      int64_t depth, float *sums, int64_t sums_stride) {
    switch (count) {
    case 1: add_columns(1, rows, row_stride, columns, stride, depth, sums, sums_stride); break;
    case 2: add_columns(2, rows, row_stride, columns, stride, depth, sums, sums_stride); break;
    case 3: add_columns(3, rows, row_stride, columns, stride, depth, sums, sums_stride); break;
    default: add_columns(4, rows, row_stride, columns, stride, depth, sums, sums_stride);
    }
}

static void add_columns_of_all(const float *rows, int64_t row_stride, int64_t row_count, const float *columns, int64_t stride,
                      int64_t depth, float *sums, int64_t sums_stride) {
    for (int64_t r = 0; r < row_count; r += MOST_ROWS) {
        const int64_t count = row_count - r < MOST_ROWS ? row_count - r : MOST_ROWS;
        add_columns_any(count, rows + r * row_stride, row_stride, columns, stride, depth, sums + r * sums_stride, sums_stride);
    }
}

const struct dmlk_few_rows_form dmlk_few_rows_avx2 = {add_columns_of_all};

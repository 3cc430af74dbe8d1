#include "microkernel_f32.h"

#include <arm_neon.h>

#define ROWS 4 /* rows of a piece; with 16 columns, 16 of 32 registers hold sums */
#define VECTORS (DMLK_F32_BLOCK / 4) /* vectors of 16 columns */

/* Computes a piece: `rows` rows from row `top` on, and 16 columns from `left` on. */
static inline __attribute__((always_inline)) void piece(const dmlk_f32_kernel *t, int64_t top, int64_t left, const int rows) {
    const float *const first = t->column + dmlk_f32_column_at(t, left);
    float *to = t->sums + top * t->sums_stride + left;
    float32x4_t sums[ROWS][VECTORS];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++) {
            sums[r][v] = t->is_first ? vdupq_n_f32(0) : vld1q_f32(to + r * t->sums_stride + 4 * v);
        }
    }
    for (int64_t k = 0; k < t->depth; k++) {
        const float *column = first + (t->column_at != NULL ? t->column_at[k] : k * t->column_step);
        float32x4_t columns[VECTORS];
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++) {
            columns[v] = vld1q_f32(column + 4 * v);
        }
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            const int64_t at = t->row_at != NULL ? t->row_at[top + r] + t->step_at[k] : (top + r) * t->row_stride + k * t->row_step;
            const float32x4_t row = vld1q_dup_f32(t->row + at);
#pragma GCC unroll 4
            for (int v = 0; v < VECTORS; v++) {
                sums[r][v] = vfmaq_f32(sums[r][v], row, columns[v]);
            }
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++) {
            vst1q_f32(to + r * t->sums_stride + 4 * v, sums[r][v]);
        }
    }
}

static void tile(const dmlk_f32_kernel *t) {
    for (int64_t left = 0; left < t->columns; left += DMLK_F32_BLOCK) {
        for (int64_t top = 0; top < t->rows; top += ROWS) {
            switch (t->rows - top) {
            case 1: piece(t, top, left, 1); break;
            case 2: piece(t, top, left, 2); break;
            case 3: piece(t, top, left, 3); break;
            default: piece(t, top, left, ROWS);
            }
        }
    }
}

static void step(float row, const float *column, int64_t columns, float *sums) {
    dmlk_f32_any_step(row, column, columns, sums);
}

const struct dmlk_microkernel_f32_form dmlk_microkernel_f32_neon = {0, DMLK_F32_COLUMNS, DMLK_F32_COLUMNS, tile, step};
